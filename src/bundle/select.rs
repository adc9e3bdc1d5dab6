//! What belongs together.

use std::collections::BTreeMap;

use crate::digest::CoreHash;
use crate::query::{self, LinkTarget, Walk};
use crate::store::{ArtifactRow, Result, Snapshot};

/// `artifacts` and everything that can be reached from them along links, derived or stated, in either direction; each
/// once, by core hash.
///
/// # Errors
/// What the store says.
pub fn with_links(snapshot: &Snapshot<'_>, artifacts: Vec<ArtifactRow>) -> Result<Vec<ArtifactRow>> {
    let everywhere = Walk { depth: usize::MAX, relation: None, direction: None };
    let mut reached: BTreeMap<CoreHash, ArtifactRow> = BTreeMap::new();
    for artifact in artifacts {
        // Whatever can be reached from something that was reached has been reached with it.
        if reached.contains_key(&artifact.core) {
            continue;
        }
        for node in query::walk(snapshot, &artifact, &everywhere)?.nodes {
            if let LinkTarget::Artifact(found) = node.target {
                reached.insert(found.core, found);
            }
        }
    }
    Ok(reached.into_values().collect())
}
