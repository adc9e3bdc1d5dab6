//! Several processes that write at once.

use super::Schema;
use crate::storage::conformance::kinds::{TestDocument, note};
use crate::storage::conformance::{acting, digest, start};
use crate::storage::interface::{Filter, Order, Page, PutOptions, Storage};
use crate::storage::postgres::PostgresStorage;
use crate::storage::{BUSY_TIMEOUT, CreationPolicy, Prepared, PutOutcome, RemovedPolicy};

const WRITERS: usize = 6;
const ROUNDS: usize = 8;

/// Stores what others store at the same time, in an order of its own. Returns how many were new.
fn write(address: &str, writer: usize) -> usize {
    let storage = acting(PostgresStorage::open(address, None, CreationPolicy::IfMissing).unwrap());
    let preparer = storage.preparer().unwrap();
    let options = PutOptions { policy: RemovedPolicy::Refuse, at: start(), busy_timeout: BUSY_TIMEOUT };
    let mut added = 0;
    for round in 0..ROUNDS {
        let batch = (0..10).map(|number| {
            let number = (number * (2 * writer + 1)) % 10;
            let document = TestDocument::new(&format!("{round}-{number}")).mention("prompt", 0, digest("p"));
            preparer.prepare(document.admit(note()))
        });
        let batch: Vec<Prepared> = batch.collect();
        let put = storage.put(&batch.iter().collect::<Vec<_>>(), &options).unwrap();
        added += put.iter().filter(|put| put.outcome == PutOutcome::Added).count();
    }
    added
}

#[test]
fn writers_of_the_same_artifacts_store_each_once() {
    let Some(schema) = Schema::new() else { return };
    let address = schema.address();
    let added: usize = std::thread::scope(|scope| {
        // They create the vault at the same time, too.
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let address = &address;
                    move || write(address, writer)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let storage = PostgresStorage::open(&address, None, CreationPolicy::Never).unwrap();
    let snapshot = storage.snapshot().unwrap();
    let found = snapshot.find(&Filter::default(), Order::Core, &Page::all()).unwrap();
    assert_eq!((added, found.items.len()), (10 * ROUNDS, 10 * ROUNDS));
    let check = snapshot.check_journal(None).unwrap();
    assert_eq!((check.defect, check.head), (None, snapshot.journal_head().unwrap()));
    let blobs = snapshot.statistics(crate::storage::TimeBasis::FirstSeen).unwrap().blobs.blobs;
    assert_eq!(blobs, found.items.len() as u64);
}
