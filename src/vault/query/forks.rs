//! Forks: two different histories of one run, which reveal a rewritten history or a reused run id.
//!
//! Traces of one run share the hash of their header; run packs share the run id. If two of them have different records
//! or steps at the same index, they fork. One that only ends earlier is a prefix of the other, not a fork.

use std::collections::{BTreeSet, HashMap};

use super::histories::{Fork, Histories, HistoryIdentity, RECORD, STEP};
use crate::artifact::ArtifactLocation;
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{MentionRecord, Names};
use crate::storage::{ArtifactRecord, Result, Snapshot};

/// Number of runs whose histories are read at a time.
const AT_A_TIME: usize = 256;

/// All pairs of artifacts that fork, found without comparing each pair.
pub(crate) struct Forks {
    histories: Vec<Histories>,
    /// The numbers of the histories that an artifact is in, if there are several: run packs may state two ids.
    several: HashMap<CoreHash, Vec<usize>>,
}

/// Finds every pair of artifacts that forks. The work is linear in the number of records and steps.
pub(crate) fn forks(snapshot: &dyn Snapshot) -> Result<Forks> {
    let headers = snapshot.shared_first_mentions(RECORD)?.into_iter().map(HistoryIdentity::Header);
    let names = snapshot.shared_names(STEP)?;
    let shared: Vec<HistoryIdentity> = headers.chain(names.iter().map(|name| run_id(name))).collect();
    let mut histories = Vec::new();
    for shared in shared.chunks(AT_A_TIME) {
        histories.extend(histories_of(snapshot, shared)?);
    }
    let mut member_of: HashMap<CoreHash, Vec<usize>> = HashMap::new();
    let of_runs =
        histories.iter().enumerate().filter(|(_, it)| matches!(it.shared(), HistoryIdentity::RunId(_)));
    for (number, histories) in of_runs {
        for member in histories.members() {
            member_of.entry(member.core).or_default().push(number);
        }
    }
    member_of.retain(|_, histories| histories.len() > 1);
    Ok(Forks { histories, several: member_of })
}

impl Forks {
    /// Iterates over the pairs after a position, or over all: traces first, by what they share and their core hashes.
    /// Stopping early skips the remaining work.
    pub(crate) fn after(
        &self,
        after: Option<(HistoryIdentity, [CoreHash; 2])>,
    ) -> impl Iterator<Item = Fork> {
        let numbered = (0..).zip(&self.histories);
        numbered.flat_map(move |(number, histories)| {
            let pairs = match &after {
                Some((shared, _)) if histories.shared() < shared => None,
                Some((shared, pair)) if histories.shared() == shared => Some(histories.pairs(Some(*pair))),
                _ => Some(histories.pairs(None)),
            };
            pairs.into_iter().flatten().filter(move |fork| !self.is_repeated(number, fork))
        })
    }

    /// Returns the number of pairs. Two run packs that share two ids count twice.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        self.histories.iter().map(Histories::count).sum()
    }

    /// Returns whether both sides are also together in histories with a lower number.
    fn is_repeated(&self, number: usize, fork: &Fork) -> bool {
        let [one, other] = fork.sides.each_ref().map(|(side, _)| self.several.get(&side.core));
        let both = |number: &usize| other.is_some_and(|others| others.contains(number));
        one.is_some_and(|ours| ours.iter().take_while(|before| **before < number).any(both))
    }
}

/// Returns the forks of one artifact, which is the first side of each, in the order in which the others arrived, and
/// the number of artifacts that it was compared with: at most `limit`, and no more of the vault is read.
pub(crate) fn forks_of(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    limit: usize,
) -> Result<(Vec<Fork>, usize)> {
    let mut compared = 0;
    let mut forks = Vec::new();
    // Histories of one run share a name, which is cheaper to look up than their records.
    if !has_namesake(snapshot, artifact.core)? {
        return Ok((forks, compared));
    }
    for (shared, ours, others) in relatives(snapshot, artifact.core)? {
        for other in others {
            if compared == limit {
                return Ok((forks, compared));
            }
            let theirs = History::read(snapshot, other, shared.unit())?;
            // The index may contain artifacts that do not begin with the header.
            if matches!(&shared, HistoryIdentity::Header(header) if theirs.0.first() != Some(header)) {
                continue;
            }
            compared += 1;
            if let Some((index, [ours, theirs])) = ours.parting(&theirs) {
                let sides = [(artifact.clone(), ours), (snapshot.expect_artifact(other)?, theirs)];
                forks.push(Fork { shared: shared.clone(), index, sides });
            }
        }
    }
    Ok((forks, compared))
}

/// Returns the other artifacts that may record the same run as `artifact`, each once, with what they share and the
/// history of `artifact`.
fn relatives(
    snapshot: &dyn Snapshot,
    artifact: CoreHash,
) -> Result<Vec<(HistoryIdentity, History, Vec<CoreHash>)>> {
    let mut relatives = Vec::new();
    let mut known = BTreeSet::from([artifact]);
    for name in own_names(snapshot, artifact)? {
        let mut others = originals(snapshot, &name)?;
        others.retain(|other| known.insert(*other));
        if !others.is_empty() {
            relatives.push((run_id(&name), History::read(snapshot, artifact, STEP)?, others));
        }
    }
    let records = History::read(snapshot, artifact, RECORD)?;
    if let Some(header) = records.0.first().copied() {
        let kinds = snapshot.kinds_with_group(RECORD)?;
        let mut others = snapshot.candidates(&[header], &kinds)?.pop().unwrap_or_default();
        others.retain(|other| known.insert(*other));
        relatives.push((HistoryIdentity::Header(header), records, others));
    }
    Ok(relatives)
}

/// Returns what each artifact shares with other histories of its run: run ids, and the header. `artifacts` have their names;
/// they are those with a namesake.
pub(super) fn shared_by(
    snapshot: &dyn Snapshot,
    artifacts: &[(&ArtifactRecord, &Names)],
) -> Result<Vec<Vec<HistoryIdentity>>> {
    if artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let kinds = snapshot.kinds_with_group(STEP)?;
    let cores: Vec<CoreHash> = artifacts.iter().map(|(artifact, _)| artifact.core).collect();
    let mut all = Vec::new();
    for ((artifact, names), records) in artifacts.iter().zip(snapshot.mentions(&cores, Some(RECORD))?) {
        let originals = if kinds.contains(&artifact.kind) { names.original.as_slice() } else { &[] };
        let mut shared: Vec<HistoryIdentity> = originals.iter().map(|name| run_id(name)).collect();
        shared.extend(records.first().map(|record| HistoryIdentity::Header(record.digest)));
        all.push(shared);
    }
    Ok(all)
}

/// Returns the histories that share each of these. The number of queries does not grow with that of `shared`, only with
/// the number of artifacts whose records or steps are read.
pub(super) fn histories_of(snapshot: &dyn Snapshot, shared: &[HistoryIdentity]) -> Result<Vec<Histories>> {
    let (mut headers, mut names) = (Vec::new(), Vec::new());
    for shared in shared {
        match shared {
            HistoryIdentity::Header(header) => headers.push(*header),
            HistoryIdentity::RunId(id) => names.push(format!("{RUN}:{id}")),
        }
    }
    let mut beginning = some(&headers, |headers| snapshot.mentioning(headers, Some(RECORD)))?.into_iter();
    let mut uses = some(&names, |names| snapshot.named(names))?.into_iter();
    let kinds = some(&names, |_| snapshot.kinds_with_group(STEP))?;
    let cores = shared.iter().map(|shared| match shared {
        HistoryIdentity::Header(_) => first_mentioning(beginning.next().unwrap_or_default()),
        HistoryIdentity::RunId(_) => uses.next().unwrap_or_default().originals,
    });
    let cores: Vec<Vec<CoreHash>> = cores.collect();
    let records = some(&cores.concat(), |cores| snapshot.artifacts(cores))?;
    let mut records = records.into_iter();
    let members = shared.iter().zip(&cores).map(|(shared, cores)| {
        let stored = records.by_ref().take(cores.len()).flatten();
        let is_candidate = |artifact: &ArtifactRecord| {
            matches!(shared, HistoryIdentity::Header(_)) || kinds.contains(&artifact.kind)
        };
        (shared.clone(), stored.filter(is_candidate).collect())
    });
    Histories::read_all(snapshot, members.collect())
}

/// Asks for `keys`, if there are any.
fn some<K, T>(keys: &[K], ask: impl FnOnce(&[K]) -> Result<Vec<T>>) -> Result<Vec<T>> {
    if keys.is_empty() { Ok(Vec::new()) } else { ask(keys) }
}

/// Returns the artifacts with steps that have a name and do not refer to it.
fn originals(snapshot: &dyn Snapshot, name: &str) -> Result<Vec<CoreHash>> {
    let originals = snapshot.uses_of(name)?.originals;
    let kinds = snapshot.kinds_with_group(STEP)?;
    let is_of_steps = |artifact: &ArtifactRecord| kinds.contains(&artifact.kind);
    let artifacts = snapshot.stored_artifacts(&originals)?.into_iter();
    Ok(artifacts.filter(is_of_steps).map(|artifact| artifact.core).collect())
}

/// Returns the names of which an artifact with steps is an original.
fn own_names(snapshot: &dyn Snapshot, artifact: CoreHash) -> Result<Vec<String>> {
    let names = snapshot.names_of(artifact)?.original;
    if names.is_empty() {
        return Ok(names);
    }
    let kind = snapshot.expect_artifact(artifact)?.kind;
    Ok(if snapshot.kinds_with_group(STEP)?.contains(&kind) { names } else { Vec::new() })
}

fn has_namesake(snapshot: &dyn Snapshot, artifact: CoreHash) -> Result<bool> {
    Ok(snapshot.has_namesake(&[artifact])?.contains(&true))
}

/// The namespace of run names.
const RUN: &str = "run";

/// Returns the id in the name of a run, `run:ID`.
fn run_id(name: &str) -> HistoryIdentity {
    HistoryIdentity::RunId(name.split_once(':').map_or(name, |(_, id)| id).to_owned())
}

/// Returns the artifacts whose first record these mentions are, by core hash.
fn first_mentioning(mentions: Vec<MentionRecord>) -> Vec<CoreHash> {
    let first = mentions.into_iter().filter(|mention| mention.place == ArtifactLocation::Index(0));
    let mut artifacts: Vec<CoreHash> = first.map(|mention| mention.artifact).collect();
    artifacts.sort_unstable();
    artifacts.dedup();
    artifacts
}

/// The hashes of the records or steps of an artifact, in order.
struct History(Vec<Digest>);

impl History {
    fn read(snapshot: &dyn Snapshot, artifact: CoreHash, group: &str) -> Result<Self> {
        Ok(Self(snapshot.mentions_of(artifact, group)?.into_iter().map(|mention| mention.digest).collect()))
    }

    /// Returns the index at which two histories first differ, with both hashes there; `None` if one is a prefix of the
    /// other.
    fn parting(&self, other: &Self) -> Option<(usize, [Digest; 2])> {
        let both = self.0.iter().zip(&other.0).enumerate();
        let mut differing = both.filter(|(_, (ours, theirs))| ours != theirs);
        differing.next().map(|(index, (ours, theirs))| (index, [*ours, *theirs]))
    }
}
