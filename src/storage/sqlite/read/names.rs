//! Names of runs that several artifacts have. Artifacts that refer to their own name, as redacted copies of a run do,
//! are copies; the others are originals.

use super::Snapshot;
use crate::storage::sqlite::Result;
use crate::storage::sqlite::rows::ArtifactId;

/// The SQL condition that the artifact of `identity i` is an original, of a kind with mentions in the group `?1`.
const IS_ORIGINAL: &str = "EXISTS (SELECT 1 FROM artifact a JOIN role r ON r.kind = a.kind
                                    WHERE a.id = i.artifact AND r.role_group = ?1)
             AND NOT EXISTS (SELECT 1 FROM name_mention n WHERE n.artifact = i.artifact AND n.handle = i.handle)";

impl Snapshot<'_> {
    /// Returns the names that several originals have, of kinds with mentions in one group, sorted.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT i.handle FROM identity i WHERE {IS_ORIGINAL} GROUP BY i.handle HAVING count(*) > 1 ORDER BY 1"
        );
        self.rows(&sql, [group], |row| row.get(0))
    }

    /// Returns the originals that have a name, of kinds with mentions in one group, in the order of their arrival.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn originals_named(&self, name: &str, group: &str) -> Result<Vec<ArtifactId>> {
        let sql =
            format!("SELECT i.artifact FROM identity i WHERE i.handle = ?2 AND {IS_ORIGINAL} ORDER BY 1");
        self.rows(&sql, [group, name], |row| row.get(0))
    }

    /// Returns the names of which an artifact is an original, sorted, if its kind has mentions in one group.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn own_names(&self, artifact: ArtifactId, group: &str) -> Result<Vec<String>> {
        let sql =
            format!("SELECT i.handle FROM identity i WHERE i.artifact = ?2 AND {IS_ORIGINAL} ORDER BY 1");
        self.rows(&sql, (group, artifact.0), |row| row.get(0))
    }

    /// Returns whether another artifact of the same kind has a name of the artifact, or refers to a name that it refers
    /// to.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn has_namesake(&self, artifact: ArtifactId) -> Result<bool> {
        // The plus keeps SQLite from scanning all artifacts of the kind.
        let sql = "SELECT EXISTS (
                     SELECT 1 FROM identity mine JOIN identity other ON other.handle = mine.handle
                       JOIN artifact a ON a.id = other.artifact
                      WHERE mine.artifact = ?1 AND a.id <> ?1
                        AND +a.kind = (SELECT kind FROM artifact WHERE id = ?1))
                   OR EXISTS (
                     SELECT 1 FROM name_mention mine JOIN name_mention other ON other.handle = mine.handle
                       JOIN artifact a ON a.id = other.artifact
                      WHERE mine.artifact = ?1 AND a.id <> ?1
                        AND +a.kind = (SELECT kind FROM artifact WHERE id = ?1))";
        Ok(self.rows(sql, [artifact.0], |row| row.get(0))?.pop().unwrap_or_default())
    }
}
