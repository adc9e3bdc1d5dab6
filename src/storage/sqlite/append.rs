//! Entries appended to the journal, with what follows from them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::Result;
use super::dictionaries::Dictionaries;
use super::edit::WriteTransaction;
use super::unresolved::ReferenceReader;
use super::write::{RemovedRows, SqliteWriter};
use super::{payload, remove};
use crate::storage::entry::Entry;
use crate::storage::interface::AppendedEntry;

impl WriteTransaction<'_> {
    /// Appends entries to the journal, and executes what follows from them. Returns, for each, whether it adds a capture with
    /// bytes that the vault had before.
    pub(super) fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>> {
        let none = Dictionaries::default();
        let content = entries.iter().find_map(|entry| entry.content);
        let dictionaries = content.map_or(Ok(&none), payload::dictionaries)?;
        if entries.iter().any(|entry| matches!(entry.entry.change, Entry::Remove { .. })) {
            self.overwrite_deleted()?;
        }
        let removed = RefCell::new((BTreeSet::new(), Vec::new()));
        let mut run = || {
            let connection = self.snapshot.connection();
            let remove = |rows| {
                let (orphans, unlisted) = &mut *removed.borrow_mut();
                match rows {
                    RemovedRows::Artifact(artifact, core) => {
                        remove::take_out(&self.snapshot, artifact, core, orphans, unlisted)
                    }
                    RemovedRows::Capture(capture) => {
                        let lists = self.snapshot.lists();
                        let references = ReferenceReader::new(lists)?;
                        unlisted.append(&mut remove::take_out_capture(lists, &references, capture)?);
                        Ok(())
                    }
                }
            };
            let mut writer = SqliteWriter::new(connection, dictionaries, &remove)?;
            let append = |entry| writer.append(&mut self.journal, entry);
            let reuse = entries.iter().map(append).collect::<rusqlite::Result<_>>()?;
            writer.finish()?;
            Ok(reuse)
        };
        let reuse = run().map_err(|error| self.snapshot.failed(error))?;
        let (orphans, unlisted) = removed.into_inner();
        self.orphans.extend(orphans);
        self.unlisted.extend(unlisted);
        Ok(reuse)
    }
}
