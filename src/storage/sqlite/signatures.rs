//! The signature states of captures. Unsigned captures have no row.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};

use super::Result;
use super::journal::Event;
use super::read::Snapshot;
use super::rows::{ArtifactId, CaptureRow};
use super::write::Writer;
use crate::artifact::{Admitted, Signature, SignatureState};

/// The SQL expression by which the captures of one artifact are ordered by preference, from the state `s.state` of
/// their signature, which is NULL for unsigned ones.
macro_rules! preference {
    () => {
        "CASE s.state WHEN 'verified' THEN 0 WHEN 'unchecked' THEN 2 WHEN 'wrong' THEN 3 ELSE 1 END"
    };
}
pub(super) use preference;

impl FromSql for SignatureState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::named(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}

/// Reads the signature in the columns from `index` on: its state and its key id, both NULL if there is none.
pub(super) fn signature(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Signature>> {
    let state: Option<SignatureState> = row.get(index)?;
    state.map(|state| Ok(Signature { state, key_id: row.get(index + 1)? })).transpose()
}

/// Returns the stored signature of the capture with this row id.
pub(super) fn stored(connection: &Connection, capture: i64) -> rusqlite::Result<Option<Signature>> {
    connection
        .prepare_cached("SELECT state, key_id FROM signature WHERE capture = ?1")?
        .query_row([capture], |row| signature(row, 0))
        .optional()
        .map(Option::flatten)
}

/// Stores `signature` for the capture with this row id.
pub(super) fn store(
    connection: &Connection,
    capture: i64,
    Signature { state, key_id }: &Signature,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO signature (capture, state, key_id) VALUES (?1, ?2, ?3)")?
        .execute((capture, state.name(), key_id))
        .map(drop)
}

/// Removes the stored signature of the capture with this row id.
pub(super) fn forget(connection: &Connection, capture: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM signature WHERE capture = ?1")?.execute([capture]).map(drop)
}

impl Writer<'_> {
    /// Records the signature state found when admitting the capture with the row id `id`, in the journal only if it
    /// changed. A signature that was not checked this time does not replace the result of an earlier check.
    pub(super) fn record_signature(&mut self, id: i64, admitted: &Admitted) -> rusqlite::Result<()> {
        let Some(found) = admitted.signature() else { return Ok(()) };
        let stored = stored(self.transaction, id)?;
        let key = (admitted.core(), admitted.capture());
        let lost = self.recorded.as_ref().filter(|(lost, _)| *lost == key).map(|(_, recorded)| recorded);
        let state = match stored.as_ref().or(lost) {
            Some(known) if found.state == SignatureState::Unchecked => known.state,
            _ => found.state,
        };
        let news = Signature { state, key_id: found.key_id.clone() };
        if stored.as_ref() == Some(&news) {
            return Ok(());
        }
        store(self.transaction, id, &news)?;
        let event = Event::Signature {
            capture: admitted.capture(),
            core: admitted.core(),
            key_id: news.key_id.as_deref(),
            state: state.name(),
        };
        self.journal.append(self.transaction, &event)
    }
}

impl Snapshot<'_> {
    /// Returns the preferred capture of an artifact: captures with a verified signature come first, then unsigned ones,
    /// then those with an unchecked signature, and those with a wrong signature last; among equals, the one that was
    /// added first.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub(crate) fn preferred_capture(&self, artifact: ArtifactId) -> Result<Option<CaptureRow>> {
        let sql = super::read::captures!(
            "WHERE c.id = (SELECT f.id FROM capture f LEFT JOIN signature s ON s.capture = f.id
                            WHERE f.artifact = ?1 ORDER BY ",
            super::signatures::preference!(),
            ", f.id LIMIT 1)"
        );
        Ok(self.rows(sql, [artifact.0], super::read::capture_row)?.pop())
    }
}
