//! Repairs that require no guessing. Each step is one transaction with its journal entries, under the writer lock.
//!
//! The rows of the catalog that follow from the journal are written again. What is derived from the stored bytes is rebuilt
//! after that, as by a reindexing.

mod blobs;
mod journal;
mod rows;

use super::check::rows::replay;
use super::error::{PostgresError, PostgresResult};
use super::journal::PostgresJournalWriter;
use super::session::DatabaseTransaction;
use super::vault::PostgresStorage;
use crate::artifact::Kind;
use crate::clock;
use crate::digest::{BlobHash, Digest};
use crate::storage::check::finding::BROKEN_CHAIN;
use crate::storage::check::{Finding, JournalReplay, Repair, Repairs, Subject};
use crate::storage::entry::Entry;
use crate::storage::{BUSY_TIMEOUT, Result};

impl Repairs for PostgresStorage {
    fn repair_structures(&self, found: &[Finding]) -> Result<Vec<Repair>> {
        let mut repaired = Vec::new();
        if found.iter().any(|finding| finding.info == BROKEN_CHAIN) {
            repaired.append(&mut self.repair_end()?);
        }
        let blobs = found.iter().filter_map(|finding| match finding.subject {
            Subject::Blob(blob) => Some(blob),
            _ => None,
        });
        let blobs: Vec<BlobHash> = blobs.collect();
        if !blobs.is_empty() {
            repaired.append(&mut self.repair(|session| blobs::correct_digests(session, &blobs))?);
        }
        Ok(repaired)
    }

    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        if BlobHash(Digest::from_content(bytes)) != blob {
            return Ok(Vec::new());
        }
        self.store_blob(blob, bytes)
    }

    fn rebuild(&self, kinds: &[Kind]) -> Result<Vec<Repair>> {
        self.repair(|session| {
            let mut repaired = Vec::new();
            if let Some(replay) = replay(session)?.filter(JournalReplay::is_proven)
                && journal::is_whole(session, &replay)?
            {
                rows::write(session, &replay.catalog, kinds)?;
                let subject = Subject::Table("catalog".to_owned());
                repaired.push(Repair { subject, did: "written from the journal again" });
                journal::restore_columns(session, &replay.findings, &mut repaired)?;
            }
            rows::drop_strays(session, &mut repaired)?;
            Ok(repaired)
        })
    }

    fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        self.repair(blobs::drop_unreferenced)
    }
}

impl PostgresStorage {
    /// Restores the record of where the journal ends, on which the entries about all other repairs follow.
    fn repair_end(&self) -> Result<Vec<Repair>> {
        let repair = || {
            let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
            let Some(repaired) = journal::restore_end(&session)? else { return Ok(Vec::new()) };
            let repaired = vec![repaired];
            record(&session, PostgresJournalWriter::lock(&session, self.actor(), clock::now())?, &repaired)?;
            session.commit()?;
            Ok(repaired)
        };
        repair().map_err(|failure: PostgresError| failure.at(self.server.name()))
    }

    /// Runs `work` and records its repairs in the journal, in one transaction.
    fn repair(
        &self,
        work: impl FnOnce(&DatabaseTransaction<'_>) -> PostgresResult<Vec<Repair>>,
    ) -> Result<Vec<Repair>> {
        let repair = || {
            let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
            let recorder = PostgresJournalWriter::lock(&session, self.actor(), clock::now())?;
            let repaired = work(&session)?;
            record(&session, recorder, &repaired)?;
            session.commit()?;
            Ok(repaired)
        };
        repair().map_err(|failure: PostgresError| failure.at(self.server.name()))
    }
}

/// Appends an entry for each repair to the journal.
fn record(
    session: &DatabaseTransaction<'_>,
    mut recorder: PostgresJournalWriter,
    repaired: &[Repair],
) -> PostgresResult<()> {
    for Repair { subject, did } in repaired {
        recorder.append(Entry::Repair { did: (*did).to_owned(), subject: subject.to_string() })?;
    }
    recorder.flush(session)
}
