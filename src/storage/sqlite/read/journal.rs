//! The journal: its entries, and the check of their chain.

use chrono::{DateTime, Utc};

use super::{SqliteSnapshot, time};
use crate::digest::Digest;
use crate::storage::journal::{Head, JournalCheck, JournalQuery};
use crate::storage::sqlite::journal::AT;
use crate::storage::sqlite::rows::limit_of;
use crate::storage::sqlite::schema;
use crate::storage::{JournalRecord, Result};

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
