//! The journal: its entries, and the check of their chain.

use chrono::{DateTime, Utc};

use super::{Snapshot, time};
use crate::digest::Digest;
use crate::storage::sqlite::journal::{AT, next};
use crate::storage::sqlite::rows::JournalRow;
use crate::storage::sqlite::{Result, StoreError, schema};

/// A filter of journal entries. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct JournalQuery {
    /// The earliest time, inclusive, compared with the time in the entry's text.
    pub since: Option<DateTime<Utc>>,
    /// The latest time, exclusive.
    pub until: Option<DateTime<Utc>>,
    /// The action, such as `add`.
    pub action: Option<String>,
    /// The maximum number of entries; the last ones are selected.
    pub limit: Option<u32>,
}

/// The last entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; 0 if the journal is empty.
    pub seq: u64,
    /// Its chain value: the digest of all entries; 32 zero bytes if the journal is empty.
    pub chain: Digest,
}

/// The result of checking every entry of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalCheck {
    /// The last entry, as stored.
    pub head: Head,
    /// The first defect.
    pub defect: Option<JournalDefect>,
    /// The entry whose chain value is the given digest; 0 is the beginning, before the first entry.
    pub since: Option<u64>,
}

/// A defect of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalDefect {
    /// An entry, or one before it, was changed after it was chained.
    #[error("entry {0} or an earlier one was changed")]
    Changed(u64),
    /// An entry is missing.
    #[error("entry {0} is missing")]
    Missing(u64),
}

impl JournalDefect {
    /// Returns the number of the entry.
    #[must_use]
    pub fn entry(&self) -> u64 {
        match self {
            Self::Changed(seq) | Self::Missing(seq) => *seq,
        }
    }
}

/// Returns the SQL conditions on the journal `j`, with the parameters of [`JournalQuery`].
fn matches() -> String {
    format!(
        "(?1 IS NULL OR {AT} >= ?1) AND (?2 IS NULL OR {AT} < ?2)
         AND (?3 IS NULL OR coalesce(j.entry ->> 'action', 'add') = ?3)"
    )
}

impl Snapshot<'_> {
    /// Returns the last entry of the journal.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn journal_head(&self) -> Result<Head> {
        let sql = "SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1";
        let head = self.rows(sql, [], |row| Ok(Head { seq: row.get(0)?, chain: row.get(1)? }))?.pop();
        Ok(head.unwrap_or(Head { seq: 0, chain: Digest::from_bytes([0; 32]) }))
    }

    /// Calls `each` with the matching entries, in their order.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read, and any error that `each` returns.
    pub fn journal<E: From<StoreError>>(
        &self,
        query: &JournalQuery,
        mut each: impl FnMut(JournalRow) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let failed = |error| E::from(self.failed(error));
        schema::expect_journal_view(&self.connection).map_err(failed)?;
        let sql = format!(
            "SELECT e.seq, {AT}, e.entry, j.chain FROM journal j JOIN journal_entries e ON e.seq = j.seq
              WHERE j.seq >= ?4 AND {} ORDER BY j.seq",
            matches()
        );
        let (since, until, action) = parameters(query);
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        let mut rows = statement.query((since, until, action, self.first(query)?)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let read = || {
                Ok(JournalRow { seq: row.get(0)?, at: time(row, 1)?, entry: row.get(2)?, chain: row.get(3)? })
            };
            each(read().map_err(failed)?)?;
        }
        Ok(())
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
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
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

impl JournalCheck {
    /// Creates a check that starts before the first entry and looks for the chain value `since`.
    pub(in crate::storage) fn begin(since: Option<Digest>) -> Self {
        let zero = Digest::from_bytes([0; 32]);
        Self { head: Head { seq: 0, chain: zero }, defect: None, since: (since == Some(zero)).then_some(0) }
    }

    /// Checks the next entry, and returns its defect.
    pub(in crate::storage) fn take(
        &mut self,
        seq: u64,
        entry: Option<&str>,
        chain: Digest,
        since: Option<Digest>,
    ) -> Option<JournalDefect> {
        let expected = entry.map(|entry| next(&self.head.chain, entry));
        let defect = if seq != self.head.seq + 1 {
            Some(JournalDefect::Missing(self.head.seq + 1))
        } else if expected != Some(chain) {
            Some(JournalDefect::Changed(seq))
        } else {
            None
        };
        self.defect = self.defect.or(defect);
        self.head = Head { seq, chain };
        if since == Some(chain) {
            self.since = self.since.or(Some(seq));
        }
        defect
    }
}

fn parameters(query: &JournalQuery) -> (Option<i64>, Option<i64>, Option<&str>) {
    let milliseconds = |time: Option<DateTime<Utc>>| time.map(|time| time.timestamp_millis());
    (milliseconds(query.since), milliseconds(query.until), query.action.as_deref())
}
