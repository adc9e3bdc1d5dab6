//! Values of attributes, their numbers, and the times that artifacts state.

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

    /// Returns up to `limit` values of an attribute that begin with `text`, sorted.
    pub(crate) fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        let sql = "SELECT v.value FROM attribute_value v
                    WHERE v.name = ?1 AND v.value >= ?2 AND EXISTS (SELECT 1 FROM attribute WHERE value = v.id)
                    ORDER BY v.value LIMIT ?3";
        let mut values: Vec<String> = self.rows(sql, (name, text, limit), |row| row.get(0))?;
        values.retain(|value| value.starts_with(text));
        Ok(values)
    }

    /// Returns the names of the attributes that artifacts have, sorted.
    pub(crate) fn attribute_names(&self) -> Result<Vec<String>> {
        // Skips from one name to the next: there may be millions of values.
        let sql = "WITH RECURSIVE names (name) AS (
                     SELECT ''
                     UNION ALL
                     SELECT (SELECT v.name FROM attribute_value v
                              WHERE v.name > n.name AND EXISTS (SELECT 1 FROM attribute WHERE value = v.id)
                              ORDER BY v.name LIMIT 1)
                       FROM names n WHERE n.name IS NOT NULL)
                   SELECT name FROM names WHERE name > ''";
        self.rows(sql, [], |row| row.get(0))
    }
}
