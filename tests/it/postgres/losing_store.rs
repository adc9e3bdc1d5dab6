//! An S3 server in memory that lets several writers create the same object.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::s3_proxy::read_request;

/// How it fails to create an object once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lapse {
    /// It ignores the condition of a request.
    Ignored,
    /// It checks the condition, and others do so, too, before it stores the object. Whoever writes after that is refused.
    Overtaken,
}

/// A server. Its threads end with the process.
pub(super) struct LosingStore {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    lapse: Lapse,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    /// How many writers found that an object did not exist.
    creating: BTreeMap<String, u32>,
    refused: u32,
}

impl LosingStore {
    pub(super) fn start(lapse: Lapse) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { lapse, state: Mutex::default(), changed: Condvar::new() });
        let of_threads = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&of_threads);
                std::thread::spawn(move || {
                    // A client that closes the connection is no failure.
                    let _ = shared.answer(client);
                });
            }
        });
        Self { address, shared }
    }

    /// Returns the settings of clients.
    pub(super) fn settings(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "tests".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "not-a-secret".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    /// Returns the paths of the objects that it has.
    pub(super) fn objects(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Returns how many objects were to be created, and how many requests for that were refused.
    pub(super) fn created(&self) -> (usize, u32) {
        let state = self.shared.state.lock().unwrap();
        (state.creating.len(), state.refused)
    }
}

impl Shared {
    fn answer(&self, mut client: TcpStream) -> std::io::Result<()> {
        let Some((head, body)) = read_request(&mut client)? else { return Ok(()) };
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (status, body) = match method {
            "PUT" => (self.create(path, body), Vec::new()),
            "GET" => match self.state.lock().unwrap().objects.get(path) {
                Some(bytes) => ("200 OK", bytes.clone()),
                None => ("404 Not Found", Vec::new()),
            },
            "POST" if path.ends_with("?delete") => {
                ("200 OK", self.delete(path, &String::from_utf8_lossy(&body)).into_bytes())
            }
            _ => ("405 Method Not Allowed", Vec::new()),
        };
        write!(
            client,
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\netag: \"one\"\r\nlast-modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n\
             connection: close\r\n\r\n",
            body.len()
        )?;
        client.write_all(&body)
    }

    /// Deletes the objects of a bucket whose keys a document lists, and returns the answer.
    fn delete(&self, path: &str, document: &str) -> String {
        let bucket = path.trim_end_matches("?delete").trim_end_matches('/');
        let keys = document.split("<Key>").skip(1).map(|listed| listed.split("</Key>").next().unwrap());
        let delete = |key| {
            self.state.lock().unwrap().objects.remove(&format!("{bucket}/{key}"));
            format!("<Deleted><Key>{key}</Key></Deleted>")
        };
        format!("<DeleteResult>{}</DeleteResult>", keys.map(delete).collect::<String>())
    }

    fn create(&self, path: &str, body: Vec<u8>) -> &'static str {
        let mut state = self.state.lock().unwrap();
        if self.lapse == Lapse::Overtaken && state.objects.contains_key(path) {
            state.refused += 1;
            return "412 Precondition Failed";
        }
        *state.creating.entry(path.to_owned()).or_default() += 1;
        if self.lapse == Lapse::Overtaken {
            self.changed.notify_all();
            let is_alone = |state: &mut State| state.creating[path] < 2;
            // A writer without competitors would be answered late.
            let waited = self.changed.wait_timeout_while(state, Duration::from_mins(1), is_alone);
            state = waited.unwrap().0;
        }
        state.objects.insert(path.to_owned(), body);
        "200 OK"
    }
}
