//! Values of attributes, their numbers, and the times that artifacts state.

use super::SqliteSnapshot;
use crate::storage::Result;

impl SqliteSnapshot<'_> {
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
