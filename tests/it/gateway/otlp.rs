//! Spans that are received are stored as those of a file are.

use std::sync::{Mutex, mpsc};

use super::client::{Answer, request_bytes};
use super::*;
use crate::sandbox::repository;

const TRACES: &str = "POST /v1/traces";
const JSON: &str = "content-type: application/json";
const PROTOBUF: &str = "content-type: application/x-protobuf";

fn file(name: &str) -> Vec<u8> {
    std::fs::read(repository("tests/import").join(name)).unwrap()
}

/// Starts a gateway that receives spans, and reports the runs that it stores.
fn receiver(
    sandbox: &Sandbox,
    change: impl FnOnce(&mut GatewayOptions),
) -> (Gateway, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let mut options = GatewayOptions::new(GatewayMode::Record, &sandbox.path("spool"));
    options.otlp = true;
    options.report = Arc::new(move |event| {
        let said = match event {
            GatewayEvent::Finished(run) => format!("stored {}", run.calls),
            GatewayEvent::Skipped { reason, count, .. } => format!("{count} {reason}"),
            GatewayEvent::Secrets { refused, .. } => format!("secrets {refused}"),
            other => format!("{other:?}"),
        };
        let _ = sender.lock().unwrap().send(said);
    });
    change(&mut options);
    (started(sandbox, options).unwrap(), receiver)
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn received_spans_are_the_run_that_an_import_of_them_is() {
    let sandbox = Sandbox::without_vault();
    let (gateway, said) = receiver(&sandbox, |options| {
        options.labels.insert("job".to_owned(), "7".to_owned());
    });
    let lines = file("otel.jsonl");
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let answer = request_bytes(gateway.address(), TRACES, &[JSON], line).expect(200);
        assert_eq!((answer.body.as_str(), answer.header("content-type")), ("{}", Some("application/json")));
    }
    // Clients repeat what was not acknowledged.
    let packed = gzipped(&file("otel.binpb"));
    let answer =
        request_bytes(gateway.address(), TRACES, &[PROTOBUF, "content-encoding: gzip"], &packed).expect(200);
    assert_eq!((answer.body.as_str(), answer.header("content-type")), ("", Some("application/x-protobuf")));
    let runs = gateway.stop().unwrap();
    assert_eq!((runs.len(), runs[0].calls, runs[0].failed, runs[0].sessions.len()), (1, 5, 2, 1));
    let said: Vec<String> = said.iter().collect();
    assert!(said.contains(&"1 the span is not a call of a model".to_owned()), "{said:?}");
    assert_eq!(spool_files(&sandbox), Vec::<PathBuf>::new());
    let path = repository("tests/import/otel-protobuf.json").into_os_string();
    let report = sandbox.run(["import".into(), "--json".into(), path]).expect(0).json();
    let outcomes = report.iter().filter(|line| line["kind"].is_string());
    let outcomes: Vec<_> = outcomes.map(|line| (line["kind"].as_str().unwrap(), &line["outcome"])).collect();
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|(_, outcome)| **outcome == "present"), "{outcomes:?}");
    let labeled = sandbox.run(["find", "--label", "job=7", "--json"]).expect(0).json();
    assert_eq!(labeled.len(), 2);
}

#[test]
fn a_trace_is_stored_when_it_has_ended_and_others_when_they_are_idle() {
    let sandbox = Sandbox::without_vault();
    let (gateway, said) = receiver(&sandbox, |options| options.idle = std::time::Duration::from_millis(1));
    // The line without the outermost span, and all of them.
    for body in [file("otel.jsonl").split(|byte| *byte == b'\n').next().unwrap().to_vec(), file("otel.binpb")]
    {
        let form = if body.starts_with(b"{") { JSON } else { PROTOBUF };
        request_bytes(gateway.address(), TRACES, &[form], &body).expect(200);
        while !said.recv().unwrap().starts_with("stored ") {}
    }
    assert_eq!(gateway.stop().unwrap(), []);
    assert_eq!(kinds(&sandbox).len(), 6);
}

#[test]
fn acknowledged_spans_survive_a_kill() {
    let sandbox = Sandbox::without_vault();
    let spool = format!("--spool={}", sandbox.path("spool").display());
    let mut killed = Process::start_with(&sandbox, &["--create", "--otlp", &spool]);
    request_bytes(killed.address, TRACES, &[PROTOBUF], &file("otel.binpb")).expect(200);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(!sandbox.vault().exists() || kinds(&sandbox).is_empty());
    // A line that was not complete was not acknowledged.
    let path = std::fs::read_dir(sandbox.path("spool")).unwrap().map(|entry| entry.unwrap().path());
    let path =
        path.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "spans")).unwrap();
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"resourceSpans\":[").unwrap();
    let (gateway, said) = receiver(&sandbox, |_| {});
    while said.recv().unwrap() != "stored 5" {}
    assert_eq!(gateway.stop().unwrap(), []);
    assert_eq!(kinds(&sandbox), ["attachment", "model_io", "rpk"]);
    assert!(!path.exists());
}

#[test]
fn parts_that_are_not_accepted_are_counted() {
    let sandbox = Sandbox::without_vault();
    let (gateway, _said) = receiver(&sandbox, |options| options.secrets = SecretPolicy::Refuse);
    let text = String::from_utf8(file("otel.jsonl")).unwrap();
    let line = text.lines().next().unwrap();
    let bad = line.replace("be6a45287cd2af86", "none");
    let answer = request_bytes(gateway.address(), TRACES, &[JSON], bad.as_bytes()).expect(200).json();
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], "1");
    assert!(
        answer["partialSuccess"]["errorMessage"].as_str().unwrap().contains("spanId: must be 8 or 16 bytes")
    );
    let key = format!("sk-proj-{}", "aB3dE5fG7h".repeat(5));
    let secret = line.replace("be short", &key);
    let answer = request_bytes(gateway.address(), TRACES, &[JSON], secret.as_bytes()).expect(200).json();
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], "2", "{answer}");
    gateway.stop().unwrap();
}

#[test]
fn what_cannot_be_received_is_refused_with_a_reason() {
    let sandbox = Sandbox::without_vault();
    let (gateway, _said) = receiver(&sandbox, |_| {});
    let ask =
        |headers: &[&str], body: &[u8]| -> Answer { request_bytes(gateway.address(), TRACES, headers, body) };
    let damaged = ask(&[JSON], b"{").expect(400);
    assert!(damaged.json()["message"].as_str().unwrap().contains("line 1 column 2"), "{}", damaged.body);
    assert!(ask(&[PROTOBUF], b"\x0a\x05").expect(400).body.contains("cut off"));
    assert!(ask(&[JSON, "content-encoding: gzip"], b"no").expect(400).body.contains("gzip"));
    ask(&["content-type: text/plain"], b"{}").expect(415);
    ask(&[JSON, "origin: http://example.org"], b"{}").expect(403);
    ask(&[JSON], b"{}").expect(200);
    ask(&[PROTOBUF], b"").expect(200);
    request_bytes(gateway.address(), "GET /v1/traces", &[], b"").expect(405);
    // What cannot be written now can be sent again.
    std::fs::write(sandbox.path("spool"), "no directory").unwrap();
    let later = ask(&[PROTOBUF], &file("otel.binpb")).expect(503);
    assert_eq!(later.header("retry-after"), Some("1"));
    assert_eq!(gateway.stop().unwrap(), []);
    let (without, _said) = receiver(&sandbox, |options| options.otlp = false);
    request_bytes(without.address(), TRACES, &[JSON], b"{}").expect(404);
    let refused = sandbox.run(["gateway", "--otlp", "--mode=replay"]).expect(3).stderr;
    assert!(refused.contains("--mode replay stores none"), "{refused}");
}

#[test]
fn what_is_redacted_is_not_on_disk() {
    let sandbox = Sandbox::without_vault();
    let (gateway, _said) = receiver(&sandbox, |options| options.rules.redact("hello").unwrap());
    request_bytes(gateway.address(), TRACES, &[PROTOBUF], &file("otel.binpb")).expect(200);
    let spooled = std::fs::read_dir(sandbox.path("spool")).unwrap();
    for path in spooled.map(|entry| entry.unwrap().path()) {
        assert!(!std::fs::read_to_string(path).unwrap().contains("hello"));
    }
    let runs = gateway.stop().unwrap();
    for core in [runs[0].run_pack, runs[0].sessions[0]] {
        let document = sandbox.run(["get", &core.to_string()]).expect(0).stdout;
        assert!(document.contains("[REDACTED]") && !document.contains("hello"), "{document}");
    }
}
