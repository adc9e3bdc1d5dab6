//! Lists removed artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Timestamp;
use super::{Vault, limit_of};
use crate::digest::CoreHash;
use crate::storage::{StorageError, Tombstone};

/// A request for the removed artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TombstonesRequest {
    /// The id of a kind: only artifacts of this kind.
    pub kind: Option<String>,
    /// Maximum number of artifacts; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<u64>,
}

/// The removed artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TombstonesAnswer {
    /// The artifacts in the order in which they were removed. Those that were added again are not listed.
    pub removed: Vec<RemovedArtifact>,
    /// The end of this page, as long as there are more.
    pub next: Option<u64>,
}

/// A removed artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedArtifact {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The time of the removal.
    pub removed_at: Timestamp,
    /// Who removed it, if that is recorded.
    pub actor: Option<String>,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// Number of bytes that were removed.
    pub size: u64,
    /// The number of the journal entry.
    pub seq: u64,
}

impl TombstonesRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<TombstonesAnswer, StorageError> {
        let limit = limit_of(self.limit);
        let (kind, after) = (self.kind.as_deref(), self.after.unwrap_or(0));
        let mut removed = vault.snapshot()?.tombstones(kind, after, limit.saturating_add(1))?;
        let is_cut = removed.len() > limit;
        removed.truncate(limit);
        let next = removed.last().filter(|_| is_cut).map(|last| last.entry);
        Ok(TombstonesAnswer { removed: removed.into_iter().map(RemovedArtifact::from).collect(), next })
    }
}

impl From<Tombstone> for RemovedArtifact {
    fn from(tombstone: Tombstone) -> Self {
        let Tombstone { core, kind, at, actor, reason, size, entry, .. } = tombstone;
        Self { core_hash: core, kind, removed_at: at.into(), actor, reason, size, seq: entry }
    }
}
