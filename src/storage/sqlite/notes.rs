//! Notes on artifacts: one text per artifact.

use rusqlite::Row;

use super::Result;
use super::read::SqliteSnapshot;
use super::rows::{ArtifactId, Milliseconds};
use crate::storage::interface::Note;

impl SqliteSnapshot<'_> {
    /// Returns the note of an artifact, if it has one.
    pub(crate) fn note_of(&self, artifact: ArtifactId) -> Result<Option<Note>> {
        let note = |row: &Row<'_>| Ok(Note { text: row.get(0)?, at: row.get::<_, Milliseconds>(1)?.0 });
        Ok(self.rows("SELECT text, at FROM note WHERE artifact = ?1", [artifact.0], note)?.pop())
    }
}
