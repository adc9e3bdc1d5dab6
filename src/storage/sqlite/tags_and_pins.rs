//! Tags and pins.

use rusqlite::{OptionalExtension, Row};

use super::edit::WriteTransaction;
use super::journal::JournalEvent;
use super::manual_links::changed;
use super::read::SqliteSnapshot;
use super::rows::{ArtifactId, ArtifactRow, Milliseconds};
use super::{Result, StorageError};
use crate::digest::CoreHash;
use crate::storage::annotations::tag_defect;
use crate::storage::interface::{Pin, Tag};

impl WriteTransaction<'_> {
    /// Tags an artifact; returns false if it already has the tag. The tag is removed from any other artifact.
    ///
    /// # Errors
    /// Returns [`Invalid`](crate::storage::ErrorKind::Invalid) if the tag is not valid
    /// ([`is_tag`](crate::storage::is_tag)), [`Gone`](crate::storage::ErrorKind::Gone) if the artifact was removed, and
    /// an error if the database cannot be written.
    pub(crate) fn tag(&mut self, core: CoreHash, name: &str) -> Result<bool> {
        if let Some(defect) = tag_defect(name) {
            return Err(StorageError::invalid(defect));
        }
        let (id, at) = (self.number(core)?, self.journal.at().timestamp_millis());
        self.recorded(&JournalEvent::Tag { core, name }, |connection| {
            let sql = "INSERT INTO tag (name, artifact, at) VALUES (?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET artifact = excluded.artifact, at = excluded.at
                        WHERE artifact <> excluded.artifact";
            changed(connection, sql, (name, id, at))
        })
    }

    /// Removes a tag; returns false if no artifact has it.
    ///
    /// # Errors
    /// Returns an error if a database operation fails.
    pub(crate) fn untag(&mut self, name: &str) -> Result<bool> {
        let Some(artifact) = self.snapshot.tagged(name)? else { return Ok(false) };
        self.recorded(&JournalEvent::Untag { core: artifact.core, name }, |connection| {
            changed(connection, "DELETE FROM tag WHERE name = ?1", [name])
        })
    }

    /// Protects an artifact from removal; returns false if it is already pinned with this note.
    pub(crate) fn pin(&mut self, core: CoreHash, note: Option<&str>) -> Result<bool> {
        let (id, at) = (self.number(core)?, self.journal.at().timestamp_millis());
        self.recorded(&JournalEvent::Pin { core, note }, |connection| {
            let sql = "INSERT INTO pin (artifact, note, at) VALUES (?1, ?2, ?3)
                       ON CONFLICT DO UPDATE SET note = excluded.note, at = excluded.at
                        WHERE note IS NOT excluded.note";
            changed(connection, sql, (id, note, at))
        })
    }

    /// Removes the protection of [`WriteTransaction::pin`]; returns false if there was none.
    pub(crate) fn unpin(&mut self, core: CoreHash) -> Result<bool> {
        let id = self.number(core)?;
        self.recorded(&JournalEvent::Unpin { core }, |connection| {
            changed(connection, "DELETE FROM pin WHERE artifact = ?1", [id])
        })
    }
}

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
