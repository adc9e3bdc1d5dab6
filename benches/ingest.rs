//! What `add` does with a document, function by function.
//!
//! `cargo bench --bench ingest`; `benches/README.md` says how to read it.

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

use corpus::many;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use runvault::Vault;
use runvault::artifact::MemberBytes;
use runvault::digest::Hasher;
use runvault::formats;
use runvault::intake::{ExamineOptions, examine_document};
use runvault::json::reader::{self, Limits};
use runvault::secrets;

const DOCUMENTS: usize = 1_000;

fn examining(criterion: &mut Criterion) {
    let documents =
        [("session of 5 KB", corpus::unique_session(0)), ("trace of 1 MB", corpus::large_trace(1_000_000))];
    let mut group = criterion.benchmark_group("verify");
    for (name, document) in documents {
        group.throughput(Throughput::Bytes(document.len() as u64));
        group.bench_function(name, |bencher| {
            let verified =
                |bytes| examine_document(bytes, "", &ExamineOptions::default()).expect("it is valid").core();
            bencher.iter_batched(|| document.clone(), verified, BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// What looks for keys and card numbers in each document.
fn scanning(criterion: &mut Criterion) {
    let documents =
        [("session of 5 KB", corpus::unique_session(0)), ("trace of 1 MB", corpus::large_trace(1_000_000))];
    let mut group = criterion.benchmark_group("scan");
    for (name, document) in documents {
        group.throughput(Throughput::Bytes(document.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| secrets::find(black_box(&document))));
    }
    group.finish();
}

fn reading(criterion: &mut Criterion) {
    let trace = corpus::large_trace(1_000_000);
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Bytes(trace.len() as u64));
    group.bench_function("lines of a trace of 1 MB", |bencher| {
        bencher.iter(|| {
            for line in trace.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                black_box(reader::read(black_box(line), &Limits::default()).expect("a record"));
            }
        });
    });
    group.finish();
}

/// Reads, writes the canonical form and hashes it.
fn core_hash(criterion: &mut Criterion) {
    let kind = formats::named("model_io").expect("a kind");
    let mut group = criterion.benchmark_group("core hash");
    let documents = [("5 KB", corpus::unique_session(0)), ("1 MB", corpus::large_session(1_000_000, 100))];
    for (size, document) in documents {
        let members = [MemberBytes { name: "model_io.json", bytes: &document }];
        group.throughput(Throughput::Bytes(document.len() as u64));
        group.bench_function(format!("session of {size}"), |bencher| {
            bencher.iter(|| {
                let mut hasher = Hasher::new();
                kind.write_core(black_box(&members), &mut hasher).expect("a core");
                hasher.finish()
            });
        });
    }
    group.finish();
}

fn adding(criterion: &mut Criterion) {
    let documents: Vec<Vec<u8>> = (0..DOCUMENTS).map(corpus::unique_session).collect();
    let mut group = criterion.benchmark_group("add");
    group.throughput(Throughput::Elements(DOCUMENTS as u64)).sample_size(10);
    group.bench_function("1,000 sessions of 5 KB to a new vault", |bencher| {
        let prepared = || (tempfile::tempdir().expect("a directory"), documents.clone());
        bencher.iter_batched(
            prepared,
            |(directory, documents)| {
                let vault = Vault::open_or_create(&directory.path().join("bench.vault")).expect("a vault");
                many::fill(&vault, documents);
                // Removed when the measurement ends.
                (vault, directory)
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, examining, scanning, reading, core_hash, adding);
criterion_main!(benches);
