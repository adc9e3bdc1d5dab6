//! Manual links.

use rusqlite::{Connection, OptionalExtension};

use super::edit::WriteTransaction;
use super::journal::JournalEvent;
use super::{Result, StorageError};
use crate::storage::ManualLinkKey;
use crate::storage::annotations::link_defect;

impl WriteTransaction<'_> {
    /// Adds `link`; returns false if it already exists with this note.
    ///
    /// # Errors
    /// Returns [`Invalid`](crate::storage::ErrorKind::Invalid) if the relation is not valid
    /// ([`is_relation`](crate::storage::is_relation)), both ends are the same artifact, or the note is longer than
    /// [`MAX_LINK_NOTE_BYTES`](crate::storage::MAX_LINK_NOTE_BYTES), [`Gone`](crate::storage::ErrorKind::Gone) if one
    /// of the ends was removed, and an error if the database cannot be written.
    pub(crate) fn add_link(&mut self, link: ManualLinkKey<'_>, note: Option<&str>) -> Result<bool> {
        let ManualLinkKey { source, relation, target } = link;
        if let Some(defect) = link_defect(source, relation, target, note) {
            return Err(StorageError::invalid(defect));
        }
        let key = (self.number(source)?, relation, self.number(target)?);
        let at = self.journal.at().timestamp_millis();
        let event = JournalEvent::Link { note, relation, source, target };
        self.recorded(&event, |connection| {
            let known: Option<Option<String>> = connection
                .prepare_cached("SELECT note FROM link WHERE source = ?1 AND relation = ?2 AND target = ?3")?
                .query_row(key, |row| row.get(0))
                .optional()?;
            if known.is_some_and(|known| known.as_deref() == note) {
                return Ok(false);
            }
            connection
                .prepare_cached(
                    "INSERT INTO link (source, relation, target, note, stated_at) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT DO UPDATE SET note = excluded.note, stated_at = excluded.stated_at",
                )?
                .execute((key.0, key.1, key.2, note, at))?;
            Ok(true)
        })
    }

    /// Removes `link`; returns false if it does not exist.
    pub(crate) fn remove_link(&mut self, link: ManualLinkKey<'_>) -> Result<bool> {
        let ManualLinkKey { source, relation, target } = link;
        let key = (self.number(source)?, relation, self.number(target)?);
        let event = JournalEvent::Unlink { relation, source, target };
        self.recorded(&event, |connection| {
            let sql = "DELETE FROM link WHERE source = ?1 AND relation = ?2 AND target = ?3";
            changed(connection, sql, key)
        })
    }
}

/// Runs `sql` and returns whether it changed anything.
pub(super) fn changed(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> rusqlite::Result<bool> {
    Ok(connection.prepare_cached(sql)?.execute(parameters)? > 0)
}
