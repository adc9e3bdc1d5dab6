//! References to missing artifacts.

use super::links::LinkTarget;
use crate::artifact::ArtifactLocation;
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Result, Snapshot, UnresolvedReference, UnresolvedTarget};

/// A missing artifact, with all references to it.
#[derive(Clone, Debug)]
pub(crate) struct MissingTarget {
    /// The missing artifact.
    pub(crate) target: LinkTarget,
    /// The artifacts that refer to it.
    pub(crate) referrers: Vec<Referrer>,
}

/// An artifact that refers to a missing one.
#[derive(Clone, Debug)]
pub(crate) struct Referrer {
    /// The artifact.
    pub(crate) artifact: ArtifactRecord,
    /// The relation of the reference.
    pub(crate) relation: String,
    /// The role; `None` for names.
    pub(crate) role: Option<String>,
    /// The location of the reference; empty for names.
    pub(crate) place: String,
    /// Whether the location refers to data that no format defines.
    pub(crate) is_of_no_kind: bool,
}

/// A filter of the listed references. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnresolvedQuery {
    /// Only references of artifacts of this kind.
    pub(crate) kind: Option<String>,
    /// Only references in this role, such as `reference`, or of this relation, such as `derived-from`.
    pub(crate) role: Option<String>,
    /// Whether to include references to data that no format defines, such as schemas. A vault has such data only if it
    /// was added on request.
    pub(crate) all: bool,
}

/// The missing artifacts, and the number of omitted references to data that no format defines.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnresolvedReferences {
    /// The missing artifacts: digests in order, then names.
    pub(crate) missing: Vec<MissingTarget>,
    /// The number of omitted references.
    pub(crate) left_out: u64,
}

/// Returns the references to missing artifacts.
pub(crate) fn unresolved(snapshot: &dyn Snapshot, query: &UnresolvedQuery) -> Result<UnresolvedReferences> {
    let mut references = snapshot.unresolved()?;
    if let Some(role) = &query.role {
        references.retain(|reference| reference.role.as_ref() == Some(role) || reference.relation == *role);
    }
    let mut missing = grouped(snapshot, &references)?;
    let mut left_out = 0;
    for target in &mut missing {
        if let Some(kind) = &query.kind {
            target.referrers.retain(|referrer| referrer.artifact.kind == *kind);
        }
        if !query.all {
            let before = target.referrers.len();
            target.referrers.retain(|referrer| !referrer.is_of_no_kind);
            left_out += (before - target.referrers.len()) as u64;
        }
    }
    missing.retain(|target| !target.referrers.is_empty());
    Ok(UnresolvedReferences { missing, left_out })
}

fn grouped(snapshot: &dyn Snapshot, references: &[UnresolvedReference]) -> Result<Vec<MissingTarget>> {
    let cores: Vec<CoreHash> = references.iter().map(|reference| reference.artifact).collect();
    let mut artifacts = snapshot.expect_artifacts(&cores)?.into_iter();
    let mut all = Vec::new();
    for group in references.chunk_by(|one, other| one.missing == other.missing) {
        let Some(first) = group.first() else { continue };
        let referrers = group.iter().zip(artifacts.by_ref().take(group.len()));
        let mut referrers: Vec<Referrer> =
            referrers.map(|(reference, artifact)| Referrer::new(reference, artifact)).collect();
        referrers
            .sort_by(|one, other| (one.artifact.core, &one.place).cmp(&(other.artifact.core, &other.place)));
        let target = match first.missing.clone() {
            UnresolvedTarget::Digest(digest) => LinkTarget::MissingDigest(digest),
            UnresolvedTarget::Name(name) => LinkTarget::MissingName(name),
        };
        all.push(MissingTarget { target, referrers });
    }
    Ok(all)
}

impl Referrer {
    fn new(reference: &UnresolvedReference, artifact: ArtifactRecord) -> Self {
        Self {
            artifact,
            relation: reference.relation.clone(),
            role: reference.role.clone(),
            is_of_no_kind: reference.place.as_ref().is_some_and(ArtifactLocation::is_of_no_kind),
            place: reference.place.as_ref().map(ToString::to_string).unwrap_or_default(),
        }
    }
}
