//! Questions to a vault of 250,000 artifacts and five million mentions.
//!
//! `cargo bench --bench query`; `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

mod corpus;

use std::hint::black_box;

use corpus::many::{self, SHARED, exchanges};
use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::storage::{Condition, Filter, Hit, Order, Page};
use runvault::vault::links::LinksRequest;
use serde_json::{Value, json};

/// More than five million mentions.
const SESSIONS: usize = 248_000;
const RUNS: usize = 1_000;
/// Each governs a hundred runs.
const CONTRACTS: usize = RUNS / 100;

fn digest(text: &str) -> String {
    Digest::from_content(text.as_bytes()).to_string()
}

fn contract(number: usize) -> String {
    format!(
        r#"{{"effects":[],"io_refs":[{{"kind":"service","mode":"read","ref":"r-{number}","required":true,"schema":"s"}}]}}"#
    )
}

/// Member names and values here have no canonical form other than the one `serde_json` prints.
fn run(number: usize) -> String {
    let step = |step_type: &str, input: Value, output: Value| {
        let hashed = json!({"input": input, "metadata": {}, "output": output, "type": step_type});
        json!({"id": "s", "type": step_type, "input": input, "output": output, "metadata": {}, "hash": digest(&hashed.to_string())})
    };
    let steps: Vec<Value> = exchanges(number)
        .flat_map(|(prompt, response)| {
            [
                step("model.request", json!({"prompt": prompt}), json!("sent")),
                step("model.response", json!({}), json!({"content": response})),
            ]
        })
        .collect();
    let at = "2026-01-01T00:00:00.000000Z";
    let core = json!({"version": "1.0", "metadata": {"run_id": format!("run-{number}"), "created_at": at,
            // A contract that is written in its canonical form is its own core.
            "contract": digest(&contract(number % CONTRACTS))},
        "payload": {"run": {"id": format!("run-{number}"), "timestamp": at, "environment_fingerprint": {},
            "runtime_versions": {}, "steps": steps}}});
    let mut document = core.clone();
    document["checksum"] = digest(&core.to_string()).into();
    document.to_string()
}

fn trace(number: usize) -> String {
    let mut header = json!({"type": "header", "version": "1.0.0", "trace_id": format!("run-{number}"),
        "created_at": "2026-01-01T00:00:00Z", "engine_version": "1.0.0", "hash_algorithm": "sha256",
        "canonicalization": "json-c14n-v1", "problem_spec_hash": Digest::from_content(b"p").hex(), "initial_state_hash": Digest::from_content(b"s").hex()});
    header["record_hash"] = Digest::from_content(header.to_string().as_bytes()).hex().into();
    format!("{header}\n")
}

fn filled(directory: &std::path::Path) -> Vault {
    let vault = Vault::open_or_create(&directory.join("bench.vault")).expect("a vault");
    let documents = (0..RUNS).map(run).chain((0..RUNS).map(trace)).chain((0..CONTRACTS).map(contract));
    many::fill(&vault, documents.map(String::into_bytes).chain((0..SESSIONS).map(many::session)));
    vault
}

fn questions(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let vault = filled(directory.path());
    let find = |filter: &Filter| -> Vec<Hit> {
        let snapshot = vault.snapshot().expect("a snapshot");
        snapshot.find(filter, Order::default(), &Page::all()).expect("an answer").items
    };
    let all = find(&Filter::default()).len();
    assert_eq!(all, SESSIONS + 2 * RUNS + CONTRACTS);

    let asked = |number: usize| {
        Filter::from(Condition::Mention {
            group: Some("prompt".to_owned()),
            digest: Digest::from_content(many::prompt(number, SHARED).as_bytes()),
        })
    };
    assert_eq!(find(&asked(50_000)).len(), 10);
    let mut number = 10_000;
    criterion.bench_function("find --prompt-hash, 10 hits", |bencher| {
        bencher.iter(|| {
            number = (number + 7_919) % SESSIONS;
            black_box(find(&asked(number.max(10_000)))).len()
        });
    });

    let links = |artifact: CoreHash| {
        let request = LinksRequest { depth: 3, coincident: true, ..LinksRequest::new(artifact) };
        vault.run(&request).expect("a graph").nodes.len()
    };
    let run = |number: usize| {
        let filter =
            Condition::Attribute { name: "run_id".to_owned(), value: format!("run-{number}") }.into();
        find(&filter).remove(0).artifact.core
    };
    let reached = links(run(17));
    assert_eq!(reached, 1 + 3 * 100, "its contract, the runs that it governs, their sessions and traces");
    let mut number = 0;
    criterion.bench_function("links --depth 3 of a run", |bencher| {
        bencher.iter(|| {
            number = (number + 37) % RUNS;
            black_box(links(run(number)))
        });
    });
}

criterion_group!(benches, questions);
criterion_main!(benches);
