//! Notes on artifacts: one text per artifact.

use rusqlite::Row;

use super::edit::WriteTransaction;
use super::journal::JournalEvent;
use super::manual_links::changed;
use super::read::SqliteSnapshot;
use super::rows::{ArtifactId, Milliseconds};
use super::{Result, StorageError};
use crate::digest::CoreHash;
use crate::storage::annotations::note_defect;
use crate::storage::interface::Note;

impl WriteTransaction<'_> {
    /// Sets the note of an artifact, replacing any other; returns false if it already has this one.
    ///
    /// # Errors
    /// Returns [`Invalid`](crate::storage::ErrorKind::Invalid) if the note is not valid
    /// ([`is_note`](crate::storage::is_note)); otherwise the same as [`WriteTransaction::tag`].
    pub(crate) fn set_note(&mut self, core: CoreHash, text: &str) -> Result<bool> {
        if let Some(defect) = note_defect(text) {
            return Err(StorageError::invalid(defect));
        }
        let (id, at) = (self.number(core)?, self.journal.at().timestamp_millis());
        self.recorded(&JournalEvent::Note { core, note: Some(text) }, |connection| {
            let sql = "INSERT INTO note (artifact, text, at) VALUES (?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET text = excluded.text, at = excluded.at
                        WHERE text <> excluded.text";
            changed(connection, sql, (id, text, at))
        })
    }

    /// Removes the note of an artifact; returns false if it had none.
    pub(crate) fn remove_note(&mut self, core: CoreHash) -> Result<bool> {
        let id = self.number(core)?;
        self.recorded(&JournalEvent::Note { core, note: None }, |connection| {
            changed(connection, "DELETE FROM note WHERE artifact = ?1", [id])
        })
    }
}

impl SqliteSnapshot<'_> {
    /// Returns the note of an artifact, if it has one.
    pub(crate) fn note_of(&self, artifact: ArtifactId) -> Result<Option<Note>> {
        let note = |row: &Row<'_>| Ok(Note { text: row.get(0)?, at: row.get::<_, Milliseconds>(1)?.0 });
        Ok(self.rows("SELECT text, at FROM note WHERE artifact = ?1", [artifact.0], note)?.pop())
    }
}
