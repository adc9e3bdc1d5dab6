//! Repairs that require no guessing. Each step is one transaction with its journal entry.
//!
//! First the rows that say which bytes are stored are made those of the stored bytes, then the rows of the catalog that follow
//! from the journal are written again. What is derived from the bytes is rebuilt after that, as by a reindexing.

mod blobs;
mod indexes;
mod journal;
mod rows;
mod types;

use rusqlite::{Connection, Transaction};

use super::check::{replay, restrict_permissions};
use super::connection::secure_delete;
use super::journal::SqliteJournalWriter;
use super::write_lock;
use super::{Result, StorageError, Store};
use crate::artifact::Kind;
use crate::clock;
use crate::digest::{BlobHash, Digest};
use crate::storage::check::finding::{BROKEN_CHAIN, FILE_DAMAGED, INSECURE_PERMISSIONS, UNREADABLE};
use crate::storage::check::{Finding, Repair, Repairs, Subject};
use crate::storage::entry::Entry;

impl Repairs for Store {
    fn repair_structures(&self, found: &[Finding]) -> Result<Vec<Repair>> {
        let has = |info| found.iter().any(|finding| finding.info == info);
        let mut repaired = Vec::new();
        if has(BROKEN_CHAIN) {
            repaired.append(&mut self.repair(|transaction| {
                transaction.pragma_update(None, "defer_foreign_keys", true)?;
                let mut repaired = Vec::new();
                journal::renumber(transaction, &mut repaired)?;
                Ok(repaired)
            })?);
        }
        if let Some(open) = found.iter().find(|finding| finding.info == INSECURE_PERMISSIONS) {
            restrict_permissions(&self.path).map_err(|source| StorageError::io(&self.path, source))?;
            let subject = open.subject.clone();
            repaired.append(&mut self.repair(|_| Ok(vec![Repair { subject, did: "closed to others" }]))?);
        }
        if has(FILE_DAMAGED) {
            repaired.append(&mut self.repair_sql_indexes()?);
        }
        let is_of_blobs = |finding: &Finding| {
            matches!(finding.subject, Subject::Blob(_) | Subject::Table(_))
                || [FILE_DAMAGED, UNREADABLE].contains(&finding.info)
        };
        if found.iter().any(is_of_blobs) {
            repaired.append(&mut self.repair(|transaction| {
                transaction.pragma_update(None, "defer_foreign_keys", true)?;
                let mut repaired = Vec::new();
                types::restore(transaction, &mut repaired)?;
                blobs::settle(transaction, &mut repaired)?;
                Ok(repaired)
            })?);
        }
        Ok(repaired)
    }

    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        if BlobHash(Digest::from_content(bytes)) != blob {
            return Ok(Vec::new());
        }
        self.repair(|transaction| {
            let is_changed = blobs::store(transaction, blob, bytes)?;
            let repaired = Repair { subject: Subject::Blob(blob), did: "restored" };
            Ok(is_changed.then_some(repaired).into_iter().collect())
        })
    }

    fn rebuild(&self, kinds: &[Kind]) -> Result<Vec<Repair>> {
        self.repair(|transaction| {
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            let replay = replay(transaction)?;
            let mut repaired = Vec::new();
            if replay.is_proven() {
                rows::write(transaction, &replay.catalog, kinds)?;
                let subject = Subject::Table("catalog".to_owned());
                repaired.push(Repair { subject, did: "written from the journal again" });
                journal::restore_columns(transaction, &replay.findings, &mut repaired)?;
            }
            types::rename_kinds(transaction)?;
            types::drop_warnings(transaction)?;
            rows::drop_strays(transaction, &mut repaired)?;
            blobs::drop_damaged_dictionaries(transaction, &mut repaired)?;
            Ok(repaired)
        })
    }

    fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        self.repair(blobs::drop_unreferenced)
    }
}

impl Store {
    /// Runs `work` and records its repairs in the journal, in one transaction.
    fn repair(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Vec<Repair>>,
    ) -> Result<Vec<Repair>> {
        self.with_connection(|connection| {
            // Deleted content is overwritten.
            secure_delete(connection, true)?;
            let transaction = write_lock::begin(connection)?;
            let repaired = work(&transaction)?;
            let mut journal = SqliteJournalWriter::open(&transaction, self.actor.as_ref(), clock::now())?;
            for Repair { subject, did } in &repaired {
                let entry = Entry::Repair { did: (*did).to_owned(), subject: subject.to_string() };
                journal.append(&transaction, entry)?;
            }
            transaction.commit()?;
            secure_delete(connection, false)?;
            Ok(repaired)
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection()?;
        work(&mut connection).map_err(|error| StorageError::from_sqlite(&self.path, error))
    }
}
