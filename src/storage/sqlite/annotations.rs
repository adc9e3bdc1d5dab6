//! Annotations of artifacts: tags, pins, notes and labels.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::storage::interface::{Label, LabelKey, LabelValue, Note, Pin, Tag};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::rows::{ArtifactId, ArtifactRow, Milliseconds, limit_of};

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

impl SqliteSnapshot<'_> {
    /// Returns the note of an artifact, if it has one.
    pub(crate) fn note_of(&self, artifact: ArtifactId) -> Result<Option<Note>> {
        let note = |row: &Row<'_>| Ok(Note { text: row.get(0)?, at: row.get::<_, Milliseconds>(1)?.0 });
        Ok(self.rows("SELECT text, at FROM note WHERE artifact = ?1", [artifact.0], note)?.pop())
    }
}

/// Sets a label of an artifact, replacing the value of its key.
pub(super) fn put_label(
    connection: &Connection,
    artifact: i64,
    (key, value): (&str, &str),
    at: i64,
) -> rusqlite::Result<()> {
    delete_label(connection, artifact, key)?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO label_value (key, value) VALUES (?1, ?2)")?
        .execute((key, value))?;
    connection
        .prepare_cached(
            "INSERT INTO label (artifact, value, at)
             SELECT ?1, id, ?4 FROM label_value WHERE key = ?2 AND value = ?3",
        )?
        .execute((artifact, key, value, at))
        .map(drop)
}

/// Deletes the label of an artifact with this key, if it has one, and its value if no other artifact has it.
pub(super) fn delete_label(connection: &Connection, artifact: i64, key: &str) -> rusqlite::Result<()> {
    // In a damaged vault, there may be several.
    let values: Vec<i64> = connection
        .prepare_cached(
            "SELECT l.value FROM label l CROSS JOIN label_value v ON v.id = l.value
              WHERE l.artifact = ?1 AND v.key = ?2",
        )?
        .query_map((artifact, key), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for value in values {
        connection
            .prepare_cached("DELETE FROM label WHERE artifact = ?1 AND value = ?2")?
            .execute((artifact, value))?;
        connection
            .prepare_cached(
                "DELETE FROM label_value
                  WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM label l WHERE l.value = ?1)",
            )?
            .execute([value])?;
    }
    Ok(())
}

impl SqliteSnapshot<'_> {
    /// Returns the labels of an artifact, by key.
    pub(crate) fn labels_of(&self, artifact: ArtifactId) -> Result<Vec<Label>> {
        let sql = "SELECT v.key, v.value, l.at FROM label l CROSS JOIN label_value v ON v.id = l.value
                    WHERE l.artifact = ?1 ORDER BY v.key";
        self.rows(sql, [artifact.0], |row| {
            Ok(Label { key: row.get(0)?, value: row.get(1)?, at: row.get::<_, Milliseconds>(2)?.0 })
        })
    }

    /// Returns the keys of the labels that artifacts have, sorted.
    pub(crate) fn label_keys(&self) -> Result<Vec<LabelKey>> {
        let sql = "SELECT v.key, sum(l.artifacts), count(*) FROM label_value v
                     JOIN (SELECT value, count(*) AS artifacts FROM label GROUP BY value) l ON l.value = v.id
                    GROUP BY v.key ORDER BY v.key";
        self.rows(sql, [], |row| {
            Ok(LabelKey { key: row.get(0)?, artifacts: row.get(1)?, values: row.get(2)? })
        })
    }

    /// Returns up to `limit` values of a key that begin with `text`, sorted.
    pub(crate) fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        let sql = "WITH chosen (id, value) AS MATERIALIZED (
                     SELECT id, value FROM label_value WHERE key = ?1 AND value >= ?2 ORDER BY value LIMIT ?3)
                   SELECT v.value, count(DISTINCT l.artifact), count(*), sum(c.size) FROM chosen v
                    CROSS JOIN label l ON l.value = v.id CROSS JOIN capture c ON c.artifact = l.artifact
                    GROUP BY v.id ORDER BY v.value";
        let mut values = self.rows(sql, (key, text, limit_of(limit)), |row| {
            Ok(LabelValue {
                value: row.get(0)?,
                artifacts: row.get(1)?,
                captures: row.get(2)?,
                bytes: row.get(3)?,
            })
        })?;
        values.retain(|value| value.value.starts_with(text));
        Ok(values)
    }
}
