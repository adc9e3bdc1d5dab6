//! A client that keeps its connection, and notes when each part of an answer arrives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::upstream::now;

/// The member of a part with the time at which it was sent.
const SENT: &str = "\"sent\":";

pub struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    address: SocketAddr,
}

/// When an answer arrived.
pub struct Timing {
    /// From the request to the first byte of the body.
    pub first: Duration,
    /// From the request to the last byte.
    pub last: Duration,
    /// For each part of a stream, from its sending to its arrival; of replayed ones, not known.
    pub delays: Vec<Duration>,
    /// From the sending of the last part of a stream to the last byte.
    pub end: Option<Duration>,
    pub bytes: usize,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let reader = BufReader::new(stream.try_clone().expect("a socket"));
        Self { stream, reader, address }
    }

    /// Asks for a chat completion. The number makes the prompt.
    pub fn ask(&mut self, path: &str, number: usize, stream: bool) -> Timing {
        let prompt = format!("Which label fits ticket {number}? {}", "The export stops. ".repeat(50));
        let body = format!(
            r#"{{"model":"m","stream":{stream},"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
        );
        let (address, length) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let began = now();
        self.stream.write_all(request.as_bytes()).expect("sent");
        self.answer(began)
    }

    fn answer(&mut self, began: u64) -> Timing {
        let mut length = None;
        let mut line = String::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line).expect("a header");
            assert!(!line.is_empty(), "the connection was closed");
            assert!(!line.starts_with("HTTP/1.1 ") || line.contains(" 200"), "{line}");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = Some(value.trim().parse().expect("a length"));
            }
            if line == "\r\n" {
                break;
            }
        }
        match length {
            Some(length) => self.whole(began, length),
            None => self.chunks(began),
        }
    }

    fn whole(&mut self, began: u64, length: usize) -> Timing {
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body[..1]).expect("a body");
        let first = since(began);
        self.reader.read_exact(&mut body[1..]).expect("a body");
        Timing { first, last: since(began), delays: Vec::new(), end: None, bytes: length }
    }

    fn chunks(&mut self, began: u64) -> Timing {
        let mut timing =
            Timing { first: Duration::ZERO, last: Duration::ZERO, delays: Vec::new(), end: None, bytes: 0 };
        let mut last_sent = 0;
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("a chunk");
            let length = usize::from_str_radix(line.trim(), 16).expect("a length");
            let mut chunk = vec![0; length + 2];
            self.reader.read_exact(&mut chunk).expect("a chunk");
            if length == 0 {
                break;
            }
            if timing.bytes == 0 {
                timing.first = since(began);
            }
            timing.bytes += length;
            let text = String::from_utf8_lossy(&chunk);
            // One chunk can have several parts, if they arrived together.
            for (at, _) in text.match_indices(SENT) {
                let sent = text.get(at + SENT.len()..at + SENT.len() + 20).and_then(|sent| sent.parse().ok());
                last_sent = sent.expect("a time");
                // A replayed part was sent before the request.
                if last_sent > began {
                    timing.delays.push(since(last_sent));
                }
            }
        }
        timing.last = since(began);
        timing.end = (last_sent > began).then(|| since(last_sent));
        timing
    }
}

fn since(nanos: u64) -> Duration {
    Duration::from_nanos(now() - nanos)
}
