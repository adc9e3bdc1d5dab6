//! Clients that connect and send nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use runvault::gateway::GatewayMode;

use super::client::chat;
use super::upstream::Upstream;
use super::{options, started};
use crate::sandbox::Sandbox;

/// How long the gateway may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

#[test]
fn a_connection_without_a_complete_head_is_closed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    options.head_timeout = Duration::from_millis(50);
    let gateway = started(&sandbox, options).unwrap();
    for head in ["", "POST /openai/v1/responses HTTP/1.1\r\nHost"] {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut bytes = Vec::new();
        // On a busy machine it is closed before it is written to, which is an error.
        let written = stream.write_all(head.as_bytes());
        let ended = written.and_then(|()| stream.read_to_end(&mut bytes)).map_err(|error| error.kind());
        assert!(!matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{ended:?}");
        assert!(!bytes.starts_with(b"HTTP/1.1 200"), "{ended:?}");
    }
}

/// A time limit alone would let them take all descriptors for as long.
#[cfg(unix)]
#[test]
fn idle_connections_do_not_keep_others_from_being_answered() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("--upstream=openai=http://{}", upstream.address);
    let gateway = super::Process::start_limited(&sandbox, 64, &["--create", "--mode=record", &server]);
    let idle: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
    for prompt in ["one", "two"] {
        chat(gateway.address, prompt, true).expect(200);
    }
    drop(idle);
}
