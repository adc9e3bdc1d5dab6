//! Names of runs that several artifacts have. Artifacts that refer to their own name, as redacted copies of a run do,
//! are copies; the others are originals.

use super::SqliteSnapshot;
use crate::storage::sqlite::Result;
use crate::storage::sqlite::rows::ArtifactId;

/// The SQL condition that the artifact of `identity i` is of a kind with mentions in the group `?1`.
const IS_OF_GROUP: &str = "EXISTS (SELECT 1 FROM artifact a JOIN role r ON r.kind = a.kind
                                    WHERE a.id = i.artifact AND r.role_group = ?1)";

/// The SQL condition that the artifact of `identity i` does not refer to the name itself.
const REFERS_NOT: &str =
    "NOT EXISTS (SELECT 1 FROM name_mention n WHERE n.artifact = i.artifact AND n.handle = i.handle)";

impl SqliteSnapshot<'_> {
    /// Returns the names that several originals have, of kinds with mentions in one group, sorted.
    pub(crate) fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT i.handle FROM identity i WHERE {IS_OF_GROUP} AND {REFERS_NOT}
              GROUP BY i.handle HAVING count(*) > 1 ORDER BY 1"
        );
        self.rows(&sql, [group], |row| row.get(0))
    }

    /// Returns the originals that have a name, in the order in which they were added.
    pub(crate) fn originals(&self, name: &str) -> Result<Vec<ArtifactId>> {
        let sql =
            format!("SELECT i.artifact FROM identity i WHERE i.handle = ?1 AND {REFERS_NOT} ORDER BY 1");
        self.rows(&sql, [name], |row| row.get(0))
    }

    /// Returns the names of which an artifact is an original, sorted.
    pub(crate) fn original_names(&self, artifact: ArtifactId) -> Result<Vec<String>> {
        let sql =
            format!("SELECT i.handle FROM identity i WHERE i.artifact = ?1 AND {REFERS_NOT} ORDER BY 1");
        self.rows(&sql, [artifact.0], |row| row.get(0))
    }

    /// Returns whether another artifact of the same kind has a name of the artifact, or refers to a name that it refers
    /// to.
    pub(crate) fn has_namesake(&self, artifact: ArtifactId) -> Result<bool> {
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
