//! What is kept because of something else that is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decision, Reason};
use crate::query::{self, LinkTarget};
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// Keeps what something that is kept has the bytes of or links to, until nothing more is kept for that.
pub(super) fn keep_held(
    snapshot: &Snapshot<'_>,
    decisions: &mut [Decision],
    ignores_links: bool,
) -> Result<()> {
    let mut removed: BTreeSet<ArtifactId> = decisions
        .iter()
        .filter(|decision| !decision.is_kept())
        .map(|decision| decision.artifact.id)
        .collect();
    let mut holders: BTreeMap<ArtifactId, Vec<Reason>> = BTreeMap::new();
    for decision in decisions.iter().filter(|decision| !decision.is_kept()) {
        holders.insert(decision.artifact.id, holding(snapshot, &decision.artifact, ignores_links)?);
    }
    loop {
        let before = removed.len();
        for decision in decisions.iter_mut().filter(|decision| !decision.is_kept()) {
            let reasons = holders.get(&decision.artifact.id).map(Vec::as_slice).unwrap_or_default();
            if let Some(reason) = reasons.iter().find(|reason| is_kept(reason, &removed)) {
                removed.remove(&decision.artifact.id);
                decision.reasons.push(reason.clone());
            }
        }
        if removed.len() == before {
            return Ok(());
        }
    }
}

/// What would keep an artifact if it is kept itself.
fn holding(snapshot: &Snapshot<'_>, artifact: &ArtifactRow, ignores_links: bool) -> Result<Vec<Reason>> {
    let containers = snapshot.holders_of_bytes(artifact.id)?.into_iter();
    let mut reasons: Vec<Reason> =
        containers.map(|container| Reason::Contained(Box::new(container))).collect();
    if !ignores_links {
        let links = query::holders(snapshot, artifact)?.into_iter();
        reasons.extend(links.map(|link| Reason::Linked(Box::new(link))));
    }
    Ok(reasons)
}

/// Whether the artifact that holds another one for this reason stays.
fn is_kept(reason: &Reason, removed: &BTreeSet<ArtifactId>) -> bool {
    let holder = match reason {
        Reason::Contained(container) => Some(container.id),
        Reason::Linked(link) => match &link.target {
            LinkTarget::Artifact(artifact) => Some(artifact.id),
            _ => None,
        },
        _ => None,
    };
    holder.is_some_and(|holder| !removed.contains(&holder))
}
