//! The journal: its entries, and the check of their chain.

use chrono::{DateTime, Utc};

use super::{SqliteSnapshot, time};
use crate::digest::{Digest, DigestPrefix};
use crate::storage::journal::{Head, JournalCheck, JournalQuery};
use crate::storage::sqlite::journal::AT;
use crate::storage::sqlite::rows::limit_of;
use crate::storage::sqlite::schema;
use crate::storage::sqlite::tombstones::{columns, for_digests, tombstone};
use crate::storage::{JournalRecord, Result, StorageError, Tombstone};

/// Returns the SQL conditions on the journal `j`, with the parameters of [`JournalQuery`].
fn matches() -> String {
    format!(
        "(?1 IS NULL OR {AT} >= ?1) AND (?2 IS NULL OR {AT} < ?2)
         AND (?3 IS NULL OR coalesce(j.entry ->> 'action', 'add') = ?3)"
    )
}

impl SqliteSnapshot<'_> {
    /// Returns the last entry of the journal.
    pub(crate) fn journal_head(&self) -> Result<Head> {
        let sql = "SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1";
        let head = self.rows(sql, [], |row| Ok(Head { seq: row.get(0)?, chain: row.get(1)? }))?.pop();
        Ok(head.unwrap_or(Head { seq: 0, chain: Digest::from_bytes([0; 32]) }))
    }

    /// Returns the time of the last entry. It is read for every addition, and preparing a query of the view with the texts
    /// takes longer than the rest of it.
    pub(crate) fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>> {
        let sql = format!("SELECT {AT} FROM journal j ORDER BY j.seq DESC LIMIT 1");
        Ok(self.rows(&sql, [], |row| time(row, 0))?.pop())
    }

    /// Returns up to `limit` of the matching entries, from the entry `from` on.
    pub(crate) fn journal(
        &self,
        query: &JournalQuery,
        from: u64,
        limit: usize,
    ) -> Result<Vec<JournalRecord>> {
        schema::expect_journal_view(&self.connection).map_err(|error| self.failed(error))?;
        let sql = format!(
            "SELECT e.seq, {AT}, e.entry, j.chain FROM journal j JOIN journal_entries e ON e.seq = j.seq
              WHERE j.seq >= ?4 AND {} ORDER BY j.seq LIMIT ?5",
            matches()
        );
        let (since, until, action) = parameters(query);
        let from = self.first(query)?.max(i64::try_from(from).unwrap_or(i64::MAX));
        self.rows(&sql, (since, until, action, from, limit_of(limit)), |row| {
            Ok(JournalRecord { seq: row.get(0)?, at: time(row, 1)?, entry: row.get(2)?, chain: row.get(3)? })
        })
    }

    /// Returns the number of the first entry within the limit of `query`.
    fn first(&self, query: &JournalQuery) -> Result<i64> {
        let Some(limit) = query.limit else { return Ok(0) };
        let (since, until, action) = parameters(query);
        let sql = format!(
            "SELECT min(seq) FROM (SELECT j.seq FROM journal j WHERE {} ORDER BY j.seq DESC LIMIT ?4)",
            matches()
        );
        let first = self.rows(&sql, (since, until, action, limit), |row| row.get::<_, Option<i64>>(0))?.pop();
        Ok(first.flatten().unwrap_or(i64::MAX))
    }

    /// Recomputes the chain from the first entry to the last, and looks for the entry whose chain value is `since`.
    pub(crate) fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
        let mut check = JournalCheck::begin(since);
        let sql = "SELECT j.seq, e.entry, j.chain FROM journal j JOIN journal_entries e ON e.seq = j.seq
                    ORDER BY j.seq";
        let mut look = || {
            schema::expect_journal_view(&self.connection)?;
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // Text that is not UTF-8 was changed too.
                let entry = row.get_ref(1)?.as_bytes().ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
                check.take(row.get(0)?, entry, row.get(2)?, since);
            }
            Ok(())
        };
        look().map_err(|error| self.failed(error))?;
        Ok(check)
    }
}

fn parameters(query: &JournalQuery) -> (Option<i64>, Option<i64>, Option<&str>) {
    let milliseconds = |time: Option<DateTime<Utc>>| time.map(|time| time.timestamp_millis());
    (milliseconds(query.since), milliseconds(query.until), query.action.as_deref())
}

impl SqliteSnapshot<'_> {
    /// Returns up to 100 tombstones of core hashes and capture hashes that begin with `prefix`, the latest first.
    pub(crate) fn tombstones(&self, prefix: &DigestPrefix) -> Result<Vec<Tombstone>> {
        let (low, high) = prefix.range();
        let sql = format!(
            "SELECT {} FROM tombstone t JOIN journal j ON j.seq = t.entry
              WHERE t.digest BETWEEN ?1 AND ?2 ORDER BY t.entry DESC, t.digest LIMIT 100",
            columns()
        );
        self.rows(&sql, (low.as_bytes(), high.as_bytes()), tombstone)
    }

    /// Returns up to `limit` tombstones of artifacts, or of those of one kind, from the journal entries after `after`, in the
    /// order in which they were removed. Artifacts that are in the vault again have none.
    pub(crate) fn removed_artifacts(
        &self,
        kind: Option<&str>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Tombstone>> {
        let sql = format!(
            "SELECT {} FROM tombstone t JOIN journal j ON j.seq = t.entry
              WHERE t.entry > ?2 AND (?1 IS NULL OR j.entry ->> 'kind' = ?1)
                AND 'sha256:' || lower(hex(t.digest)) = j.entry ->> 'core'
                AND NOT EXISTS (SELECT 1 FROM artifact a
                                 WHERE substr(a.core, 1, 8) = substr(t.digest, 1, 8) AND a.core = t.digest)
              ORDER BY t.entry, t.digest LIMIT ?3",
            columns()
        );
        self.rows(&sql, (kind, after, limit_of(limit)), tombstone)
    }

    /// Returns, for each list of digests, their tombstones, one for each artifact that is not stored, by core hash.
    pub(crate) fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        let found = digests.iter().map(|digests| for_digests(self.connection(), digests));
        found.collect::<rusqlite::Result<_>>().map_err(|error| StorageError::from_sqlite(self.path(), error))
    }
}
