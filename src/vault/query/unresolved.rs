//! References to missing artifacts.

use super::links::LinkTarget;
use crate::artifact::ArtifactLocation;
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Result, Snapshot, UnresolvedReference, UnresolvedTarget};

/// How many missing artifacts are read from the vault at a time, at least.
const BATCH: usize = 256;

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

/// A filter of the listed references, of which all conditions must hold, and a page of them.
#[derive(Clone, Debug)]
pub(crate) struct UnresolvedQuery {
    /// Only references of artifacts of this kind.
    pub(crate) kind: Option<String>,
    /// Only references in this role, such as `reference`, or of this relation, such as `derived-from`.
    pub(crate) role: Option<String>,
    /// Whether to include references to data that no format defines, such as schemas. A vault has such data only if it
    /// was added on request.
    pub(crate) all: bool,
    /// The end of the previous page.
    pub(crate) after: Option<UnresolvedTarget>,
    /// Maximum number of missing artifacts.
    pub(crate) limit: usize,
}

/// A page of missing artifacts, and the number of omitted references to data that no format defines.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnresolvedReferences {
    /// The missing artifacts: digests in order, then names.
    pub(crate) missing: Vec<MissingTarget>,
    /// The number of references that were omitted up to the end of the page.
    pub(crate) left_out: u64,
    /// The end of the page, as long as there are more.
    pub(crate) next: Option<UnresolvedTarget>,
}

/// Returns the references to missing artifacts.
pub(crate) fn unresolved(snapshot: &dyn Snapshot, query: &UnresolvedQuery) -> Result<UnresolvedReferences> {
    let (mut answer, mut after) = (UnresolvedReferences::default(), query.after.clone());
    // One more than is asked for, to know whether there are more; and many at a time, because all may be omitted.
    let limit = query.limit.saturating_add(1).max(BATCH);
    loop {
        let references = snapshot.unresolved(after.as_ref(), limit)?;
        let cores: Vec<CoreHash> = references.iter().map(|reference| reference.artifact).collect();
        let mut artifacts = snapshot.expect_artifacts(&cores)?.into_iter();
        let mut targets = 0;
        for group in references.chunk_by(|one, other| one.missing == other.missing) {
            targets += 1;
            let Some(first) = group.first() else { continue };
            let (referrers, left_out) = referrers(group, artifacts.by_ref().take(group.len()), query);
            if !referrers.is_empty() {
                if answer.missing.len() == query.limit {
                    answer.next = after;
                    return Ok(answer);
                }
                answer.missing.push(MissingTarget { target: first.missing.clone().into(), referrers });
            }
            answer.left_out += left_out;
            after = Some(first.missing.clone());
        }
        if targets < limit {
            return Ok(answer);
        }
    }
}

/// Returns those of `references` to one target that `query` asks for, by artifact and place, and the number of those that
/// it omits.
fn referrers(
    references: &[UnresolvedReference],
    artifacts: impl Iterator<Item = ArtifactRecord>,
    query: &UnresolvedQuery,
) -> (Vec<Referrer>, u64) {
    let is_asked_for = |(reference, artifact): &(&UnresolvedReference, ArtifactRecord)| {
        let has_role = |role| reference.role.as_ref() == Some(role) || reference.relation == *role;
        query.role.as_ref().is_none_or(has_role)
            && query.kind.as_ref().is_none_or(|kind| artifact.kind == *kind)
    };
    let asked_for = references.iter().zip(artifacts).filter(is_asked_for);
    let mut referrers: Vec<Referrer> =
        asked_for.map(|(reference, artifact)| Referrer::new(reference, artifact)).collect();
    let before = referrers.len();
    referrers.retain(|referrer| query.all || !referrer.is_of_no_kind);
    let left_out = (before - referrers.len()) as u64;
    referrers.sort_by(|one, other| (one.artifact.core, &one.place).cmp(&(other.artifact.core, &other.place)));
    (referrers, left_out)
}

impl From<UnresolvedTarget> for LinkTarget {
    fn from(target: UnresolvedTarget) -> Self {
        match target {
            UnresolvedTarget::Digest(digest) => Self::MissingDigest(digest),
            UnresolvedTarget::Name(name) => Self::MissingName(name),
        }
    }
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
