//! Manual links.

use rusqlite::{Connection, OptionalExtension};

use super::edit::Edit;
use super::journal::Event;
use super::{Result, StorageError};
use crate::storage::StatedLink;
use crate::storage::annotations::link_defect;

impl Edit<'_> {
    /// Adds `link`; returns false if it already exists with this note.
    ///
    /// # Errors
    /// Returns [`Invalid`](crate::storage::ErrorKind::Invalid) if the relation is not valid ([`is_relation`]), both ends are the same
    /// artifact, or the note is longer than [`MAX_LINK_NOTE_BYTES`], [`Gone`](crate::storage::ErrorKind::Gone) if one of the ends was
    /// removed, and an error if the database cannot be written.
    pub(crate) fn state_link(&mut self, link: StatedLink<'_>, note: Option<&str>) -> Result<bool> {
        let StatedLink { source, relation, target } = link;
        if let Some(defect) = link_defect(source, relation, target, note) {
            return Err(StorageError::invalid(defect));
        }
        let key = (self.number(source)?, relation, self.number(target)?);
        let at = self.journal.at().timestamp_millis();
        let event = Event::Link { note, relation, source, target };
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
    pub(crate) fn take_back_link(&mut self, link: StatedLink<'_>) -> Result<bool> {
        let StatedLink { source, relation, target } = link;
        let key = (self.number(source)?, relation, self.number(target)?);
        let event = Event::Unlink { relation, source, target };
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
