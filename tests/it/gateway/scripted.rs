//! A server that sends what a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use runvault::gateway::{GatewayMode, GatewayOptions, Upstream as Server};

use crate::sandbox::Sandbox;

/// The parts of a response for a request line and a body, each with the time that the server takes before it.
type Script = dyn Fn(&str, &[u8]) -> Vec<(u64, Vec<u8>)> + Send + Sync;

/// Starts a server. It closes each connection after the response.
pub(crate) fn server(script: impl Fn(&str) -> Vec<(u64, String)> + Send + Sync + 'static) -> SocketAddr {
    let bytes = |(wait, part): (u64, String)| (wait, part.into_bytes());
    server_of_bytes(move |line, _| script(line).into_iter().map(bytes).collect())
}

/// Starts a server of bodies that can be compressed.
pub(crate) fn server_of_bytes(
    script: impl Fn(&str, &[u8]) -> Vec<(u64, Vec<u8>)> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script: Arc<Script> = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (script, stream) = (Arc::clone(&script), stream.unwrap());
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut lines, mut length) = (Vec::new(), 0);
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        break;
                    }
                    lines.push(line);
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let mut writer = stream;
                for (milliseconds, part) in script(&lines[0], &body) {
                    thread::sleep(Duration::from_millis(milliseconds));
                    // The client may have left.
                    if writer.write_all(&part).and_then(|()| writer.flush()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Returns a response that ends when the connection is closed.
pub(crate) fn response(content_type: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n{body}")
}

/// Returns options with which all known providers, and `local`, are a server.
pub(crate) fn options(sandbox: &Sandbox, mode: GatewayMode, server: SocketAddr) -> GatewayOptions {
    let mut options = GatewayOptions::new(mode, &sandbox.path("spool"));
    let named = |name: &str| Server::parse(&format!("{name}=http://{server}")).unwrap();
    options.upstreams = ["openai", "anthropic", "gemini", "local"].map(named).to_vec();
    options
}
