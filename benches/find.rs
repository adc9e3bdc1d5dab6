//! The first ten artifacts by every order, condition and pair of conditions, in a small vault and in one a hundred times as
//! large: `cargo bench --bench find -- [--sessions N]`.
//!
//! `RUNVAULT_SCALE_ENGINE` names a database, in which the vaults are then; else they are files. `benches/README.md` says how
//! to read the table.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "a bench fails by panicking"
)]

#[path = "corpus/mod.rs"]
mod corpus;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use runvault::Vault;
use runvault::artifact::timestamp_text;
use runvault::digest::Digest;
use runvault::intake::{ExamineOptions, Input, Inputs};
use runvault::storage::{Condition, Filter, Order, Page, TimeBasis, TimePeriod};
use runvault::vault::add::CommonAnnotations;
use serde_json::json;

/// Sessions of the large vault, each with twenty mentions.
const SESSIONS: usize = 1_000_000;

/// The small vault has one of this many.
const RATIO: usize = 100;

/// Sessions with the rare label, of this many times as many.
const BATCH: usize = 100;

/// Runs of each query, of which the fastest counts.
const RUNS: usize = 5;

const EXCHANGES: usize = 10;

/// The prompt of every session, of every other one, and of one of a thousand.
const PROMPTS: [&str; 3] =
    ["You are a helpful assistant.", "Answer in one sentence.", "Ask before you delete."];

fn created(number: usize) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_600_000_000_000 + number as i64 * 1_000).expect("a time")
}

fn session(number: usize) -> Vec<u8> {
    let digest = |text: &str| Digest::from_content(text.as_bytes());
    let prompt = |index: usize| match index {
        0 => PROMPTS[0].to_owned(),
        1 if number.is_multiple_of(2) => PROMPTS[1].to_owned(),
        2 if number % 1_000 == 7 => PROMPTS[2].to_owned(),
        _ => format!("What is the state of case {number} after step {index}?"),
    };
    let latency = if number % 1_000 == 7 { 40_000 } else { number * 7_919 % 2_000 };
    let exchange = |index| {
        let response = format!("Case {number}: step {index} is done.");
        json!({"i": index, "prompt_hash": digest(&prompt(index)), "response_hash": digest(&response),
            "response_content": response, "latency_ms": latency})
    };
    json!({"model_io_schema_version": "1.0.0", "adapter_id": format!("adapter-{}", number % 7),
        "model_id": format!("model-{}", number % 5), "mode": "record",
        "created_at_utc": timestamp_text(created(number)),
        "interactions": (0..EXCHANGES).map(exchange).collect::<Vec<_>>()})
    .to_string()
    .into_bytes()
}

fn fill(vault: &Vault, sessions: usize) {
    for first in (0..sessions).step_by(BATCH * BATCH) {
        let batch = |numbers: std::ops::Range<usize>, branch: &str| {
            let documents =
                numbers.map(|number| Input::Document { name: String::new(), bytes: session(number) });
            let labels = BTreeMap::from([("branch".to_owned(), branch.to_owned())]);
            let annotations = CommonAnnotations { labels, note: None };
            let options = ExamineOptions::default();
            let inputs = Inputs::new(documents.collect());
            vault
                .add_annotated(inputs, &options, &annotations, &mut corpus::many::Expecting)
                .expect("stored");
        };
        batch(first..first + BATCH, "fix");
        batch(first + BATCH..(first + BATCH * BATCH).min(sessions), "main");
    }
}

fn vault(directory: &std::path::Path, name: &str, sessions: usize) -> Vault {
    let address = match std::env::var("RUNVAULT_SCALE_ENGINE").ok().filter(|url| !url.is_empty()) {
        Some(url) => {
            let separator = if url.contains('?') { '&' } else { '?' };
            PathBuf::from(format!("{url}{separator}schema=bench_find_{name}"))
        }
        None => directory.join(format!("{name}.vault")),
    };
    let vault = Vault::open_or_create(&address).expect("a vault");
    if vault.count(&runvault::vault::find::ArtifactFilter::default()).expect("a count") == 0 {
        fill(&vault, sessions);
    }
    vault
}

/// The conditions, each with what it is called.
fn conditions() -> Vec<(&'static str, Condition)> {
    let prompt = |text: &str| Condition::Mention {
        group: Some("prompt".to_owned()),
        digest: Digest::from_content(text.as_bytes()),
    };
    let attribute =
        |name: &str, value: &str| Condition::Attribute { name: name.to_owned(), value: value.to_owned() };
    let label = |value: &str| Condition::Label { key: "branch".to_owned(), value: Some(value.to_owned()) };
    let latency = |least| Condition::Range { name: "latency_ms".to_owned(), least: Some(least), most: None };
    vec![
        ("prompt of all", prompt(PROMPTS[0])),
        ("prompt of half", prompt(PROMPTS[1])),
        ("prompt of 1 in 1000", prompt(PROMPTS[2])),
        ("prompt of one", prompt("What is the state of case 2000 after step 5?")),
        ("model of 1 in 5", attribute("model_id", "model-1")),
        ("adapter of 1 in 7", attribute("adapter_id", "adapter-3")),
        (
            "model like *-2",
            Condition::AttributeLike { name: "model_id".to_owned(), pattern: "*-2".to_owned() },
        ),
        ("latency of half", latency(10_000)),
        ("latency of 1 in 1000", latency(100_000)),
        ("label of nearly all", label("main")),
        ("label of 1 in 100", label("fix")),
    ]
}

fn orders() -> Vec<(&'static str, Order)> {
    vec![
        ("created", Order::Newest(TimeBasis::Created)),
        ("last seen", Order::Newest(TimeBasis::LastSeen)),
        ("first seen", Order::Newest(TimeBasis::FirstSeen)),
        ("latency", Order::Largest("latency_ms")),
        ("kind", Order::Kind),
        ("core hash", Order::Core),
    ]
}

/// Every order alone, every condition in every order, and every pair of conditions in the order of creation.
fn queries() -> Vec<(String, Filter, Order)> {
    let (conditions, orders) = (conditions(), orders());
    let mut queries: Vec<(String, Filter, Order)> = Vec::new();
    for (name, order) in &orders {
        queries.push((format!("by {name}"), Filter::default(), *order));
        for (condition, filter) in &conditions {
            queries.push((format!("{condition}, by {name}"), filter.clone().into(), *order));
        }
    }
    for (at, (one, first)) in conditions.iter().enumerate() {
        for (other, second) in conditions.iter().skip(at + 1) {
            let filter = Filter { conditions: vec![first.clone(), second.clone()], ..Filter::default() };
            queries.push((format!("{one} and {other}"), filter, Order::Newest(TimeBasis::Created)));
        }
    }
    let (since, until) = (Some(created(3_000)), Some(created(3_100)));
    for basis in [TimeBasis::Created, TimeBasis::FirstSeen, TimeBasis::LastSeen] {
        let filter = Filter { period: Some(TimePeriod { basis, since, until }), ..Filter::default() };
        queries.push((format!("in a period of {basis:?}"), filter, Order::Newest(basis)));
    }
    queries
}

fn fastest(vault: &Vault, filter: &Filter, order: Order) -> Duration {
    let run = || {
        let started = Instant::now();
        let snapshot = vault.snapshot().expect("a snapshot");
        let found = snapshot.find(filter, order, &Page::first(10)).expect("an answer");
        assert!(found.items.len() <= 10);
        started.elapsed()
    };
    (0..RUNS).map(|_| run()).min().expect("a run")
}

fn main() {
    let mut sessions = SESSIONS;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--sessions" {
            sessions = arguments.next().and_then(|number| number.parse().ok()).expect("a number");
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let small = vault(directory.path(), "small", sessions / RATIO);
    let large = vault(directory.path(), "large", sessions);
    println!(
        "| the first ten of {} and {sessions} sessions | small | large | ratio |\n|---|---|---|---|",
        sessions / RATIO
    );
    for (name, filter, order) in queries() {
        let [one, other] = [&small, &large].map(|vault| fastest(vault, &filter, order).as_secs_f64() * 1e3);
        println!("| {name} | {one:.2} ms | {other:.2} ms | {:.1} |", other / one);
    }
}
