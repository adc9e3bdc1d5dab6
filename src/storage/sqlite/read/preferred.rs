//! The preferred capture of an artifact.

use super::{SqliteSnapshot, capture_record, captures};
use crate::digest::CoreHash;
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::sqlite::signatures::preference;
use crate::storage::{CaptureRecord, Result};

impl SqliteSnapshot<'_> {
    /// Returns the preferred capture of an artifact: captures with a verified signature come first, then unsigned ones,
    /// then those with an unchecked signature, and those with a wrong signature last; among equals, the one that was
    /// added first.
    pub(crate) fn preferred_capture(
        &self,
        core: CoreHash,
        artifact: ArtifactId,
    ) -> Result<Option<CaptureRecord>> {
        let sql = captures!(
            "WHERE c.id = (SELECT f.id FROM capture f LEFT JOIN signature s ON s.capture = f.id
                            WHERE f.artifact = ?1 ORDER BY ",
            preference!(),
            ", f.id LIMIT 1)"
        );
        Ok(self.rows(sql, [artifact.0], |row| capture_record(row, core))?.pop())
    }
}
