//! What artifacts refer to and the vault does not have.

use super::links::LinkTarget;
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
    /// Where it says so; empty for names.
    pub place: String,
}

/// Everything that is referred to and missing: digests in their order, then names.
///
/// # Errors
/// What the database says.
pub fn dangling(snapshot: &Snapshot<'_>) -> Result<Vec<Dangling>> {
    let digests = grouped(snapshot, &snapshot.missing_digests()?, LinkTarget::MissingDigest)?;
    let names = grouped(snapshot, &snapshot.missing_names()?, LinkTarget::MissingName)?;
    Ok(digests.into_iter().chain(names).collect())
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
