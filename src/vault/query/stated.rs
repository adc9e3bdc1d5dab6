//! Queries for artifacts: by conditions, by the digits of hashes, and those of the same runs with what all of them state.
//!
//! Links are followed from an artifact to what it states, never back: many artifacts may state the same contract, tool
//! definition or earlier trace, and share nothing else.

use std::collections::BTreeSet;

use super::facts::{LinkFactSelection, LinkReader};
use super::groups::RunGroups;
use crate::digest::{CaptureHash, CoreHash, Digest, DigestPrefix, PrefixResolution};
use crate::formats;
use crate::storage::{
    ArtifactRecord, AttributeRecord, Cursor, Direction, Filter, ManualLink, Order, Page, Resolution, Result,
    Snapshot, StorageError, created_at,
};

pub(crate) use crate::storage::{Hit, Match};

/// Number of artifacts whose references are read at a time.
const BATCH: usize = 256;

/// What shared exchanges are derived from.
const EXCHANGES: LinkFactSelection = LinkFactSelection { exchanges: true, histories: false };

/// Returns `artifacts`, the others of their runs, and everything that these state, directly or not; each once, by core
/// hash.
pub(crate) fn stated(snapshot: &dyn Snapshot, artifacts: &[ArtifactRecord]) -> Result<Vec<ArtifactRecord>> {
    let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
    let mut waiting = of_same_runs(snapshot, &cores)?;
    waiting.extend(recorded_together(snapshot, artifacts)?);
    waiting.extend(cores);
    let mut reached: BTreeSet<CoreHash> = BTreeSet::new();
    loop {
        waiting.retain(|core| !reached.contains(core));
        let batch: Vec<CoreHash> = waiting.iter().take(BATCH).copied().collect();
        if batch.is_empty() {
            break;
        }
        waiting.extend(stated_by(snapshot, &batch)?);
        reached.extend(batch);
    }
    let reached: Vec<CoreHash> = reached.into_iter().collect();
    // What is stated need not be stored.
    Ok(snapshot.artifacts(&reached)?.into_iter().flatten().collect())
}

/// Returns the artifacts that are one run with one of these.
fn of_same_runs(snapshot: &dyn Snapshot, artifacts: &[CoreHash]) -> Result<BTreeSet<CoreHash>> {
    let groups = RunGroups::find(snapshot, artifacts)?;
    let numbers: BTreeSet<usize> = artifacts.iter().filter_map(|core| groups.number_of(*core)).collect();
    Ok(numbers.into_iter().flat_map(|number| groups.members(number)).copied().collect())
}

/// Returns the sessions and the run packs that were recorded together with one of these: both state the same time of
/// creation or none, and the run pack has all exchanges of the session. Neither states the hash of the other.
fn recorded_together(snapshot: &dyn Snapshot, artifacts: &[ArtifactRecord]) -> Result<Vec<CoreHash>> {
    let (mut reader, mut together) = (LinkReader::default(), Vec::new());
    for batch in artifacts.chunks(BATCH) {
        let cores: Vec<CoreHash> = batch.iter().map(|artifact| artifact.core).collect();
        reader.read(snapshot, &cores, EXCHANGES)?;
        for artifact in batch {
            together.extend(recorded_with(snapshot, artifact, &reader)?);
        }
    }
    Ok(together)
}

/// Returns those that were recorded together with an artifact that `reader` has read.
fn recorded_with(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    reader: &LinkReader,
) -> Result<Vec<CoreHash>> {
    let exchanges = &reader.facts(artifact.core)?.exchanges;
    let sharing = exchanges.shared_with_others(artifact, reader.exchanges(), None);
    let candidates: Vec<CoreHash> = sharing.into_keys().collect();
    let created = created_at(&snapshot.attributes_of(artifact.core)?);
    let mut together = Vec::new();
    for batch in candidates.chunks(BATCH) {
        let times = snapshot.attributes(batch)?;
        let is_same = |attributes: &Vec<AttributeRecord>| created_at(attributes) == created;
        let batch: Vec<CoreHash> =
            batch.iter().zip(&times).filter(|(_, of)| is_same(of)).map(|(core, _)| *core).collect();
        let mut others = LinkReader::default();
        others.read(snapshot, &batch, EXCHANGES)?;
        for other in batch {
            let theirs = &others.facts(other)?.exchanges;
            let (session, run) =
                if exchanges.is_recording() { (exchanges, theirs) } else { (theirs, exchanges) };
            together.extend(run.contains(session).then_some(other));
        }
    }
    Ok(together)
}

/// Returns what these artifacts state: by hash, by name, and by manual links from them. An artifact also states what
/// governs it, from whichever end that was linked.
fn stated_by(snapshot: &dyn Snapshot, artifacts: &[CoreHash]) -> Result<Vec<CoreHash>> {
    let references = snapshot.references(artifacts, Direction::Out)?.into_iter().flatten();
    let mut stated: Vec<CoreHash> = references.filter_map(|edge| edge.target).collect();
    let mentioned = snapshot.names(artifacts)?.into_iter().flat_map(|names| names.mentioned);
    let handles: BTreeSet<String> = mentioned.map(|mention| mention.handle).collect();
    let handles: Vec<String> = handles.into_iter().collect();
    stated.extend(snapshot.named(&handles)?.into_iter().flat_map(|uses| uses.identified));
    let links = snapshot.manual_links(artifacts)?;
    for (core, links) in artifacts.iter().zip(links) {
        stated.extend(links.into_iter().filter_map(|link| target_of(link, *core)));
    }
    Ok(stated)
}

/// Returns the other end of a manual link if `artifact` states it by the link.
fn target_of(link: ManualLink, artifact: CoreHash) -> Option<CoreHash> {
    let ManualLink { source, relation, target, .. } = link;
    let is_inverse = formats::ALL.into_iter().any(|kind| kind.inverse_relation() == Some(relation.as_str()));
    let (from, to) = if is_inverse { (target, source) } else { (source, target) };
    (from == artifact).then_some(to)
}

/// A query for artifacts.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindQuery {
    /// The conditions that artifacts must match.
    pub(crate) filter: Filter,
    /// The order of the results.
    pub(crate) order: Order,
    /// Maximum number of results; unlimited if `None`.
    pub(crate) limit: Option<usize>,
}

/// The number of artifacts of the first page that [`find_until`] reads, and of the largest.
const PAGES: (usize, usize) = (64, 4_096);

/// Passes the artifacts that match `query` to `visit`, in its order from a position on, until it returns false. They are
/// read in pages, so that little more is read than needed.
///
/// # Errors
/// Returns the error of `visit`, or one if the database cannot be read.
pub(crate) fn find_until<E: From<StorageError>>(
    snapshot: &dyn Snapshot,
    query: &FindQuery,
    after: Option<Cursor>,
    visit: &mut dyn FnMut(Hit) -> std::result::Result<bool, E>,
) -> std::result::Result<(), E> {
    let mut left = query.limit.unwrap_or(usize::MAX);
    let mut page = Page { limit: PAGES.0.min(left), after };
    while left > 0 {
        let found = snapshot.find(&query.filter, query.order, &page)?;
        left -= found.items.len();
        for hit in found.items {
            if !visit(hit)? {
                return Ok(());
            }
        }
        let Some(next) = found.next else { return Ok(()) };
        page = Page { limit: (page.limit * 2).min(PAGES.1).min(left), after: Some(next) };
    }
    Ok(())
}

/// The target of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HashTarget {
    /// An artifact, by its core hash.
    Artifact(CoreHash),
    /// A capture of the artifact with this core hash.
    Capture(CoreHash, CaptureHash),
}

impl HashTarget {
    /// Returns the hash.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Artifact(core) => core.0,
            Self::Capture(_, capture) => capture.0,
        }
    }
}

/// Maximum number of candidates listed for an ambiguous prefix.
const MAX_CANDIDATES: usize = 20;

/// Resolves `prefix` among the core hashes and capture hashes in the vault. For an ambiguous prefix, the first 20
/// candidates of each type are returned. A complete capture hash is ambiguous if artifacts of several kinds have those
/// bytes.
pub(crate) fn resolve_hash(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<PrefixResolution<HashTarget>> {
    if let Some(digest) = prefix.whole()
        && snapshot.artifact(CoreHash(digest))?.is_some()
    {
        return Ok(PrefixResolution::One(HashTarget::Artifact(CoreHash(digest))));
    }
    let Resolution { artifacts, captures, .. } = snapshot.resolve(prefix, MAX_CANDIDATES)?;
    let artifacts: BTreeSet<CoreHash> = artifacts.into_iter().collect();
    // A document in canonical form has its core hash as its capture hash too. The artifact takes precedence: adding
    // that document must not change what its hash resolves to.
    let captures = captures.into_iter().filter(|target| !artifacts.contains(&CoreHash(target.capture.0)));
    let captures: Vec<HashTarget> =
        captures.map(|target| HashTarget::Capture(target.artifact, target.capture)).collect();
    let mut candidates: Vec<HashTarget> =
        artifacts.into_iter().map(HashTarget::Artifact).chain(captures).collect();
    candidates.sort_unstable_by_key(|candidate| (candidate.digest(), *candidate));
    Ok(candidates.into_iter().collect())
}

/// Resolves `prefix` among the mentioned digests, in any role or in those of one group. A full digest resolves to
/// itself, mentioned or not. If the prefix is ambiguous, returns the first 20 candidates.
pub(crate) fn resolve_mentioned(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
    group: Option<&str>,
) -> Result<PrefixResolution<Digest>> {
    if let Some(digest) = prefix.whole() {
        return Ok(PrefixResolution::One(digest));
    }
    Ok(snapshot.mentioned_with_prefix(prefix, group, MAX_CANDIDATES)?.into_iter().collect())
}
