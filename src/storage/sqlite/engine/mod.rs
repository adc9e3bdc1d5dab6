//! The storage interface for vault files: hashes outside, row ids inside.
//!
//! Until a copy of another vault is complete, the header of the file has another application id than that of a vault. Entries
//! that remove something are adopted in transactions of their own, because bytes that others depend on have to be encoded
//! again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::Connection;

use super::connection::real;
use super::error::{PayloadDefect, ReadFailure};
use super::journal::SqliteJournalWriter;
use super::read::SqliteSnapshot;
use super::rows::{ArtifactId, blob_id};
use super::store::WriteTransaction;
use super::write::SqliteWriter;
use super::{mention_index, schema, search, write_lock};
use crate::artifact::Admitted;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::check::{Finding, Inspection, Repairs};
use crate::storage::entry::Entry;
use crate::storage::interface::{
    Adoption, AppendedEntry, Backup, BackupError, BackupOptions, BackupProgress, Capability,
    EngineStatistics, Erasure, FullText, FullTextSnapshot, JournalQueries as _, LogDamage, Maintenance,
    MentionRecord, Preparer, PutOptions, ReclaimResult, ReclaimableSpace, Snapshot, SqlQueries, Storage,
    Transaction,
};
use crate::storage::journal::JournalWriter;
use crate::storage::sql::{
    ConditionRows, ContainedArtifacts, FindSnapshot, NumberedArtifact, RequiredMention, SqlSnapshot,
    StatementParameters,
};
use crate::storage::sqlite::delta_bases::RecentBases;
use crate::storage::sqlite::dictionaries::Dictionaries;
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::{payload, wal};
use crate::storage::{
    Actor, BUSY_TIMEOUT, Head, Prepared, PutResult, Result, StorageError, change, recorded,
};

impl Storage for Store {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(Self::snapshot(self)?))
    }

    fn transaction(&self, at: DateTime<Utc>, busy_timeout: Duration) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(self.change(at, busy_timeout)?))
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

    fn full_text(&self) -> Result<&dyn FullText> {
        Ok(self)
    }

    fn sql(&self) -> Result<&dyn SqlQueries> {
        Ok(self)
    }

    fn has(&self, _: Capability) -> bool {
        true
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
        self.log_damage.as_deref()
    }

    fn check_logs(&self) -> Result<Vec<Finding>> {
        Self::check_logs(self)
    }

    fn check_pages(&self) -> Result<Option<Finding>> {
        self.inspect()?.shared_page()
    }

    fn log_copies(&self) -> Result<Vec<PathBuf>> {
        let copies = wal::copies(&real(&self.path)).map_err(|source| StorageError::io(&self.path, source))?;
        Ok(copies.into_iter().map(|(_, copy)| copy).collect())
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

impl Transaction for WriteTransaction<'_> {
    fn snapshot(&self) -> &dyn Snapshot {
        &self.snapshot
    }

    fn prepare_removal(&mut self, of: &[CoreHash]) -> Result<bool> {
        self.release(of, &mut self.heirs.lock())
    }

    fn journal(&mut self) -> &mut JournalWriter {
        self.journal.writer()
    }

    fn append(&mut self, entries: &[AppendedEntry<'_>]) -> Result<Vec<bool>> {
        let none = Dictionaries::default();
        let content = entries.iter().find_map(|entry| entry.content);
        let dictionaries = content.map_or(Ok(&none), payload::dictionaries)?;
        if entries.iter().any(is_removal) {
            self.removes = true;
            self.overwrite_deleted()?;
        }
        let mut run = || {
            let mut writer = SqliteWriter::new(self.snapshot.connection(), dictionaries)?;
            let append = |entry| writer.append(&mut self.journal, entry);
            let reuse = entries.iter().map(append).collect::<rusqlite::Result<_>>()?;
            self.remains.add(writer.finish()?);
            Ok(reuse)
        };
        run().map_err(|error| self.snapshot.failed(error))
    }

    fn commit(self: Box<Self>) -> Result<Head> {
        Self::commit(*self)
    }
}

fn is_removal(entry: &AppendedEntry<'_>) -> bool {
    matches!(entry.entry.change, Entry::Remove { .. })
}

impl Adoption for Store {
    fn is_incomplete(&self) -> Result<bool> {
        if !self.is_created() {
            return Ok(false);
        }
        schema::is_incomplete(&*self.connection()?).map_err(|error| self.failed(error))
    }

    fn begin_adoption(&self) -> Result<Head> {
        self.create_now()?;
        self.set_mark(
            true,
            |is_incomplete, is_empty, _| {
                if is_incomplete || is_empty { Ok(()) } else { Err(recorded::not_empty()) }
            },
        )
    }

    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head> {
        if !self.is_incomplete()? {
            return Err(recorded::not_begun());
        }
        let head = recorded::check(Self::snapshot(self)?.journal_head()?, entries)?;
        // Bytes that others depend on have to be encoded again before they are removed, so removals are committed by
        // themselves.
        for entries in entries.chunk_by(|one, other| is_removal(one) == is_removal(other)) {
            let mut edit = Self::begin(self, BUSY_TIMEOUT, SqliteJournalWriter::open_to_adopt)?;
            edit.append(entries)?;
            edit.commit()?;
        }
        Ok(head)
    }

    fn finish_adoption(&self, head: Head) -> Result<()> {
        self.set_mark(
            false,
            |is_incomplete, _, last| {
                if is_incomplete && last == head { Ok(()) } else { Err(recorded::not_begun()) }
            },
        )
        .map(drop)
    }
}

impl Store {
    fn failed(&self, error: rusqlite::Error) -> StorageError {
        StorageError::from_sqlite(&self.path, error)
    }

    /// Changes the mark if `is_allowed` permits it, which gets whether the vault is an incomplete copy, whether it is empty,
    /// and the last journal entry, which this returns.
    fn set_mark(
        &self,
        is_incomplete: bool,
        is_allowed: impl FnOnce(bool, bool, Head) -> Result<()>,
    ) -> Result<Head> {
        let connection = self.connection()?;
        let failed = |error| self.failed(error);
        let transaction = write_lock::begin(&connection).map_err(failed)?;
        let head = SqliteJournalWriter::last(&transaction).map_err(failed)?;
        let has_artifacts =
            transaction.prepare_cached("SELECT 1 FROM artifact LIMIT 1").and_then(|mut any| any.exists([]));
        let is_empty = head.seq == 0 && !has_artifacts.map_err(failed)?;
        is_allowed(schema::is_incomplete(&transaction).map_err(failed)?, is_empty, head)?;
        schema::mark_incomplete(&transaction, is_incomplete).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(head)
    }
}

impl SqlSnapshot for SqliteSnapshot<'_> {
    type Session = Connection;

    fn session(&self) -> &Connection {
        self.connection()
    }

    fn answer<T>(&self, outcome: rusqlite::Result<T>) -> Result<T> {
        Self::answer(self, outcome)
    }

    fn bytes(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let id = self.answer(blob_id(self.connection(), blob))?;
        let id = id.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
        self.payloads().bytes(id, blob).map_err(|failure| match failure {
            ReadFailure::Defect(defect) => damaged(defect),
            ReadFailure::Database(error) => self.failed(error),
        })
    }

    fn expect_journal_texts(&self) -> Result<()> {
        self.answer(schema::expect_journal_view(self.connection()))
    }
}

impl Snapshot for SqliteSnapshot<'_> {
    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        let connection = self.connection();
        let measure = || {
            let number = |sql| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
            let page = number("SELECT page_size FROM pragma_page_size")?;
            Ok(EngineStatistics {
                // The length is stored before the value, so long values are not read for this.
                stored_bytes: number(
                    "SELECT coalesce(sum(length(bytes) + coalesce(length(digests), 0)), 0) FROM payload",
                )?,
                differences: number("SELECT count(*) FROM payload WHERE base NOT NULL")?,
                dictionaries: number("SELECT count(*) FROM dictionary")?,
                dictionary_bytes: number("SELECT coalesce(sum(length(bytes)), 0) FROM dictionary")?,
                search_bytes: search::size(connection)?,
                file_bytes: page * number("SELECT page_count FROM pragma_page_count")?,
                free_bytes: page * number("SELECT freelist_count FROM pragma_freelist_count")?,
                mentions: mention_index::count(connection)?,
            })
        };
        self.answer(measure().map(Some))
    }

    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}

impl FindSnapshot for SqliteSnapshot<'_> {
    const FINDS_MENTIONS: bool = false;

    fn captures_mentioning(&self, digest: Digest, limit: usize) -> Result<Option<Vec<i64>>> {
        self.answer(self.captures_stating_up_to(mention_index::key(&digest), limit))
    }

    fn mention_rows(
        &self,
        mention: &RequiredMention<'_>,
        parameters: &mut StatementParameters,
    ) -> Result<ConditionRows> {
        let captures = parameters.bind(mention.captures(self)?);
        let tables = format!("rarray({captures}) r CROSS JOIN capture x ON x.id = r.value");
        Ok(ConditionRows::new(tables, "true"))
    }

    fn mentions_among(
        &self,
        of: &[NumberedArtifact],
        mention: &RequiredMention<'_>,
    ) -> Result<HashMap<CoreHash, Vec<MentionRecord>>> {
        let RequiredMention { group, digest, .. } = mention;
        let captures = mention.known_captures();
        let mut found = HashMap::new();
        for NumberedArtifact { core, number } in of {
            let mentions = self.mentions_in(ArtifactId(*number), captures, *digest, *group)?;
            if !mentions.is_empty() {
                found.insert(*core, mentions);
            }
        }
        self.answer(Ok(found))
    }

    fn with_contained(&self, of: &[NumberedArtifact]) -> Result<ContainedArtifacts> {
        let with_contained = |artifact: &NumberedArtifact| {
            let mut all = BTreeSet::from([*artifact]);
            for part in self.contained_in(ArtifactId(artifact.number))? {
                all.insert(NumberedArtifact { core: self.core_of(part)?, number: part.0 });
            }
            Ok((artifact.core, all))
        };
        of.iter().map(with_contained).collect()
    }

    fn with_containers_query(&self, _: &str, _: &mut StatementParameters) -> Option<String> {
        None
    }

    fn add_containers(&self, artifacts: &mut Vec<i64>) -> Result<()> {
        let kinds = self.containing_kinds()?;
        let members: BTreeSet<i64> = artifacts.iter().copied().collect();
        for member in &members {
            let containers = self.containers_of(ArtifactId(*member), &kinds)?;
            artifacts.extend(containers.into_iter().map(|container| container.0));
        }
        artifacts.sort_unstable();
        artifacts.dedup();
        Ok(())
    }
}
