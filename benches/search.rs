//! What full-text search costs and takes: adding with and without an index, building one, asking it.
//!
//! `cargo bench --bench search`; `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

mod corpus;

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::formats::model_io::Session;
use runvault::vault::search::SearchRequest;

/// The corpus *unique*.
const SESSIONS: usize = 10_000;

/// Number of runs; the median counts.
const RUNS: usize = 5;

fn runvault(vault: &Path, search: &str, arguments: &[&str]) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runvault"));
    command.env("RUNVAULT_VAULT", vault).env("RUNVAULT_SEARCH", search).args(arguments);
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it runs");
    let took = started.elapsed();
    assert!(status.success(), "{arguments:?}");
    took
}

/// The median of several times, and how much they vary.
fn median(times: impl IntoIterator<Item = Duration>) -> String {
    let mut times: Vec<f64> = times.into_iter().map(|time| time.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    format!("{:.2} s ({:.2} s to {:.2} s)", times[times.len() / 2], times[0], times[times.len() - 1])
}

#[expect(clippy::cast_precision_loss, reason = "a size in megabytes is good enough")]
fn size(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

fn size_of(vault: &Path) -> u64 {
    std::fs::metadata(vault).expect("a vault").len()
}

/// The words that the most and the fewest passages have, and the size of all of them.
fn words() -> (String, String, u64) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut bytes = 0;
    for number in 0..SESSIONS {
        let document = corpus::unique_session(number);
        let session = Session::read(&document).expect("JSON").expect("a session");
        for interaction in session.interactions {
            bytes += interaction.response_content.len() as u64;
            let words = interaction.response_content.to_lowercase();
            for word in
                words.split(|character: char| !character.is_alphanumeric()).filter(|word| word.len() > 2)
            {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
    }
    let mut counts: Vec<(usize, String)> = counts.into_iter().map(|(word, count)| (count, word)).collect();
    counts.sort_unstable();
    let (rare, common) = (&counts[0], &counts[counts.len() - 1]);
    println!("{:?} is {} times in the responses, {:?} {} times", rare.1, rare.0, common.1, common.0);
    (rare.1.clone(), common.1.clone(), bytes)
}

fn costs(directory: &Path) -> Vault {
    let root = directory.join("unique");
    corpus::write_unique(&root, SESSIONS);
    let root = root.to_str().expect("a name");
    let (off, on) = (directory.join("off.vault"), directory.join("on.vault"));
    let add = |vault: &Path, search: &str| {
        let _ = std::fs::remove_file(vault);
        runvault(vault, search, &["add", "--create", root])
    };
    // In turn, so that both have the same share of whatever else the machine does.
    let times: Vec<[Duration; 2]> = (0..RUNS).map(|_| [add(&off, "off"), add(&on, "on")]).collect();
    println!("add, search off: {}", median(times.iter().map(|[off, _]| *off)));
    println!("add, search on: {}", median(times.iter().map(|[_, on]| *on)));
    let without = size_of(&off);
    let repeated = |arguments: &[&str]| median((0..RUNS).map(|_| runvault(&off, "off", arguments)));
    println!("fsck: {}", repeated(&["fsck"]));
    println!("index build: {}", repeated(&["index", "build"]));
    runvault(&off, "off", &["index", "drop"]);
    runvault(&off, "off", &["gc"]);
    runvault(&off, "off", &["index", "build"]);
    println!("vault: {}, with the index {}", size(without), size(size_of(&off)));
    println!("fsck, with an index: {}", repeated(&["fsck"]));
    Vault::open(&off).expect("a vault")
}

fn questions(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let (rare, common, bytes) = words();
    println!("text: {}", size(bytes));
    let vault = costs(directory.path());
    for (name, text) in [("rare", rare), ("common", common.clone()), ("two", format!("{common} the"))] {
        let request = SearchRequest { words: text, ..SearchRequest::default() };
        criterion.bench_function(&format!("search, {name}"), |bencher| {
            bencher.iter(|| {
                vault.catch_up_search(&mut |_| {}).expect("an index");
                black_box(vault.run(&request)).expect("an answer").hits.len()
            });
        });
    }
}

criterion_group!(benches, questions);
criterion_main!(benches);
