//! Preparation of a removal: payloads stored as deltas against removed ones are re-encoded beforehand, in batches, so
//! that other writers need not wait for all of them.

use std::collections::BTreeSet;

use rusqlite::OptionalExtension;

use super::Result;
use super::error::ReadFailure;
use super::rows::artifact_id;
use super::store::{BaseReplacements, WriteTransaction};
use crate::digest::CoreHash;

/// Maximum number of payloads that one transaction re-encodes.
const RELEASED: usize = 250;

impl WriteTransaction<'_> {
    /// Re-encodes payloads outside `leaving` that are stored as deltas against payloads that only `leaving` use. Does
    /// only as much as fits into a short transaction, and returns whether that was all. The content of the vault does
    /// not change.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::storage::ErrorKind::Damaged) if a payload cannot be read, and an error if the
    /// database cannot be read or written.
    pub(crate) fn release(&self, leaving: &[CoreHash], heirs: &mut BaseReplacements) -> Result<bool> {
        self.release_some(leaving, heirs).map_err(|failure| self.failed(failure))
    }

    fn release_some(
        &self,
        leaving: &[CoreHash],
        heirs: &mut BaseReplacements,
    ) -> std::result::Result<bool, ReadFailure> {
        let mut blobs = BTreeSet::new();
        for artifact in leaving {
            blobs.extend(self.own_blobs(*artifact)?);
        }
        let payloads = self.snapshot.payloads();
        let mut left = RELEASED;
        for base in &blobs {
            let dependents: Vec<i64> = self
                .connection()
                .prepare_cached("SELECT blob FROM payload WHERE base = ?1 ORDER BY blob")?
                .query_map([base], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let staying = dependents.into_iter().filter(|blob| !blobs.contains(blob));
            // One more than the remaining number shows that more are left.
            let mut some: Vec<i64> = staying.take(left + 1).collect();
            let is_all = some.len() <= left;
            some.truncate(left);
            left -= some.len();
            let heir = match heirs.0.get(base) {
                Some(heir) => self.whole(*heir)?,
                None => None,
            };
            if let Some(heir) = payloads.release(*base, heir, &some)? {
                heirs.0.insert(*base, heir);
            }
            if !is_all {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the payload `blob` if it still exists and is stored whole: other processes may have changed the vault
    /// between transactions.
    fn whole(&self, blob: i64) -> rusqlite::Result<Option<i64>> {
        self.connection()
            .prepare_cached("SELECT blob FROM payload WHERE blob = ?1 AND base IS NULL")?
            .query_row([blob], |row| row.get(0))
            .optional()
    }

    /// Returns the blobs of the captures of an artifact that no other artifact uses.
    fn own_blobs(&self, core: CoreHash) -> rusqlite::Result<Vec<i64>> {
        let Some(artifact) = artifact_id(self.connection(), core)? else { return Ok(Vec::new()) };
        self.connection()
            .prepare_cached(
                "SELECT b.blob FROM (SELECT blob FROM capture WHERE artifact = ?1
                                     UNION SELECT m.blob FROM capture c JOIN member m ON m.capture = c.id
                                            WHERE c.artifact = ?1) b
                  WHERE NOT EXISTS (SELECT 1 FROM capture c WHERE c.blob = b.blob AND c.artifact <> ?1)
                    AND NOT EXISTS (SELECT 1 FROM member m JOIN capture c ON c.id = m.capture
                                     WHERE m.blob = b.blob AND c.artifact <> ?1)",
            )?
            .query_map([artifact], |row| row.get(0))?
            .collect()
    }
}
