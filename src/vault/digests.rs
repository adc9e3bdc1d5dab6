//! Resolves the first digits of a digest that artifacts mention.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::handle::Vault;
use super::query;
use super::resolve::LookupError;
use super::tombstones::RemovedArtifact;
use crate::digest::{Digest, DigestPrefix, PrefixResolution};
use crate::formats;
use crate::storage::{StorageError, Tombstone};

/// A request for the mentioned digests that begin with given digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestsRequest {
    /// The first digits, or all.
    pub prefix: DigestPrefix,
    /// The group of the role in which they are mentioned, such as `prompt`; any if there is none.
    #[serde(default)]
    pub group: Option<String>,
}

/// Mentioned digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DigestsAnswer {
    /// The digests, sorted; at most 20. A complete digest is returned whether it is mentioned or not.
    pub digests: Vec<Digest>,
    /// The last removal of an artifact or a capture whose hash begins with the digits; `None` if something in the vault has
    /// such a hash.
    pub removed: Option<RemovedHash>,
}

/// The hash of an artifact or a capture that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedHash {
    /// The core hash or the capture hash.
    pub digest: Digest,
    /// The removal.
    pub removed: RemovedArtifact,
}

impl Operation for DigestsRequest {
    type Answer = DigestsAnswer;
    type Error = StorageError;

    const NAME: &'static str = "digests";
    const SUMMARY: &'static str = "Resolve the first digits of a digest that artifacts mention";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<DigestsAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let digests = match query::resolve_mentioned(&*snapshot, &self.prefix, self.group.as_deref())? {
            PrefixResolution::None => Vec::new(),
            PrefixResolution::One(digest) => vec![digest],
            PrefixResolution::Ambiguous(digests) => digests,
        };
        let removed = snapshot.resolve(&self.prefix, 1)?.tombstones.into_iter().next();
        Ok(DigestsAnswer { digests, removed: removed.map(RemovedHash::from) })
    }
}

impl DigestsRequest {
    /// Returns the only mentioned digest that begins with the digits.
    ///
    /// # Errors
    /// Returns [`LookupError::NotMentioned`] if there is none, or [`LookupError::Removed`] if an artifact or a capture with
    /// such a hash was removed, [`LookupError::AmbiguousMention`] if there are several, and [`LookupError::Store`] if the
    /// vault cannot be read.
    pub fn only(&self, vault: &Vault) -> Result<Digest, LookupError> {
        let snapshot = vault.snapshot()?;
        match query::resolve_mentioned(&*snapshot, &self.prefix, self.group.as_deref())? {
            PrefixResolution::One(digest) => Ok(digest),
            PrefixResolution::Ambiguous(candidates) => {
                Err(LookupError::AmbiguousMention { prefix: self.prefix, candidates })
            }
            PrefixResolution::None => Err(match snapshot.resolve(&self.prefix, 1)?.tombstones.pop() {
                Some(tombstone) => LookupError::Removed(Box::new(tombstone)),
                None => LookupError::NotMentioned { prefix: self.prefix, group: self.group.clone() },
            }),
        }
    }
}

impl From<Tombstone> for RemovedHash {
    fn from(tombstone: Tombstone) -> Self {
        Self { digest: tombstone.digest, removed: tombstone.into() }
    }
}

/// Formats the removal as a sentence.
impl fmt::Display for RemovedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RemovedArtifact { core_hash, kind, removed_at, actor, reason, size, seq } = self.removed.clone();
        let tombstone = Tombstone {
            digest: self.digest,
            entry: seq,
            at: removed_at.0,
            core: core_hash,
            kind,
            actor,
            reason,
            left: 0,
            size,
        };
        f.write_str(&tombstone.describe(formats::bare_noun(&tombstone.kind)))
    }
}
