//! Looking things up. Whatever returns several rows returns them in an order that does not depend on how they got there.

use std::path::Path;

use chrono::{DateTime, Utc};
use rusqlite::{Params, Row};

use super::error::PayloadDefect;
use super::payload;
use super::pool::Connection;
use super::rows::{
    ArtifactId, ArtifactRow, CaptureRow, DigestEdge, MentionRow, Milliseconds, NameEdge, Reference,
    RoleCount, StatedEdge, StoredMember,
};
use super::write::seal;
use super::{Result, StoreError};
use crate::artifact::is_capture_of;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};

/// The relation of an artifact to those that are stored with it because they are part of it.
const CONTAINS: &str = "contains";

/// The vault at one moment.
pub struct Snapshot<'s> {
    connection: Connection,
    path: &'s Path,
}

impl<'s> Snapshot<'s> {
    pub(super) fn begin(connection: Connection, path: &'s Path) -> Result<Self> {
        let snapshot = Self { connection, path };
        snapshot
            .connection
            .execute_batch("BEGIN DEFERRED; SELECT 1 FROM kind LIMIT 1")
            .map_err(|error| snapshot.failed(error))?;
        Ok(snapshot)
    }

    /// The artifact with this core hash.
    ///
    /// # Errors
    /// What the database says.
    pub fn artifact(&self, core: CoreHash) -> Result<Option<ArtifactRow>> {
        let sql = "SELECT a.id, a.core, k.name, a.added_at
                     FROM artifact a JOIN kind k ON k.id = a.kind WHERE a.core = ?1";
        Ok(self.rows(sql, [core.0.as_bytes()], artifact_row)?.pop())
    }

    /// The artifact with this number, which was read from the same snapshot.
    ///
    /// # Errors
    /// What the database says; also if there is no such artifact, for then the vault is damaged.
    pub fn artifact_by_id(&self, id: ArtifactId) -> Result<ArtifactRow> {
        let sql = "SELECT a.id, a.core, k.name, a.added_at
                     FROM artifact a JOIN kind k ON k.id = a.kind WHERE a.id = ?1";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([id.0], artifact_row))
            .map_err(|error| self.failed(error))
    }

    /// The artifacts whose core hash begins with `prefix`, in the order of their hashes; no more than `limit`.
    ///
    /// # Errors
    /// What the database says.
    pub fn artifacts_beginning(&self, prefix: &DigestPrefix, limit: u32) -> Result<Vec<CoreHash>> {
        let (low, high) = prefix.range();
        let sql = "SELECT core FROM artifact WHERE core BETWEEN ?1 AND ?2 ORDER BY core LIMIT ?3";
        self.rows(sql, (low.as_bytes(), high.as_bytes(), limit), |row| row.get(0))
    }

    /// The captures whose hash begins with `prefix`, in the order of their hashes; no more than `limit`.
    ///
    /// # Errors
    /// What the database says.
    pub fn captures_beginning(&self, prefix: &DigestPrefix, limit: u32) -> Result<Vec<CaptureHash>> {
        let (low, high) = prefix.range();
        let sql = "SELECT digest FROM capture WHERE digest BETWEEN ?1 AND ?2 ORDER BY digest LIMIT ?3";
        self.rows(sql, (low.as_bytes(), high.as_bytes(), limit), |row| row.get(0))
    }

    /// The capture with this hash.
    ///
    /// # Errors
    /// What the database says.
    pub fn capture(&self, capture: CaptureHash) -> Result<Option<CaptureRow>> {
        let sql = "SELECT digest, artifact, size, added_at, warnings FROM capture WHERE digest = ?1";
        Ok(self.rows(sql, [capture.0.as_bytes()], capture_row)?.pop())
    }

    /// The captures of an artifact in the order in which they were added.
    ///
    /// # Errors
    /// What the database says.
    pub fn captures(&self, artifact: ArtifactId) -> Result<Vec<CaptureRow>> {
        let sql =
            "SELECT digest, artifact, size, added_at, warnings FROM capture WHERE artifact = ?1 ORDER BY id";
        self.rows(sql, [artifact.0], capture_row)
    }

    /// The members of a capture, in the order of their names. Every byte is hashed again, and so is what binds the bytes
    /// to the capture and the capture to its artifact.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if these are not the bytes that were stored for `core`, and what the database says.
    pub fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<StoredMember>> {
        let sql = "SELECT m.name, b.digest, b.size, p.encoding, p.bytes, c.seal
                     FROM capture c JOIN member m ON m.capture = c.id JOIN blob b ON b.id = m.blob
                     LEFT JOIN payload p ON p.blob = b.id
                    WHERE c.digest = ?1 ORDER BY m.name";
        let expected_seal = seal(core, capture);
        let mut sealed = true;
        let stored: Vec<StoredPayload> = self.rows(sql, [capture.0.as_bytes()], |row| {
            sealed &= row.get::<_, Digest>(5)? == expected_seal;
            Ok(StoredPayload {
                name: row.get(0)?,
                blob: BlobHash(row.get(1)?),
                size: row.get(2)?,
                payload: row.get::<_, Option<i64>>(3)?.zip(row.get(4)?),
            })
        })?;
        let damaged = |defect| StoreError::Damaged { core, capture, defect: Box::new(defect) };
        if stored.is_empty() {
            return Err(damaged(PayloadDefect::NoMembers));
        }
        let blobs: Vec<_> = stored.iter().map(|payload| (payload.name.as_str(), payload.blob)).collect();
        if !sealed || !is_capture_of(capture, &blobs) {
            return Err(damaged(PayloadDefect::NotItsOwn));
        }
        stored.into_iter().map(|payload| payload.restore().map_err(damaged)).collect()
    }

    /// All artifacts, or those of one kind, in the order of their core hashes.
    ///
    /// # Errors
    /// What the database says.
    pub fn artifacts(&self, kind: Option<&str>) -> Result<Vec<ArtifactRow>> {
        let sql = "SELECT a.id, a.core, k.name, a.added_at
                     FROM artifact a JOIN kind k ON k.id = a.kind
                    WHERE ?1 IS NULL OR k.name = ?1 ORDER BY a.core";
        self.rows(sql, [kind], artifact_row)
    }

    /// Who mentions `digest`, in any role or in those of one group, in the order of artifacts, roles and places.
    ///
    /// # Errors
    /// What the database says.
    pub fn mentioning(&self, digest: Digest, group: Option<&str>) -> Result<Vec<MentionRow>> {
        let sql = "SELECT m.artifact, r.name, r.unit, m.place, m.digest
                     FROM mention_key k
                     JOIN mention m ON m.artifact = k.artifact AND m.role = k.role AND m.place = k.place
                     JOIN role r ON r.id = m.role
                    WHERE k.key = ?1 AND m.digest = ?2 AND (?3 IS NULL OR r.role_group = ?3)
                    ORDER BY m.artifact, r.name, m.place";
        self.rows(sql, (digest.key(), digest.as_bytes(), group), mention_row)
    }

    /// The mentioned digests that begin with `prefix`, in any role or in those of one group, in their order; no more than
    /// `limit`.
    ///
    /// # Errors
    /// What the database says.
    pub fn mentioned_beginning(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Digest>> {
        // A prefix of six digits or more leaves the sign of the key alone, so the keys are in order as well.
        let (low, high) = prefix.range();
        let sql = "SELECT DISTINCT m.digest
                     FROM mention_key k
                     JOIN mention m ON m.artifact = k.artifact AND m.role = k.role AND m.place = k.place
                     JOIN role r ON r.id = m.role
                    WHERE k.key BETWEEN ?1 AND ?2 AND m.digest BETWEEN ?3 AND ?4
                      AND (?5 IS NULL OR r.role_group = ?5)
                    ORDER BY m.digest LIMIT ?6";
        self.rows(sql, (low.key(), high.key(), low.as_bytes(), high.as_bytes(), group, limit), |row| {
            row.get(0)
        })
    }

    /// What an artifact mentions in the roles of one group, in the order of places.
    ///
    /// # Errors
    /// What the database says.
    pub fn mentions_of(&self, artifact: ArtifactId, group: &str) -> Result<Vec<MentionRow>> {
        let sql = "SELECT m.artifact, r.name, r.unit, m.place, m.digest
                     FROM mention m JOIN role r ON r.id = m.role
                    WHERE m.artifact = ?1 AND r.role_group = ?2 ORDER BY m.place, r.name, m.digest";
        self.rows(sql, (artifact.0, group), mention_row)
    }

    /// How often an artifact mentions digests, by role.
    ///
    /// # Errors
    /// What the database says.
    pub fn role_counts(&self, artifact: ArtifactId) -> Result<Vec<RoleCount>> {
        let sql = "SELECT r.name, count(*) FROM mention m JOIN role r ON r.id = m.role
                    WHERE m.artifact = ?1 GROUP BY r.name ORDER BY r.name";
        self.rows(sql, [artifact.0], |row| Ok(RoleCount { role: row.get(0)?, count: row.get(1)? }))
    }

    /// The artifacts that have this attribute.
    ///
    /// # Errors
    /// What the database says.
    pub fn with_attribute(&self, name: &str, value: &str) -> Result<Vec<ArtifactId>> {
        let sql = "SELECT artifact FROM attribute WHERE name = ?1 AND value = ?2 ORDER BY artifact";
        self.rows(sql, (name, value), |row| row.get(0))
    }

    /// The attributes of an artifact, sorted by name and value.
    ///
    /// # Errors
    /// What the database says.
    pub fn attributes(&self, artifact: ArtifactId) -> Result<Vec<(String, String)>> {
        let sql = "SELECT name, value FROM attribute WHERE artifact = ?1 ORDER BY name, value";
        self.rows(sql, [artifact.0], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The mentions by which an artifact relates to others. Those that nothing in the vault answers to are among them if
    /// their relation dangles.
    ///
    /// # Errors
    /// What the database says.
    pub fn digest_edges_from(&self, artifact: ArtifactId) -> Result<Vec<DigestEdge>> {
        let sql = "SELECT m.artifact, r.name, r.unit, m.place, m.digest, r.relation, k.stated_by, t.id
                     FROM mention m JOIN role r ON r.id = m.role
                     LEFT JOIN artifact t ON t.core = m.digest LEFT JOIN kind k ON k.id = t.kind
                    WHERE m.artifact = ?1 AND r.relation IS NOT NULL
                      AND (t.id IS NULL AND r.dangles OR t.id <> m.artifact)
                    ORDER BY r.relation, m.digest, m.place";
        self.rows(sql, [artifact.0], digest_edge)
    }

    /// The mentions by which others relate to the artifact.
    ///
    /// # Errors
    /// What the database says.
    pub fn digest_edges_to(&self, artifact: &ArtifactRow) -> Result<Vec<DigestEdge>> {
        let sql = "SELECT m.artifact, r.name, r.unit, m.place, m.digest, r.relation, k.stated_by, t.id
                     FROM mention_key y
                     JOIN mention m ON m.artifact = y.artifact AND m.role = y.role AND m.place = y.place
                     JOIN role r ON r.id = m.role
                     JOIN artifact t ON t.core = m.digest JOIN kind k ON k.id = t.kind
                    WHERE y.key = ?1 AND m.digest = ?2 AND r.relation IS NOT NULL AND m.artifact <> t.id
                    ORDER BY r.relation, m.artifact, m.place";
        self.rows(sql, (artifact.core.0.key(), artifact.core.0.as_bytes()), digest_edge)
    }

    /// The artifacts that contain an artifact, such as the packs of a session.
    ///
    /// # Errors
    /// What the database says.
    pub fn containers_of(&self, artifact: ArtifactId) -> Result<Vec<ArtifactId>> {
        let artifact = self.artifact_by_id(artifact)?;
        let edges = self.digest_edges_to(&artifact)?.into_iter();
        Ok(edges.filter(|edge| edge.relation == CONTAINS).map(|edge| edge.mention.artifact).collect())
    }

    /// The names by which an artifact refers to others, each with every artifact that has it. Those that nothing in the
    /// vault has are among them if their relation dangles.
    ///
    /// # Errors
    /// What the database says.
    pub fn name_edges_from(&self, artifact: ArtifactId) -> Result<Vec<NameEdge>> {
        let sql = "SELECT n.artifact, n.relation, n.handle, i.artifact
                     FROM name_mention n
                     LEFT JOIN identity i ON i.handle = n.handle AND i.artifact <> n.artifact
                    WHERE n.artifact = ?1 AND (i.artifact IS NOT NULL OR n.dangles)
                    ORDER BY n.relation, n.handle, i.artifact";
        self.rows(sql, [artifact.0], name_edge)
    }

    /// The names by which others refer to an artifact.
    ///
    /// # Errors
    /// What the database says.
    pub fn name_edges_to(&self, artifact: ArtifactId) -> Result<Vec<NameEdge>> {
        let sql = "SELECT n.artifact, n.relation, n.handle, i.artifact
                     FROM identity i JOIN name_mention n ON n.handle = i.handle AND n.artifact <> i.artifact
                    WHERE i.artifact = ?1
                    ORDER BY n.relation, n.handle, n.artifact";
        self.rows(sql, [artifact.0], name_edge)
    }

    /// The links that people stated from or to an artifact.
    ///
    /// # Errors
    /// What the database says.
    pub fn stated_edges(&self, artifact: ArtifactId) -> Result<Vec<StatedEdge>> {
        let sql = "SELECT source, relation, target, note FROM link WHERE source = ?1 OR target = ?1
                    ORDER BY relation, source, target";
        self.rows(sql, [artifact.0], |row| {
            Ok(StatedEdge {
                source: row.get(0)?,
                relation: row.get(1)?,
                target: row.get(2)?,
                note: row.get(3)?,
            })
        })
    }

    /// Digests that artifacts refer to and that are no core hash in the vault, in their order.
    ///
    /// # Errors
    /// What the database says.
    pub fn missing_digests(&self) -> Result<Vec<Reference<Digest>>> {
        let sql = "SELECT m.digest, m.artifact, r.relation, m.place
                     FROM artifact a CROSS JOIN role r CROSS JOIN mention m ON m.artifact = a.id AND m.role = r.id
                    WHERE r.dangles AND NOT EXISTS (SELECT 1 FROM artifact t WHERE t.core = m.digest)
                    ORDER BY m.digest, m.artifact, m.place";
        self.rows(sql, [], |row| {
            Ok(Reference {
                missing: row.get(0)?,
                artifact: row.get(1)?,
                relation: row.get(2)?,
                place: Some(row.get(3)?),
            })
        })
    }

    /// Names that artifacts refer to and that no other artifact in the vault has, in their order.
    ///
    /// # Errors
    /// What the database says.
    pub fn missing_names(&self) -> Result<Vec<Reference<String>>> {
        let sql = "SELECT n.handle, n.artifact, n.relation FROM name_mention n
                    WHERE n.dangles AND NOT EXISTS
                      (SELECT 1 FROM identity i WHERE i.handle = n.handle AND i.artifact <> n.artifact)
                    ORDER BY n.handle, n.artifact";
        self.rows(sql, [], |row| {
            Ok(Reference { missing: row.get(0)?, artifact: row.get(1)?, relation: row.get(2)?, place: None })
        })
    }

    /// Digests that several artifacts mention at place 0 in the roles of one group, in their order.
    ///
    /// # Errors
    /// What the database says.
    pub fn shared_beginnings(&self, group: &str) -> Result<Vec<Digest>> {
        let sql = "SELECT m.digest FROM role r
                     CROSS JOIN artifact a ON a.kind = r.kind AND r.role_group = ?1
                     CROSS JOIN mention m ON m.artifact = a.id AND m.role = r.id AND m.place = 0
                    GROUP BY m.digest HAVING count(DISTINCT m.artifact) > 1 ORDER BY m.digest";
        self.rows(sql, [group], |row| row.get(0))
    }

    fn rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map(parameters, read)?.collect())
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::of(self.path, error)
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // There is nothing to roll back, and nobody to tell if the connection is gone.
        let _ = self.connection.execute_batch("ROLLBACK");
    }
}

struct StoredPayload {
    name: String,
    blob: BlobHash,
    size: usize,
    payload: Option<(i64, Vec<u8>)>,
}

impl StoredPayload {
    fn restore(self) -> std::result::Result<StoredMember, PayloadDefect> {
        let (encoding, stored) = self.payload.ok_or(PayloadDefect::Missing { blob: self.blob })?;
        let bytes = payload::restore(encoding, stored, self.size, self.blob)?;
        Ok(StoredMember { name: self.name, bytes })
    }
}

fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<DateTime<Utc>> {
    row.get::<_, Milliseconds>(index).map(|time| time.0)
}

fn artifact_row(row: &Row<'_>) -> rusqlite::Result<ArtifactRow> {
    Ok(ArtifactRow { id: row.get(0)?, core: row.get(1)?, kind: row.get(2)?, added_at: time(row, 3)? })
}

fn capture_row(row: &Row<'_>) -> rusqlite::Result<CaptureRow> {
    let warnings: String = row.get(4)?;
    let warnings = serde_json::from_str(&warnings).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(4, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(CaptureRow {
        capture: row.get(0)?,
        artifact: row.get(1)?,
        size: row.get(2)?,
        added_at: time(row, 3)?,
        warnings,
    })
}

fn mention_row(row: &Row<'_>) -> rusqlite::Result<MentionRow> {
    Ok(MentionRow {
        artifact: row.get(0)?,
        role: row.get(1)?,
        unit: row.get(2)?,
        place: row.get(3)?,
        digest: row.get(4)?,
    })
}

fn digest_edge(row: &Row<'_>) -> rusqlite::Result<DigestEdge> {
    Ok(DigestEdge {
        mention: mention_row(row)?,
        relation: row.get(5)?,
        inverse: row.get(6)?,
        target: row.get(7)?,
    })
}

fn name_edge(row: &Row<'_>) -> rusqlite::Result<NameEdge> {
    Ok(NameEdge { artifact: row.get(0)?, relation: row.get(1)?, handle: row.get(2)?, target: row.get(3)? })
}
