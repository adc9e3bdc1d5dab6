//! A proxy in front of an S3 server, which spoils answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// What happens to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They are not passed on, and the answer has this status.
    Status(u16),
    /// They are passed on, and the answer has this status.
    StatusAfter(u16),
    /// The answer ends before all bytes were sent.
    Short,
    /// The bytes of the answer are wrong.
    Wrong,
    /// They are passed on, and there is no answer.
    Silent,
}

/// Requests that are spoiled.
#[derive(Clone, Copy, Debug)]
struct Plan {
    method: &'static str,
    fault: Fault,
}

/// A proxy. Its threads end with the process.
pub(super) struct S3Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    done: Mutex<mpsc::Receiver<()>>,
}

struct Shared {
    server: String,
    plan: Mutex<Option<Plan>>,
    left: AtomicU32,
    /// The number of requests that are passed on before those that are spoiled.
    spared: AtomicU32,
    /// Says that a request was passed on whose answer is not.
    done: Mutex<mpsc::Sender<()>>,
}

impl S3Proxy {
    /// Starts a proxy of the server that the environment names, or returns `None` if it names none.
    pub(super) fn start() -> Option<Self> {
        let server = std::env::var("AWS_ENDPOINT_URL").ok()?.strip_prefix("http://")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, done) = mpsc::channel();
        let shared = Arc::new(Shared {
            server,
            plan: Mutex::new(None),
            left: AtomicU32::new(0),
            spared: AtomicU32::new(0),
            done: Mutex::new(sender),
        });
        let of_threads = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&of_threads);
                std::thread::spawn(move || {
                    // A client that was killed is no failure.
                    let _ = shared.pass(client);
                });
            }
        });
        Some(Self { address, shared, done: Mutex::new(done) })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Spoils the next `count` requests for objects with blobs.
    pub(super) fn spoil(&self, count: u32, method: &'static str, fault: Fault) {
        *self.shared.plan.lock().unwrap() = Some(Plan { method, fault });
        self.shared.left.store(count, Ordering::SeqCst);
    }

    /// Spoils a request for an object with blobs, after `spared` others.
    pub(super) fn spoil_after(&self, spared: u32, method: &'static str, fault: Fault) {
        self.shared.spared.store(spared, Ordering::SeqCst);
        self.spoil(1, method, fault);
    }

    /// Returns how many requests are still to be spoiled.
    pub(super) fn left(&self) -> u32 {
        self.shared.left.load(Ordering::SeqCst)
    }

    /// Waits until a request was passed on and its answer withheld.
    pub(super) fn wait(&self) {
        self.done.lock().unwrap().recv().unwrap();
    }
}

impl Shared {
    /// Answers one request, and closes the connection.
    fn pass(&self, mut client: TcpStream) -> std::io::Result<()> {
        let Some((head, body)) = read_request(&mut client)? else { return Ok(()) };
        let fault = self.fault(&head);
        if let Some(Fault::Status(status)) = fault {
            return client.write_all(refusal(status).as_bytes());
        }
        let mut answer = self.ask(&head, &body)?;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        match fault {
            Some(Fault::StatusAfter(status)) => answer = refusal(status).into_bytes(),
            Some(Fault::Short) => answer.truncate(end + (answer.len() - end) / 2),
            Some(Fault::Wrong) => answer[end..].iter_mut().for_each(|byte| *byte ^= 0x55),
            Some(Fault::Silent) => {
                self.done.lock().unwrap().send(()).unwrap();
                // Until the client gives up.
                let _ = client.read(&mut [0]);
                return Ok(());
            }
            Some(Fault::Status(_)) | None => {}
        }
        client.write_all(&answer)
    }

    fn fault(&self, head: &str) -> Option<Fault> {
        let plan = (*self.plan.lock().unwrap())?;
        let matches = head.starts_with(plan.method) && head.lines().next()?.contains("/blobs/");
        let take = |left: &AtomicU32| {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        };
        (matches && !take(&self.spared) && take(&self.left)).then_some(plan.fault)
    }

    /// Returns the whole answer of the server.
    fn ask(&self, head: &str, body: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(&self.server)?;
        let (first, others) = head.split_once("\r\n").unwrap_or((head, ""));
        write!(server, "{first}\r\nconnection: close\r\n{others}")?;
        server.write_all(body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

fn refusal(status: u16) -> String {
    format!("HTTP/1.1 {status} Not now\r\ncontent-length: 6\r\nconnection: close\r\n\r\ns3cret")
}

/// Returns the head of a request with the empty line, and its body.
pub(super) fn read_request(client: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&buffer[..count]);
    };
    let body = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = body;
    let missing = length.unwrap_or(0).saturating_sub(body.len()) as u64;
    client.take(missing).read_to_end(&mut body)?;
    Ok(Some((head, body)))
}
