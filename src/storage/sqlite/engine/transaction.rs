//! Changes of annotations, and removals.

use std::sync::PoisonError;

use chrono::{DateTime, Utc};

use crate::digest::CoreHash;
use crate::storage::interface::{Annotation, Snapshot, Transaction};
use crate::storage::sqlite::edit::WriteTransaction;
use crate::storage::sqlite::release::BaseReplacements;
use crate::storage::sqlite::store::Store;
use crate::storage::{Head, ManualLinkKey, Result};

/// A transaction of a vault file.
pub(super) struct SqliteTransaction<'s> {
    store: &'s Store,
    edit: WriteTransaction<'s>,
    removes: bool,
}

impl<'s> SqliteTransaction<'s> {
    pub(super) fn begin(store: &'s Store, at: DateTime<Utc>) -> Result<Self> {
        Ok(Self { store, edit: store.edit(at)?, removes: false })
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        self.edit.snapshot()
    }

    fn prepare_removal(&mut self, of: &[CoreHash]) -> Result<bool> {
        let mut heirs = self.store.heirs.lock().unwrap_or_else(PoisonError::into_inner);
        self.edit.release(of, &mut heirs)
    }

    fn remove(&mut self, core: CoreHash, reason: Option<&str>) -> Result<()> {
        self.removes = true;
        self.edit.remove(core, reason)
    }

    fn annotate(&mut self, change: &Annotation<'_>) -> Result<bool> {
        match *change {
            Annotation::SetTag { core, name } => self.edit.tag(core, name),
            Annotation::RemoveTag { name } => self.edit.untag(name),
            Annotation::SetNote { core, text: Some(text) } => self.edit.set_note(core, text),
            Annotation::SetNote { core, text: None } => self.edit.remove_note(core),
            Annotation::Pin { core, note } => self.edit.pin(core, note),
            Annotation::Unpin { core } => self.edit.unpin(core),
            Annotation::SetLabels { cores, labels } => self.edit.set_labels(cores, labels),
            Annotation::RemoveLabels { cores, keys } => self.edit.remove_labels(cores, keys),
            Annotation::AddLink { source, relation, target, note } => {
                self.edit.add_link(ManualLinkKey { source, relation, target }, note)
            }
            Annotation::RemoveLink { source, relation, target } => {
                self.edit.remove_link(ManualLinkKey { source, relation, target })
            }
        }
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        let Self { store, edit, removes } = *self;
        let head = edit.commit()?;
        if removes {
            *store.heirs.lock().unwrap_or_else(PoisonError::into_inner) = BaseReplacements::default();
        }
        Ok(head)
    }
}
