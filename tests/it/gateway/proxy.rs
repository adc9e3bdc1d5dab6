//! Servers that are asked through a proxy.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use super::Process;
use super::client::chat;
use super::upstream::Upstream;
use crate::sandbox::Sandbox;

/// Starts a proxy that answers each request with a status, and returns the heads of the requests.
fn proxy(status: u16) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&heads);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut writer = stream.unwrap();
            let mut head = String::new();
            let mut reader = BufReader::new(writer.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            seen.lock().unwrap().push(head);
            // The body of the request can still be on its way.
            let _ =
                write!(writer, "HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        }
    });
    (address, heads)
}

fn ask(variables: &[(&str, &str)], server: &str) -> super::client::Answer {
    let sandbox = Sandbox::without_vault();
    let server = format!("--upstream=openai={server}");
    let gateway = Process::start_in(&sandbox, variables, &["--create", "--mode=record", &server]);
    chat(gateway.address, "one", false)
}

#[test]
fn servers_are_asked_through_the_proxy_of_the_environment() {
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let (address, heads) = proxy(200);
        let url = format!("http://user:p%40ss@{address}");
        ask(&[(variable, &url)], "http://models.invalid/v1").expect(200);
        let head = heads.lock().unwrap().remove(0).to_ascii_lowercase();
        assert!(head.starts_with("post http://models.invalid/v1/chat/completions http/1.1\r\n"), "{head}");
        // The user and the password.
        assert!(head.contains("proxy-authorization: basic dxnlcjpwqhnz\r\n"), "{head}");
    }
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let (address, heads) = proxy(403);
        let url = format!("http://user:p%40ss@{address}");
        let failed = ask(&[(variable, &url)], "https://models.invalid").expect(502);
        let head = heads.lock().unwrap().remove(0);
        assert!(head.starts_with("CONNECT models.invalid:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic dXNlcjpwQHNz\r\n"), "{head}");
        let detail = failed.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(&format!("through the proxy http://{address}: ")), "{detail}");
        assert!(!detail.contains("user") && !detail.contains("ss@"), "{detail}");
    }
}

#[test]
fn servers_of_no_proxy_are_asked_directly() {
    let (address, heads) = proxy(200);
    let (proxy, upstream) = (format!("http://{address}"), Upstream::start());
    let variables = [("HTTP_PROXY", proxy.as_str()), ("NO_PROXY", "models.example,127.0.0.0/8")];
    ask(&variables, &format!("http://{}", upstream.address)).expect(200);
    assert_eq!((upstream.requests(), heads.lock().unwrap().len()), (1, 0));
}

#[test]
fn a_proxy_that_asks_for_a_password_is_named() {
    let (address, _) = proxy(407);
    for server in ["http://models.invalid", "https://models.invalid"] {
        let failed = ask(&[("ALL_PROXY", &format!("http://{address}"))], server).expect(502).json();
        let detail = failed["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("through the proxy http://{address}: ")), "{detail}");
        assert!(detail.contains("proxy authorization required"), "{detail}");
    }
}
