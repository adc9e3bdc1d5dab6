//! Storing and indexing artifacts.

mod blobs;

use std::borrow::Cow;

use foldhash::{HashMap, HashMapExt};
use rusqlite::Connection;

use super::delta::DeltaBaseFinder;
use super::dictionaries::Dictionaries;
use super::error::is_damage;
use super::journal::SqliteJournalWriter;
use super::mentions::{MentionList, MentionListEntry, MentionListReader, MentionRow};
use super::payload::PayloadReader;
use super::rows::{ARTIFACTS, BLOBS, CAPTURES, next_row};
use super::shared_statements::{StatementProvider, TransactionStatements};
use super::store::RemovalRemains;
use super::{dictionary_training, mention_index, unresolved};
use crate::artifact::{Admitted, Kind, Mention, Role};
use crate::digest::{CoreHash, Digest};
use crate::storage::AppendedEntry;
use crate::storage::catalog::{RowChange, apply, facts};
use crate::storage::sql::{self, seal};

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
        at: i64,
        source_entry: Option<i64>,
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

/// Maximum number of captures of an artifact whose lists are compared with that of a new one: the first and the latest
/// ones.
const LISTS_READ: usize = 8;

impl SqliteWriter<'_> {
    /// Adds what a capture mentions and states. What earlier captures state stays: the rows are those of all captures.
    pub(in crate::storage::sqlite) fn index(
        &mut self,
        new: &NewCapture<'_>,
        kind: i64,
        admitted: &Admitted,
    ) -> rusqlite::Result<()> {
        self.mentions(new, kind, &admitted.draft().mentions)?;
        self.last_artifact = Some((admitted.core(), new.artifact));
        facts(admitted.core(), admitted).try_for_each(|row| self.execute(RowChange::Insert(row)))
    }

    /// Stores what a capture mentions, unless earlier captures of its artifact mention all of it.
    pub(super) fn mentions(
        &mut self,
        new: &NewCapture<'_>,
        kind: i64,
        mentions: &[Mention],
    ) -> rusqlite::Result<()> {
        let roles: Vec<i64> = self.roles(kind, mentions)?;
        let mentions_with_roles = || mentions.iter().zip(&roles);
        if mentions.is_empty() || (!new.is_first && self.are_known(new, mentions_with_roles())?) {
            return Ok(());
        }
        // Most digests are in a single file of the artifact.
        let blob = new.blobs.iter().max_by_key(|blob| blob.digests.len());
        let digests = blob.map(|blob| blob.digests.as_ref()).unwrap_or_default();
        let mut positions: HashMap<_, usize> = digests.iter().zip(0..).collect();
        let mut list = MentionList::default();
        for (mention, role) in mentions_with_roles() {
            let position = *positions.entry(&mention.digest).or_insert_with(|| {
                list.own.push(mention.digest);
                digests.len() + list.own.len() - 1
            });
            list.entries.push(MentionListEntry { role: *role, place: mention.place.clone(), position });
            self.entries.push((mention_index::key(&mention.digest), new.id));
            if mention.role.relation.is_some_and(|relation| relation.dangles) {
                unresolved::add(self.connection, mention.digest, new.id)?;
            }
        }
        // A damaged vault may contain a list of a lost capture that had this row id.
        self.statements
            .with(
                "INSERT OR REPLACE INTO mention_list (capture, blob, bytes) VALUES (?1, ?2, ?3)",
                |insert| insert.execute((new.id, blob.map(|blob| blob.id), list.encode())),
            )
            .map(drop)
    }

    /// Returns whether the lists of earlier captures of the artifact contain all of `mentions`. Reads only some of the
    /// lists, including the first: an artifact may have any number of captures, and a superfluous list does no harm.
    fn are_known<'m>(
        &self,
        new: &NewCapture<'_>,
        mentions: impl Iterator<Item = (&'m Mention, &'m i64)>,
    ) -> rusqlite::Result<bool> {
        let payloads = PayloadReader { connection: self.connection, readers: &self.bases.readers };
        let known = match (MentionListReader { payloads }).of_older_captures(new.artifact, new.id, LISTS_READ)
        {
            // Damage of an older capture must not keep others from being stored and indexed.
            Err(error) if is_damage(&error) => return Ok(false),
            known => known?,
        };
        let mut mentions = mentions.map(|(mention, role)| MentionRow {
            role: *role,
            place: mention.place.clone(),
            digest: mention.digest,
        });
        Ok(mentions.all(|mention| known.binary_search(&mention).is_ok()))
    }

    /// Returns the row ids of the mentions' roles. Mentions are sorted by role, so there are few changes.
    fn roles(&mut self, kind: i64, mentions: &[Mention]) -> rusqlite::Result<Vec<i64>> {
        let mut roles = Vec::with_capacity(mentions.len());
        for run in mentions.chunk_by(|one, other| one.role == other.role) {
            let role = run.first().map(|mention| self.role(kind, mention.role)).transpose()?;
            roles.extend(run.iter().filter_map(|_| role));
        }
        Ok(roles)
    }

    fn role(&mut self, kind: i64, role: &'static Role) -> rusqlite::Result<i64> {
        if let Some(id) = self.roles.get(&(kind, role.name)) {
            return Ok(*id);
        }
        let id = self
            .connection
            .prepare_cached(
                "INSERT INTO role (kind, name, role_group, unit, relation, dangles)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (kind, name) DO UPDATE SET
                   role_group = excluded.role_group, unit = excluded.unit,
                   relation = excluded.relation, dangles = excluded.dangles
                 RETURNING id",
            )?
            .query_row(
                (
                    kind,
                    role.name,
                    role.group,
                    role.unit,
                    role.relation.map(|relation| relation.name),
                    role.relation.is_some_and(|relation| relation.dangles),
                ),
                |row| row.get(0),
            )?;
        self.roles.insert((kind, role.name), id);
        Ok(id)
    }

    /// Returns the row id of the value of an attribute, which may be new.
    pub(super) fn attribute_value(
        &mut self,
        name: &str,
        value: &str,
        number: Option<i64>,
    ) -> rusqlite::Result<i64> {
        if let Some(id) = self.attributes.get(name).and_then(|values| values.get(value)) {
            return Ok(*id);
        }
        // Most values that were not seen in this transaction are new, such as times.
        let inserted = self.statements.with(
            "INSERT OR IGNORE INTO attribute_value (name, value, number) VALUES (?1, ?2, ?3)",
            |insert| insert.execute((name, value, number)),
        )?;
        let id = match inserted {
            0 => self.stored_value(name, value, number)?,
            _ => self.connection.last_insert_rowid(),
        };
        self.attributes.entry(name.to_owned()).or_default().insert(value.to_owned(), id);
        Ok(id)
    }

    /// Returns the row id of a value that the vault has. In a damaged vault, its number may be another one.
    fn stored_value(&self, name: &str, value: &str, number: Option<i64>) -> rusqlite::Result<i64> {
        let (id, known): (i64, Option<i64>) = self
            .connection
            .prepare_cached("SELECT id, number FROM attribute_value WHERE name = ?1 AND value = ?2")?
            .query_row((name, value), |row| Ok((row.get(0)?, row.get(1)?)))?;
        if known != number {
            self.connection
                .prepare_cached("UPDATE attribute_value SET number = ?2 WHERE id = ?1")?
                .execute((id, number))?;
        }
        Ok(id)
    }
}
