//! Getting a session out of a vault, beside the least that it takes: SQLite looks up the same row.
//!
//! `cargo bench --bench fetch`; `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

mod corpus;

use std::path::Path;

use corpus::many;
use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use rusqlite::{Connection, OpenFlags};

const SESSIONS: usize = 10_000;

/// Finds what is stored of a document by the hash of its bytes. To be changed with `migrations/`.
const STORED: &str = "SELECT p.bytes FROM blob b JOIN payload p ON p.blob = b.id
                       WHERE substr(b.digest, 1, 8) = substr(?1, 1, 8) AND b.digest = ?1";

/// A session in the vault, by its own hash and by that of its bytes.
struct Stored {
    core: CoreHash,
    bytes: Digest,
}

fn fetching(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench.vault");
    let vault = Vault::open_or_create(&path).expect("a vault");
    many::fill(&vault, (0..SESSIONS).map(corpus::unique_session));
    let stored: Vec<Stored> = (0..SESSIONS).map(|number| locate(&vault, number)).collect();

    let mut group = criterion.benchmark_group("session of 5 KB");
    let mut number = 0;
    let mut next = || {
        number = (number + 7_919) % SESSIONS;
        &stored[number]
    };
    group.bench_function("get, verified", |bencher| {
        bencher.iter(|| vault.get(&next().core.0.into()).expect("its bytes"));
    });
    let connection = connect(&path);
    group.bench_function("raw SQLite lookup", |bencher| {
        bencher.iter(|| {
            let mut statement = connection.prepare_cached(STORED).expect("a statement");
            let row = statement.query_row([next().bytes.as_bytes()], |row| row.get::<_, Vec<u8>>(0));
            row.expect("it is there")
        });
    });
    group.finish();
}

fn locate(vault: &Vault, number: usize) -> Stored {
    let bytes = Digest::from_content(&corpus::unique_session(number));
    // What is stored as one file is one capture, with the hash of its bytes.
    let core = vault.locate(&bytes.into()).expect("it is there").artifact.core;
    Stored { core, bytes }
}

fn connect(path: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).expect("the vault");
    // As much as a vault's own connections have.
    connection.execute_batch("PRAGMA cache_size = -32768").expect("settings");
    connection
}

criterion_group!(benches, fetching);
criterion_main!(benches);
