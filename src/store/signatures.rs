//! What is known of the signatures of captures. Captures that are not signed have no row.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};

use super::Result;
use super::journal::Event;
use super::read::Snapshot;
use super::rows::{ArtifactId, CaptureRow};
use super::write::Writer;
use crate::artifact::{Admitted, Signature, SignatureState};

/// The order in which captures of one artifact are preferred, by the state `s.state` of their signature, which is NULL for
/// those without one.
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

/// The signature in the columns from `index` on: its state and its key id, both NULL if there is none.
pub(super) fn signature(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Signature>> {
    let state: Option<SignatureState> = row.get(index)?;
    state.map(|state| Ok(Signature { state, key_id: row.get(index + 1)? })).transpose()
}

/// What is stored for the capture with this number.
pub(super) fn stored(connection: &Connection, capture: i64) -> rusqlite::Result<Option<Signature>> {
    connection
        .prepare_cached("SELECT state, key_id FROM signature WHERE capture = ?1")?
        .query_row([capture], |row| signature(row, 0))
        .optional()
        .map(Option::flatten)
}

/// Stores `signature` for the capture with this number.
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

/// Removes what is stored for the capture with this number.
pub(super) fn forget(connection: &Connection, capture: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM signature WHERE capture = ?1")?.execute([capture]).map(drop)
}

impl Writer<'_> {
    /// Records what admitting the capture with the number `id` said of its signature, and journals it if it is news. That a
    /// signature was not checked this time is no reason to forget what an earlier check gave.
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
    /// The capture that stands for an artifact: one whose signature was verified before one without a signature, that before
    /// one whose signature was not checked, and one whose signature is wrong last; among equals the one that was added first.
    ///
    /// # Errors
    /// What the database says.
    pub fn preferred_capture(&self, artifact: ArtifactId) -> Result<Option<CaptureRow>> {
        let sql = super::read::captures!(
            "WHERE c.id = (SELECT f.id FROM capture f LEFT JOIN signature s ON s.capture = f.id
                            WHERE f.artifact = ?1 ORDER BY ",
            super::signatures::preference!(),
            ", f.id LIMIT 1)"
        );
        Ok(self.rows(sql, [artifact.0], super::read::capture_row)?.pop())
    }

    /// The signed captures for which checking gave `state`, in the order in which they were added; of those that state this
    /// key id, if one is given.
    ///
    /// # Errors
    /// What the database says.
    pub fn with_signature(&self, state: SignatureState, key_id: Option<&str>) -> Result<Vec<CaptureRow>> {
        let sql =
            super::read::captures!("WHERE s.state = ?1 AND (?2 IS NULL OR s.key_id = ?2) ORDER BY c.id");
        self.rows(sql, (state.name(), key_id), super::read::capture_row)
    }

    /// The artifacts that have a capture without a signature, by their numbers.
    ///
    /// # Errors
    /// What the database says.
    pub fn unsigned_artifacts(&self) -> Result<Vec<ArtifactId>> {
        let sql = "SELECT DISTINCT c.artifact FROM capture c
                    WHERE NOT EXISTS (SELECT 1 FROM signature s WHERE s.capture = c.id) ORDER BY c.artifact";
        self.rows(sql, [], |row| row.get(0))
    }
}
