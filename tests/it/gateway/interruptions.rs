//! Servers that are slow, clients that do not wait, and a vault that is not there any more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use runvault::gateway::{FinishError, GatewayEvent, GatewayMode};

use super::client::{chat, request};
use super::scripted::{options, response, server};
use super::upstream::Upstream;
use super::{Process, kinds, spooled, start, started, steps};
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

/// The beginning of a stream.
const BEGUN: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\
    \"content_index\":0,\"delta\":\"It is\"}\n\n";

#[test]
fn a_client_that_leaves_a_silent_stream_ends_the_call() {
    let sandbox = Sandbox::without_vault();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let (ended, has_ended) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(response("text/event-stream", BEGUN).as_bytes()).unwrap();
        // Until the gateway closes the connection.
        while stream.read(&mut request).is_ok_and(|length| length > 0) {}
        ended.send(()).unwrap();
    });
    let gateway = started(&sandbox, options(&sandbox, GatewayMode::Record, server)).unwrap();
    let address = gateway.address();
    let mut client = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /openai/v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-length: 15\r\n\r\n{{\"stream\":true}}"
    );
    client.write_all(head.as_bytes()).unwrap();
    let mut received = Vec::new();
    while !received.ends_with(format!("{BEGUN}\r\n").as_bytes()) {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
    drop(client);
    has_ended.recv_timeout(TIMEOUT).unwrap();
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (1, 1));
    assert_eq!(steps(&sandbox)[1]["output"]["partial"], BEGUN);
    let view = sandbox.run(["view", "latest", "--json"]).expect(0).json().remove(0);
    let call = &view["conversation"]["calls"][0];
    assert_eq!(call["answers"][0]["parts"][0]["text"], "It is");
    assert_eq!(call["error"], "the client closed the connection");
    assert!(call["requested_at"].is_string() && call["duration_ms"].is_number(), "{call}");
}

#[test]
fn a_run_that_could_not_be_finished_is_finished_by_the_next_attempt() {
    let (sandbox, upstream) = (Sandbox::new(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let finish = || request(gateway.address(), "POST /_runvault/finish", &[], "");
    chat(gateway.address(), "one", false).expect(200);
    std::fs::rename(sandbox.vault(), sandbox.path("moved")).unwrap();
    for _ in 0..2 {
        assert!(finish().expect(500).body.contains("removed or replaced"));
    }
    // Calls that are made in between belong to the same run.
    chat(gateway.address(), "two", false).expect(200);
    std::fs::rename(sandbox.path("moved"), sandbox.vault()).unwrap();
    assert_eq!(finish().expect(200).json()["finished"]["calls"], 2);
    assert_eq!(finish().expect(200).json()["finished"], serde_json::Value::Null);
    assert_eq!((kinds(&sandbox).len(), spooled(&sandbox)), (2, String::new()));
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

#[cfg(unix)]
#[test]
fn calls_are_kept_if_the_vault_was_overwritten_or_replaced_by_another_one() {
    for program in ["cp", "mv"] {
        let (sandbox, other, upstream) = (Sandbox::new(), Sandbox::new(), Upstream::start());
        for sandbox in [&sandbox, &other] {
            let document = crate::sandbox::session("one", &[("p", &sandbox.vault().to_string_lossy())]);
            sandbox.add([sandbox.write("one.json", document)]);
        }
        let server = format!("--upstream=openai=http://{}", upstream.address);
        let mut gateway = Process::start_with(&sandbox, &["--mode=record", "--spool=spool", &server]);
        chat(gateway.address, "one", false).expect(200);
        let copied = std::process::Command::new(program).arg(other.vault()).arg(sandbox.vault()).status();
        assert!(copied.unwrap().success());
        let id = gateway.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert_eq!(gateway.child.wait().unwrap().code(), Some(2), "{program}");
        assert!(spooled(&sandbox).contains("answer 0"), "{program}");
        // The other vault is as it was copied.
        assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "", "{program}");
        assert_eq!(kinds(&sandbox), ["model_io"], "{program}");
    }
}

/// The recordings of the vault that was there are not those of the other one.
#[cfg(unix)]
#[test]
fn nothing_is_replayed_from_a_vault_that_was_overwritten_or_replaced() {
    for program in ["cp", "mv"] {
        let (sandbox, other, upstream) = (Sandbox::new(), Sandbox::new(), Upstream::start());
        for (sandbox, prompt) in [(&sandbox, "one"), (&other, "two")] {
            let gateway = start(sandbox, GatewayMode::Record, &upstream);
            chat(gateway.address(), prompt, false).expect(200);
            gateway.stop().unwrap();
        }
        let gateway = Process::start_with(&sandbox, &["--mode=replay"]);
        chat(gateway.address, "one", false).expect(200);
        let copied = std::process::Command::new(program).arg(other.vault()).arg(sandbox.vault()).status();
        assert!(copied.unwrap().success());
        for prompt in ["one", "two"] {
            let answer = chat(gateway.address, prompt, false).expect(500);
            assert!(answer.body.contains("overwritten with another vault"), "{program}: {}", answer.body);
        }
    }
}

#[test]
fn calls_that_a_kill_lost_are_named_at_the_next_start() {
    let sandbox = Sandbox::without_vault();
    let (asked, was_asked) = mpsc::channel();
    let asked = Mutex::new(asked);
    let upstream = server(move |line| {
        asked.lock().unwrap().send(line.to_owned()).unwrap();
        if line.contains("responses") {
            // It does not answer until the test ends.
            return vec![(u64::from(u32::MAX), String::new())];
        }
        vec![(0, response("application/json", "{}"))]
    });
    let option = format!("--upstream=openai=http://{upstream}");
    let spool = format!("--spool={}", sandbox.path("spool").display());
    let mut killed = Process::start_with(&sandbox, &["--create", "--mode=record", &spool, &option]);
    chat(killed.address, "one", false).expect(200);
    let address = killed.address;
    let mut client = TcpStream::connect(address).unwrap();
    let head =
        format!("POST /openai/v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-length: 2\r\n\r\n{{}}");
    client.write_all(head.as_bytes()).unwrap();
    for _ in 0..2 {
        was_asked.recv_timeout(TIMEOUT).unwrap();
    }
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let lost = Arc::new(Mutex::new(Vec::new()));
    let for_gateway = Arc::clone(&lost);
    let mut options = options(&sandbox, GatewayMode::Replay, upstream);
    options.report = Arc::new(move |event| {
        if let GatewayEvent::Lost { provider, path, .. } = event {
            for_gateway.lock().unwrap().push(format!("{provider} {path}"));
        }
    });
    for _ in 0..2 {
        started(&sandbox, options.clone()).unwrap().stop().unwrap();
    }
    assert_eq!(*lost.lock().unwrap(), ["openai /v1/responses"]);
    assert_eq!(steps(&sandbox).len(), 2);
}
