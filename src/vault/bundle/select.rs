//! Selection of linked artifacts.

use crate::storage::{ArtifactRecord, Result, Snapshot};
use crate::vault::query;

/// Returns `artifacts` and everything reachable from them along links, derived or manual, in either direction; each
/// once, by core hash. Coincident links are followed only if `coincident` is set.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn with_links(
    snapshot: &dyn Snapshot,
    artifacts: Vec<ArtifactRecord>,
    coincident: bool,
) -> Result<Vec<ArtifactRecord>> {
    query::reachable(snapshot, artifacts, coincident)
}
