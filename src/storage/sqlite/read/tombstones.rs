//! Queries of tombstones.

use super::SqliteSnapshot;
use crate::digest::{Digest, DigestPrefix};
use crate::storage::sqlite::rows::limit_of;
use crate::storage::sqlite::tombstones::{columns, for_digests, tombstone};
use crate::storage::{Result, StorageError, Tombstone};

impl SqliteSnapshot<'_> {
    /// Returns up to 100 tombstones of core hashes and capture hashes that begin with `prefix`, the latest first.
    pub(crate) fn tombstones(&self, prefix: &DigestPrefix) -> Result<Vec<Tombstone>> {
        let (low, high) = prefix.range();
        let sql = format!(
            "SELECT {} FROM tombstone t JOIN journal j ON j.seq = t.entry
              WHERE t.digest BETWEEN ?1 AND ?2 ORDER BY t.entry DESC, t.digest LIMIT 100",
            columns()
        );
        self.rows(&sql, (low.as_bytes(), high.as_bytes()), tombstone)
    }

    /// Returns up to `limit` tombstones of artifacts, or of those of one kind, from the journal entries after `after`, in the
    /// order in which they were removed. Artifacts that are in the vault again have none.
    pub(crate) fn removed_artifacts(
        &self,
        kind: Option<&str>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Tombstone>> {
        let sql = format!(
            "SELECT {} FROM tombstone t JOIN journal j ON j.seq = t.entry
              WHERE t.entry > ?2 AND (?1 IS NULL OR j.entry ->> 'kind' = ?1)
                AND 'sha256:' || lower(hex(t.digest)) = j.entry ->> 'core'
                AND NOT EXISTS (SELECT 1 FROM artifact a
                                 WHERE substr(a.core, 1, 8) = substr(t.digest, 1, 8) AND a.core = t.digest)
              ORDER BY t.entry, t.digest LIMIT ?3",
            columns()
        );
        self.rows(&sql, (kind, after, limit_of(limit)), tombstone)
    }

    /// Returns, for each list of digests, their tombstones, one for each artifact that is not stored, by core hash.
    pub(crate) fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        let found = digests.iter().map(|digests| for_digests(self.connection(), digests));
        found.collect::<rusqlite::Result<_>>().map_err(|error| StorageError::from_sqlite(self.path(), error))
    }
}
