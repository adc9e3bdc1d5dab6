//! Repairs that require no guessing. Each step is one transaction with its journal entries.
//!
//! A file that SQLite calls damaged is written again. Then the rows that say which bytes are stored are made those of the stored
//! bytes, and the rows of the catalog that follow from the journal are written. What is derived from the bytes is rebuilt
//! after that, as by a reindexing.

mod blobs;
mod file;
mod journal;

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction};

use super::check::{replay, restrict_permissions};
use super::connection::secure_delete;
use super::journal::SqliteJournalWriter;
use super::write_lock;
use super::{Result, StorageError, Store};
use crate::artifact::Kind;
use crate::clock;
use crate::digest::{BlobHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::check::finding::{
    BROKEN_CHAIN, FILE_DAMAGED, INSECURE_PERMISSIONS, SCHEMA_DIFFERS, UNREADABLE,
};
use crate::storage::check::{ExpectedCatalog, Finding, Repair, Repairs, Subject};
use crate::storage::entry::Entry;
use crate::storage::sql;

impl Repairs for Store {
    fn repair_structures(&self, found: &[Finding]) -> Result<Vec<Repair>> {
        // The tables of the search index are made again by themselves.
        let is_of_search = |finding: &Finding| matches!(&finding.subject, Subject::Table(name) if name.starts_with("search_"));
        let is_of_file = |finding: &Finding| {
            [FILE_DAMAGED, SCHEMA_DIFFERS, UNREADABLE].contains(&finding.info) && !is_of_search(finding)
        };
        let is_of_blobs = |finding: &Finding| {
            is_of_file(finding) || matches!(finding.subject, Subject::Blob(_) | Subject::Table(_))
        };
        let mut repaired = Vec::new();
        if let Some(open) = found.iter().find(|finding| finding.info == INSECURE_PERMISSIONS) {
            restrict_permissions(&self.path).map_err(|source| StorageError::io(&self.path, source))?;
            repaired.push(Repair { subject: open.subject.clone(), did: "closed to others" });
        }
        if found.iter().any(is_of_file) {
            repaired.append(&mut self.rewrite()?);
        }
        let is_chain_broken = found.iter().any(|finding| finding.info == BROKEN_CHAIN);
        let are_blobs_wrong = found.iter().any(is_of_blobs);
        if repaired.is_empty() && !is_chain_broken && !are_blobs_wrong {
            return Ok(repaired);
        }
        self.repair(|transaction| {
            if is_chain_broken {
                journal::renumber(transaction, &mut repaired)?;
            }
            if are_blobs_wrong {
                blobs::settle(transaction, &mut repaired)?;
            }
            Ok(repaired)
        })
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
            let replay = replay(transaction)?;
            let mut repaired = Vec::new();
            let mut did =
                |table: &str, did| repaired.push(Repair { subject: Subject::Table(table.to_owned()), did });
            if replay.is_proven() {
                restore_kinds(transaction, &replay.catalog, kinds)?;
                sql::restore_rows(&**transaction, &replay.catalog)?;
                did("catalog", "written from the journal again");
                if transaction.execute(&restore_columns(), [])? > 0 {
                    did("journal", "given what the texts of its entries say");
                }
            }
            for table in sql::delete_strays(&**transaction)? {
                did(table, "removed rows that refer to missing ones");
            }
            for (table, condition) in UNUSED {
                if transaction.execute(&format!("DELETE FROM {table} WHERE {condition}"), [])? > 0 {
                    did(table, "removed what belongs to nothing");
                }
            }
            Ok(repaired)
        })
    }

    fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        let mut edit = self.edit(clock::now())?;
        if edit.remove_orphans()? == 0 {
            return Ok(Vec::new());
        }
        let did = vec![Repair {
            subject: Subject::Table("blob".to_owned()),
            did: "removed bytes that nothing refers to",
        }];
        record(edit.snapshot.connection(), &mut edit.journal, &did)
            .map_err(|error| edit.snapshot.failed(error))?;
        edit.commit()?;
        Ok(did)
    }
}

/// Tables of a file, with the condition for rows that belong to nothing.
const UNUSED: [(&str, &str); 4] = [
    ("signature", "capture NOT IN (SELECT id FROM capture)"),
    ("attribute", "value NOT IN (SELECT id FROM attribute_value)"),
    (
        "payload",
        "blob NOT IN (SELECT id FROM blob) AND blob NOT IN (SELECT base FROM payload WHERE base IS NOT NULL)",
    ),
    ("dictionary", "id NOT IN (SELECT dictionary FROM payload WHERE dictionary IS NOT NULL)"),
];

/// Returns the statement that gives entries the times in their texts, which are chained, and empties the columns of additions
/// in entries that have a text.
fn restore_columns() -> String {
    let (others, at) =
        ("actor, kind, core, capture, size, source_path", sql::Dialect::Sqlite.time_of_entry());
    let empty = others.replace(',', " = NULL,");
    format!(
        "UPDATE journal AS j SET at = {at}, {empty} = NULL
          WHERE entry IS NOT NULL AND (at IS NOT {at} OR coalesce({others}) IS NOT NULL)"
    )
}

/// Inserts the rows of kinds that are missing, and gives all what this program says of them.
fn restore_kinds(
    transaction: &Transaction<'_>,
    catalog: &ExpectedCatalog,
    kinds: &[Kind],
) -> rusqlite::Result<()> {
    let kind = |row| if let Row::Artifact { kind, .. } = row { Some(kind) } else { None };
    for name in catalog.rows().filter_map(kind).collect::<BTreeSet<_>>() {
        let sql = "INSERT INTO kind (id, name) VALUES (
                     (SELECT max(kind) + 1 FROM artifact WHERE kind > (SELECT coalesce(max(id), 0) FROM kind)), ?1)
                   ON CONFLICT (name) DO NOTHING";
        transaction.execute(sql, [name])?;
    }
    for kind in kinds {
        let sql = "UPDATE kind SET stated_by = ?2, member = ?3 WHERE name = ?1";
        transaction.execute(sql, (kind.name(), kind.inverse_relation(), kind.document_member()))?;
    }
    Ok(())
}

impl Store {
    /// Runs `work` and records its repairs in the journal, in one transaction.
    fn repair(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Vec<Repair>>,
    ) -> Result<Vec<Repair>> {
        let run = |connection: &Connection| {
            // Deleted content is overwritten.
            secure_delete(connection, true)?;
            let transaction = write_lock::begin(connection)?;
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            let repaired = work(&transaction)?;
            let mut journal = SqliteJournalWriter::open(&transaction, self.actor.as_ref(), clock::now())?;
            record(&transaction, &mut journal, &repaired)?;
            transaction.commit()?;
            secure_delete(connection, false)?;
            Ok(repaired)
        };
        run(&*self.connection()?).map_err(|error| StorageError::from_sqlite(&self.path, error))
    }
}

/// Appends an entry for each repair to the journal.
fn record(
    connection: &Connection,
    journal: &mut SqliteJournalWriter,
    repaired: &[Repair],
) -> rusqlite::Result<()> {
    let entry = |Repair { subject, did }: &Repair| Entry::Repair {
        did: (*did).to_owned(),
        subject: subject.to_string(),
    };
    repaired.iter().map(entry).try_for_each(|entry| journal.append(connection, entry))
}
