//! Changes of existing content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::recorder::MemoryJournalWriter;
use super::snapshot::MemorySnapshot;
use super::state::{MemoryLinkKey, MemoryState};
use super::vault::{MemoryStorage, WriterTurn};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::annotations::{link_defect, note_defect, tag_defect};
use crate::storage::interface::{Annotation, Note, Pin, Snapshot, Transaction};
use crate::storage::journal::JournalEvent;
use crate::storage::labels::{LabelChange, LabeledArtifacts};
use crate::storage::{Actor, Head, Result, StorageError, Tombstone, recorded};

/// A change, made to a copy of the content.
pub(super) struct MemoryTransaction<'s> {
    storage: &'s MemoryStorage,
    _turn: WriterTurn<'s>,
    view: MemorySnapshot,
    recorder: MemoryJournalWriter,
}

impl<'s> MemoryTransaction<'s> {
    /// Begins a change after waiting for other writers, no longer than `busy_timeout`.
    pub(super) fn begin(
        storage: &'s MemoryStorage,
        at: DateTime<Utc>,
        busy_timeout: Duration,
    ) -> Result<Self> {
        let turn = storage.writer.take(busy_timeout)?;
        let view = storage.view();
        if view.0.is_incomplete {
            return Err(recorded::incomplete("the vault in memory"));
        }
        let recorder = MemoryJournalWriter::new(&view.0, storage.actor.as_ref(), at);
        Ok(Self { storage, _turn: turn, view, recorder })
    }

    /// Returns the content to change, which snapshots do not share, and the writer of the journal.
    pub(super) fn parts(&mut self) -> (&mut MemoryState, &mut MemoryJournalWriter) {
        (Arc::make_mut(&mut self.view.0), &mut self.recorder)
    }

    /// Appends a journal entry.
    fn record(&mut self, event: &JournalEvent<'_>) -> Result<()> {
        let (state, recorder) = self.parts();
        recorder.append(state, event)
    }

    fn set_tag(&mut self, core: CoreHash, name: &str) -> Result<bool> {
        reject(tag_defect(name))?;
        self.view.0.expect_artifact(core)?;
        if self.view.0.tags.get(name).is_some_and(|(tagged, _)| *tagged == core) {
            return Ok(false);
        }
        let tag = (core, self.recorder.at());
        self.parts().0.tags.insert(name.to_owned(), tag);
        self.record(&JournalEvent::Tag { core, name }).map(|()| true)
    }

    fn remove_tag(&mut self, name: &str) -> Result<bool> {
        let Some((core, _)) = self.parts().0.tags.remove(name) else { return Ok(false) };
        self.record(&JournalEvent::Untag { core, name }).map(|()| true)
    }

    fn set_note(&mut self, core: CoreHash, text: &str) -> Result<bool> {
        reject(note_defect(text))?;
        self.view.0.expect_artifact(core)?;
        if self.view.0.notes.get(&core).is_some_and(|note| note.text == text) {
            return Ok(false);
        }
        let note = Note { text: text.to_owned(), at: self.recorder.at() };
        self.parts().0.notes.insert(core, note);
        self.record(&JournalEvent::Note { core, note: Some(text) }).map(|()| true)
    }

    fn remove_note(&mut self, core: CoreHash) -> Result<bool> {
        self.view.0.expect_artifact(core)?;
        if self.parts().0.notes.remove(&core).is_none() {
            return Ok(false);
        }
        self.record(&JournalEvent::Note { core, note: None }).map(|()| true)
    }

    fn pin(&mut self, core: CoreHash, note: Option<&str>) -> Result<bool> {
        self.view.0.expect_artifact(core)?;
        if self.view.0.pins.get(&core).is_some_and(|pin| pin.note.as_deref() == note) {
            return Ok(false);
        }
        let pin = Pin { note: note.map(str::to_owned), at: self.recorder.at() };
        self.parts().0.pins.insert(core, pin);
        self.record(&JournalEvent::Pin { core, note }).map(|()| true)
    }

    fn unpin(&mut self, core: CoreHash) -> Result<bool> {
        self.view.0.expect_artifact(core)?;
        if self.parts().0.pins.remove(&core).is_none() {
            return Ok(false);
        }
        self.record(&JournalEvent::Unpin { core }).map(|()| true)
    }

    fn labeled(&self, cores: &[CoreHash]) -> Result<LabeledArtifacts> {
        let state = &self.view.0;
        LabeledArtifacts::read(cores, |core| state.expect_artifact(core).map(|_| state.labels_of(core)))
    }

    fn set_labels(&mut self, cores: &[CoreHash], labels: &BTreeMap<String, String>) -> Result<bool> {
        let changes = self.labeled(cores)?.set(labels)?;
        let at = self.recorder.at();
        for LabelChange { cores, change } in &changes {
            for core in cores {
                let labels = change.iter().map(|(key, value)| ((*core, key.clone()), (value.clone(), at)));
                self.parts().0.labels.extend(labels);
            }
            self.record(&JournalEvent::Label { cores, labels: change })?;
        }
        Ok(!changes.is_empty())
    }

    fn remove_labels(&mut self, cores: &[CoreHash], keys: &BTreeSet<String>) -> Result<bool> {
        let changes = self.labeled(cores)?.remove(keys);
        for LabelChange { cores, change } in &changes {
            self.parts().0.labels.retain(|(core, key), _| !cores.contains(core) || !change.contains(key));
            self.record(&JournalEvent::Unlabel { cores, keys: change })?;
        }
        Ok(!changes.is_empty())
    }

    fn add_link(&mut self, link: &MemoryLinkKey, note: Option<&str>) -> Result<bool> {
        let MemoryLinkKey { relation, source, target } = link;
        reject(link_defect(*source, relation, *target, note))?;
        self.view.0.expect_artifact(*source)?;
        self.view.0.expect_artifact(*target)?;
        if self.view.0.links.get(link).is_some_and(|known| known.as_deref() == note) {
            return Ok(false);
        }
        self.parts().0.links.insert(link.clone(), note.map(str::to_owned));
        let event = JournalEvent::Link { note, relation, source: *source, target: *target };
        self.record(&event).map(|()| true)
    }

    fn remove_link(&mut self, link: &MemoryLinkKey) -> Result<bool> {
        self.view.0.expect_artifact(link.source)?;
        self.view.0.expect_artifact(link.target)?;
        if self.parts().0.links.remove(link).is_none() {
            return Ok(false);
        }
        let MemoryLinkKey { relation, source, target } = link;
        self.record(&JournalEvent::Unlink { relation, source: *source, target: *target }).map(|()| true)
    }

    /// Removes an artifact that has no annotations, and records the removal.
    fn bury(&mut self, core: CoreHash, reason: Option<&str>) -> Result<()> {
        let artifact = self.view.0.expect_artifact(core)?;
        let (kind, captures) = (artifact.kind.name(), artifact.captures.clone());
        let hashes: Vec<CaptureHash> = captures.iter().map(|capture| capture.capture).collect();
        let size = captures.iter().map(super::state::MemoryCapture::size).sum();
        let state = self.parts().0;
        state.artifacts.remove(&core);
        state.forget_texts(&captures);
        self.record(&JournalEvent::Remove { captures: &hashes, core, kind, left: 0, reason, size })?;
        let tombstone = Tombstone {
            digest: core.0,
            entry: self.view.0.head().seq,
            at: self.recorder.at(),
            core,
            kind: kind.to_owned(),
            actor: self.recorder.actor().map(|actor| Actor::name(actor).to_owned()),
            reason: reason.map(str::to_owned),
            left: 0,
            size,
        };
        for digest in hashes.iter().map(|capture| capture.0).chain([core.0]) {
            let key = (digest, tombstone.entry);
            self.parts().0.tombstones.insert(key, Tombstone { digest, ..tombstone.clone() });
        }
        Ok(())
    }
}

/// Returns the error for a value with a defect.
fn reject(defect: Option<String>) -> Result<()> {
    defect.map_or(Ok(()), |defect| Err(StorageError::invalid(defect)))
}

impl Transaction for MemoryTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        &self.view
    }

    fn prepare_removal(&mut self, _of: &[CoreHash]) -> Result<bool> {
        Ok(true)
    }

    fn remove(&mut self, core: CoreHash, reason: Option<&str>) -> Result<()> {
        self.view.0.expect_artifact(core)?;
        if self.view.0.pins.contains_key(&core) {
            return Err(StorageError::pinned(core));
        }
        for link in self.view.0.links_of(core) {
            self.remove_link(&link)?;
        }
        for tag in self.view.0.tags_of(core) {
            self.remove_tag(&tag.name)?;
        }
        self.remove_note(core)?;
        let keys = self.view.0.labels_of(core).into_iter().map(|label| label.key).collect();
        self.remove_labels(&[core], &keys)?;
        self.bury(core, reason)
    }

    fn annotate(&mut self, change: &Annotation<'_>) -> Result<bool> {
        match *change {
            Annotation::SetTag { core, name } => self.set_tag(core, name),
            Annotation::RemoveTag { name } => self.remove_tag(name),
            Annotation::SetNote { core, text: Some(text) } => self.set_note(core, text),
            Annotation::SetNote { core, text: None } => self.remove_note(core),
            Annotation::Pin { core, note } => self.pin(core, note),
            Annotation::Unpin { core } => self.unpin(core),
            Annotation::SetLabels { cores, labels } => self.set_labels(cores, labels),
            Annotation::RemoveLabels { cores, keys } => self.remove_labels(cores, keys),
            Annotation::AddLink { source, relation, target, note } => {
                self.add_link(&MemoryLinkKey { relation: relation.to_owned(), source, target }, note)
            }
            Annotation::RemoveLink { source, relation, target } => {
                self.remove_link(&MemoryLinkKey { relation: relation.to_owned(), source, target })
            }
        }
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        let head = self.view.0.head();
        self.storage.replace(self.view);
        Ok(head)
    }
}
