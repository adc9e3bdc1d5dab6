//! What the vault has of the artifacts of a batch.

use std::collections::HashMap;

use crate::artifact::Signature;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::postgres::columns::{capture, core, count, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::names::NameCache;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::snapshot::captures::signature;
use crate::storage::postgres::snapshot::tombstones::{TOMBSTONE, tombstone};
use crate::storage::{CaptureTarget, Prepared, Tombstone};

/// An artifact that is stored, or will be.
pub(super) struct BatchArtifact {
    pub(super) id: i64,
    pub(super) kind: String,
    pub(super) added_at: i64,
    pub(super) seen_at: i64,
    pub(super) arrival: u64,
    pub(super) created_at: Option<i64>,
    pub(super) change: RowChange,
}

/// A capture that is stored, or will be.
pub(super) struct BatchCapture {
    pub(super) id: i64,
    pub(super) seen_at: i64,
    pub(super) signature: Option<Signature>,
    pub(super) change: RowChange,
}

/// How a row differs from what is in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowChange {
    None,
    New,
    Updated,
}

impl RowChange {
    /// Records that the row was changed.
    pub(super) fn update(&mut self) {
        if *self == Self::None {
            *self = Self::Updated;
        }
    }
}

/// The part of the vault that a batch concerns.
pub(super) struct BatchState {
    pub(super) artifacts: HashMap<CoreHash, BatchArtifact>,
    pub(super) captures: HashMap<(CoreHash, CaptureHash), BatchCapture>,
    /// Those of digests of the batch whose artifacts were not stored before it.
    tombstones: Vec<Tombstone>,
    last_artifact: i64,
    last_capture: i64,
}

impl BatchState {
    /// Reads what the vault has of a batch.
    pub(super) fn load(
        session: &DatabaseTransaction<'_>,
        names: &NameCache,
        batch: &[&Prepared],
    ) -> PostgresResult<Self> {
        let targets: Vec<CaptureTarget> = batch.iter().flat_map(|prepared| prepared.targets()).collect();
        let cores: Vec<CoreHash> = targets.iter().map(|target| target.artifact).collect();
        let mut state = Self::last_numbers(session)?;
        let sql = "SELECT core, id, kind, added_at, seen_at, arrival, created_at FROM artifact WHERE core = ANY($1)";
        for row in session.rows(sql, &[&cores])? {
            let stored = BatchArtifact {
                id: value(&row, 1)?,
                kind: names.kind(session, value(&row, 2)?)?,
                added_at: value(&row, 3)?,
                seen_at: value(&row, 4)?,
                arrival: count(&row, 5)?,
                created_at: value(&row, 6)?,
                change: RowChange::None,
            };
            state.artifacts.insert(core(&row, 0)?, stored);
        }
        let sql = "SELECT a.core, c.digest, c.id, c.seen_at, c.signature, c.key_id
                     FROM capture c JOIN artifact a ON a.id = c.artifact
                    WHERE (c.digest, a.core) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))";
        let captures: Vec<CaptureHash> = targets.iter().map(|target| target.capture).collect();
        for row in session.rows(sql, &[&captures, &cores])? {
            let (id, seen_at) = (value(&row, 2)?, value(&row, 3)?);
            let stored =
                BatchCapture { id, seen_at, signature: signature(&row, 4)?, change: RowChange::None };
            state.captures.insert((core(&row, 0)?, capture(&row, 1)?), stored);
        }
        let sql = format!(
            "SELECT {TOMBSTONE} FROM tombstone t
              WHERE t.digest = ANY($1) AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.core = t.core)
              ORDER BY t.digest, t.entry"
        );
        let digests: Vec<&Digest> = batch.iter().flat_map(|prepared| prepared.digests()).collect();
        let rows = session.rows(&sql, &[&digests])?;
        state.tombstones = rows.iter().map(tombstone).collect::<PostgresResult<_>>()?;
        Ok(state)
    }

    fn last_numbers(session: &DatabaseTransaction<'_>) -> PostgresResult<Self> {
        let sql =
            "SELECT coalesce((SELECT max(id) FROM artifact), 0), coalesce((SELECT max(id) FROM capture), 0)";
        let row = session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("a count has no row"))?;
        Ok(Self {
            artifacts: HashMap::new(),
            captures: HashMap::new(),
            tombstones: Vec::new(),
            last_artifact: value(&row, 0)?,
            last_capture: value(&row, 1)?,
        })
    }

    /// Returns the number of the next artifact.
    pub(super) fn next_artifact(&mut self) -> i64 {
        self.last_artifact += 1;
        self.last_artifact
    }

    /// Returns the number of the next capture.
    pub(super) fn next_capture(&mut self) -> i64 {
        self.last_capture += 1;
        self.last_capture
    }

    /// Returns the tombstones of these sorted digests, one for each artifact, by core hash: that of its core hash if it
    /// is among the digests. Those of artifacts that are stored are not included.
    pub(super) fn tombstones_with(&self, digests: &[Digest]) -> Vec<Tombstone> {
        let found = self.tombstones.iter().filter(|tombstone| {
            digests.binary_search(&tombstone.digest).is_ok() && !self.artifacts.contains_key(&tombstone.core)
        });
        let mut found: Vec<Tombstone> = found.cloned().collect();
        found.sort_unstable_by_key(|tombstone| {
            (tombstone.core, tombstone.digest != tombstone.core.0, tombstone.digest)
        });
        found.dedup_by_key(|tombstone| tombstone.core);
        found
    }

    /// Removes the tombstones of an artifact.
    pub(super) fn forget_removal(&mut self, core: CoreHash) {
        self.tombstones.retain(|tombstone| tombstone.core != core);
    }
}
