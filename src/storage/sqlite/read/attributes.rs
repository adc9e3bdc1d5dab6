//! The numbers of attributes, and the times that artifacts state.

use chrono::{DateTime, Utc};

use super::SqliteSnapshot;
use crate::storage::Result;
use crate::storage::sqlite::rows::ArtifactId;

impl SqliteSnapshot<'_> {
    /// Returns the largest number of an attribute of an artifact, or `None` if it has none.
    pub(crate) fn number_of(&self, artifact: ArtifactId, name: &str) -> Result<Option<i64>> {
        let sql = "SELECT max(v.number) FROM attribute a JOIN attribute_value v ON v.id = a.value
                    WHERE a.artifact = ?1 AND v.name = ?2";
        Ok(self.rows(sql, (artifact.0, name), |row| row.get(0))?.pop().flatten())
    }

    /// Returns the time in an attribute of an artifact: the latest of those that its captures state. `None` if it states
    /// none.
    pub(crate) fn declared_time(&self, artifact: ArtifactId, name: &str) -> Result<Option<DateTime<Utc>>> {
        // An invalid number is damage, which a check reports.
        Ok(self.number_of(artifact, name)?.and_then(DateTime::from_timestamp_millis))
    }
}
