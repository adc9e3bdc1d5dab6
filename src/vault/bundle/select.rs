//! Selection of linked artifacts.

use crate::storage::{ArtifactRow, Result, Snapshot};
use crate::vault::query;

/// Returns `artifacts` and everything reachable from them along links, derived or manual, in either direction; each
/// once, by core hash.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn with_links(snapshot: &Snapshot<'_>, artifacts: Vec<ArtifactRow>) -> Result<Vec<ArtifactRow>> {
    query::reachable(snapshot, artifacts)
}
