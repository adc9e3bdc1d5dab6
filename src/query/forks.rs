//! Two histories of one run: how an archive catches a history that was rewritten, or a run id that was given twice.
//!
//! Traces of one run share their header, by its hash; run packs share the id of the run. Where both have a record or a step
//! and these differ, one forks from the other. One that only ends earlier is the beginning of the other.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::Place;
use crate::digest::Digest;
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// The roles of records and of steps.
const RECORD: &str = "record";
const STEP: &str = "step";

/// Two histories of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// What makes them histories of one run.
    pub shared: Shared,
    /// The number of the first record or step in which they differ, from 0.
    pub index: usize,
    /// Both, with the hash of their record or step there.
    pub sides: [(ArtifactRow, Digest); 2],
}

/// What histories of one run share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    /// The hash of the header of traces.
    Header(Digest),
    /// The id of a run that was recorded in run packs.
    RunId(String),
}

impl Shared {
    /// What the histories count: `record` or `step`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Header(_) => RECORD,
            Self::RunId(_) => STEP,
        }
    }
}

/// Every pair of artifacts that forks, traces first, by what they share and their core hashes.
///
/// # Errors
/// What the database says.
pub fn forks(snapshot: &Snapshot<'_>) -> Result<Vec<Fork>> {
    let mut shared = Vec::new();
    for header in snapshot.shared_beginnings(RECORD)? {
        shared.push((Shared::Header(header), beginning_with(snapshot, header)?));
    }
    for name in snapshot.shared_names(STEP)? {
        let artifacts = snapshot.originals_named(&name, STEP)?;
        shared.push((run_id(&name), artifacts));
    }
    let mut forks = Vec::new();
    for (shared, artifacts) in shared {
        let mut histories = Vec::new();
        for id in artifacts {
            histories.push((snapshot.artifact_by_id(id)?, History::of(snapshot, id, shared.unit())?));
        }
        histories.sort_by_key(|(artifact, _)| artifact.core);
        for (number, (one, ours)) in histories.iter().enumerate() {
            for (other, theirs) in histories.iter().skip(number + 1) {
                if let Some((index, [ours, theirs])) = ours.parting(theirs) {
                    let sides = [(one.clone(), ours), (other.clone(), theirs)];
                    forks.push(Fork { shared: shared.clone(), index, sides });
                }
            }
        }
    }
    // Run packs may state two ids, and share both.
    let mut seen = BTreeSet::new();
    forks.retain(|fork| seen.insert((fork.shared.unit(), fork.sides.each_ref().map(|(side, _)| side.core))));
    Ok(forks)
}

/// The forks of one artifact, which is the first side of each, in the order in which the others arrived, and how many
/// others it was compared with. These are `limit` at most.
///
/// # Errors
/// What the database says.
pub fn forks_of(snapshot: &Snapshot<'_>, artifact: &ArtifactRow, limit: usize) -> Result<(Vec<Fork>, usize)> {
    let mut compared = 0;
    let mut forks = Vec::new();
    // Histories of one run have a name in common, which is sooner looked up than their records.
    if !snapshot.has_namesake(artifact.id)? {
        return Ok((forks, compared));
    }
    for (other, shared) in relatives(snapshot, artifact.id)? {
        if compared == limit {
            break;
        }
        compared += 1;
        let [ours, theirs] = [artifact.id, other].map(|id| History::of(snapshot, id, shared.unit()));
        if let Some((index, [ours, theirs])) = ours?.parting(&theirs?) {
            let sides = [(artifact.clone(), ours), (snapshot.artifact_by_id(other)?, theirs)];
            forks.push(Fork { shared, index, sides });
        }
    }
    Ok((forks, compared))
}

/// The other artifacts that record the same run as `artifact`, with what they share.
fn relatives(snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<BTreeMap<ArtifactId, Shared>> {
    let mut relatives = BTreeMap::new();
    for name in snapshot.own_names(artifact, STEP)? {
        for other in snapshot.originals_named(&name, STEP)? {
            relatives.entry(other).or_insert_with(|| run_id(&name));
        }
    }
    let records = snapshot.mentions_of(artifact, RECORD)?;
    if let Some(header) = records.first().map(|record| record.digest) {
        let others = beginning_with(snapshot, header)?;
        relatives.extend(others.into_iter().map(|other| (other, Shared::Header(header))));
    }
    relatives.remove(&artifact);
    Ok(relatives)
}

/// The id in the name of a run, `run:ID`.
fn run_id(name: &str) -> Shared {
    Shared::RunId(name.split_once(':').map_or(name, |(_, id)| id).to_owned())
}

fn beginning_with(snapshot: &Snapshot<'_>, header: Digest) -> Result<Vec<ArtifactId>> {
    let mentions = snapshot.mentioning(header, Some(RECORD))?.into_iter();
    let beginning = mentions.filter(|mention| mention.place == Place::Index(0));
    let mut artifacts: Vec<ArtifactId> = beginning.map(|mention| mention.artifact).collect();
    artifacts.sort_unstable();
    artifacts.dedup();
    Ok(artifacts)
}

/// The hashes of the records or steps of an artifact, in order.
struct History(Vec<Digest>);

impl History {
    fn of(snapshot: &Snapshot<'_>, artifact: ArtifactId, group: &str) -> Result<Self> {
        Ok(Self(snapshot.mentions_of(artifact, group)?.into_iter().map(|mention| mention.digest).collect()))
    }

    /// Where it parts from another history, and what both say there; nothing if one is the beginning of the other.
    fn parting(&self, other: &Self) -> Option<(usize, [Digest; 2])> {
        let both = self.0.iter().zip(&other.0).enumerate();
        let mut differing = both.filter(|(_, (ours, theirs))| ours != theirs);
        differing.next().map(|(index, (ours, theirs))| (index, [*ours, *theirs]))
    }
}
