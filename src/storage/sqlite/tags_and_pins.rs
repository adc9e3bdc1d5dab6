//! Tags and pins.

use rusqlite::{OptionalExtension, Row};

use super::Result;
use super::read::SqliteSnapshot;
use super::rows::{ArtifactId, ArtifactRow, Milliseconds};
use crate::storage::interface::{Pin, Tag};

impl SqliteSnapshot<'_> {
    /// Returns the artifact with this tag.
    ///
    /// # Errors
    /// Returns an error if a database operation fails.
    pub(crate) fn tagged(&self, name: &str) -> Result<Option<ArtifactRow>> {
        let id = || -> rusqlite::Result<Option<ArtifactId>> {
            self.connection()
                .prepare_cached("SELECT artifact FROM tag WHERE name = ?1")?
                .query_row([name], |row| row.get(0))
                .optional()
        };
        let id = id().map_err(|error| self.failed(error))?;
        id.map(|id| self.artifact_by_id(id)).transpose()
    }

    /// Returns the tags of an artifact, sorted by name.
    pub(crate) fn tags(&self, artifact: ArtifactId) -> Result<Vec<Tag>> {
        let tag = |row: &Row<'_>| Ok(Tag { name: row.get(0)?, at: row.get::<_, Milliseconds>(1)?.0 });
        self.rows("SELECT name, at FROM tag WHERE artifact = ?1 ORDER BY name", [artifact.0], tag)
    }

    /// Returns the pin of an artifact, if it has one.
    pub(crate) fn pin_of(&self, artifact: ArtifactId) -> Result<Option<Pin>> {
        let pin = |row: &Row<'_>| Ok(Pin { note: row.get(0)?, at: row.get::<_, Milliseconds>(1)?.0 });
        Ok(self.rows("SELECT note, at FROM pin WHERE artifact = ?1", [artifact.0], pin)?.pop())
    }
}
