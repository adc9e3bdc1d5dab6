//! The creation times that artifacts state.

use chrono::{DateTime, Utc};

use super::read::Snapshot;
use super::rows::ArtifactId;
use crate::artifact::CREATED_AT;
use crate::storage::Result;

impl Snapshot<'_> {
    /// Returns the creation time that an artifact states: the latest of those that its captures state. `None` if it
    /// states none.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub(crate) fn created_at(&self, artifact: ArtifactId) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT max(v.value) FROM attribute a JOIN attribute_value v ON v.id = a.value
                    WHERE a.artifact = ?1 AND v.name = ?2";
        let text: Option<String> =
            self.rows(sql, (artifact.0, CREATED_AT), |row| row.get(0))?.pop().flatten();
        Ok(text.as_deref().and_then(parsed))
    }
}

/// Parses the time in an attribute. An invalid value is damage, which a check reports.
fn parsed(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}
