//! Queries. Functions that return several rows return them in an order that does not depend on how they were stored, and
//! all return an error if the database cannot be read or the index is damaged.

mod edges;
mod mentions;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::dictionaries::DecompressionDictionaryCache;
use super::mention_index::MentionIndexReader;
use super::mentions::{MentionListReader, MentionRow};
use super::payload::PayloadReader;
use super::pool::SqlitePooledConnection;
use super::rows::{ArtifactId, artifact_id};
use super::{Result, StorageError, write_lock};
use crate::digest::CoreHash;
use crate::storage::ArtifactRecord;
use crate::storage::sql::{ARTIFACT, SqlRow, SqlSnapshot as _};

/// Maximum number of core hashes that a snapshot remembers.
const MAX_CORES: usize = 1 << 20;

/// A consistent view of the vault at one point in time.
pub(crate) struct SqliteSnapshot<'s> {
    connection: SqlitePooledConnection<'s>,
    readers: &'s DecompressionDictionaryCache,
    path: &'s Path,
    /// The segments of the mention index, loaded on first use; `None` if the vault is to be changed.
    segments: Option<OnceCell<MentionIndexReader>>,
    /// The core hashes of artifacts that were looked up. Their row ids are numbers of entries, which are not reused.
    cores: RefCell<HashMap<ArtifactId, CoreHash>>,
    pub(super) owners: RefCell<Owners>,
    /// The last artifact whose mentions were read, and these: one question about a large run needs them several times.
    last_mentions: RefCell<Option<(i64, Arc<[MentionRow]>)>>,
    /// Whether the connection's transaction continues when this is dropped.
    goes_on: bool,
}

impl<'s> SqliteSnapshot<'s> {
    /// Begins a snapshot of the current state. With a `busy_timeout`, it waits for other
    /// writers no longer than that, and there is none until it is dropped.
    pub(super) fn begin(
        connection: SqlitePooledConnection<'s>,
        readers: &'s DecompressionDictionaryCache,
        path: &'s Path,
        busy_timeout: Option<Duration>,
    ) -> Result<Self> {
        let segments = busy_timeout.is_none().then(OnceCell::new);
        let snapshot = Self {
            connection,
            readers,
            path,
            segments,
            cores: RefCell::default(),
            owners: RefCell::default(),
            last_mentions: RefCell::default(),
            goes_on: false,
        };
        let begin = || {
            if let Some(busy_timeout) = busy_timeout {
                write_lock::in_turn(&snapshot.connection, busy_timeout, || {
                    snapshot.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])
                })?;
            } else {
                snapshot.connection.prepare_cached("BEGIN DEFERRED")?.execute([])?;
            }
            // The first query fixes the snapshot.
            snapshot.connection.prepare_cached("SELECT 1 FROM kind LIMIT 1")?.exists([])
        };
        begin().map_err(|error| snapshot.failed(error))?;
        Ok(snapshot)
    }

    /// Creates a snapshot of what the current transaction of `connection` sees. The transaction continues afterwards.
    pub(super) fn resume(
        connection: SqlitePooledConnection<'s>,
        readers: &'s DecompressionDictionaryCache,
        path: &'s Path,
    ) -> Self {
        Self {
            connection,
            readers,
            path,
            segments: Some(OnceCell::new()),
            cores: RefCell::default(),
            owners: RefCell::default(),
            last_mentions: RefCell::default(),
            goes_on: true,
        }
    }

    /// Returns the artifact with this row id, which was read from the same snapshot.
    ///
    /// # Errors
    /// Also returns an error if there is none, so that the vault is damaged.
    pub(crate) fn artifact_by_id(&self, id: ArtifactId) -> Result<ArtifactRecord> {
        let sql = format!("SELECT {ARTIFACT} FROM artifact a JOIN kind k ON k.id = a.kind WHERE a.id = ?1");
        let artifact = self.read_rows(&sql, &[id.0.into()], SqlRow::artifact)?.pop();
        self.part(artifact.ok_or(rusqlite::Error::QueryReturnedNoRows))
    }

    /// Returns the row id of an artifact.
    pub(super) fn id_of(&self, core: CoreHash) -> Result<Option<ArtifactId>> {
        self.answer(artifact_id(self.connection(), core).map(|id| id.map(ArtifactId)))
    }

    /// Returns the core hashes of artifacts, which were read from the same snapshot.
    pub(super) fn cores(&self, ids: impl IntoIterator<Item = ArtifactId>) -> Result<BTreeSet<CoreHash>> {
        ids.into_iter().map(|id| self.core_of(id)).collect()
    }

    /// Returns the core hash of the artifact with this row id, which was read from the same snapshot.
    pub(super) fn core_of(&self, id: ArtifactId) -> Result<CoreHash> {
        if let Some(core) = self.cores.borrow().get(&id) {
            return Ok(*core);
        }
        let core = self
            .connection
            .prepare_cached("SELECT core FROM artifact WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id.0], |row| row.get(0)))
            .map_err(|error| self.failed(error))?;
        let mut cores = self.cores.borrow_mut();
        if cores.len() >= MAX_CORES {
            cores.clear();
        }
        cores.insert(id, core);
        Ok(core)
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn payloads(&self) -> PayloadReader<'_> {
        PayloadReader { connection: &self.connection, readers: self.readers }
    }

    pub(super) fn lists(&self) -> MentionListReader<'_> {
        MentionListReader { payloads: self.payloads() }
    }

    /// Returns the mentions of an artifact, ordered by role, place and digest.
    pub(super) fn mentions_of_artifact(&self, artifact: i64) -> rusqlite::Result<Arc<[MentionRow]>> {
        if let Some((_, mentions)) = self.last_mentions.borrow().as_ref().filter(|(of, _)| *of == artifact) {
            return Ok(Arc::clone(mentions));
        }
        let mentions: Arc<[MentionRow]> = self.lists().for_artifact(artifact)?.into();
        // What was read stays the same, unless the vault is to be changed.
        if self.segments.is_some() {
            self.last_mentions.replace(Some((artifact, Arc::clone(&mentions))));
        }
        Ok(mentions)
    }

    pub(super) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let find = || self.connection.prepare_cached(sql)?.query_map(parameters, read)?.collect();
        self.answer(find())
    }

    /// Returns the answer, or the error with the path of the vault. What was read while another vault was written into the
    /// file is no answer.
    pub(super) fn answer<T>(&self, outcome: rusqlite::Result<T>) -> Result<T> {
        match outcome {
            Ok(_) if self.connection.is_to_another_vault() => Err(StorageError::replaced(self.path)),
            outcome => outcome.map_err(|error| self.failed(error)),
        }
    }

    /// Returns a part of an answer, or the error with the path of the vault. Whatever returns the whole answer examines the file.
    pub(super) fn part<T>(&self, outcome: rusqlite::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.failed(error))
    }

    pub(super) fn failed(&self, error: rusqlite::Error) -> StorageError {
        if self.connection.is_to_another_vault() {
            return StorageError::replaced(self.path);
        }
        StorageError::from_sqlite(self.path, error)
    }
}

impl Drop for SqliteSnapshot<'_> {
    fn drop(&mut self) {
        if self.goes_on {
            return;
        }
        // There is nothing to roll back if the connection is gone, and the error cannot be reported.
        let _ = self.connection.prepare_cached("ROLLBACK").and_then(|mut rollback| rollback.execute([]));
    }
}

/// What a snapshot remembers about the captures in it.
#[derive(Default)]
pub(in crate::storage::sqlite) struct Owners {
    /// The artifact of a capture and the row id of its kind.
    known: HashMap<i64, Option<(CoreHash, i64)>>,
    /// All captures of a kind, by its row id.
    of_kind: HashMap<i64, HashMap<i64, CoreHash>>,
    /// Kinds that have more captures than this number.
    more_than: HashMap<i64, usize>,
}

impl Owners {
    /// Returns the artifact of a capture and the row id of its kind.
    fn owner(&mut self, connection: &Connection, capture: i64) -> rusqlite::Result<Option<(CoreHash, i64)>> {
        if let Some(known) = self.known.get(&capture) {
            return Ok(*known);
        }
        let owner = connection
            .prepare_cached(
                "SELECT a.core, a.kind FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.id = ?1",
            )?
            .query_row([capture], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        self.known.insert(capture, owner);
        Ok(owner)
    }

    /// Reads all captures of artifacts of a kind, unless there are more than `limit`.
    fn load(&mut self, connection: &Connection, kind: i64, limit: usize) -> rusqlite::Result<()> {
        if self.of_kind.contains_key(&kind) || self.more_than.get(&kind).is_some_and(|more| limit <= *more) {
            return Ok(());
        }
        let mut statement = connection.prepare_cached(
            "SELECT c.id, a.core FROM artifact a JOIN capture c ON c.artifact = a.id WHERE a.kind = ?1 LIMIT ?2",
        )?;
        let captures = statement
            .query_map((kind, limit.saturating_add(1)), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<HashMap<_, _>>>()?;
        if captures.len() > limit {
            self.more_than.insert(kind, limit);
        } else {
            self.of_kind.insert(kind, captures);
        }
        Ok(())
    }
}
