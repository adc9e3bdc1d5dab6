//! Repairs that require no guessing. Each step is one transaction with its journal entries, under the writer lock.
//!
//! The rows of the catalog that follow from the journal are written again. What is derived from the stored bytes is rebuilt
//! after that, as by a reindexing.

mod blobs;
mod journal;

use std::collections::BTreeMap;

use super::check::rows::replay;
use super::error::{PostgresError, PostgresResult};
use super::journal::PostgresJournalWriter;
use super::session::DatabaseTransaction;
use super::vault::PostgresStorage;
use crate::artifact::Kind;
use crate::clock;
use crate::digest::{BlobHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::check::finding::BROKEN_CHAIN;
use crate::storage::check::{ExpectedCatalog, Finding, JournalReplay, Repair, Repairs, Subject};
use crate::storage::entry::Entry;
use crate::storage::{BUSY_TIMEOUT, Result, sql};

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
            let mut did =
                |table: &str, did| repaired.push(Repair { subject: Subject::Table(table.to_owned()), did });
            if let Some(replay) = replay(session)?.filter(JournalReplay::is_proven)
                && journal::is_whole(session, &replay)?
            {
                restore_kinds(session, &replay.catalog, kinds)?;
                sql::restore_rows(session, &replay.catalog)?;
                did("catalog", "written from the journal again");
                if journal::restore_columns(session)? {
                    did("journal", "given what the texts of its entries say");
                }
            }
            for table in sql::delete_strays(session)? {
                did(table, "removed rows that refer to missing ones");
            }
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

/// Inserts the rows of kinds that are missing, and gives all what this program says of them. A kind gets the number that an
/// artifact of the kind has, so that roles still refer to it.
fn restore_kinds(
    session: &DatabaseTransaction<'_>,
    catalog: &ExpectedCatalog,
    kinds: &[Kind],
) -> PostgresResult<()> {
    let artifact = |row| if let Row::Artifact { core, kind, .. } = row { Some((kind, core)) } else { None };
    for (name, core) in catalog.rows().filter_map(artifact).collect::<BTreeMap<_, _>>() {
        let sql = "INSERT INTO kind (id, name, is_directory)
                   SELECT coalesce(
                     (SELECT kind FROM artifact WHERE core = $2 AND kind NOT IN (SELECT id FROM kind)),
                     greatest((SELECT max(id) FROM kind), (SELECT max(kind) FROM artifact), 0) + 1), $1, false
                    WHERE NOT EXISTS (SELECT 1 FROM kind WHERE name = $1)";
        session.execute(sql, &[&name, &core])?;
    }
    for kind in kinds {
        let sql = "UPDATE kind SET stated_by = $2, is_directory = $3
                    WHERE name = $1 AND (stated_by, is_directory) IS DISTINCT FROM ($2, $3)";
        session.execute(sql, &[&kind.name(), &kind.inverse_relation(), &kind.is_of_directories()])?;
    }
    Ok(())
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
