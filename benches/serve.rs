//! How long the pages of large vaults take, from the request to the last byte: the list of 100,000 runs and their counts, a
//! run of 1,000 steps, the differences between two of them, and the first and a later part of a conversation of 10,000
//! calls.
//!
//! `cargo bench --bench serve`; `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

mod corpus;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use corpus::many;
use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::digest::Digest;
use runvault::json::canonical::replaykit::{self, VolatilePolicy};
use runvault::json::reader::{self, Limits};
use runvault::server::{ServerOptions, WebServer};
use runvault::vault::find::{ArtifactFilter, Condition, FindRequest};
use serde_json::{Value, json};

const RUNS: usize = 100_000;
const STEPS: usize = 1_000;
const CALLS: usize = 10_000;

fn hash(value: &Value, names: &[&'static str], volatile: VolatilePolicy) -> String {
    let text = value.to_string();
    let value = reader::read(text.as_bytes(), &Limits::default()).expect("JSON");
    let members: Vec<_> = names.iter().map(|name| (*name, value.get(name).expect("a member"))).collect();
    Digest::from_content(&replaykit::object(&members, volatile).expect("canonical")).to_string()
}

/// A run pack with this number of steps; `changed` is a step that differs from that of other runs.
fn run(number: usize, steps: usize, changed: usize) -> Vec<u8> {
    let steps: Vec<Value> = (0..steps)
        .map(|index| {
            let label = if index == changed { "question" } else { "bug" };
            let mut step = match index % 3 {
                0 => json!({"type": "model.request", "input": {"messages": [{"role": "user",
                    "content": format!("Which label fits ticket {index}?")}]}, "output": null}),
                1 => json!({"type": "model.response", "input": null, "output": {"content": format!("It is a {label}.")}}),
                _ => json!({"type": "tool.request", "input": {"tool": "tracker.label",
                    "arguments": {"ticket": index, "label": label}}, "output": null}),
            };
            step["metadata"] = json!({"timestamp": format!("2026-11-18T09:{:02}:{:02}Z", index / 60 % 60, index % 60)});
            step
        })
        .collect();
    pack(number, steps, &json!({}))
}

/// A run of a gateway with this number of calls, each of about 1.2 KB and of a conversation of its own.
fn recorded_run(number: usize, calls: usize) -> Vec<u8> {
    let steps = (0..calls).flat_map(|call| {
        let metadata = json!({"provider": "openai", "request_id": format!("call-{call}"), "latency_ms": 40});
        let time = format!("2026-11-18T09:{:02}:{:02}Z", call / 60 % 60, call % 60);
        let messages = json!([{"role": "system", "content": "Answer in one sentence."},
            {"role": "user", "content": format!("Which label fits ticket {call} of the tracker?")}]);
        let answer = json!({"id": format!("chatcmpl-{call}"), "object": "chat.completion", "model": "m-1",
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": format!("The label of ticket {call} is bug.")}}],
            "usage": {"prompt_tokens": 21, "completion_tokens": 9, "total_tokens": 30}});
        let request = json!({"type": "model.request", "timestamp": time, "metadata": metadata, "output": {"status": "sent"},
            "input": {"provider": "openai", "endpoint": "chat.completions", "path": "/v1/chat/completions", "model": "m-1",
                "prompt_hash": Digest::from_content(messages.to_string().as_bytes()).to_string(),
                "payload": {"model": "m-1", "messages": messages, "temperature": 0}}});
        let response = json!({"type": "model.response", "timestamp": time, "metadata": metadata, "input": {"model": "m-1"},
            "output": {"status_code": 200, "content_type": "application/json", "content": answer.to_string()}});
        [request, response]
    });
    pack(number, steps.collect(), &json!({"profile": 2}))
}

/// A run pack with these steps. `gateway` states how a gateway recorded them.
fn pack(number: usize, mut steps: Vec<Value>, gateway: &Value) -> Vec<u8> {
    for (index, step) in steps.iter_mut().enumerate() {
        step["id"] = format!("step-{index}").into();
        step["hash"] = hash(step, &["type", "input", "output", "metadata"], VolatilePolicy::Omit).into();
    }
    // Every run was created at another time, and those of a day were not added together.
    let (month, day, hour) = (number / 28 % 3 + 9, number % 28 + 1, number / 84 % 24);
    let (minute, second) = (number / (84 * 24) % 60, number % 60);
    let time = format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    let mut pack = json!({
        "version": "1.0", "metadata": {"run_id": format!("run-{number}"), "created_at": time, "gateway": gateway},
        "payload": {"run": {"id": format!("run-{number}"), "timestamp": time, "environment_fingerprint": {},
            "runtime_versions": {}, "steps": steps}},
    });
    pack["checksum"] = hash(&pack, &["version", "metadata", "payload"], VolatilePolicy::Include).into();
    pack.to_string().into_bytes()
}

/// Requests a page, and returns its size.
fn get(address: SocketAddr, path: &str) -> usize {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response");
    assert!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
    response.len()
}

/// Returns the path of the page of a run.
fn page_of(vault: &Vault, run_id: &str) -> String {
    let has_id = Condition::Attribute { name: "run_id".to_owned(), value: run_id.to_owned() };
    let filter = ArtifactFilter { conditions: vec![has_id], ..ArtifactFilter::default() };
    let found = vault.run(&FindRequest { filter, ..FindRequest::default() }).expect("found");
    format!("/artifact/{}", found.hits.first().expect("a run").artifact.core_hash)
}

fn pages(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let vault = Vault::create(&directory.path().join("v.vault")).expect("a vault");
    many::fill(&vault, (0..RUNS).map(|number| run(number, 3, usize::MAX)));
    many::fill(&vault, [run(RUNS, STEPS, usize::MAX), run(RUNS + 1, STEPS, STEPS / 2)]);
    let (one, other) =
        (page_of(&vault, &format!("run-{RUNS}")), page_of(&vault, &format!("run-{}", RUNS + 1)));
    let hash = |page: &str| page.trim_start_matches("/artifact/").to_owned();
    many::fill(&vault, [recorded_run(RUNS + 2, CALLS)]);
    let calls = page_of(&vault, &format!("run-{}", RUNS + 2));
    // Each call has two steps.
    let later = format!("{calls}?from={CALLS}");
    let diff = format!("/diff?one={}&other={}", hash(&one), hash(&other));
    let server = WebServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let is_stopped = Arc::clone(&stop);
    let serving = thread::spawn(move || {
        server.run(vault, ServerOptions::default(), move || is_stopped.load(Ordering::Relaxed))
    });
    let mut group = criterion.benchmark_group("serve");
    group.sample_size(20);
    for (name, path) in [
        ("list-of-100000", "/"),
        ("list-of-100000-with-errors", "/?errors=yes"),
        ("list-of-100000-by-steps", "/?order=steps"),
        ("facets-of-100000", "/?facets=yes"),
        ("run-of-1000-steps", &one),
        ("diff-of-1000-steps", &diff),
        ("run-of-10000-calls", &calls),
        ("run-of-10000-calls-later", &later),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| get(address, path)));
    }
    group.finish();
    stop.store(true, Ordering::Relaxed);
    serving.join().expect("the thread").expect("the server");
}

criterion_group!(benches, pages);
criterion_main!(benches);
