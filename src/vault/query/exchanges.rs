//! Exchanges, which runs and sessions share: prompts with their responses, where they are, and a cache of who has them.

use std::collections::{BTreeMap, BTreeSet, HashSet, hash_map};
use std::fmt;
use std::sync::Arc;

use foldhash::HashMap;

use crate::artifact::{ArtifactLocation, group};
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{DigestPair, Sharers, SharersQuery};
use crate::storage::{ArtifactRecord, MentionRecord, Result, Snapshot};

/// Formats the location of a mention: `interaction 3`, or its pointer.
pub(crate) fn location_text(mention: &MentionRecord) -> String {
    MentionLocation::of(mention).to_string()
}

/// Describes a name by which artifacts are linked, such as `run:17`.
pub(super) fn identified_by(handle: &str) -> String {
    match handle.split_once(':') {
        Some((namespace, name)) => format!("{namespace} id {name}"),
        None => handle.to_owned(),
    }
}

pub(super) type ExchangeDigests = (Digest, Digest);

/// The roles of prompts and of responses.
const PROMPT: &str = group::PROMPT;
const RESPONSE: &str = group::RESPONSE;

/// Number of exchanges that are looked up at a time.
const PAIRS: usize = 20_000;

/// Number of artifacts whose mentions are read at a time.
const CANDIDATES: usize = 256;

/// The exchanges of an artifact.
pub(super) struct Exchanges {
    is_recording: bool,
    /// The exchanges with their locations, sorted.
    pairs: Vec<(ExchangeDigests, ExchangeLocations)>,
    /// Whether it has further ones.
    has_more: bool,
}

/// The locations of an exchange.
struct ExchangeLocations {
    /// The first location of the prompt with this response.
    first: MentionLocation,
    /// The first location of both the prompt and the response.
    both: Option<MentionLocation>,
}

/// The location of a mention.
#[derive(Clone)]
struct MentionLocation {
    unit: Arc<str>,
    place: ArtifactLocation,
}

impl MentionLocation {
    fn of(mention: &MentionRecord) -> Self {
        Self { unit: Arc::clone(&mention.unit), place: mention.place.clone() }
    }
}

/// Formats a location: `interaction 3`, or a pointer.
impl fmt::Display for MentionLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, place } = self;
        match &**unit {
            "" => place.fmt(formatter),
            unit => write!(formatter, "{unit} {place}"),
        }
    }
}

impl Exchanges {
    /// The groups of mentions that [`Exchanges::new`] needs.
    pub(super) const GROUPS: [&'static str; 2] = [PROMPT, RESPONSE];

    /// Finds the exchanges of an artifact with these mentions of prompts and of responses, of which only those `wanted` are
    /// kept. The response to a prompt is at the first location with a response at or after the prompt's.
    pub(super) fn new(
        prompts: &[MentionRecord],
        responses: &[MentionRecord],
        wanted: impl Fn(&Digest) -> bool,
    ) -> Self {
        let mut pairs: Vec<(ExchangeDigests, ExchangeLocations)> = Vec::new();
        let (mut is_recording, mut has_more) = (true, false);
        for prompt in prompts {
            let first = responses.partition_point(|response| response.place < prompt.place);
            let answers = responses.get(first..).unwrap_or_default();
            let at = answers.first().map(|answer| &answer.place);
            let is_at_once = at == Some(&prompt.place);
            is_recording &= is_at_once;
            for answer in answers.iter().take_while(|answer| Some(&answer.place) == at) {
                if !wanted(&answer.digest) {
                    has_more = true;
                    continue;
                }
                let first = MentionLocation::of(prompt);
                let both = is_at_once.then(|| first.clone());
                pairs.push(((prompt.digest, answer.digest), ExchangeLocations { first, both }));
            }
        }
        // Equal ones stay in the order of their locations.
        pairs.sort_by_key(|(pair, _)| *pair);
        pairs.dedup_by(|(later, places), (pair, kept)| {
            let is_same = later == pair;
            if is_same && kept.both.is_none() {
                kept.both = places.both.take();
            }
            is_same
        });
        Self { is_recording, pairs, has_more }
    }

    /// Returns whether each prompt is at the same location as its response, as in a session. In runs they are at
    /// different steps.
    pub(super) fn is_recording(&self) -> bool {
        self.is_recording
    }

    /// Returns whether all exchanges of `other` are among these, and it has any.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let is_all = !other.has_more && !other.pairs.is_empty();
        is_all && other.pairs.iter().all(|(pair, _)| self.locations(pair).is_some())
    }

    fn locations(&self, pair: &ExchangeDigests) -> Option<&ExchangeLocations> {
        let found = self.pairs.binary_search_by(|(other, _)| other.cmp(pair)).ok()?;
        self.pairs.get(found).map(|(_, locations)| locations)
    }

    /// Returns the artifacts that share one of these exchanges, if exactly one of the two is a recording: each with the
    /// locations of the first such exchange in this artifact and in the other. Exchanges in `passed` are skipped; those
    /// examined are added to it. `known` must have learned of the exchanges.
    pub(super) fn shared_with_others(
        &self,
        artifact: &ArtifactRecord,
        known: &ExchangeCache,
        mut passed: Option<&mut HashSet<(bool, ExchangeDigests)>>,
    ) -> BTreeMap<CoreHash, (String, String)> {
        let mut is_new = |pair: &ExchangeDigests| {
            passed.as_mut().is_none_or(|passed| passed.insert((self.is_recording, *pair)))
        };
        let mut shared = BTreeMap::new();
        for (pair, ours) in self.pairs.iter().filter(|(pair, _)| is_new(pair)) {
            for (other, theirs) in known.sharers(artifact, self.is_recording, pair) {
                shared.entry(*other).or_insert_with(|| (ours.first.to_string(), theirs.to_string()));
            }
        }
        shared
    }
}

/// A cache of lookups. Very many artifacts may share an exchange, and a traversal reaches each of them.
#[derive(Default)]
pub(super) struct ExchangeCache {
    /// By the kind of the queried artifact: recordings and runs are of different kinds.
    by_kind: HashMap<String, KindExchangeCache>,
    /// The number of cached exchanges, and of artifacts that have them.
    size: usize,
}

/// The cached data for artifacts of one kind.
#[derive(Default)]
struct KindExchangeCache {
    /// The other kinds that have exchanges.
    others: Option<Vec<String>>,
    /// The artifacts that may mention a digest, by core hash.
    of_digest: HashMap<Digest, Vec<CoreHash>>,
    sharers: HashMap<ExchangeDigests, ExchangeArtifacts>,
}

/// The artifacts with an exchange.
#[derive(Default)]
struct ExchangeArtifacts {
    /// Those with both digests at one location, and that location.
    together: Vec<(CoreHash, MentionLocation)>,
    /// The others, with the location of the prompt.
    apart: Vec<(CoreHash, MentionLocation)>,
}

impl ExchangeCache {
    /// Returns the artifacts with an exchange: recordings for runs, and runs for recordings.
    fn sharers(
        &self,
        artifact: &ArtifactRecord,
        is_recording: bool,
        pair: &ExchangeDigests,
    ) -> &[(CoreHash, MentionLocation)] {
        let of_kind = self.by_kind.get(&artifact.kind);
        let Some(sharers) = of_kind.and_then(|of_kind| of_kind.sharers.get(pair)) else { return &[] };
        if is_recording { &sharers.apart } else { &sharers.together }
    }

    /// Returns the number of cached exchanges, and of artifacts that have them.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Finds the artifacts of other kinds that may mention the responses of artifacts, which are given by kind.
    pub(super) fn learn_responses<'m>(
        &mut self,
        snapshot: &dyn Snapshot,
        responses: impl Iterator<Item = (&'m str, &'m MentionRecord)>,
    ) -> Result<()> {
        if snapshot.pairs().is_some() {
            return Ok(());
        }
        let mut by_kind: BTreeMap<&str, Vec<Digest>> = BTreeMap::new();
        for (kind, response) in responses {
            by_kind.entry(kind).or_default().push(response.digest);
        }
        by_kind.into_iter().try_for_each(|(kind, digests)| self.find_candidates(snapshot, kind, digests))
    }

    /// Returns the exchanges of an artifact of a kind with these mentions of prompts and of responses. Those are left out whose
    /// response no artifact of another kind mentions, as far as that was learned.
    pub(super) fn of_artifact(
        &self,
        kind: &str,
        prompts: &[MentionRecord],
        responses: &[MentionRecord],
    ) -> Exchanges {
        let of_digest = self.by_kind.get(kind).map(|of_kind| &of_kind.of_digest);
        Exchanges::new(prompts, responses, |response| {
            let candidates = of_digest.and_then(|of_digest| of_digest.get(response));
            candidates.is_none_or(|artifacts| !artifacts.is_empty())
        })
    }

    /// Finds, for the exchanges of artifacts of these kinds, the artifacts of other kinds that have them, and returns those
    /// that were not known. Each candidate is read once for all exchanges.
    pub(super) fn learn(
        &mut self,
        snapshot: &dyn Snapshot,
        all: &[(&str, &Exchanges)],
    ) -> Result<Vec<ArtifactRecord>> {
        let mut unknown: Vec<DigestPair> = Vec::new();
        for (kind, exchanges) in all {
            let (of_kind, other_than) =
                (self.by_kind.entry((*kind).to_owned()).or_default(), Arc::from(*kind));
            of_kind.sharers.reserve(exchanges.pairs.len());
            for (pair, _) in &exchanges.pairs {
                if let hash_map::Entry::Vacant(vacant) = of_kind.sharers.entry(*pair) {
                    vacant.insert(ExchangeArtifacts::default());
                    unknown
                        .push(DigestPair { digests: [pair.0, pair.1], other_than: Arc::clone(&other_than) });
                }
            }
        }
        self.size += unknown.len();
        let mut found = Vec::new();
        for pairs in unknown.chunks(PAIRS) {
            found.extend(self.look_up(snapshot, pairs)?);
        }
        Ok(found)
    }

    /// Finds the artifacts that have exchanges, and returns them.
    fn look_up(&mut self, snapshot: &dyn Snapshot, pairs: &[DigestPair]) -> Result<Vec<ArtifactRecord>> {
        let query = SharersQuery { pairs, groups: Exchanges::GROUPS, limit: CANDIDATES };
        let Sharers { candidates, mut artifacts, mut mentions } = match snapshot.pairs() {
            Some(engine) => engine.sharers(&query)?,
            None => self.candidates_by_digest(snapshot, pairs)?,
        };
        let mut to_read: BTreeMap<CoreHash, Vec<&DigestPair>> = BTreeMap::new();
        for (pair, candidates) in pairs.iter().zip(candidates) {
            for other in candidates {
                to_read.entry(other).or_default().push(pair);
            }
        }
        let to_read: Vec<_> = to_read.into_iter().collect();
        let mut sharers: BTreeSet<CoreHash> = BTreeSet::new();
        for others in to_read.chunks(CANDIDATES) {
            let mut unread: Vec<CoreHash> = others.iter().map(|(other, _)| *other).collect();
            unread.retain(|other| !mentions.contains_key(other));
            if !unread.is_empty() {
                let prompts = snapshot.mentions(&unread, Some(PROMPT))?;
                let responses = snapshot.mentions(&unread, Some(RESPONSE))?;
                let both = prompts.into_iter().zip(responses).map(<[Vec<MentionRecord>; 2]>::from);
                mentions.extend(unread.into_iter().zip(both));
            }
            for (other, pairs) in others {
                let [prompts, responses] = mentions.remove(other).unwrap_or_default();
                if self.add(*other, &Exchanges::new(&prompts, &responses, |_| true), pairs) {
                    sharers.insert(*other);
                }
            }
        }
        artifacts.retain(|artifact| sharers.remove(&artifact.core));
        if !sharers.is_empty() {
            artifacts.extend(snapshot.expect_artifacts(&sharers.into_iter().collect::<Vec<_>>())?);
        }
        Ok(artifacts)
    }

    /// Adds an artifact to those that have the exchanges of `pairs` which it does have, and returns whether it has any.
    fn add(&mut self, other: CoreHash, exchanges: &Exchanges, pairs: &[&DigestPair]) -> bool {
        let before = self.size;
        for DigestPair { digests: [prompt, response], other_than } in pairs {
            let pair = (*prompt, *response);
            let Some(places) = exchanges.locations(&pair) else { continue };
            let of_kind = self.by_kind.get_mut(&**other_than);
            let Some(sharers) = of_kind.and_then(|of_kind| of_kind.sharers.get_mut(&pair)) else { continue };
            match &places.both {
                Some(both) => sharers.together.push((other, both.clone())),
                None => sharers.apart.push((other, places.first.clone())),
            }
            self.size += 1;
        }
        self.size > before
    }

    /// Returns the artifacts that may mention both digests of pairs, for engines that are asked for single digests.
    fn candidates_by_digest(&mut self, snapshot: &dyn Snapshot, pairs: &[DigestPair]) -> Result<Sharers> {
        for pairs in pairs.chunk_by(|one, other| one.other_than == other.other_than) {
            let kind = pairs.first().map_or("", |pair| &pair.other_than);
            self.find_candidates(snapshot, kind, pairs.iter().flat_map(|pair| pair.digests).collect())?;
        }
        let candidates = pairs.iter().map(|pair| self.candidates(pair)).collect();
        Ok(Sharers { candidates, ..Sharers::default() })
    }

    /// Returns the artifacts of other kinds that may mention both digests, using only the index: reading their mentions
    /// for each digest would take quadratic time.
    fn candidates(&self, pair: &DigestPair) -> Vec<CoreHash> {
        let of_kind = self.by_kind.get(&*pair.other_than);
        let of = |digest| of_kind.and_then(|of_kind| of_kind.of_digest.get(digest));
        let [one, other] = pair.digests.each_ref().map(|digest| of(digest).map_or(&[][..], Vec::as_slice));
        let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
        few.iter().filter(|artifact| many.binary_search(artifact).is_ok()).copied().collect()
    }

    /// Finds the artifacts of other kinds than `kind` that may mention digests.
    fn find_candidates(
        &mut self,
        snapshot: &dyn Snapshot,
        kind: &str,
        mut digests: Vec<Digest>,
    ) -> Result<()> {
        let of_kind = self.by_kind.entry(kind.to_owned()).or_default();
        digests.retain(|digest| !of_kind.of_digest.contains_key(digest));
        // In their order, the index takes the least time.
        digests.sort_unstable();
        digests.dedup();
        if of_kind.others.is_none() {
            let mut kinds = snapshot.kinds_with_group(PROMPT)?;
            kinds.retain(|other| other != kind);
            of_kind.others = Some(kinds);
        }
        let others = of_kind.others.as_deref().unwrap_or_default();
        let found = snapshot.candidates(&digests, others)?;
        of_kind.of_digest.reserve(digests.len());
        for (digest, artifacts) in digests.into_iter().zip(found) {
            self.size += artifacts.len();
            of_kind.of_digest.insert(digest, artifacts);
        }
        Ok(())
    }
}
