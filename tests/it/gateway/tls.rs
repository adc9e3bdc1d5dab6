//! Servers and proxies with encryption. `tests/tls/` has a certificate for 127.0.0.1, its key, and the authority that signed it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::Process;
use super::client::{Answer, chat};
use super::steps;
use crate::sandbox::{Sandbox, repository};

const COMPLETION: &str =
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;

/// Starts a server that answers each request with a completion, and returns its address.
fn server() -> SocketAddr {
    let read = |name: &str| std::fs::read(repository("tests/tls").join(name)).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(read("server-key.der")));
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = builder.with_single_cert(vec![CertificateDer::from(read("server.der"))], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let stream = StreamOwned::new(connection, stream.unwrap());
            // A client that does not trust the certificate leaves.
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(stream: StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        COMPLETION.len()
    );
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(COMPLETION.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Starts a proxy that connects each client with `server` after `greeting`, and returns its address.
fn tunnel(server: SocketAddr, greeting: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut client = stream.unwrap();
            greeting(&mut client);
            let upstream = TcpStream::connect(server).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), upstream.try_clone().unwrap()),
                (upstream.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    address
}

/// Reads `length` bytes, and returns the last one.
fn last_of(stream: &mut TcpStream, length: usize) -> u8 {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes[length - 1]
}

fn socks(client: &mut TcpStream) {
    // The version, and the number of methods of authentication.
    let methods = last_of(client, 2);
    last_of(client, methods.into());
    client.write_all(&[5, 0]).unwrap();
    // The version, the command, a zero, the type of the address: IPv4, or a name with its length.
    let is_address = last_of(client, 4) == 1;
    let length = if is_address { 4 } else { last_of(client, 1) };
    last_of(client, length.into());
    last_of(client, 2);
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).unwrap();
}

fn http_connect(client: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(last_of(client, 1));
    }
    assert!(head.starts_with(b"CONNECT "));
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
}

fn ask(sandbox: &Sandbox, variables: &[(&str, &str)], server: &str) -> Answer {
    let authority = repository("tests/tls/authority.pem");
    let trusted = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let variables: Vec<_> = trusted.into_iter().chain(variables.iter().copied()).collect();
    let server = format!("--upstream=openai={server}");
    let gateway = Process::start_in(sandbox, &variables, &["--create", "--mode=record", &server]);
    chat(gateway.address, "one", false)
}

#[test]
fn servers_with_encryption_are_asked_directly_and_through_proxies() {
    let server = server();
    let url = format!("https://{server}/v1");
    let of_socks = format!("socks5://{}", tunnel(server, socks));
    let of_http = format!("http://{}", tunnel(server, http_connect));
    for variables in [&[][..], &[("ALL_PROXY", of_socks.as_str())], &[("HTTPS_PROXY", of_http.as_str())]] {
        let sandbox = Sandbox::without_vault();
        let answer = ask(&sandbox, variables, &url).expect(200);
        assert_eq!(answer.body, COMPLETION, "{variables:?}");
    }
}

#[test]
fn proxies_with_encryption_are_asked() {
    let proxy = format!("https://{}", server());
    let sandbox = Sandbox::without_vault();
    let answer = ask(&sandbox, &[("HTTP_PROXY", &proxy)], "http://models.invalid/v1").expect(200);
    assert_eq!(answer.body, COMPLETION);
}

#[test]
fn answers_of_servers_with_encryption_are_recorded() {
    let sandbox = Sandbox::without_vault();
    let url = format!("https://{}/v1", server());
    ask(&sandbox, &[], &url).expect(200);
    // The process was killed: the next one stores its calls.
    drop(Process::start_with(&sandbox, &["--create", "--mode=record"]));
    assert_eq!(steps(&sandbox)[1]["output"]["content"], COMPLETION);
}

#[test]
fn a_certificate_that_is_not_trusted_is_an_error_that_says_what_is() {
    let sandbox = Sandbox::without_vault();
    let empty = sandbox.write("none.pem", "");
    let variables = [("SSL_CERT_FILE", empty.to_str().unwrap())];
    let server = format!("--upstream=openai=https://{}/v1", server());
    let gateway = Process::start_in(&sandbox, &variables, &["--create", "--mode=record", &server]);
    let failed = chat(gateway.address, "one", false).expect(502).json();
    let detail = failed["detail"].as_str().unwrap();
    assert!(
        detail
            .contains("trusted are the authorities of the system, or in their place those in SSL_CERT_FILE"),
        "{detail}"
    );
}
