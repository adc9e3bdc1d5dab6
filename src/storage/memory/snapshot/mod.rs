//! Answers from the content of a vault, and those about its journal.

mod artifacts;
mod find;
mod references;

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::state::{MemoryJournalEntry, MemoryState};
use crate::digest::Digest;
use crate::storage::interface::{FullTextSnapshot, JournalQueries, JournalRecord, Snapshot};
use crate::storage::{Head, JournalCheck, JournalQuery, Result, Tombstone};

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

impl JournalQueries for MemorySnapshot {
    fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>> {
        let is_match = |entry: &MemoryJournalEntry| {
            query.since.is_none_or(|since| entry.record.at >= since)
                && query.until.is_none_or(|until| entry.record.at < until)
                && query.action.as_ref().is_none_or(|action| entry.action == **action)
        };
        let matching: Vec<_> = self.0.journal.iter().filter(|entry| is_match(entry)).collect();
        let last = query.limit.map_or(usize::MAX, |limit| limit as usize);
        let skipped = matching.len().saturating_sub(last);
        let entries = matching.into_iter().skip(skipped).map(|entry| &entry.record);
        Ok(entries.filter(|entry| entry.seq >= from).take(limit).cloned().collect())
    }

    fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
        let mut check = JournalCheck::begin(since);
        for entry in &self.0.journal {
            check.take(entry.record.seq, Some(&entry.record.entry), entry.record.chain, since);
        }
        Ok(check)
    }

    fn journal_head(&self) -> Result<Head> {
        Ok(self.0.head())
    }

    fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>> {
        Ok(self.0.journal.last().map(|last| last.record.at))
    }

    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>> {
        let tombstones = self.0.tombstones.values().filter(|tombstone| {
            tombstone.digest == tombstone.core.0
                && tombstone.entry > after
                && kind.is_none_or(|kind| kind == tombstone.kind)
                && self.0.artifact(tombstone.core).is_none()
        });
        let mut tombstones: Vec<Tombstone> = tombstones.cloned().collect();
        tombstones.sort_unstable_by_key(|tombstone| tombstone.entry);
        tombstones.truncate(limit);
        Ok(tombstones)
    }

    fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        Ok(digests.iter().map(|digests| self.0.tombstones_with(digests)).collect())
    }
}
