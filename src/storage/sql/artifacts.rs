//! Artifacts and their attributes.

use super::{DamagedValue, SqlRow, SqlSession, in_order, read_rows, read_rows_of, tombstones_beginning};
use crate::digest::{CoreHash, DigestPrefix};
use crate::storage::interface::{ArtifactRecord, AttributeRecord, CaptureTarget, Resolution};

/// The columns of an artifact `a` of the kind `k`, in the order that [`artifact_record`] reads.
pub(super) const ARTIFACT: &str = "a.core, k.name, a.added_at, a.seen_at, a.id, a.arrival";

/// Returns the artifact in the columns [`ARTIFACT`].
pub(super) fn artifact_record(row: &SqlRow) -> Result<ArtifactRecord, DamagedValue> {
    Ok(ArtifactRecord {
        core: row.core(0)?,
        kind: row.text(1)?,
        added_at: row.time(2)?,
        seen_at: row.time(3)?,
        addition: row.count(4)?,
        arrival: row.count(5)?,
    })
}

/// Returns the artifacts with these core hashes.
pub(in crate::storage) fn artifacts<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> Result<Vec<Option<ArtifactRecord>>, S::Error> {
    let artifacts = S::DIALECT.artifacts("?1");
    let sql = format!("SELECT {ARTIFACT} FROM {artifacts} JOIN kind k ON k.id = a.kind");
    let found = read_rows(session, &sql, &[of.into()], artifact_record)?;
    let found = found.into_iter().map(|artifact| (artifact.core, Some(artifact)));
    Ok(in_order(of, &found.collect()))
}

/// Returns the attributes of each artifact, sorted by name and value.
pub(in crate::storage) fn attributes<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> Result<Vec<Vec<AttributeRecord>>, S::Error> {
    attributes_where(session, of, None)
}

/// Returns the attributes of each artifact that have a name, sorted by value.
pub(in crate::storage) fn attributes_named<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    name: &str,
) -> Result<Vec<Vec<AttributeRecord>>, S::Error> {
    attributes_where(session, of, Some(name))
}

fn attributes_where<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    name: Option<&str>,
) -> Result<Vec<Vec<AttributeRecord>>, S::Error> {
    let (condition, name) = match name {
        Some(name) => ("WHERE t.name = ?2", vec![name.into()]),
        None => ("", Vec::new()),
    };
    let sql = format!(
        "SELECT DISTINCT a.core, t.name, t.value, t.number FROM {} {} {condition} ORDER BY 1, 2, 3",
        S::DIALECT.artifacts("?1"),
        S::DIALECT.attributes()
    );
    read_rows_of(session, &sql, (of, &name), |row| {
        Ok(AttributeRecord { name: row.text(1)?, value: row.text(2)?, number: row.optional_integer(3)? })
    })
}

/// Returns the artifacts, captures and tombstones whose hash begins with `prefix`, up to `limit` of each. Tombstones are
/// looked for if there is nothing else.
pub(in crate::storage) fn resolve<S: SqlSession>(
    session: &S,
    prefix: &DigestPrefix,
    limit: usize,
) -> Result<Resolution, S::Error> {
    let (low, high) = prefix.range();
    let range = [(&low).into(), (&high).into(), limit.into()];
    let is_within = S::DIALECT.is_between("a.core", "?1", "?2");
    let sql = format!("SELECT a.core FROM artifact a WHERE {is_within} ORDER BY a.core LIMIT ?3");
    let artifacts = read_rows(session, &sql, &range, |row| row.core(0))?;
    let hash = S::DIALECT.capture_hash();
    let sql = format!(
        "SELECT {hash}, a.core FROM {} JOIN artifact a ON a.id = c.artifact WHERE {} ORDER BY 1, 2 LIMIT ?3",
        S::DIALECT.captures(),
        S::DIALECT.is_between(hash, "?1", "?2")
    );
    let captures = read_rows(session, &sql, &range, |row| {
        Ok(CaptureTarget { capture: row.capture(0)?, artifact: row.core(1)? })
    })?;
    let is_stored = !artifacts.is_empty() || !captures.is_empty();
    let tombstones = if is_stored { Vec::new() } else { tombstones_beginning(session, prefix, limit)? };
    Ok(Resolution { artifacts, captures, tombstones })
}
