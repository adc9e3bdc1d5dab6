//! What artifacts refer to and the vault does not have.

use super::links::LinkTarget;
use crate::artifact::Place;
use crate::store::{ArtifactRow, Reference, Result, Snapshot};

/// Something that is not in the vault, with everybody who refers to it.
#[derive(Clone, Debug)]
pub struct Dangling {
    /// What is missing.
    pub target: LinkTarget,
    /// Who refers to it.
    pub referrers: Vec<Referrer>,
}

/// Who refers to something that is not in the vault.
#[derive(Clone, Debug)]
pub struct Referrer {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// How it relates to what is missing.
    pub relation: String,
    /// In which role; `None` for names.
    pub role: Option<String>,
    /// Where it says so; empty for names.
    pub place: String,
    /// Whether the place is named for something that no kind of artifact is.
    pub is_of_no_kind: bool,
}

/// Which references are listed. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct DanglingQuery {
    /// Those of artifacts of this kind.
    pub kind: Option<String>,
    /// Those in this role, such as `reference`, or of this relation, such as `derived-from`.
    pub role: Option<String>,
    /// Also those to things that no kind of artifact is, such as schemas: the vault could not have them.
    pub all: bool,
}

/// What is missing, and how many references to things that no kind of artifact is were left out.
#[derive(Clone, Debug, Default)]
pub struct DanglingReferences {
    /// Digests in their order, then names.
    pub missing: Vec<Dangling>,
    /// So many references were left out.
    pub left_out: u64,
}

/// Returns what is referred to and missing.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn dangling(snapshot: &Snapshot<'_>, query: &DanglingQuery) -> Result<DanglingReferences> {
    let mut digests = snapshot.missing_digests()?;
    let mut names = snapshot.missing_names()?;
    if let Some(role) = &query.role {
        digests.retain(|reference| reference.role.as_ref() == Some(role) || reference.relation == *role);
        names.retain(|reference| reference.relation == *role);
    }
    let mut missing = grouped(snapshot, &digests, LinkTarget::MissingDigest)?;
    missing.append(&mut grouped(snapshot, &names, LinkTarget::MissingName)?);
    let mut left_out = 0;
    for dangling in &mut missing {
        if let Some(kind) = &query.kind {
            dangling.referrers.retain(|referrer| referrer.artifact.kind == *kind);
        }
        if !query.all {
            let before = dangling.referrers.len();
            dangling.referrers.retain(|referrer| !referrer.is_of_no_kind);
            left_out += (before - dangling.referrers.len()) as u64;
        }
    }
    missing.retain(|dangling| !dangling.referrers.is_empty());
    Ok(DanglingReferences { missing, left_out })
}

fn grouped<T: PartialEq + Clone>(
    snapshot: &Snapshot<'_>,
    references: &[Reference<T>],
    target: fn(T) -> LinkTarget,
) -> Result<Vec<Dangling>> {
    let mut all = Vec::new();
    for group in references.chunk_by(|one, other| one.missing == other.missing) {
        let Some(first) = group.first() else { continue };
        let referrers = group.iter().map(|reference| {
            Ok(Referrer {
                artifact: snapshot.artifact_by_id(reference.artifact)?,
                relation: reference.relation.clone(),
                role: reference.role.clone(),
                is_of_no_kind: reference.place.as_ref().is_some_and(Place::is_of_no_kind),
                place: reference.place.as_ref().map(ToString::to_string).unwrap_or_default(),
            })
        });
        let mut referrers = referrers.collect::<Result<Vec<_>>>()?;
        // Numbers of artifacts depend on the order of arrival, hashes do not.
        referrers
            .sort_by(|one, other| (one.artifact.core, &one.place).cmp(&(other.artifact.core, &other.place)));
        all.push(Dangling { target: target(first.missing.clone()), referrers });
    }
    Ok(all)
}
