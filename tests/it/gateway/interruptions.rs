//! Servers that are slow, clients that do not wait, and a vault that is not there any more.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use runvault::gateway::{FinishError, GatewayEvent, GatewayMode};

use super::client::{chat, request};
use super::scripted::{options, response, server};
use super::upstream::Upstream;
use super::{kinds, spooled, start, started, steps};
use crate::sandbox::Sandbox;

/// How long a report may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

#[test]
fn a_slow_last_event_is_complete() {
    let sandbox = Sandbox::without_vault();
    let upstream = server(|_| {
        let begun = response("text/event-stream", "event: response.completed\n");
        vec![(0, begun), (1_300, "data: {\"type\":\"response.completed\"}\n\n".to_owned())]
    });
    let gateway = started(&sandbox, options(&sandbox, GatewayMode::Record, upstream)).unwrap();
    let answer = request(gateway.address(), "POST /openai/v1/responses", &[], r#"{"stream":true}"#);
    gateway.stop().unwrap();
    assert!(answer.body.ends_with("data: {\"type\":\"response.completed\"}\n\n"), "{answer:?}");
    assert_eq!(steps(&sandbox)[1]["output"]["content"], answer.body);
}

#[test]
fn a_call_for_which_the_client_does_not_wait_is_a_failure() {
    let sandbox = Sandbox::without_vault();
    let (asked, was_asked) = mpsc::channel();
    let (answer, may_answer) = mpsc::channel::<()>();
    let (asked, may_answer) = (Mutex::new(asked), Mutex::new(may_answer));
    let upstream = server(move |_| {
        asked.lock().unwrap().send(()).unwrap();
        // Until the test ends.
        let _ = may_answer.lock().unwrap().recv();
        Vec::new()
    });
    let (report, reported) = mpsc::channel();
    let report = Mutex::new(report);
    let mut options = options(&sandbox, GatewayMode::Record, upstream);
    options.report = Arc::new(move |event| {
        if let GatewayEvent::NotRecorded { reason, .. } = event {
            report.lock().unwrap().send((*reason).to_owned()).unwrap();
        }
    });
    let gateway = started(&sandbox, options).unwrap();
    let address = gateway.address();
    let mut client = TcpStream::connect(address).unwrap();
    let head =
        format!("POST /openai/v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-length: 2\r\n\r\n{{}}");
    client.write_all(head.as_bytes()).unwrap();
    was_asked.recv_timeout(TIMEOUT).unwrap();
    drop(client);
    assert_eq!(reported.recv_timeout(TIMEOUT).unwrap(), "the client closed the connection");
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (1, 1));
    assert_eq!(steps(&sandbox)[1]["type"], "error.event");
    drop(answer);
}

#[test]
fn calls_are_kept_if_the_vault_was_removed_or_replaced() {
    for is_replaced in [false, true] {
        let (sandbox, upstream) = (Sandbox::new(), Upstream::start());
        let gateway = start(&sandbox, GatewayMode::Record, &upstream);
        chat(gateway.address(), "one", false).expect(200);
        std::fs::rename(sandbox.vault(), sandbox.path("moved")).unwrap();
        if is_replaced {
            std::fs::write(sandbox.vault(), "another file").unwrap();
        }
        let error = gateway.stop().unwrap_err();
        assert!(matches!(error, FinishError::VaultReplaced { .. }), "{error}");
        assert!(error.to_string().contains("spool"), "{error}");
        assert!(spooled(&sandbox).contains("answer 0"));
        // The next start stores them.
        std::fs::rename(sandbox.path("moved"), sandbox.vault()).unwrap();
        start(&sandbox, GatewayMode::Record, &upstream).stop().unwrap();
        assert_eq!((kinds(&sandbox).len(), spooled(&sandbox)), (2, String::new()));
    }
}
