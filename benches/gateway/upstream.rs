//! A server of models: it answers at once, and states in each part of a stream when it was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// Number of parts of a stream before its end.
pub const CHUNKS: usize = 20;

/// The time between two parts.
const BETWEEN: Duration = Duration::from_millis(2);

/// The clock of the server and the client.
static CLOCK: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the nanoseconds since the first call.
pub fn now() -> u64 {
    u64::try_from(CLOCK.elapsed().as_nanos()).expect("a time")
}

/// A running server. Its threads end with the process.
pub struct Upstream {
    pub address: SocketAddr,
}

impl Upstream {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || serve(stream.expect("a connection")));
            }
        });
        Self { address }
    }
}

fn serve(mut stream: TcpStream) {
    stream.set_nodelay(true).expect("a socket");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let is_stream = String::from_utf8_lossy(&body).contains("\"stream\":true");
        // A client that left is no failure.
        if (if is_stream { send_stream(&mut stream) } else { send(&mut stream) }).is_err() {
            return;
        }
    }
}

fn send(stream: &mut TcpStream) -> std::io::Result<()> {
    let content = "It is a bug. ".repeat(80);
    let body = format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"{content}"}}}}]}}"#);
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

fn send_stream(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    for _ in 0..CHUNKS {
        let choice = r#"{"index":0,"delta":{"content":"It is a bug. "}}"#;
        let sent = now();
        chunk(stream, &format!("data: {{\"sent\":{sent:020},\"choices\":[{choice}]}}\n\n"))?;
        thread::sleep(BETWEEN);
    }
    let sent = now();
    chunk(stream, &format!("data: {{\"sent\":{sent:020},\"choices\":[]}}\n\ndata: [DONE]\n\n"))?;
    stream.write_all(b"0\r\n\r\n")
}

fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}
