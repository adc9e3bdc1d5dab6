//! Records of removals.

use postgres::Row;

use crate::digest::Digest;
use crate::storage::Tombstone;
use crate::storage::postgres::columns::{core, count, digest, limit as limit_of, optional_text, text, time};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::view::PostgresSnapshot;

/// The columns of a tombstone `t`, in the order that [`tombstone`] reads.
pub(in crate::storage::postgres) const TOMBSTONE: &str =
    "t.digest, t.entry, t.at, t.core, t.kind, t.actor, t.reason, t.remaining, t.size";

pub(in crate::storage::postgres) fn tombstone(row: &Row) -> PostgresResult<Tombstone> {
    Ok(Tombstone {
        digest: digest(row, 0)?,
        entry: count(row, 1)?,
        at: time(row, 2)?,
        core: core(row, 3)?,
        kind: text(row, 4)?,
        actor: optional_text(row, 5)?,
        reason: optional_text(row, 6)?,
        left: count(row, 7)?,
        size: count(row, 8)?,
    })
}

impl PostgresSnapshot<'_> {
    pub(super) fn tombstones(
        &self,
        kind: Option<&str>,
        after: u64,
        limit: usize,
    ) -> PostgresResult<Vec<Tombstone>> {
        let sql = format!(
            "SELECT {TOMBSTONE} FROM tombstone t
              WHERE t.digest = t.core AND ($1::text IS NULL OR t.kind = $1) AND t.entry > $2
                AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.core = t.core)
              ORDER BY t.entry LIMIT $3"
        );
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let rows = self.session.rows(&sql, &[&kind, &after, &limit_of(limit)])?;
        rows.iter().map(tombstone).collect()
    }

    /// Returns, for each list of sorted digests, their tombstones, one for each artifact that is not stored, by core hash: that
    /// of its core hash if it is among the digests.
    pub(in crate::storage::postgres) fn tombstones_with(
        &self,
        digests: &[&[Digest]],
    ) -> PostgresResult<Vec<Vec<Tombstone>>> {
        let sql = format!(
            "SELECT {TOMBSTONE} FROM tombstone t
              WHERE t.digest = ANY($1) AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.core = t.core)
              ORDER BY t.core, t.digest <> t.core, t.digest, t.entry"
        );
        let rows = self.session.rows(&sql, &[&digests.concat()])?;
        let found = rows.iter().map(tombstone).collect::<PostgresResult<Vec<_>>>()?;
        let of = |digests: &&[Digest]| {
            let mut own: Vec<Tombstone> =
                found.iter().filter(|known| digests.binary_search(&known.digest).is_ok()).cloned().collect();
            own.dedup_by_key(|tombstone| tombstone.core);
            own
        };
        Ok(digests.iter().map(of).collect())
    }
}
