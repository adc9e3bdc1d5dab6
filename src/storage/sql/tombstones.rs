//! Records of what was removed, which cannot be added again unless this is explicitly allowed.

use super::table::TOMBSTONE as TABLE;
use super::{DamagedValue, SqlParameter, SqlResult, SqlRow, SqlSession, read_rows};
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::Tombstone;

/// The columns of a tombstone `t`, in the order that [`tombstone`] reads.
pub(in crate::storage) const TOMBSTONE: &str =
    "t.digest, t.entry, t.at, t.core, t.kind, t.actor, t.reason, t.remaining, t.size";

/// Returns the tombstone in the columns [`TOMBSTONE`].
pub(in crate::storage) fn tombstone(row: &SqlRow) -> Result<Tombstone, DamagedValue> {
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
    parameters: &[SqlParameter<'_>],
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
