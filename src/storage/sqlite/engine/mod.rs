//! The storage interface for vault files: hashes outside, row ids inside.

mod find;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::artifact::Admitted;
use crate::digest::CoreHash;
use crate::storage::check::{Finding, Inspection, Repairs};
use crate::storage::entry::Entry;
use crate::storage::interface::{
    Adoption, AppendedEntry, Backup, BackupError, BackupOptions, BackupProgress, Capabilities, Capability,
    Erasure, FullText, LogDamage, Maintenance, Preparer, PutOptions, ReclaimResult, ReclaimableSpace,
    Snapshot, SqlQueries, Storage, Transaction,
};
use crate::storage::journal::JournalWriter;
use crate::storage::sqlite::delta_bases::RecentBases;
use crate::storage::sqlite::dictionaries::Dictionaries;
use crate::storage::sqlite::edit::WriteTransaction;
use crate::storage::sqlite::payload;
use crate::storage::sqlite::release::BaseReplacements;
use crate::storage::sqlite::store::Store;
use crate::storage::{Actor, Head, Prepared, PutResult, Result, StorageError, change};

impl Storage for Store {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(Self::snapshot(self)?))
    }

    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(SqliteTransaction::begin(self, at, busy_timeout)?))
    }

    fn preparer(&self) -> Result<Box<dyn Preparer>> {
        let dictionaries = if self.is_created() {
            Dictionaries::load(&*self.connection()?)
                .map_err(|error| StorageError::from_sqlite(&self.path, error))?
        } else {
            Dictionaries::default()
        };
        Ok(Box::new(SqlitePreparer { dictionaries: Arc::new(dictionaries), bases: RecentBases::default() }))
    }

    fn put(&self, batch: &[&Prepared], options: &PutOptions) -> Result<Vec<PutResult>> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        payload::dictionaries(first)?;
        self.create_now()?;
        change::put(self, batch, options)
    }

    fn set_actor(&mut self, actor: Actor) {
        self.actor = Some(actor);
    }

    fn is_created(&self) -> bool {
        Self::is_created(self)
    }

    fn document(&self, core: CoreHash) -> Result<Option<Vec<u8>>> {
        Self::document(self, core)
    }

    fn adoption(&self) -> &dyn Adoption {
        self
    }

    fn maintenance(&self) -> &dyn Maintenance {
        self
    }

    fn full_text(&self) -> Result<&dyn FullText> {
        Ok(self)
    }

    fn sql(&self) -> Result<&dyn SqlQueries> {
        Ok(self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(&Capability::ALL)
    }
}

/// A preparer that compresses artifacts with the dictionaries of their kinds, or encodes them as deltas.
struct SqlitePreparer {
    dictionaries: Arc<Dictionaries>,
    bases: RecentBases,
}

impl Preparer for SqlitePreparer {
    fn prepare(&self, admitted: Admitted) -> Prepared {
        payload::prepare(admitted, &self.dictionaries, &self.bases)
    }
}

impl Maintenance for Store {
    fn log_damage(&self) -> Option<&LogDamage> {
        Self::log_damage(self)
    }

    fn check_logs(&self) -> Result<Vec<Finding>> {
        Self::check_logs(self)
    }

    fn check_pages(&self) -> Result<Option<Finding>> {
        Self::check_pages(self)
    }

    fn log_copies(&self) -> Result<Vec<PathBuf>> {
        Self::log_copies(self)
    }

    fn reclaimable(&self) -> Result<ReclaimableSpace> {
        Self::reclaimable(self)
    }

    fn reclaim(&self, at: DateTime<Utc>) -> Result<ReclaimResult> {
        Self::reclaim(self, at)
    }

    fn erase(&self) -> Erasure {
        Self::erase(self)
    }

    fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        watch: &mut dyn FnMut(BackupProgress),
    ) -> std::result::Result<Backup, BackupError> {
        Self::backup(self, path, options, watch)
    }

    fn inspect(&self) -> Result<Box<dyn Inspection + '_>> {
        Ok(Box::new(Self::inspect(self)?))
    }

    fn repairs(&self) -> Result<&dyn Repairs> {
        Ok(self)
    }
}

/// A transaction of a vault file.
pub(in crate::storage::sqlite) struct SqliteTransaction<'s> {
    store: &'s Store,
    pub(in crate::storage::sqlite) edit: WriteTransaction<'s>,
    removes: bool,
}

impl<'s> SqliteTransaction<'s> {
    pub(in crate::storage::sqlite) fn begin(
        store: &'s Store,
        at: DateTime<Utc>,
        busy_timeout: Duration,
    ) -> Result<Self> {
        Ok(Self { store, edit: store.change(at, busy_timeout)?, removes: false })
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

    fn journal(&mut self) -> &mut JournalWriter {
        self.edit.journal.writer()
    }

    fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>> {
        self.removes |= entries.iter().any(|entry| matches!(entry.entry.change, Entry::Remove { .. }));
        self.edit.append(entries)
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
