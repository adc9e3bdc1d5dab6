//! The journal: its entries, and whether they are still what they were.

use chrono::{DateTime, Utc};

use super::{Snapshot, time};
use crate::digest::Digest;
use crate::store::journal::{AT, next};
use crate::store::rows::JournalRow;
use crate::store::{Result, StoreError, schema};

/// Which entries are meant. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct JournalQuery {
    /// At this time or later, by the text of the entry.
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
    /// Of this action, such as `add`.
    pub action: Option<String>,
    /// The last so many of them.
    pub limit: Option<u32>,
}

/// The last entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; 0 if there is none.
    pub seq: u64,
    /// Its chain value: the digest of everything that happened. 32 zero bytes if nothing did.
    pub chain: Digest,
}

/// What a look at every entry of a journal found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalCheck {
    /// The last entry, as it is stored.
    pub head: Head,
    /// The first thing that is wrong.
    pub defect: Option<JournalDefect>,
    /// The entry whose chain value is the digest that was looked for; 0 is the beginning, before the first entry.
    pub since: Option<u64>,
}

/// What is wrong with a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalDefect {
    /// An entry is not what it was when it was chained.
    #[error("entry {0} was changed, or what comes before it")]
    Changed(u64),
    /// An entry is missing.
    #[error("entry {0} is missing")]
    Missing(u64),
}

impl JournalDefect {
    /// The number of the entry.
    #[must_use]
    pub fn entry(&self) -> u64 {
        match self {
            Self::Changed(seq) | Self::Missing(seq) => *seq,
        }
    }
}

/// Conditions on the journal `j`, with the parameters of [`JournalQuery`].
fn matches() -> String {
    format!(
        "(?1 IS NULL OR {AT} >= ?1) AND (?2 IS NULL OR {AT} < ?2)
         AND (?3 IS NULL OR coalesce(j.entry ->> 'action', 'add') = ?3)"
    )
}

impl Snapshot<'_> {
    /// The last entry of the journal.
    ///
    /// # Errors
    /// What the database says.
    pub fn journal_head(&self) -> Result<Head> {
        let sql = "SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1";
        let head = self.rows(sql, [], |row| Ok(Head { seq: row.get(0)?, chain: row.get(1)? }))?.pop();
        Ok(head.unwrap_or(Head { seq: 0, chain: Digest::from_bytes([0; 32]) }))
    }

    /// Calls `each` with the entries that match, in their order.
    ///
    /// # Errors
    /// What the database says, and what `each` does.
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

    /// The first entry within the limit of `query`.
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

    /// Computes the chain anew from the first entry to the last, and looks for the entry whose chain value is `since`.
    ///
    /// # Errors
    /// What the database says.
    pub fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
        let mut check = JournalCheck::begin(since);
        let sql = "SELECT j.seq, e.entry, j.chain FROM journal j JOIN journal_entries e ON e.seq = j.seq
                    ORDER BY j.seq";
        let mut look = || {
            schema::expect_journal_view(&self.connection)?;
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // Text that is no text was changed as well.
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
    /// The check before the first entry, which looks for the chain value `since`.
    pub(in crate::store) fn begin(since: Option<Digest>) -> Self {
        let zero = Digest::from_bytes([0; 32]);
        Self { head: Head { seq: 0, chain: zero }, defect: None, since: (since == Some(zero)).then_some(0) }
    }

    /// Takes the next entry, and gives what is wrong with it.
    pub(in crate::store) fn take(
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
