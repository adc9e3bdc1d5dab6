//! Adoption of the journal of another vault.

use std::sync::Arc;

use super::put::{arrival, new_capture};
use super::state::{MemoryArtifact, MemoryJournalEntry, MemoryLinkKey, MemoryState};
use super::vault::MemoryStorage;
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::entry::EntryChange;
use crate::storage::interface::{AdoptedEntry, Adoption, Note, Pin};
use crate::storage::recorded::{self, RecordedEntry};
use crate::storage::{BUSY_TIMEOUT, Head, Prepared, Result, Tombstone};

impl Adoption for MemoryStorage {
    fn is_incomplete(&self) -> Result<bool> {
        Ok(self.view().0.is_incomplete)
    }

    fn begin(&self) -> Result<Head> {
        self.change(|state| {
            let is_empty = state.journal.is_empty() && state.artifacts.is_empty();
            if !(state.is_incomplete || is_empty) {
                return Err(recorded::not_empty());
            }
            state.is_incomplete = true;
            Ok(state.head())
        })
    }

    fn adopt(&self, entries: &[AdoptedEntry<'_>]) -> Result<Head> {
        self.change(|state| {
            if !state.is_incomplete {
                return Err(recorded::not_begun());
            }
            let head = recorded::check(state.head(), entries)?;
            for entry in entries {
                state.adopt(entry);
            }
            Ok(head)
        })
    }

    fn finish(&self, head: Head) -> Result<()> {
        self.change(|state| {
            if !state.is_incomplete || state.head() != head {
                return Err(recorded::not_begun());
            }
            state.is_incomplete = false;
            Ok(())
        })
    }
}

impl MemoryStorage {
    /// Changes the content, unless `work` fails.
    fn change<T>(&self, work: impl FnOnce(&mut MemoryState) -> Result<T>) -> Result<T> {
        let _turn = self.writer.take(BUSY_TIMEOUT)?;
        let mut view = self.view();
        let outcome = work(Arc::make_mut(&mut view.0))?;
        self.replace(view);
        Ok(outcome)
    }
}

impl MemoryState {
    fn adopt(&mut self, AdoptedEntry { entry, content }: &AdoptedEntry<'_>) {
        let at = entry.at;
        match &entry.change {
            EntryChange::Add { core, .. } => {
                // Earlier versions wrote no entry for undoing a removal.
                self.tombstones.retain(|_, tombstone| tombstone.core != *core);
                if let Some(prepared) = content {
                    self.adopt_addition(entry, prepared);
                }
            }
            EntryChange::Seen { captures, cores } => self.adopt_sightings(entry, captures, cores),
            EntryChange::Signature { capture, core, key_id, state } => {
                let signature =
                    SignatureState::named(state).map(|state| Signature { state, key_id: key_id.clone() });
                let captures = self.artifact_mut(*core).map(|artifact| &mut artifact.captures);
                for stored in captures.into_iter().flatten().filter(|stored| stored.capture == *capture) {
                    stored.signature.clone_from(&signature);
                }
            }
            EntryChange::Remove { core, .. } => {
                if let Some(removed) = self.artifacts.remove(core) {
                    self.forget_texts(&removed.captures);
                }
                self.adopt_tombstones(entry);
            }
            EntryChange::AllowRemoved { core } => {
                self.tombstones.retain(|_, tombstone| tombstone.core != *core);
            }
            EntryChange::Tag { core, name } => {
                self.tags.remove(name);
                if self.artifact(*core).is_some() {
                    self.tags.insert(name.clone(), (*core, at));
                }
            }
            EntryChange::Untag { name } => drop(self.tags.remove(name)),
            EntryChange::Note { core, note: Some(text) } if self.artifact(*core).is_some() => {
                self.notes.insert(*core, Note { text: text.clone(), at });
            }
            EntryChange::Note { core, .. } => drop(self.notes.remove(core)),
            EntryChange::Pin { core, note } if self.artifact(*core).is_some() => {
                self.pins.insert(*core, Pin { note: note.clone(), at });
            }
            EntryChange::Pin { core, .. } | EntryChange::Unpin { core } => drop(self.pins.remove(core)),
            EntryChange::Label { cores, labels } => {
                for core in cores.iter().filter(|core| self.artifacts.contains_key(core)) {
                    let labels =
                        labels.iter().map(|(key, value)| ((*core, key.clone()), (value.clone(), at)));
                    self.labels.extend(labels);
                }
            }
            EntryChange::Unlabel { cores, keys } => {
                self.labels.retain(|(core, key), _| !cores.contains(core) || !keys.contains(key));
            }
            EntryChange::Link { note, relation, source, target } => {
                let key = MemoryLinkKey { relation: relation.clone(), source: *source, target: *target };
                if self.artifact(*source).is_some() && self.artifact(*target).is_some() {
                    self.links.insert(key, note.clone());
                }
            }
            EntryChange::Unlink { relation, source, target } => {
                let key = MemoryLinkKey { relation: relation.clone(), source: *source, target: *target };
                self.links.remove(&key);
            }
            EntryChange::Gc {} | EntryChange::Reindex {} | EntryChange::Repair {} => {}
        }
        let record = entry.record.clone();
        self.journal.push(Arc::new(MemoryJournalEntry { record, action: entry.action() }));
    }

    fn adopt_addition(&mut self, entry: &RecordedEntry, prepared: &Prepared) {
        let (admitted, at) = (prepared.admitted(), entry.at);
        let (core, arrival) = (admitted.core(), arrival(entry.record.seq, 0));
        let mut capture = new_capture(admitted, self, at);
        capture.source_path = prepared.source_path().map(str::to_owned);
        if let Some(known) = self.artifact_mut(core) {
            // A capture that is added again had been lost.
            known.captures.retain(|known| known.capture != capture.capture);
            known.captures.push(capture);
            (known.seen_at, known.arrival) = (at, arrival);
        } else {
            let addition = self.all().map(|known| known.addition).max().map_or(1, |last| last + 1);
            let (kind, captures) = (admitted.kind(), vec![capture]);
            let artifact =
                MemoryArtifact { core, kind, added_at: at, seen_at: at, addition, arrival, captures };
            self.artifacts.insert(core, Arc::new(artifact));
        }
    }

    fn adopt_sightings(&mut self, entry: &RecordedEntry, captures: &[CaptureHash], cores: &[CoreHash]) {
        for (position, (capture, core)) in captures.iter().zip(cores).enumerate() {
            if self.capture(*core, *capture).is_none() {
                continue;
            }
            let Some(artifact) = self.artifact_mut(*core) else { continue };
            (artifact.seen_at, artifact.arrival) = (entry.at, arrival(entry.record.seq, position));
            for known in artifact.captures.iter_mut().filter(|known| known.capture == *capture) {
                known.seen_at = entry.at;
            }
        }
    }

    fn adopt_tombstones(&mut self, entry: &RecordedEntry) {
        let EntryChange::Remove { captures, core, kind, left, reason, size } = &entry.change else { return };
        for digest in captures.iter().map(|capture| capture.0).chain([core.0]) {
            let tombstone = Tombstone {
                digest,
                entry: entry.record.seq,
                at: entry.at,
                core: *core,
                kind: kind.clone(),
                actor: entry.actor.clone(),
                reason: reason.clone(),
                left: *left,
                size: *size,
            };
            self.tombstones.insert((digest, entry.record.seq), tombstone);
        }
    }
}
