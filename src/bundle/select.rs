//! Selection of linked artifacts.

use crate::query;
use crate::store::{ArtifactRow, Result, Snapshot};

/// Finds `artifacts` and everything that can be reached from them along links, derived or stated, in either direction;
/// each once, by core hash.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn with_links(snapshot: &Snapshot<'_>, artifacts: Vec<ArtifactRow>) -> Result<Vec<ArtifactRow>> {
    query::reachable(snapshot, artifacts)
}
