//! Answers from the content of a vault.

mod artifacts;
mod captures;
mod find;
mod journal;
mod mentions;
mod names;
mod references;
mod statistics;

use std::sync::Arc;

use super::state::MemoryState;
use crate::storage::Result;
use crate::storage::interface::{FullTextSnapshot, Snapshot};

/// A snapshot, which shares the content with all others of the same time.
#[derive(Clone, Default)]
pub(super) struct MemorySnapshot(pub(super) Arc<MemoryState>);

/// Returns the answer for each key.
fn each<K: Copy, T>(keys: &[K], answer: impl Fn(K) -> T) -> Vec<T> {
    keys.iter().map(|key| answer(*key)).collect()
}

impl Snapshot for MemorySnapshot {
    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}
