//! Execution of the changes of rows that follow from entries of the journal, each table's in one statement.

pub(super) mod artifacts;
pub(super) mod blobs;
pub(super) mod captures;
pub(super) mod derived;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::error::PostgresResult;
use super::names::NameRegistry;
use super::session::DatabaseTransaction;
use crate::digest::{CoreHash, Digest};
use crate::storage::catalog::{Row, RowChange, RowKey, apply};
use crate::storage::interface::AppendedEntry;
use crate::storage::sql::{self, AnnotationChanges};
use crate::storage::{RecordedEntry, Tombstone};
use artifacts::ArtifactChanges;
pub(super) use blobs::blobs_of;
use blobs::{AddedVersions, Blobs};
use captures::CaptureChanges;
use derived::DerivedRows;

/// A writer of the rows of the catalog and of blobs, within a transaction that holds the writer lock.
pub(super) struct RowWriter<'w, 's, 'b> {
    pub(super) session: &'w DatabaseTransaction<'s>,
    pub(super) names: &'w NameRegistry,
    pub(super) blobs: &'w mut Blobs<'b>,
}

/// Changes that are executed together. Of several changes of a row, the last one counts.
#[derive(Default)]
struct RowChanges<'c> {
    readmitted: BTreeSet<CoreHash>,
    artifacts: ArtifactChanges,
    captures: CaptureChanges<'c>,
    /// What artifacts state.
    facts: Vec<Row>,
    annotations: AnnotationChanges,
    /// Artifacts that are removed after everything else was done.
    removed: BTreeSet<CoreHash>,
    /// When the last of the entries was recorded.
    at: DateTime<Utc>,
    tombstones: BTreeMap<(Digest, u64), Tombstone>,
}

impl RowWriter<'_, '_, '_> {
    /// Executes what follows from entries. The blobs of what they add are stored.
    pub(super) fn execute(&mut self, entries: &[AppendedEntry<'_>]) -> PostgresResult<()> {
        let mut waiting = RowChanges::default();
        for AppendedEntry { entry, content } in entries {
            let changes = apply(entry, *content);
            if changes.iter().any(|change| waiting.removes_artifact_of(change)) {
                self.write(std::mem::take(&mut waiting))?;
            }
            for change in changes {
                waiting.add(entry, change);
            }
        }
        self.write(waiting)
    }

    /// Executes changes. Rows of artifacts that the vault does not have are left out.
    fn write(&mut self, changes: RowChanges<'_>) -> PostgresResult<()> {
        let session = self.session;
        if !changes.readmitted.is_empty() {
            sql::readmit(session, &Vec::from_iter(changes.readmitted))?;
        }
        let needed = changes.captures.blobs();
        self.blobs.send(session, &needed)?;
        blobs::reprieve(session, &needed)?;
        let ids = changes.artifacts.write(session, self.names)?;
        changes.captures.write(session, &ids)?;
        self.write_derived(&changes.captures, changes.facts, changes.at, &ids)?;
        changes.annotations.write(session)?;
        artifacts::delete_artifacts(session, &changes.removed.into_iter().collect::<Vec<_>>(), changes.at)?;
        sql::put_tombstones(session, changes.tombstones.into_values().collect())
    }

    /// Writes what follows from the bytes of the captures that are added at a time, of artifacts with these numbers.
    fn write_derived(
        &self,
        captures: &CaptureChanges<'_>,
        facts: Vec<Row>,
        at: DateTime<Utc>,
        ids: &HashMap<CoreHash, i64>,
    ) -> PostgresResult<()> {
        let (mut rows, mut growing) = (DerivedRows::default(), AddedVersions::default());
        for (core, capture, content) in captures.contents() {
            if let Some(artifact) = ids.get(&core) {
                rows.add_members(capture, content.admitted().members());
                rows.add_mentions(Some(*artifact), capture, content.admitted(), self.names)?;
                growing.add(*artifact, content, self.names);
            }
        }
        for fact in facts {
            rows.add_fact(fact, |core| ids.get(&core).copied());
        }
        rows.write(self.session)?;
        growing.write(self.session, self.blobs, at)
    }
}

impl<'c> RowChanges<'c> {
    /// Returns whether a change is about an artifact that is to be removed before.
    fn removes_artifact_of(&self, change: &RowChange<'_>) -> bool {
        let is_removed = |core: &CoreHash| self.removed.contains(core);
        !self.removed.is_empty()
            && match change {
                RowChange::Insert(row) | RowChange::Put(row) => match row {
                    Row::Link { source, target, .. } => is_removed(source) || is_removed(target),
                    row => row.owner().is_some_and(|core| is_removed(&core)),
                },
                RowChange::Arrive { core, .. }
                | RowChange::See { core, .. }
                | RowChange::Store { core, .. }
                | RowChange::Readmit { core } => is_removed(core),
                RowChange::Delete(_) | RowChange::Remove { .. } => false,
            }
    }

    fn add(&mut self, entry: &RecordedEntry, change: RowChange<'c>) {
        self.at = entry.at;
        match change {
            RowChange::Insert(row) => self.insert(row),
            RowChange::Put(row) => self.put(row),
            RowChange::Delete(RowKey::Signature(core, capture)) => self.captures.sign(core, capture, None),
            RowChange::Delete(key) => self.annotations.delete(key),
            RowChange::Arrive { core, at, arrival } => self.artifacts.arrive(core, at, arrival),
            RowChange::See { core, capture, at } => self.captures.see(core, capture, at),
            RowChange::Store { core, capture, content } => self.captures.store(core, capture, content),
            RowChange::Remove { core } => {
                self.removed.insert(core);
            }
            RowChange::Readmit { core } => {
                self.readmitted.insert(core);
            }
        }
    }

    fn insert(&mut self, row: Row) {
        match row {
            // The registry of names has it.
            Row::Kind(_) => {}
            Row::Artifact { .. } => self.artifacts.insert(&row),
            Row::Attribute { .. } => {
                self.artifacts.date(&row);
                self.facts.push(row);
            }
            _ => self.facts.push(row),
        }
    }

    fn put(&mut self, row: Row) {
        match row {
            Row::Capture { .. } => self.captures.add(row),
            Row::Signature { core, capture, state, key_id } => {
                self.captures.sign(core, capture, Some((state, key_id)));
            }
            Row::Tombstone(tombstone) => {
                self.tombstones.insert((tombstone.digest, tombstone.entry), *tombstone);
            }
            _ => self.annotations.put(row),
        }
    }
}
