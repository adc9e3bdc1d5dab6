//! Questions in SQL to a vault of 10,000 sessions, and saving it for other programs.
//!
//! `cargo bench --bench sql`; `benches/README.md` says how to read it.

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

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::artifact::Cell;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, ExaminedDocument};
use runvault::vault::sql::{self, SaveForm, SaveOptions, VaultSqlReader};

const SESSIONS: usize = 10_000;

fn filled(directory: &Path) -> Vault {
    let vault = Vault::open_or_create(&directory.join("bench.vault")).expect("a vault");
    corpus::many::fill(&vault, (0..SESSIONS).map(corpus::unique_session));
    vault
}

/// Nights of *ci*: ten sessions and ten runs each, which share nearly all that was asked and answered.
const NIGHTS: usize = 100;

/// How long all links of artifacts take that have much in common.
fn links_of_recordings() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("ci");
    corpus::write_ci(&root, NIGHTS);
    let vault = Vault::open_or_create(&directory.path().join("bench.vault")).expect("a vault");
    let inputs = Inputs::new(vec![Input::Path(root)]);
    vault.add(inputs, &ExamineOptions::default(), &mut Silent).expect("stored");
    let reader = vault.sql().expect("a reader");
    let begun = Instant::now();
    let links = count(&*reader, "SELECT artifact, relation, target FROM links", &[]);
    println!("{links} links of {NIGHTS} nights: {:.2} s", begun.elapsed().as_secs_f64());
}

struct Silent;

impl AddMonitor for Silent {
    fn examined(&mut self, _: &ExaminedDocument) {}
    fn unreadable(&mut self, _: &SourceError) {}
}

fn count(reader: &VaultSqlReader<'_>, query: &str, parameters: &[(&str, Cell)]) -> usize {
    let mut statement = reader.prepare(query, parameters).expect("a query");
    statement.rows().inspect(|row| assert!(row.is_ok(), "{row:?}")).count()
}

/// What is asked once in a while, and reads everything.
fn once(vault: &Vault, directory: &Path) {
    let reader = vault.sql().expect("a reader");
    for query in [
        "SELECT count(*), sum(length(response_content)) FROM interactions",
        "SELECT role, count(*) FROM mentions GROUP BY role",
        "SELECT relation, count(*) FROM links GROUP BY relation",
    ] {
        let begun = Instant::now();
        count(&*reader, query, &[]);
        println!("{query}: {:.2} s", begun.elapsed().as_secs_f64());
    }
    let begun = Instant::now();
    let path = directory.join("saved.db");
    let options = SaveOptions { path: &path, form: SaveForm::Sqlite, force: false };
    let saved = sql::save(&*reader, &options, &mut |_, _| ControlFlow::Continue(())).expect("saved");
    let rows: u64 = saved.rows.iter().map(|(_, rows)| rows).sum();
    println!("save: {:.2} s, {rows} rows, {} bytes", begun.elapsed().as_secs_f64(), saved.bytes);
}

fn questions(criterion: &mut Criterion) {
    links_of_recordings();
    let directory = tempfile::tempdir().expect("a directory");
    let vault = filled(directory.path());
    once(&vault, directory.path());
    let reader = vault.sql().expect("a reader");
    let cores: Vec<Cell> = reader
        .prepare("SELECT core_hash FROM sessions ORDER BY artifact", &[])
        .expect("a query")
        .rows()
        .filter_map(|row| row.expect("a row").pop())
        .collect();
    assert_eq!(cores.len(), SESSIONS);
    let mut number = 0;
    let mut next = || {
        number = (number + 7_919) % SESSIONS;
        number
    };
    criterion.bench_function("interactions by core hash", |bencher| {
        bencher.iter(|| {
            let core = cores.get(next()).expect("a session").clone();
            let query = "SELECT * FROM interactions WHERE core_hash = :core";
            assert_eq!(count(&*reader, query, &[("core", core)]), 10);
        });
    });
    criterion.bench_function("interactions by artifact", |bencher| {
        bencher.iter(|| {
            let artifact = Cell::Integer(i64::try_from(next() + 1).expect("a number"));
            let query = "SELECT * FROM interactions WHERE artifact = :artifact";
            assert_eq!(count(&*reader, query, &[("artifact", artifact)]), 10);
        });
    });
    criterion.bench_function("interactions LIMIT 10", |bencher| {
        bencher.iter(|| count(&*reader, "SELECT * FROM interactions LIMIT 10", &[]));
    });
    criterion.bench_function("begin to ask", |bencher| bencher.iter(|| vault.sql().expect("a reader")));
}

criterion_group!(benches, questions);
criterion_main!(benches);
