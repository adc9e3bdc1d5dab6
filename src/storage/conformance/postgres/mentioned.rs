//! Artifacts with a digest, read in the order of a page because many mention it.

use super::vault;
use crate::artifact::Admitted;
use crate::digest::Digest;
use crate::storage::conformance::kinds::{TestDocument, note, sheet};
use crate::storage::conformance::{digest, second};
use crate::storage::interface::{Condition, Filter, Hit, Order, Page, PutOptions, Snapshot, Storage};
use crate::storage::memory::MemoryStorage;
use crate::storage::{BUSY_TIMEOUT, Prepared, RemovedPolicy, TimeBasis};

/// More than are collected and sorted.
const MANY: usize = 1_300;

/// The digests that many and few artifacts mention, whose keys are the same.
fn digests() -> [Digest; 2] {
    let many = digest("p");
    let mut few = *many.as_bytes();
    few[31] ^= 1;
    [many, Digest::from_bytes(few)]
}

fn documents() -> Vec<Admitted> {
    let [many, few] = digests();
    let document = |number: usize| {
        let document = TestDocument::new(&format!("n{number}")).mention("reference", number, digest("other"));
        let document = if number % 100 == 50 {
            document.mention("prompt", 0, few)
        } else {
            document.mention("prompt", number % 3, many).mention("prompt", 7, many)
        };
        let document = if number % 50 == 7 { document.mention("reference", 0, many) } else { document };
        document.admit(if number.is_multiple_of(2) { note() } else { sheet() })
    };
    (0..MANY).map(document).collect()
}

/// Adds the documents, and some of them again, so that the order of captures is not that of arrivals.
fn fill(storage: &dyn Storage) {
    let preparer = storage.preparer().unwrap();
    let batch: Vec<Prepared> = documents().into_iter().map(|admitted| preparer.prepare(admitted)).collect();
    let put = |batch: &[&Prepared], seconds| {
        let options =
            PutOptions { policy: RemovedPolicy::Refuse, at: second(seconds), busy_timeout: BUSY_TIMEOUT };
        storage.put(batch, &options).unwrap();
    };
    put(&batch.iter().collect::<Vec<_>>(), 0);
    put(&batch.iter().skip(3).step_by(97).collect::<Vec<_>>(), 1);
    put(&batch.iter().skip(1).step_by(211).collect::<Vec<_>>(), 2);
}

/// Returns the first pages of what a condition finds.
fn pages(snapshot: &dyn Snapshot, condition: &Condition, order: Order) -> Vec<Vec<Hit>> {
    let filter = Filter { conditions: vec![condition.clone()], ..Filter::default() };
    let mut page = Page { limit: 7, after: None };
    let mut pages = Vec::new();
    for _ in 0..4 {
        let found = snapshot.find(&filter, order, &page).unwrap();
        pages.push(found.items);
        let Some(next) = found.next else { break };
        page.after = Some(next);
    }
    pages
}

#[test]
fn pages_of_a_digest_that_many_mention_are_those_of_the_memory_engine() {
    let Some(vault) = vault() else { return };
    let memory = MemoryStorage::new();
    fill(&*vault.storage);
    fill(&memory);
    let (found, expected) = (vault.snapshot(), memory.snapshot().unwrap());
    let bases = [TimeBasis::LastSeen, TimeBasis::FirstSeen, TimeBasis::Created];
    for order in bases.map(Order::Newest).into_iter().chain([Order::Core, Order::Kind]) {
        for digest in digests() {
            for group in [Some("prompt"), Some("reference"), Some("missing"), None] {
                let condition = Condition::Mention { group: group.map(str::to_owned), digest };
                let expected = pages(&*expected, &condition, order);
                assert_eq!(pages(&*found, &condition, order), expected, "{order:?} {group:?}");
            }
        }
    }
}
