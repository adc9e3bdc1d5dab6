//! Changes of the rows of a vault in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::state::{MemoryArtifact, MemoryCapture, MemoryLinkKey, MemoryMember, MemoryState};
use crate::artifact::{Admitted, Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::catalog::{Row, RowChange, RowKey};
use crate::storage::interface::{AttributeRecord, Note, Pin};

/// Returns the time of a row.
fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

impl MemoryState {
    /// Executes the changes that follow from an entry.
    pub(super) fn execute(&mut self, changes: Vec<RowChange<'_>>) {
        for change in changes {
            match change {
                RowChange::Insert(row) => self.insert(&row),
                RowChange::Put(row) => self.put(row),
                RowChange::Delete(key) => self.delete(&key),
                RowChange::Arrive { core, at, arrival } => {
                    if let Some(artifact) = self.artifact_mut(core) {
                        (artifact.seen_at, artifact.arrival) = (time(at), arrival.cast_unsigned());
                    }
                }
                RowChange::See { core, capture, at } => {
                    if let Some(known) = self.capture_mut(core, capture) {
                        known.seen_at = time(at);
                    }
                }
                RowChange::Store { core, capture, content } => self.store(core, capture, content.admitted()),
                RowChange::Remove { core } => {
                    if let Some(removed) = self.artifacts.remove(&core) {
                        self.forget_texts(&removed.captures);
                    }
                }
                RowChange::Readmit { core } => self.tombstones.retain(|_, removed| removed.core != core),
            }
        }
    }

    fn capture_mut(&mut self, core: CoreHash, capture: CaptureHash) -> Option<&mut MemoryCapture> {
        self.artifact_mut(core)?.captures.iter_mut().find(|known| known.capture == capture)
    }

    /// Inserts a row unless there is one with its key.
    fn insert(&mut self, row: &Row) {
        // What captures state is stored with each of them.
        match row {
            Row::Kind(kind) => drop(self.kinds.insert(kind.name(), *kind)),
            Row::Artifact { core, entry, kind, added_at, seen_at, arrival } => {
                let Some(kind) = self.kinds.get(kind.as_str()).copied() else { return };
                let artifact = || MemoryArtifact {
                    core: *core,
                    kind,
                    added_at: time(*added_at),
                    seen_at: time(*seen_at),
                    addition: *entry,
                    arrival: arrival.cast_unsigned(),
                    captures: Vec::new(),
                };
                self.artifacts.entry(*core).or_insert_with(|| Arc::new(artifact()));
            }
            _ => {}
        }
    }

    /// Inserts or replaces a row. Those of artifacts that are not stored are left out.
    fn put(&mut self, row: Row) {
        match row {
            Row::Capture { core, capture, entry, added_at, seen_at, source_path, .. } => {
                let Some(artifact) = self.artifact_mut(core) else { return };
                artifact.captures.retain(|known| known.capture != capture);
                artifact.captures.push(MemoryCapture {
                    addition: entry,
                    source_path,
                    ..MemoryCapture::new(capture, time(added_at), time(seen_at))
                });
            }
            Row::Signature { core, capture, state, key_id } => {
                if let Some(known) = self.capture_mut(core, capture) {
                    known.signature = SignatureState::named(&state).map(|state| Signature { state, key_id });
                }
            }
            Row::Tag { name, core, at } => {
                self.tags.remove(&name);
                if self.artifacts.contains_key(&core) {
                    self.tags.insert(name, (core, time(at)));
                }
            }
            Row::Note { core, text, at } if self.artifacts.contains_key(&core) => {
                self.notes.insert(core, Note { text, at: time(at) });
            }
            Row::Pin { core, note, at } if self.artifacts.contains_key(&core) => {
                self.pins.insert(core, Pin { note, at: time(at) });
            }
            Row::Label { core, key, value, at } if self.artifacts.contains_key(&core) => {
                self.labels.insert((core, key), (value, time(at)));
            }
            Row::Link { source, relation, target, note, .. }
                if self.artifacts.contains_key(&source) && self.artifacts.contains_key(&target) =>
            {
                self.links.insert(MemoryLinkKey { relation, source, target }, note);
            }
            Row::Tombstone(tombstone) => {
                self.tombstones.insert((tombstone.digest, tombstone.entry), tombstone);
            }
            _ => {}
        }
    }

    fn delete(&mut self, key: &RowKey) {
        match key {
            RowKey::Signature(core, capture) => {
                if let Some(known) = self.capture_mut(*core, *capture) {
                    known.signature = None;
                }
            }
            RowKey::Tag(name) => drop(self.tags.remove(name)),
            RowKey::Note(core) => drop(self.notes.remove(core)),
            RowKey::Pin(core) => drop(self.pins.remove(core)),
            RowKey::Label(core, key) => drop(self.labels.remove(&(*core, key.clone()))),
            RowKey::Link(source, relation, target) => {
                let key = MemoryLinkKey { relation: relation.clone(), source: *source, target: *target };
                self.links.remove(&key);
            }
        }
    }

    /// Stores the files of a capture, and what it states.
    fn store(&mut self, core: CoreHash, capture: CaptureHash, admitted: &Admitted) {
        let draft = admitted.draft();
        let Some(known) = self.capture_mut(core, capture) else { return };
        known.warnings = admitted.report().violations().to_vec();
        known.members = admitted.members().iter().map(MemoryMember::from).collect();
        known.manifest = admitted.manifest().map(MemoryMember::from);
        known.mentions = draft.mentions.iter().cloned().collect();
        let attributes = draft.attributes.iter().map(|known| AttributeRecord {
            name: known.name.to_owned(),
            value: known.value.clone(),
            number: known.number,
        });
        known.attributes = attributes.collect::<BTreeSet<_>>();
        known.identified_by = draft.identified_by.iter().map(|name| name.as_str().to_owned()).collect();
        let references = draft
            .refers_to
            .iter()
            .map(|(relation, name)| ((relation.name, name.as_str().to_owned()), relation.dangles));
        known.refers_to = references.collect();
    }
}
