//! Completion candidates for partial input.

use rusqlite::Params;

use super::super::Result;
use super::super::rows::ArtifactRow;
use super::{Snapshot, artifact_row, beginning};
use crate::digest::Digest;

/// Minimum number of digits to search all artifacts; with fewer, too many match, and only the newest ones are searched.
const TELLING_DIGITS: usize = 4;

/// Number of newest artifacts that are searched.
const NEWEST: usize = 20_000;

impl Snapshot<'_> {
    /// Returns up to `limit` artifacts of these kinds, or of any, whose core hash begins with `digits`, which are
    /// lowercase; last seen first. With fewer than four digits, only the twenty thousand artifacts that were seen last
    /// are searched.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn candidates(&self, digits: &str, kinds: Option<&[&str]>, limit: usize) -> Result<Vec<ArtifactRow>> {
        let bound = |fill: &str| format!("{digits}{}", fill.repeat(64_usize.saturating_sub(digits.len())));
        let (Ok(low), Ok(high)) = (bound("0").parse::<Digest>(), bound("f").parse::<Digest>()) else {
            return Ok(Vec::new());
        };
        let fits = |row: &ArtifactRow| {
            (low..=high).contains(&row.core.0) && kinds.is_none_or(|kinds| kinds.contains(&row.kind.as_str()))
        };
        let select = "SELECT a.id, a.core, k.name, a.added_at, a.seen_at, a.arrival FROM artifact a JOIN kind k ON k.id = a.kind";
        if digits.len() < TELLING_DIGITS {
            return self.fitting(
                &format!("{select} ORDER BY a.arrival DESC LIMIT ?1"),
                [NEWEST],
                fits,
                limit,
            );
        }
        let sql = format!("{select} WHERE substr(a.core, 1, 8) BETWEEN ?1 AND ?2 ORDER BY a.arrival DESC");
        self.fitting(&sql, (beginning(&low), beginning(&high)), fits, limit)
    }

    /// Returns up to `limit` values of an attribute that begin with `text`, sorted.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        let sql = "SELECT value FROM attribute_value WHERE name = ?1 AND value >= ?2 ORDER BY value LIMIT ?3";
        let mut values: Vec<String> = self.rows(sql, (name, text, limit), |row| row.get(0))?;
        values.retain(|value| value.starts_with(text));
        Ok(values)
    }

    /// Returns the names of the attributes that artifacts have, sorted.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        // Skips from one name to the next: there may be millions of values.
        let sql = "WITH RECURSIVE names (name) AS (
                     SELECT min(name) FROM attribute_value
                     UNION ALL
                     SELECT (SELECT min(v.name) FROM attribute_value v WHERE v.name > n.name) FROM names n
                      WHERE n.name IS NOT NULL)
                   SELECT name FROM names WHERE name IS NOT NULL";
        self.rows(sql, [], |row| row.get(0))
    }

    /// Returns the first rows that satisfy `fits`, up to `limit`. No more are read.
    fn fitting(
        &self,
        sql: &str,
        parameters: impl Params,
        fits: impl Fn(&ArtifactRow) -> bool,
        limit: usize,
    ) -> Result<Vec<ArtifactRow>> {
        let read = || -> rusqlite::Result<Vec<ArtifactRow>> {
            let mut statement = self.connection().prepare_cached(sql)?;
            let rows = statement.query_map(parameters, artifact_row)?;
            rows.filter(|row| row.as_ref().is_ok_and(&fits) || row.is_err()).take(limit).collect()
        };
        read().map_err(|error| self.failed(error))
    }
}
