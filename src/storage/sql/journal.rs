//! The journal: its entries, the check of their chain, and the removals.

use chrono::{DateTime, Utc};

use super::tombstones::{removed_artifacts, tombstones_with};
use super::{SqlParameter, SqlSession, SqlSnapshot};
use crate::digest::Digest;
use crate::storage::interface::{JournalQueries, JournalRecord};
use crate::storage::{Head, JournalCheck, JournalQuery, Result, Tombstone};

impl<S: SqlSnapshot> JournalQueries for S {
    fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>> {
        self.expect_journal_texts()?;
        let dialect = S::Session::DIALECT;
        let (at, action) = (dialect.time_of_entry(), dialect.action_of_entry());
        let (text, join) = dialect.text_of_entry();
        // Without a number of last entries, the page is a range of the primary key.
        let (range, order, number) = match query.limit {
            Some(_) => ("true", "DESC", "?6"),
            None => ("j.seq >= ?4", "ASC", "?5"),
        };
        let sql = format!(
            "SELECT j.seq, {at}, {text}, j.chain FROM
               (SELECT j.seq FROM journal j
                 WHERE (?1 IS NULL OR {at} >= ?1) AND (?2 IS NULL OR {at} < ?2) AND (?3 IS NULL OR {action} = ?3)
                   AND {range} ORDER BY j.seq {order} LIMIT {number}) s
               CROSS JOIN journal j {join} WHERE j.seq = s.seq AND j.seq >= ?4 ORDER BY j.seq LIMIT ?5"
        );
        let (since, until) = (query.since.into(), query.until.into());
        let mut parameters = vec![since, until, query.action.as_deref().into(), from.into(), limit.into()];
        parameters.extend(query.limit.map(|limit| SqlParameter::from(u64::from(limit))));
        self.read_rows(&sql, &parameters, |row| {
            Ok(JournalRecord {
                seq: row.count(0)?,
                at: row.time(1)?,
                entry: row.text(2)?,
                chain: row.digest(3)?,
            })
        })
    }

    fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
        self.expect_journal_texts()?;
        let (text, join) = S::Session::DIALECT.text_of_entry();
        let sql = format!("SELECT j.seq, {text}, j.chain FROM journal j {join} ORDER BY j.seq");
        let mut check = JournalCheck::begin(since);
        self.answer(self.session().each(&sql, &mut |row| {
            // A value that is not a text was changed too.
            check.take(row.count(0)?, row.as_text(1), row.digest(2)?, since);
            Ok(())
        }))?;
        Ok(check)
    }

    fn journal_head(&self) -> Result<Head> {
        let sql = "SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1";
        let head =
            self.read_rows(sql, &[], |row| Ok(Head { seq: row.count(0)?, chain: row.digest(1)? }))?.pop();
        Ok(head.unwrap_or(Head { seq: 0, chain: Digest::from_bytes([0; 32]) }))
    }

    fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>> {
        let at = S::Session::DIALECT.time_of_entry();
        let sql = format!("SELECT {at} FROM journal j ORDER BY j.seq DESC LIMIT 1");
        Ok(self.read_rows(&sql, &[], |row| row.time(0))?.pop())
    }

    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>> {
        self.answer(removed_artifacts(self.session(), kind, after, limit))
    }

    fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        self.answer(tombstones_with(self.session(), digests))
    }
}
