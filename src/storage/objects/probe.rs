//! A probe of a storage: it must create an object once when several writers do so at the same time.
//!
//! Some servers pass a test of one writer after the other and fail this one, so that two vaults could claim the same
//! storage.

use std::sync::Barrier;

use super::name::{ObjectName, PROBES};
use super::store::{ObjectCreation, ObjectStore};
use crate::storage::{ErrorKind, Result, StorageError};

const WRITERS: usize = 8;
const ROUNDS: usize = 40;

/// How many rounds are run at the same time, each with a key of its own.
const LANES: usize = 10;

/// Checks that of writers that create the same object at the same time exactly one succeeds, in every round, and that the
/// object then has its bytes.
///
/// # Errors
/// Returns an error of the kind `Unsupported` if more than one succeeds, and others if the storage cannot be written.
pub(in crate::storage) fn expect_exclusive(store: &ObjectStore) -> Result<()> {
    let keys =
        (0..ROUNDS).map(|_| Ok(format!("{PROBES}/{}", ObjectName::new()?))).collect::<Result<Vec<_>>>()?;
    // Servers that make writers of one key wait for each other take seconds for a round.
    let lanes: Vec<&[String]> = keys.chunks(ROUNDS.div_ceil(LANES)).collect();
    let checked = in_threads(&lanes, LANES, |keys| expect_exclusive_each(store, keys));
    in_threads(&keys, LANES, |key| store.delete(key))?;
    checked
}

/// Runs a round for each key, one after the other.
fn expect_exclusive_each(store: &ObjectStore, keys: &[String]) -> Result<()> {
    let created = race(store, keys)?;
    keys.iter().enumerate().try_for_each(|(round, key)| {
        let winners: Vec<usize> = (0..WRITERS).filter(|writer| won(&created, *writer, round)).collect();
        expect_one(store, key, &winners)
    })
}

/// Returns, for each writer, whether it created the object of each round.
fn race(store: &ObjectStore, keys: &[String]) -> Result<Vec<Vec<ObjectCreation>>> {
    let barrier = Barrier::new(WRITERS);
    let write = |writer: usize| {
        let create = |key: &String| {
            barrier.wait();
            store.create(key, &[&content(writer)])
        };
        // All rounds are run after an error, too: the others wait for this writer.
        keys.iter().map(create).collect::<Vec<_>>().into_iter().collect::<Result<Vec<_>>>()
    };
    let write = &write;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap_or_else(|_| Err(lost()))).collect()
    })
}

fn won(created: &[Vec<ObjectCreation>], writer: usize, round: usize) -> bool {
    created.get(writer).and_then(|rounds| rounds.get(round)) == Some(&ObjectCreation::Created)
}

fn expect_one(store: &ObjectStore, key: &str, winners: &[usize]) -> Result<()> {
    let found = store.read_whole(key)?;
    match winners {
        [winner] if found.as_deref() == Some(&content(*winner)[..]) => Ok(()),
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

/// Calls `run` with each item in a number of threads, and returns the first error.
fn in_threads<T: Sync>(items: &[T], threads: usize, run: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let run = &run;
    std::thread::scope(|scope| {
        let chunks = items.chunks(items.len().div_ceil(threads).max(1));
        let threads: Vec<_> =
            chunks.map(|chunk| scope.spawn(move || chunk.iter().try_for_each(run))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(lost())))
    })
}

fn lost() -> StorageError {
    StorageError::new(ErrorKind::Io, "a thread of the test of the object storage ended")
}

fn content(writer: usize) -> Vec<u8> {
    format!("writer {writer}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::objects::ObjectAddress;

    #[test]
    fn a_directory_passes_and_several_winners_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let address = ObjectAddress::parse(&format!("file://{}", directory.path().display())).unwrap();
        let store = ObjectStore::open(&address).unwrap();
        expect_exclusive(&store).unwrap();
        let left = std::fs::read_dir(directory.path().join(PROBES)).map_or(0, Iterator::count);
        assert_eq!(left, 0);
        store.create("probe/a", &[&content(3)]).unwrap();
        expect_one(&store, "probe/a", &[3]).unwrap();
        for winners in [&[3, 4][..], &[], &[4]] {
            assert_eq!(expect_one(&store, "probe/a", winners).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}
