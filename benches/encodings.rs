//! What is lost without each encoding of the storage: size of the vault, and time of adding, reading and finding.
//!
//! `cargo bench --bench encodings`; `benches/README.md` says how to read it.

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

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::storage::sqlite::encodings::{self, Encoding};
use runvault::storage::{Condition, Filter, Order, Page};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};

const SESSIONS: usize = 4_000;
const NIGHTS: usize = 100;

/// Divides both numbers, for a quick look.
const DIVISOR: &str = "RUNVAULT_ENCODINGS_DIVISOR";

/// Number of artifacts that are read, and of digests that are looked up.
const SAMPLE: usize = 200;

const SWITCHES: [(&str, Option<Encoding>); 5] = [
    ("all", None),
    ("without digest stripping", Some(Encoding::DigestStripping)),
    ("without deltas", Some(Encoding::Delta)),
    ("without dictionaries", Some(Encoding::Dictionary)),
    ("without the mention index", Some(Encoding::MentionIndex)),
];

struct Measured {
    size: u64,
    add: Duration,
    get: Duration,
    find: Duration,
}

fn divisor() -> usize {
    std::env::var(DIVISOR).ok().and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}

/// What a vault without an encoding must be larger by, or a lookup slower, for the encoding to be worth its code.
const WORTH: f64 = 1.1;

/// Fails if an encoding is not worth its code with any corpus.
fn main() -> ExitCode {
    let unique: Vec<_> = (0..SESSIONS / divisor()).map(corpus::unique_session).collect();
    let saved = [table("unique", &unique), table("ci", &ci())];
    let is_worth = |encoding: &usize| saved.iter().any(|saved| saved[*encoding] >= WORTH);
    let (_, others): (Vec<usize>, Vec<usize>) = (1..SWITCHES.len()).partition(is_worth);
    for encoding in &others {
        println!("{}: less than a tenth larger or slower with every corpus", SWITCHES[*encoding].0);
    }
    if others.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The documents of the corpus *ci*, night by night.
fn ci() -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    corpus::write_ci(directory.path(), NIGHTS / divisor());
    let mut documents = Vec::new();
    for night in sorted(directory.path()) {
        documents.extend(sorted(&night).iter().map(|path| fs::read(path).expect("a document")));
    }
    documents
}

fn sorted(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// Prints the measurements, and returns for each switch how many times larger the vault or slower a lookup is.
fn table(name: &str, documents: &[Vec<u8>]) -> [f64; SWITCHES.len()] {
    let bytes: usize = documents.iter().map(Vec::len).sum();
    println!("\n{name}: {} documents, {bytes} bytes", documents.len());
    println!("{:26} {:>12} {:>8} {:>10} {:>10} {:>10}", "", "vault bytes", "", "add", "get", "find");
    let mut all = None;
    SWITCHES.map(|(name, encoding)| {
        encodings::switch_off(encoding);
        let Measured { size, add, get, find } = measure(documents);
        let (all, found) = *all.get_or_insert((size, find));
        #[expect(clippy::cast_precision_loss, reason = "a ratio with two digits")]
        let ratio = size as f64 / all as f64;
        println!("{name:26} {size:>12} {ratio:>8.2} {add:>10.2?} {get:>10.1?} {find:>10.1?}");
        ratio.max(find.as_secs_f64() / found.as_secs_f64())
    })
}

/// Adds the documents to a new vault, then reads some of them and looks up digests that they mention.
fn measure(documents: &[Vec<u8>]) -> Measured {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench.vault");
    let documents = documents.to_vec();
    let vault = Vault::open_or_create(&path).expect("a vault");
    let started = Instant::now();
    let inputs = documents.into_iter().map(|bytes| Input::Document { name: String::new(), bytes });
    let inputs = Inputs::new(inputs.collect());
    vault.add(inputs, &ExamineOptions::default(), &mut Expecting).expect("stored");
    let add = started.elapsed();
    drop(vault);
    let size = fs::metadata(&path).expect("a vault").len();

    let vault = Vault::open(&path).expect("the vault");
    let (cores, digests) = sample(&vault);
    let started = Instant::now();
    for core in &cores {
        vault.get(&core.0.into()).expect("its bytes");
    }
    let get = started.elapsed();
    let started = Instant::now();
    for digest in &digests {
        let filter = Condition::Mention { group: None, digest: *digest }.into();
        let snapshot = vault.snapshot().expect("a snapshot");
        let found = snapshot.find(&filter, Order::default(), &Page::all()).expect("an answer");
        assert!(!found.items.is_empty(), "{digest} is mentioned");
    }
    Measured { size, add, get, find: started.elapsed() }
}

/// Returns artifacts that are evenly spread over the vault, and a digest that each of them mentions.
fn sample(vault: &Vault) -> (Vec<CoreHash>, Vec<Digest>) {
    let snapshot = vault.snapshot().expect("a snapshot");
    let hits =
        snapshot.find(&Filter::default(), Order::default(), &Page::all()).expect("all artifacts").items;
    let step = (hits.len() / SAMPLE).max(1);
    let chosen: Vec<_> = hits.iter().step_by(step).collect();
    let digests = chosen.iter().map(|hit| {
        let mentions = snapshot.mentions(&[hit.artifact.core], None).expect("its mentions").remove(0);
        mentions[mentions.len() / 2].digest
    });
    (chosen.iter().map(|hit| hit.artifact.core).collect(), digests.collect())
}

struct Expecting;

impl AddMonitor for Expecting {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert!(!matches!(examined.outcome, DocumentOutcome::Rejected), "{:?}", examined.violations);
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}
