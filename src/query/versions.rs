//! Which artifacts are the longest versions of what they record.

use std::collections::BTreeSet;

use crate::artifact::Versions;
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// Those of `artifacts` that another one of them extends, by the kinds whose artifacts can.
///
/// # Errors
/// What the database says.
pub fn extended<'a>(
    snapshot: &Snapshot<'_>,
    artifacts: impl Iterator<Item = &'a ArtifactRow> + Clone,
    versions: &[(&str, Versions)],
) -> Result<BTreeSet<ArtifactId>> {
    let mut all = BTreeSet::new();
    for (kind, Versions { relation, attribute }) in versions {
        let of_kind: Vec<&ArtifactRow> =
            artifacts.clone().filter(|artifact| artifact.kind == *kind).collect();
        if of_kind.len() > 1 {
            all.extend(snapshot.related_among(&of_kind, relation, attribute)?);
        }
    }
    Ok(all)
}
