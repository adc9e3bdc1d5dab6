//! Traces that share a header and then disagree: how an archive catches a rewritten history.

use std::collections::BTreeSet;

use crate::artifact::Place;
use crate::digest::Digest;
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// Two histories of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The hash of the header that both share.
    pub header: Digest,
    /// The number of the first record in which they differ, from 0.
    pub index: usize,
    /// Both traces, in the order of their core hashes, with the hash of their record there.
    pub traces: [(ArtifactRow, Digest); 2],
}

/// Every pair of traces that forks, by header and core hashes.
///
/// # Errors
/// What the database says.
pub fn forks(snapshot: &Snapshot<'_>) -> Result<Vec<Fork>> {
    let mut forks = Vec::new();
    for header in snapshot.shared_beginnings("record")? {
        let mut traces = Vec::new();
        for id in beginning_with(snapshot, header)? {
            traces.push((snapshot.artifact_by_id(id)?, records(snapshot, id)?));
        }
        traces.sort_by_key(|(artifact, _)| artifact.core);
        for (number, (one, ours)) in traces.iter().enumerate() {
            for (other, theirs) in traces.iter().skip(number + 1) {
                let differing =
                    ours.iter().zip(theirs).enumerate().find(|(_, (ours, theirs))| ours != theirs);
                if let Some((index, (ours, theirs))) = differing {
                    let traces = [(one.clone(), *ours), (other.clone(), *theirs)];
                    forks.push(Fork { header, index, traces });
                }
            }
        }
    }
    Ok(forks)
}

/// The traces that fork from `artifact`, and the numbers of the first records in which they differ.
pub(super) fn of(snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<Vec<(ArtifactId, usize)>> {
    let ours = records(snapshot, artifact)?;
    let Some(header) = ours.first() else { return Ok(Vec::new()) };
    let mut forks = Vec::new();
    for other in beginning_with(snapshot, *header)?.into_iter().filter(|other| *other != artifact) {
        let theirs = records(snapshot, other)?;
        let differing = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
        forks.extend(differing.map(|index| (other, index)));
    }
    Ok(forks)
}

fn beginning_with(snapshot: &Snapshot<'_>, header: Digest) -> Result<BTreeSet<ArtifactId>> {
    let mentions = snapshot.mentioning(header, Some("record"))?.into_iter();
    Ok(mentions.filter(|mention| mention.place == Place::Index(0)).map(|mention| mention.artifact).collect())
}

/// The record hashes of a trace, in order.
fn records(snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<Vec<Digest>> {
    Ok(snapshot.mentions_of(artifact, "record")?.into_iter().map(|mention| mention.digest).collect())
}
