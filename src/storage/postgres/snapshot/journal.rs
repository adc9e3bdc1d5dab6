//! The journal.

use postgres::Row;

use crate::digest::Digest;
use crate::storage::interface::JournalRecord;
use crate::storage::postgres::columns::{ceil_millis, count, digest, limit as limit_of, text, time, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::view::PostgresSnapshot;
use crate::storage::{Head, JournalCheck, JournalQuery};

fn record(row: &Row) -> PostgresResult<JournalRecord> {
    Ok(JournalRecord { seq: count(row, 0)?, at: time(row, 1)?, entry: text(row, 2)?, chain: digest(row, 3)? })
}

impl PostgresSnapshot<'_> {
    pub(super) fn journal(
        &self,
        query: &JournalQuery,
        from: u64,
        limit: usize,
    ) -> PostgresResult<Vec<JournalRecord>> {
        // Without a number of last entries, the page is a range of the primary key.
        let (order, selected) = if query.limit.is_some() { ("DESC", "$4") } else { ("ASC", "$6") };
        let range = if query.limit.is_some() { "$5::bigint IS NOT NULL" } else { "seq >= $5" };
        let sql = format!(
            "SELECT seq, at, entry, chain FROM
               (SELECT seq, at, entry, chain FROM journal
                 WHERE ($1::bigint IS NULL OR at >= $1) AND ($2::bigint IS NULL OR at < $2)
                   AND ($3::text IS NULL OR action = $3) AND {range} AND coalesce($4, 0) >= 0
                 ORDER BY seq {order} LIMIT {selected}) selected
              WHERE seq >= $5 ORDER BY seq LIMIT $6"
        );
        let (since, until) = (query.since.map(ceil_millis), query.until.map(ceil_millis));
        self.session
            .rows(
                &sql,
                &[
                    &since,
                    &until,
                    &query.action,
                    &query.limit.map(i64::from),
                    &i64::try_from(from).unwrap_or(i64::MAX),
                    &limit_of(limit),
                ],
            )?
            .iter()
            .map(record)
            .collect()
    }

    pub(super) fn check_journal(&self, since: Option<Digest>) -> PostgresResult<JournalCheck> {
        let mut check = JournalCheck::begin(since);
        self.session.each("SELECT seq, entry, chain FROM journal ORDER BY seq", &[], &mut |row| {
            let entry: &str = value(row, 1)?;
            check.take(count(row, 0)?, Some(entry), digest(row, 2)?, since);
            Ok(())
        })?;
        Ok(check)
    }

    pub(super) fn journal_head(&self) -> PostgresResult<Head> {
        let row = self.session.row("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1", &[])?;
        let Some(row) = row else { return Ok(Head { seq: 0, chain: Digest::from_bytes([0; 32]) }) };
        Ok(Head { seq: count(&row, 0)?, chain: digest(&row, 1)? })
    }
}
