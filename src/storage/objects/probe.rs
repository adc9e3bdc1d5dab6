//! Whether a storage creates an object once when several writers do so at the same time.
//!
//! Some servers pass a test of one writer after the other and fail this one, so that two vaults could claim the same
//! storage.

use std::sync::Barrier;

use super::name::{ObjectName, PROBES};
use super::store::{Creation, ObjectStore};
use crate::storage::{ErrorKind, Result, StorageError};

const WRITERS: usize = 8;
const ROUNDS: usize = 40;

/// Checks that of writers that create the same object at the same time exactly one succeeds, in every round, and that the
/// object then has its bytes.
///
/// # Errors
/// Returns an error of the kind `Unsupported` if more than one succeeds, and others if the storage cannot be written.
pub(in crate::storage) fn expect_exclusive(store: &ObjectStore) -> Result<()> {
    for _ in 0..ROUNDS {
        let key = format!("{PROBES}/{}", ObjectName::new()?);
        let outcome = race(store, &key);
        let deleted = store.delete(&key);
        outcome?;
        deleted?;
    }
    Ok(())
}

fn race(store: &ObjectStore, key: &str) -> Result<()> {
    let barrier = Barrier::new(WRITERS);
    let created: Vec<Result<Creation>> = std::thread::scope(|scope| {
        let writer = |number: usize| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                store.create(key, &[&content(number)])
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        writers.into_iter().map(|writer| writer.join().unwrap_or(Ok(Creation::Exists))).collect()
    });
    let created = created.into_iter().collect::<Result<Vec<_>>>()?;
    let winners: Vec<usize> =
        (0..WRITERS).filter(|writer| created.get(*writer) == Some(&Creation::Created)).collect();
    let found = store.read_whole(key)?;
    match winners[..] {
        [winner] if found.as_deref() == Some(&content(winner)[..]) => Ok(()),
        _ => Err(StorageError::new(
            ErrorKind::Unsupported,
            format!(
                "{}: of {WRITERS} writers that created an object at the same time, {} succeeded, or the object has the \
                 bytes of another one; a vault needs a storage where exactly one does",
                store.name(),
                winners.len()
            ),
        )),
    }
}

fn content(writer: usize) -> Vec<u8> {
    format!("writer {writer}").into_bytes()
}
