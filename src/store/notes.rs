//! What people want to remember of artifacts: one text for each.

use rusqlite::Row;

use super::edit::Edit;
use super::journal::Event;
use super::read::Snapshot;
use super::rows::{ArtifactId, ArtifactRow, Milliseconds, NoteRow};
use super::stated::changed;
use super::{Result, StoreError};

/// The most bytes of a note: about a page.
pub const MAX_NOTE_BYTES: usize = 4096;

/// Whether `text` can be a note: it has something beside white space, and at most 4,096 bytes.
#[must_use]
pub fn is_note(text: &str) -> bool {
    text.len() <= MAX_NOTE_BYTES && !text.trim().is_empty()
}

impl Edit<'_> {
    /// Sets the note of an artifact, in the place of another that it had; false if it had this one.
    ///
    /// # Errors
    /// [`StoreError::NotAnAnnotation`] if it is none ([`is_note`]), and as [`Edit::tag`].
    pub fn set_note(&mut self, artifact: &ArtifactRow, text: &str) -> Result<bool> {
        if !is_note(text) {
            let message =
                format!("a note has something beside white space, and at most {MAX_NOTE_BYTES} bytes");
            return Err(StoreError::NotAnAnnotation(message));
        }
        let (id, at) = (self.number(artifact)?, self.journal.at().timestamp_millis());
        self.recorded(&Event::Note { core: artifact.core, note: Some(text) }, |connection| {
            let sql = "INSERT INTO note (artifact, text, at) VALUES (?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET text = excluded.text, at = excluded.at
                        WHERE text <> excluded.text";
            changed(connection, sql, (id, text, at))
        })
    }

    /// Takes the note of an artifact away; false if it had none.
    ///
    /// # Errors
    /// As [`Edit::tag`].
    pub fn remove_note(&mut self, artifact: &ArtifactRow) -> Result<bool> {
        let id = self.number(artifact)?;
        self.recorded(&Event::Note { core: artifact.core, note: None }, |connection| {
            changed(connection, "DELETE FROM note WHERE artifact = ?1", [id])
        })
    }
}

impl Snapshot<'_> {
    /// The note of an artifact, if it has one.
    ///
    /// # Errors
    /// What the database says.
    pub fn note_of(&self, artifact: ArtifactId) -> Result<Option<NoteRow>> {
        let sql = "SELECT artifact, text, at FROM note WHERE artifact = ?1";
        Ok(self.rows(sql, [artifact.0], note_row)?.pop())
    }

    /// All notes, in the order in which the artifacts arrived.
    ///
    /// # Errors
    /// What the database says.
    pub fn notes(&self) -> Result<Vec<NoteRow>> {
        self.rows("SELECT artifact, text, at FROM note ORDER BY artifact", [], note_row)
    }
}

fn note_row(row: &Row<'_>) -> rusqlite::Result<NoteRow> {
    Ok(NoteRow { artifact: row.get(0)?, text: row.get(1)?, at: row.get::<_, Milliseconds>(2)?.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_something_to_say_and_an_end() {
        assert!(is_note("a") && is_note(&"a".repeat(MAX_NOTE_BYTES)) && is_note("two\nlines"));
        assert!(!is_note("") && !is_note(" \n\t") && !is_note(&"a".repeat(MAX_NOTE_BYTES + 1)));
    }
}
