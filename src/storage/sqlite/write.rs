//! Storing artifacts.

mod blobs;
mod execute;
mod index;

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt};
use rusqlite::Connection;

use super::delta::DeltaBaseFinder;
use super::dictionaries::Dictionaries;
use super::edit::RemovalRemains;
use super::ids::{ARTIFACTS, BLOBS, CAPTURES, next_row};
use super::journal::SqliteJournalWriter;
use super::lists::MentionListReader;
use super::payload::PayloadReader;
use super::shared_statements::{StatementProvider, TransactionStatements};
use super::{dictionary_training, mention_index};
use crate::artifact::{Admitted, Kind};
use crate::digest::{CoreHash, Digest};
use crate::storage::catalog::apply;
use crate::storage::sql::seal;
use crate::storage::{AppendedEntry, sql};

/// The interval, in blobs, at which training a dictionary for the kind is tried.
const TRY_DICTIONARY: i64 = 256;

/// A writer of the rows of the catalog and of blobs, within a transaction.
pub(super) struct SqliteWriter<'t> {
    pub(super) connection: &'t Connection,
    pub(super) statements: TransactionStatements<'t>,
    dictionaries: &'t Dictionaries,
    next_artifact: i64,
    next_capture: i64,
    next_blob: i64,
    /// Blobs with lower row ids were stored before this writer was created.
    first_new_blob: i64,
    kinds: HashMap<String, i64>,
    roles: HashMap<(i64, &'static str), i64>,
    attributes: HashMap<String, HashMap<String, i64>>,
    bases: DeltaBaseFinder,
    /// The row ids of dictionaries; `None` for those that must not be used.
    dictionary_ids: HashMap<Digest, Option<i64>>,
    /// Entries for the mention index, to which they are added at the end of the batch.
    pub(super) entries: Vec<mention_index::MentionIndexEntry>,
    /// The artifact that was last looked up, and its row id.
    last_artifact: Option<(CoreHash, i64)>,
    /// The artifact that the current entry adds.
    new_artifact: Option<i64>,
    /// The capture whose bytes are stored next.
    pending: Option<PendingCapture>,
    /// Whether the last stored capture has bytes that the vault had before.
    reuses_bytes: bool,
    /// The remains of the rows that this transaction removes.
    remains: RemovalRemains,
}

/// A capture whose row is inserted when its bytes are stored: the row refers to them.
struct PendingCapture {
    entry: i64,
    at: i64,
    has_source_path: bool,
}

/// A new capture with its artifact and its blobs: those of its files and, last, its own, which may be that of its only file.
pub(super) struct NewCapture<'p> {
    pub(super) id: i64,
    pub(super) artifact: i64,
    pub(super) is_first: bool,
    pub(super) blobs: Vec<StoredBlob<'p>>,
}

/// A blob in the vault.
pub(super) struct StoredBlob<'p> {
    pub(super) id: i64,
    /// The digests that were stripped from it.
    pub(super) digests: Cow<'p, [Digest]>,
}

impl<'t> SqliteWriter<'t> {
    pub(super) fn new(connection: &'t Connection, dictionaries: &'t Dictionaries) -> rusqlite::Result<Self> {
        let next_blob = next_row(connection, BLOBS)?;
        Ok(Self {
            connection,
            statements: TransactionStatements::new(connection),
            dictionaries,
            next_artifact: next_row(connection, ARTIFACTS)?,
            next_capture: next_row(connection, CAPTURES)?,
            next_blob,
            first_new_blob: next_blob,
            kinds: HashMap::new(),
            roles: HashMap::new(),
            attributes: HashMap::new(),
            bases: DeltaBaseFinder::default(),
            dictionary_ids: HashMap::new(),
            entries: Vec::new(),
            last_artifact: None,
            new_artifact: None,
            pending: None,
            reuses_bytes: false,
            remains: RemovalRemains::default(),
        })
    }

    /// Appends an entry to the journal, and executes the changes that follow from it. Returns whether it adds a capture with
    /// bytes that the vault had before.
    pub(super) fn append(
        &mut self,
        journal: &mut SqliteJournalWriter,
        AppendedEntry { entry, content }: &AppendedEntry<'_>,
    ) -> rusqlite::Result<bool> {
        (self.reuses_bytes, self.new_artifact) = (false, None);
        journal.write(&self.statements, entry)?;
        apply(entry, *content).into_iter().try_for_each(|change| self.execute(change))?;
        Ok(self.reuses_bytes)
    }

    fn payloads(&self) -> PayloadReader<'_> {
        PayloadReader { connection: self.connection, readers: &self.bases.readers }
    }

    fn lists(&self) -> MentionListReader<'_> {
        MentionListReader { payloads: self.payloads() }
    }

    fn train(&self, kind: i64) -> rusqlite::Result<()> {
        dictionary_training::make(self.payloads(), kind)
    }

    pub(super) fn kind(&mut self, kind: Kind) -> rusqlite::Result<i64> {
        if let Some(id) = self.kinds.get(kind.name()) {
            return Ok(*id);
        }
        let sql = "INSERT INTO kind (id, name, stated_by, member) VALUES (
                     (SELECT max(kind) + 1 FROM artifact WHERE kind > (SELECT coalesce(max(id), 0) FROM kind)), ?1, ?2, ?3)
                   ON CONFLICT (name) DO UPDATE SET stated_by = excluded.stated_by, member = excluded.member
                   RETURNING id";
        let row = (kind.name(), kind.inverse_relation(), kind.document_member());
        let id = self.connection.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
        self.kinds.insert(kind.name().to_owned(), id);
        Ok(id)
    }

    /// Returns the row id of the kind with this name.
    pub(super) fn kind_named(&mut self, name: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.kinds.get(name) {
            return Ok(*id);
        }
        let id = self
            .connection
            .prepare_cached("SELECT id FROM kind WHERE name = ?1")?
            .query_row([name], |row| row.get(0))?;
        self.kinds.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Inserts the row of a capture, and those of the files of a directory.
    fn insert_capture(
        &mut self,
        new: &NewCapture<'_>,
        admitted: &Admitted,
        (at, source_entry): (i64, Option<i64>),
    ) -> rusqlite::Result<()> {
        let warnings = sql::warnings(admitted)?;
        let row = (
            new.id,
            new.artifact,
            new.blobs.last().map(|blob| blob.id),
            admitted.size().cast_signed(),
            at,
            warnings,
            seal(admitted.core(), admitted.capture()),
            source_entry,
        );
        self.statements.with(
            "INSERT INTO capture (id, artifact, blob, size, added_at, seen_at, warnings, seal, source_entry)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8)",
            |insert| insert.execute(row),
        )?;
        self.insert_members(new, admitted)
    }

    /// Inserts the rows of the files of a directory.
    pub(super) fn insert_members(&self, new: &NewCapture<'_>, admitted: &Admitted) -> rusqlite::Result<()> {
        if admitted.manifest().is_some() {
            for (member, blob) in admitted.members().iter().zip(&new.blobs) {
                self.connection
                    .prepare_cached("INSERT INTO member (capture, name, blob) VALUES (?1, ?2, ?3)")?
                    .execute((new.id, member.name(), blob.id))?;
            }
        }
        Ok(())
    }

    /// Completes what is written at the end of a batch. Returns what its removals leave.
    pub(super) fn finish(self) -> rusqlite::Result<RemovalRemains> {
        mention_index::add(self.connection, self.entries)?;
        Ok(self.remains)
    }
}
