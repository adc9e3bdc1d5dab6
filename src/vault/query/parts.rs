//! The parts of runs that are stored as several artifacts.

use std::collections::BTreeSet;

use crate::artifact::relation;
use crate::digest::CoreHash;
use crate::storage::{Direction, ReferenceEdge, Result, Snapshot};

fn is_continuation(reference: &ReferenceEdge) -> bool {
    reference.relation == relation::CONTINUES
}

/// Returns those of `artifacts` that continue another one of them: all parts of a run but the first.
pub(crate) fn continuing(snapshot: &dyn Snapshot, artifacts: &[CoreHash]) -> Result<BTreeSet<CoreHash>> {
    if artifacts.len() < 2 {
        return Ok(BTreeSet::new());
    }
    let references = snapshot.references(artifacts, Direction::Out)?;
    let among = |reference: &ReferenceEdge| artifacts.contains(&CoreHash(reference.mention.digest));
    let continues = artifacts.iter().zip(references).filter(|(_, references)| {
        references.iter().any(|reference| is_continuation(reference) && among(reference))
    });
    Ok(continues.map(|(core, _)| *core).collect())
}

/// Returns those of `artifacts` that are a part of a run with several.
pub(crate) fn parts(snapshot: &dyn Snapshot, artifacts: &[CoreHash]) -> Result<BTreeSet<CoreHash>> {
    let mut parts = BTreeSet::new();
    for direction in [Direction::Out, Direction::In] {
        let references = snapshot.references(artifacts, direction)?;
        let continued = artifacts.iter().zip(references).filter(|(_, all)| all.iter().any(is_continuation));
        parts.extend(continued.map(|(core, _)| *core));
    }
    Ok(parts)
}
