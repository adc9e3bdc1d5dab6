//! Completion candidates for partial input.

use super::super::Result;
use super::SqliteSnapshot;

impl SqliteSnapshot<'_> {
    /// Returns up to `limit` values of an attribute that begin with `text`, sorted.
    pub(crate) fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        let sql = "SELECT value FROM attribute_value WHERE name = ?1 AND value >= ?2 ORDER BY value LIMIT ?3";
        let mut values: Vec<String> = self.rows(sql, (name, text, limit), |row| row.get(0))?;
        values.retain(|value| value.starts_with(text));
        Ok(values)
    }

    /// Returns the names of the attributes that artifacts have, sorted.
    pub(crate) fn attribute_names(&self) -> Result<Vec<String>> {
        // Skips from one name to the next: there may be millions of values.
        let sql = "WITH RECURSIVE names (name) AS (
                     SELECT min(name) FROM attribute_value
                     UNION ALL
                     SELECT (SELECT min(v.name) FROM attribute_value v WHERE v.name > n.name) FROM names n
                      WHERE n.name IS NOT NULL)
                   SELECT name FROM names WHERE name IS NOT NULL";
        self.rows(sql, [], |row| row.get(0))
    }
}
