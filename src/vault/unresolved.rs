//! Lists references to missing artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::links::LinkEnd;
use super::{Vault, limit_of};
use crate::artifact::ArtifactLocation;
use crate::digest::{CoreHash, Digest};
use crate::storage::{ArtifactRecord, Snapshot, StorageError, UnresolvedReference, UnresolvedTarget};

/// How many missing artifacts are read from the vault at a time, at least.
const BATCH: usize = 256;

/// A request for references to missing artifacts. Everything given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UnresolvedRequest {
    /// The id of a kind: only references of artifacts of this kind.
    pub kind: Option<String>,
    /// Only references in this role, such as `reference`, or of this relation, such as `derived-from`.
    pub role: Option<String>,
    /// Whether to include references to data that no format defines, such as schemas.
    pub all: bool,
    /// Maximum number of missing artifacts; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<String>,
}

/// References to missing artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnresolvedAnswer {
    /// What is missing: hashes in order, then names.
    pub missing: Vec<MissingArtifact>,
    /// Number of references to data that no format defines that were omitted from this page.
    pub left_out: u64,
    /// The end of this page, as long as there are more: the last hash or name that was examined.
    pub next: Option<String>,
}

/// A missing artifact, with the references to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingArtifact {
    /// Its hash or name.
    #[serde(flatten)]
    pub target: LinkEnd,
    /// The references, by artifact and place.
    pub referrers: Vec<MissingReference>,
}

/// A reference to a missing artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingReference {
    /// The artifact that refers to the missing one.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The relation of the reference.
    pub relation: String,
    /// The role; `None` for names.
    pub role: Option<String>,
    /// The location of the reference; empty for names.
    pub place: String,
}

impl UnresolvedRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<UnresolvedAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let (mut answer, mut after) = (UnresolvedAnswer::default(), self.after.as_deref().map(target_at));
        let most = limit_of(self.limit);
        // One more than is asked for, to know whether there are more; and many at a time, because all may be omitted.
        let limit = most.saturating_add(1).max(BATCH);
        loop {
            let references = snapshot.unresolved(after.as_ref(), limit)?;
            let mut artifacts = artifacts_of(&*snapshot, &references)?.into_iter();
            let mut targets = 0;
            for group in references.chunk_by(|one, other| one.missing == other.missing) {
                targets += 1;
                let Some(first) = group.first() else { continue };
                let (referrers, left_out) = self.referrers(group, artifacts.by_ref().take(group.len()));
                if !referrers.is_empty() {
                    if answer.missing.len() == most {
                        answer.next = after.map(end_of_page);
                        return Ok(answer);
                    }
                    let target = LinkEnd::missing(&first.missing);
                    answer.missing.push(MissingArtifact { target, referrers });
                }
                answer.left_out += left_out;
                after = Some(first.missing.clone());
            }
            if targets < limit {
                return Ok(answer);
            }
        }
    }

    /// Returns those of `references` to one target that are requested, by artifact and place, and the number of those
    /// that are omitted because no format defines their data.
    fn referrers(
        &self,
        references: &[UnresolvedReference],
        artifacts: impl Iterator<Item = ArtifactRecord>,
    ) -> (Vec<MissingReference>, u64) {
        let (mut referrers, mut left_out) = (Vec::new(), 0);
        for (reference, artifact) in references.iter().zip(artifacts) {
            let has_role = |role| reference.role.as_ref() == Some(role) || reference.relation == *role;
            let is_requested = self.role.as_ref().is_none_or(has_role)
                && self.kind.as_ref().is_none_or(|kind| artifact.kind == *kind);
            if !is_requested {
                continue;
            }
            // A vault has data that no format defines only if it was added on request.
            if !self.all && reference.place.as_ref().is_some_and(ArtifactLocation::is_of_no_kind) {
                left_out += 1;
                continue;
            }
            referrers.push(MissingReference {
                core_hash: artifact.core,
                kind: artifact.kind,
                relation: reference.relation.clone(),
                role: reference.role.clone(),
                place: reference.place.as_ref().map(ToString::to_string).unwrap_or_default(),
            });
        }
        referrers.sort_by(|one, other| (one.core_hash, &one.place).cmp(&(other.core_hash, &other.place)));
        (referrers, left_out)
    }
}

/// Returns the referring artifact of each reference.
fn artifacts_of(
    snapshot: &dyn Snapshot,
    references: &[UnresolvedReference],
) -> Result<Vec<ArtifactRecord>, StorageError> {
    let cores: Vec<CoreHash> = references.iter().map(|reference| reference.artifact).collect();
    snapshot.expect_artifacts(&cores)
}

/// Returns the target at which a page ends.
fn target_at(end: &str) -> UnresolvedTarget {
    Digest::parse_prefixed(end)
        .map_or_else(|| UnresolvedTarget::Name(end.to_owned()), UnresolvedTarget::Digest)
}

/// Returns the end of a page, as [`target_at`] reads it.
fn end_of_page(last: UnresolvedTarget) -> String {
    match last {
        UnresolvedTarget::Digest(digest) => digest.to_string(),
        UnresolvedTarget::Name(name) => name,
    }
}
