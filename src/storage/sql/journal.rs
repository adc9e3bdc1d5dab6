//! The journal: its entries, the check of their chain, and the removals.

use chrono::{DateTime, Utc};

use super::value::TOMBSTONE as TABLE;
use super::{DamagedValue, Dialect, SqlParameter, SqlResult, SqlRow, SqlSession, SqlSnapshot, read_rows};
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::check::{EntrySelection, JournalRow};
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
        self.answer(self.session().each(&sql, &[], &mut |row| {
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

/// The columns of a tombstone `t`, in the order that [`tombstone`] reads.
pub(in crate::storage) const TOMBSTONE: &str =
    "t.digest, t.entry, t.at, t.core, t.kind, t.actor, t.reason, t.remaining, t.size";

/// Returns the tombstone in the columns [`TOMBSTONE`].
pub(in crate::storage) fn tombstone(row: &SqlRow) -> std::result::Result<Tombstone, DamagedValue> {
    Ok(Tombstone {
        digest: row.digest(0)?,
        entry: row.count(1)?,
        at: row.time(2)?,
        core: row.core(3)?,
        kind: row.text(4)?,
        actor: row.optional_text(5)?,
        reason: row.optional_text(6)?,
        left: row.count(7)?,
        size: row.count(8)?,
    })
}

/// Returns the tombstones that `rest` of a query selects.
fn select<S: SqlSession>(
    session: &S,
    rest: &str,
    parameters: &[SqlParameter],
) -> SqlResult<Vec<Tombstone>, S> {
    let sql = format!("SELECT {TOMBSTONE} FROM tombstone t WHERE {rest}");
    read_rows(session, &sql, parameters, tombstone)
}

/// Returns up to `limit` tombstones of core hashes and capture hashes that begin with `prefix`, the latest first. Several
/// removed artifacts may have had a capture with the same hash: the last removal counts.
pub(super) fn tombstones_beginning<S: SqlSession>(
    session: &S,
    prefix: &DigestPrefix,
    limit: usize,
) -> SqlResult<Vec<Tombstone>, S> {
    let (low, high) = prefix.range();
    let rest = "t.digest BETWEEN ?1 AND ?2
                  AND t.entry = (SELECT max(l.entry) FROM tombstone l WHERE l.digest = t.digest)
                ORDER BY t.entry DESC, t.digest LIMIT ?3";
    select(session, rest, &[(&low).into(), (&high).into(), limit.into()])
}

/// Returns up to `limit` tombstones of artifacts, or of those of one kind, from the journal entries after `after`, in the order
/// in which they were removed. Artifacts that are in the vault again have none.
pub(super) fn removed_artifacts<S: SqlSession>(
    session: &S,
    kind: Option<&str>,
    after: u64,
    limit: usize,
) -> SqlResult<Vec<Tombstone>, S> {
    let rest = format!(
        "t.digest = t.core AND (?1 IS NULL OR t.kind = ?1) AND t.entry > ?2 AND NOT {} ORDER BY t.entry, t.digest LIMIT ?3",
        S::DIALECT.is_stored("t.core")
    );
    select(session, &rest, &[kind.into(), after.into(), limit.into()])
}

/// Returns, for each list of sorted digests, their tombstones, one for each artifact that is not stored, by core hash: that of
/// its core hash if it is among the digests.
pub(in crate::storage) fn tombstones_with<S: SqlSession>(
    session: &S,
    digests: &[&[Digest]],
) -> SqlResult<Vec<Vec<Tombstone>>, S> {
    let rest = format!(
        "{} AND NOT {} ORDER BY t.core, t.digest <> t.core, t.digest, t.entry",
        S::DIALECT.is_in("t.digest", "?1"),
        S::DIALECT.is_stored("t.core")
    );
    let all = digests.concat();
    let found = select(session, &rest, &[all.as_slice().into()])?;
    let of = |digests: &&[Digest]| {
        let mut own: Vec<Tombstone> =
            found.iter().filter(|known| digests.binary_search(&known.digest).is_ok()).cloned().collect();
        own.dedup_by_key(|tombstone| tombstone.core);
        own
    };
    Ok(digests.iter().map(of).collect())
}

/// Inserts tombstones, unless there are tombstones of the same digests and entries.
pub(in crate::storage) fn put_tombstones<S: SqlSession>(
    session: &S,
    tombstones: Vec<Tombstone>,
) -> SqlResult<(), S> {
    if tombstones.is_empty() {
        return Ok(());
    }
    let row = |tombstone: Tombstone| {
        let Tombstone { digest, entry, at, core, kind, actor, reason, left, size } = tombstone;
        vec![
            digest.into(),
            entry.into(),
            at.timestamp_millis().into(),
            core.into(),
            kind.into(),
            actor.into(),
            reason.into(),
            left.into(),
            size.into(),
        ]
    };
    session.insert(&TABLE, tombstones.into_iter().map(row).collect())
}

/// Deletes the tombstones of artifacts.
pub(in crate::storage) fn readmit<S: SqlSession>(session: &S, cores: &[CoreHash]) -> SqlResult<(), S> {
    let sql = format!("DELETE FROM tombstone WHERE {}", S::DIALECT.is_in("core", "?1"));
    session.execute(&sql, &[cores.into()]).map(drop)
}

/// Returns the query for entries of the journal, for checks, in the order of their numbers. [`stored_entry`] reads its rows.
pub(super) fn stored_entries(dialect: Dialect, selection: &EntrySelection) -> String {
    let ((text, join), action) = (dialect.text_of_entry(), dialect.stored_action());
    let condition = dialect.selects_entry(selection);
    format!(
        "SELECT j.seq, {text}, j.chain, j.at, {action} FROM journal j {join} WHERE {condition} ORDER BY j.seq"
    )
}

/// Reads an entry whose text and chain value may be damaged.
pub(super) fn stored_entry(row: &SqlRow) -> std::result::Result<JournalRow<'_>, DamagedValue> {
    Ok(JournalRow {
        seq: row.integer(0)?,
        text: row.as_text(1),
        // A value that is no chain value is not the right one.
        chain: row.digest(2).unwrap_or(Digest::from_bytes([0; 32])),
        at: row.optional_integer(3)?,
        action: row.as_text(4),
    })
}
