//! What would miss an artifact.

use std::collections::BTreeSet;

use super::links::{Direction, Link, LinkTarget, Origin, stated_links};
use crate::store::{ArtifactRow, Result, Snapshot};

/// The links of others to `artifact`, by relation and source: what would miss it if it were gone. Those that follow from
/// what the artifact itself states, as that a contract governs it, are not among them, and neither is `replays`: that two
/// recordings have an exchange in common may be a coincidence.
///
/// # Errors
/// What the database says.
pub fn holders(snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Link>> {
    let own: BTreeSet<_> = snapshot
        .digest_edges_from(artifact.id)?
        .into_iter()
        .filter_map(|edge| Some((edge.inverse?, edge.target?)))
        .collect();
    let is_own = |link: &Link| match &link.target {
        LinkTarget::Artifact(target) => own.contains(&(link.relation.clone(), target.id)),
        _ => false,
    };
    let holds = |link: &Link| {
        link.direction == Direction::In && (matches!(link.origin, Origin::Stated(_)) || !is_own(link))
    };
    Ok(stated_links(snapshot, artifact)?.into_iter().filter(holds).collect())
}
