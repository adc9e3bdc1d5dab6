//! Captures.

use std::collections::HashMap;

use super::{DamagedValue, SqlRow, SqlSession, read_rows, read_rows_of};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{CaptureRecord, CaptureTarget};

/// Returns the capture in the columns of [`Dialect::capture_columns`](super::Dialect).
fn capture_record(row: &SqlRow) -> Result<CaptureRecord, DamagedValue> {
    let warnings = row.optional_text(5)?.map(|warnings| serde_json::from_str(&warnings)).transpose();
    let state = row.optional_text(6)?.map(|state| {
        SignatureState::named(&state).ok_or(DamagedValue::new(6, "a signature has no such state"))
    });
    let key_id = row.optional_text(7)?;
    Ok(CaptureRecord {
        artifact: row.core(0)?,
        capture: row.capture(1)?,
        size: row.count(2)?,
        added_at: row.time(3)?,
        seen_at: row.time(4)?,
        warnings: warnings.map_err(|_| DamagedValue::new(5, "warnings are no list"))?.unwrap_or_default(),
        signature: state.transpose()?.map(|state| Signature { state, key_id }),
        source_path: row.optional_text(8)?,
    })
}

/// Returns the captures of artifacts for which `condition` holds, in the order in which they were added.
fn captures_where<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    condition: &str,
) -> Result<Vec<Vec<CaptureRecord>>, S::Error> {
    let (columns, joins) = S::DIALECT.capture_columns();
    let sql = format!(
        "SELECT {columns} FROM {} JOIN capture c ON c.artifact = a.id {joins} WHERE {condition} ORDER BY c.id",
        S::DIALECT.artifacts("?1")
    );
    read_rows_of(session, &sql, (of, &[]), capture_record)
}

/// Returns the captures of each artifact in the order in which they were added.
pub(in crate::storage) fn captures<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> Result<Vec<Vec<CaptureRecord>>, S::Error> {
    captures_where(session, of, "true")
}

/// Returns the preferred capture of each artifact: captures with a verified signature come first, then unsigned ones, then
/// those with an unchecked signature, and those with a wrong signature last; among equals, the one that was added first.
pub(in crate::storage) fn preferred_captures<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> Result<Vec<Option<CaptureRecord>>, S::Error> {
    let condition = format!(
        "c.id = (SELECT f.id FROM capture f WHERE f.artifact = a.id ORDER BY
                  CASE {} WHEN 'verified' THEN 0 WHEN 'unchecked' THEN 2 WHEN 'wrong' THEN 3 ELSE 1 END, f.id LIMIT 1)",
        S::DIALECT.signature_state("f")
    );
    let found = captures_where(session, of, &condition)?;
    Ok(found.into_iter().map(|captures| captures.into_iter().next()).collect())
}

/// Returns each of these captures, if it is stored.
pub(in crate::storage) fn captures_with<S: SqlSession>(
    session: &S,
    targets: &[CaptureTarget],
) -> Result<Vec<Option<CaptureRecord>>, S::Error> {
    let (columns, joins) = S::DIALECT.capture_columns();
    let sql = format!(
        "SELECT {columns} FROM {} JOIN artifact a ON a.id = c.artifact {joins}",
        S::DIALECT.captures_with_hashes("?1")
    );
    let hashes: Vec<Digest> = targets.iter().map(|target| target.capture.0).collect();
    let found = read_rows(session, &sql, &[hashes.as_slice().into()], capture_record)?;
    let found: HashMap<_, _> =
        found.into_iter().map(|record| ((record.artifact, record.capture), record)).collect();
    Ok(targets.iter().map(|target| found.get(&(target.artifact, target.capture)).cloned()).collect())
}
