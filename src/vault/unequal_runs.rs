//! Runs of equal inputs with different records, in formats that demand that these are equal, under different names.

use std::collections::BTreeMap;

use super::resolve::{LookupError, document, with_preferred_capture};
use crate::artifact::{ArtifactLocation, ReproducibleRecord, ReproducibleRun, group};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::{ArtifactRecord, Snapshot};

/// Two runs of equal inputs.
#[derive(Clone, Debug)]
pub(super) struct UnequalRuns {
    /// The digest of the inputs.
    pub(super) inputs: Digest,
    /// The number of the first record in which they differ, from 0.
    pub(super) index: usize,
    /// Both, with the digests of these records.
    pub(super) sides: [(ArtifactRecord, Digest); 2],
}

impl UnequalRuns {
    /// Returns the position in the order of the pairs.
    pub(super) fn position(&self) -> (Digest, [CoreHash; 2]) {
        (self.inputs, self.sides.each_ref().map(|(side, _)| side.core))
    }
}

/// Returns the first run of each inputs with each run of other records, by inputs and core hashes. Of runs with one name,
/// only the longest is compared: others are its histories, or fork from it.
pub(super) fn unequal_runs(snapshot: &dyn Snapshot) -> Result<Vec<UnequalRuns>, LookupError> {
    let mut unequal = Vec::new();
    for digest in snapshot.shared_first_mentions(group::INPUTS)? {
        let mut runs: BTreeMap<Digest, Vec<(ArtifactRecord, ReproducibleRun)>> = BTreeMap::new();
        for core in longest_of_each_name(snapshot, digest)? {
            let artifact = snapshot.expect_artifact(core)?;
            let located = with_preferred_capture(snapshot, &artifact)?;
            let document = document(snapshot, &located)?;
            let run = formats::named(&artifact.kind).and_then(|kind| kind.reproducible(&document));
            if let Some(run) = run {
                runs.entry(run.inputs).or_default().push((artifact, run));
            }
        }
        for (inputs, runs) in runs {
            let Some(((first, ours), others)) = runs.split_first() else { continue };
            for (other, theirs) in others {
                if let Some((index, [our, their])) = difference(&ours.records, &theirs.records) {
                    let sides = [(first.clone(), our), (other.clone(), their)];
                    unequal.push(UnequalRuns { inputs, index, sides });
                }
            }
        }
    }
    unequal.sort_by_key(UnequalRuns::position);
    Ok(unequal)
}

/// Returns the artifacts whose first record states these inputs, sorted: of those with one name, the one with the most
/// records; none if all have one name.
fn longest_of_each_name(snapshot: &dyn Snapshot, inputs: Digest) -> Result<Vec<CoreHash>, LookupError> {
    let mentions = snapshot.mentioning(&[inputs], Some(group::INPUTS))?.concat();
    let first = mentions.into_iter().filter(|mention| mention.place == ArtifactLocation::Index(0));
    let mut cores: Vec<CoreHash> = first.map(|mention| mention.artifact).collect();
    cores.sort_unstable();
    cores.dedup();
    let mut by_name: BTreeMap<String, Vec<CoreHash>> = BTreeMap::new();
    for (core, names) in cores.iter().zip(snapshot.names(&cores)?) {
        if let Some(name) = names.mentioned.into_iter().map(|mention| mention.handle).min() {
            by_name.entry(name).or_default().push(*core);
        }
    }
    if by_name.len() < 2 {
        return Ok(Vec::new());
    }
    let mut longest = Vec::new();
    for cores in by_name.into_values() {
        let records =
            if cores.len() > 1 { snapshot.mentions(&cores, Some(group::RECORD))? } else { Vec::new() };
        let lengths: Vec<usize> = records.iter().map(Vec::len).collect();
        let most = lengths.iter().max();
        let at = lengths.iter().position(|length| Some(length) == most).unwrap_or(0);
        longest.extend(cores.get(at));
    }
    longest.sort_unstable();
    Ok(longest)
}

/// Returns the number of the first record in which two runs differ, and both records; `None` if one only ends earlier.
fn difference(ours: &[ReproducibleRecord], theirs: &[ReproducibleRecord]) -> Option<(usize, [Digest; 2])> {
    let mut both = ours.iter().zip(theirs).enumerate();
    let (index, (our, their)) = both.find(|(_, (our, their))| our.content != their.content)?;
    Some((index, [our.record, their.record]))
}
