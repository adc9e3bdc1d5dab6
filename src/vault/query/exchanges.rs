//! Exchanges: prompts with their responses, which runs and sessions share.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::fork::Shared;
use super::forks;
use super::histories::Histories;
use super::location::location;
use crate::artifact::group;
use crate::digest::{CoreHash, Digest};
use crate::storage::{ArtifactRecord, Result, Snapshot};

pub(super) type Pair = (Digest, Digest);

/// The roles of prompts and of responses.
const PROMPT: &str = group::PROMPT;
const RESPONSE: &str = group::RESPONSE;

/// The exchanges of an artifact.
pub(super) struct Exchanges {
    is_recording: bool,
    pairs: BTreeMap<Pair, Places>,
}

/// The locations of an exchange, formatted as text.
struct Places {
    /// The first location of the prompt with this response.
    first: String,
    /// The first location of both the prompt and the response.
    both: Option<String>,
}

impl Exchanges {
    /// Reads the exchanges of an artifact. The response to a prompt is at the first location with a response at or
    /// after the prompt's.
    pub(super) fn read(snapshot: &dyn Snapshot, artifact: CoreHash) -> Result<Self> {
        let prompts = snapshot.mentions_of(artifact, PROMPT)?;
        let responses = snapshot.mentions_of(artifact, RESPONSE)?;
        let mut pairs: BTreeMap<Pair, Places> = BTreeMap::new();
        let mut is_recording = true;
        for prompt in &prompts {
            let first = responses.partition_point(|response| response.place < prompt.place);
            let answers = responses.get(first..).unwrap_or_default();
            let at = answers.first().map(|answer| &answer.place);
            let is_at_once = at == Some(&prompt.place);
            is_recording &= is_at_once;
            for answer in answers.iter().take_while(|answer| Some(&answer.place) == at) {
                let places = pairs
                    .entry((prompt.digest, answer.digest))
                    .or_insert_with(|| Places { first: location(prompt), both: None });
                if is_at_once && places.both.is_none() {
                    places.both = Some(location(prompt));
                }
            }
        }
        Ok(Self { is_recording, pairs })
    }

    /// Returns whether each prompt is at the same location as its response, as in a session. In runs they are at
    /// different steps.
    pub(super) fn is_recording(&self) -> bool {
        self.is_recording
    }

    /// Returns the artifacts that share one of these exchanges, if exactly one of the two is a recording: each with the
    /// locations of the first such exchange in this artifact and in the other. Exchanges in `passed` are skipped; those
    /// examined are added to it.
    pub(super) fn shared_with_others(
        &self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
        known: &mut ExchangeCache,
        mut passed: Option<&mut HashSet<(bool, Pair)>>,
    ) -> Result<BTreeMap<CoreHash, (String, String)>> {
        let mut is_new =
            |pair: &Pair| passed.as_mut().is_none_or(|passed| passed.insert((self.is_recording, *pair)));
        let pairs: Vec<_> = self.pairs.iter().filter(|(pair, _)| is_new(pair)).collect();
        known.learn(snapshot, artifact, pairs.iter().map(|(pair, _)| *pair))?;
        let mut shared = BTreeMap::new();
        for (pair, ours) in pairs {
            for (other, theirs) in known.sharers(artifact, self.is_recording, pair) {
                shared.entry(*other).or_insert_with(|| (ours.first.clone(), theirs.clone()));
            }
        }
        Ok(shared)
    }
}

/// A cache of lookups. Very many artifacts may share an exchange or a header, and a traversal reaches each of them.
#[derive(Default)]
pub(super) struct ExchangeCache {
    /// By the kind of the queried artifact: recordings and runs are of different kinds.
    by_kind: HashMap<String, OfKind>,
    histories: HashMap<Shared, Histories>,
    /// The number of cached exchanges, histories, and artifacts that have them.
    size: usize,
}

/// The cached data for artifacts of one kind.
#[derive(Default)]
struct OfKind {
    /// The other kinds that have exchanges.
    others: Option<Vec<String>>,
    /// The artifacts that may mention a digest, by core hash.
    of_digest: HashMap<Digest, Vec<CoreHash>>,
    sharers: BTreeMap<Pair, Artifacts>,
}

/// The artifacts with an exchange.
#[derive(Default)]
struct Artifacts {
    /// Those with both digests at one location, and that location as text.
    together: Vec<(CoreHash, String)>,
    /// The others, with the location of the prompt.
    apart: Vec<(CoreHash, String)>,
}

impl ExchangeCache {
    /// Maximum number of cached exchanges and of their artifacts.
    const MOST: usize = 1 << 20;

    /// Clears the cache if it exceeds its limit. Artifacts queried together share most exchanges, others few.
    pub(super) fn forget_what_is_too_much(&mut self) {
        if self.size > Self::MOST {
            *self = Self::default();
        }
    }

    /// Returns the artifacts with an exchange: recordings for runs, and runs for recordings.
    pub(super) fn sharers(
        &self,
        artifact: &ArtifactRecord,
        is_recording: bool,
        pair: &Pair,
    ) -> &[(CoreHash, String)] {
        let of_kind = self.by_kind.get(&artifact.kind);
        let Some(sharers) = of_kind.and_then(|of_kind| of_kind.sharers.get(pair)) else { return &[] };
        if is_recording { &sharers.apart } else { &sharers.together }
    }

    /// Returns the histories that share this.
    pub(super) fn histories(&mut self, snapshot: &dyn Snapshot, shared: &Shared) -> Result<&Histories> {
        match self.histories.entry(shared.clone()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let histories = forks::histories(snapshot, shared)?;
                self.size += histories.len();
                Ok(unknown.insert(histories))
            }
        }
    }

    /// Finds the artifacts of other kinds than `artifact` that have these exchanges. Each candidate is read once for
    /// all exchanges.
    pub(super) fn learn<'p>(
        &mut self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
        pairs: impl Iterator<Item = &'p Pair>,
    ) -> Result<()> {
        let mut of_kind = self.by_kind.remove(&artifact.kind).unwrap_or_default();
        let mut to_read: BTreeMap<CoreHash, Vec<Pair>> = BTreeMap::new();
        for pair @ (prompt, response) in pairs {
            if of_kind.sharers.contains_key(pair) {
                continue;
            }
            of_kind.sharers.insert(*pair, Artifacts::default());
            self.size += 1;
            for other in self.candidates(snapshot, artifact, &mut of_kind, [*prompt, *response])? {
                to_read.entry(other).or_default().push(*pair);
            }
        }
        for (other, pairs) in to_read {
            let mut exchanges = Exchanges::read(snapshot, other)?;
            for pair in pairs {
                let Some(places) = exchanges.pairs.remove(&pair) else { continue };
                let Some(sharers) = of_kind.sharers.get_mut(&pair) else { continue };
                match places.both {
                    Some(both) => sharers.together.push((other, both)),
                    None => sharers.apart.push((other, places.first)),
                }
                self.size += 1;
            }
        }
        self.by_kind.insert(artifact.kind.clone(), of_kind);
        Ok(())
    }

    /// Returns the artifacts of other kinds that may mention both digests, using only the index: reading their mentions
    /// for each digest would take quadratic time.
    fn candidates(
        &mut self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
        of_kind: &mut OfKind,
        digests: [Digest; 2],
    ) -> Result<Vec<CoreHash>> {
        self.look_up(snapshot, artifact, of_kind, digests)?;
        let of = |digest| of_kind.of_digest.get(digest).map(Vec::as_slice).unwrap_or_default();
        let [one, other] = digests.each_ref().map(of);
        let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
        Ok(few.iter().filter(|artifact| many.binary_search(artifact).is_ok()).copied().collect())
    }

    fn look_up(
        &mut self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
        of_kind: &mut OfKind,
        digests: [Digest; 2],
    ) -> Result<()> {
        let mut unknown = digests.to_vec();
        unknown.retain(|digest| !of_kind.of_digest.contains_key(digest));
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        let others = if let Some(others) = of_kind.others.take() {
            others
        } else {
            let mut kinds = snapshot.kinds_with_group(PROMPT)?;
            kinds.retain(|kind| *kind != artifact.kind);
            kinds
        };
        let found = snapshot.candidates(&unknown, &others)?;
        of_kind.others = Some(others);
        for (digest, artifacts) in unknown.into_iter().zip(found) {
            self.size += artifacts.len();
            of_kind.of_digest.insert(digest, artifacts);
        }
        Ok(())
    }
}
