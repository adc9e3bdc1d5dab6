//! Prompts with the responses that answer them: what runs and sessions have in common.

use std::collections::{BTreeMap, HashMap};

use super::links::place;
use crate::digest::Digest;
use crate::store::check::CaptureId;
use crate::store::{ArtifactId, Result, Snapshot};

type Pair = (Digest, Digest);

/// The exchanges of an artifact.
pub(super) struct Exchanges {
    is_recording: bool,
    pairs: BTreeMap<Pair, Places>,
}

/// Where an exchange stands, in words.
struct Places {
    /// The first place of the prompt with this response.
    first: String,
    /// The first place that has both the prompt and the response.
    both: Option<String>,
}

impl Exchanges {
    /// The response to a prompt is what the first place at or after the prompt's carries.
    pub(super) fn of(snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<Self> {
        let prompts = snapshot.mentions_of(artifact, "prompt")?;
        let responses = snapshot.mentions_of(artifact, "response")?;
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
                    .or_insert_with(|| Places { first: place(prompt), both: None });
                if is_at_once && places.both.is_none() {
                    places.both = Some(place(prompt));
                }
            }
        }
        Ok(Self { is_recording, pairs })
    }

    /// Whether each prompt stands at the place of its response, as in a session. In runs they stand at different steps.
    pub(super) fn is_recording(&self) -> bool {
        self.is_recording
    }

    /// Who else has one of these exchanges, if one of both is a recording and the other is not: the other artifact, and
    /// the places of the first such exchange here and there.
    pub(super) fn shared_with_others(
        &self,
        snapshot: &Snapshot<'_>,
        artifact: ArtifactId,
        known: &mut Known,
    ) -> Result<BTreeMap<ArtifactId, (String, String)>> {
        known.learn(snapshot, self.pairs.keys())?;
        let mut shared = BTreeMap::new();
        for (pair, ours) in &self.pairs {
            let Some(sharers) = known.sharers.get(pair) else { continue };
            let others = if self.is_recording { &sharers.apart } else { &sharers.together };
            for (other, theirs) in others.iter().filter(|(other, _)| *other != artifact) {
                shared.entry(*other).or_insert_with(|| (ours.first.clone(), theirs.clone()));
            }
        }
        Ok(shared)
    }
}

/// What was looked up already. Very many artifacts may share an exchange, and a walk comes to each of them.
#[derive(Default)]
pub(super) struct Known {
    sharers: BTreeMap<Pair, Sharers>,
    /// How many exchanges, and artifacts that have them, that is.
    size: usize,
}

/// Who has an exchange.
#[derive(Default)]
struct Sharers {
    /// Those that have both digests at one place, and that place in words.
    together: Vec<(ArtifactId, String)>,
    /// The others, with the place of the prompt.
    apart: Vec<(ArtifactId, String)>,
}

impl Known {
    /// So many exchanges, and artifacts that have them, are kept at most.
    const MOST: usize = 1 << 20;

    /// Forgets everything if it is too much. Those who come together have much in common, and others little.
    pub(super) fn forget_what_is_too_much(&mut self) {
        if self.size > Self::MOST {
            *self = Self::default();
        }
    }

    /// Finds out who has these exchanges. Everybody who may have one is read once, however many they are.
    fn learn<'p>(&mut self, snapshot: &Snapshot<'_>, pairs: impl Iterator<Item = &'p Pair>) -> Result<()> {
        let mut candidates = Candidates { snapshot, of_capture: HashMap::new(), of_digest: HashMap::new() };
        let mut to_read: BTreeMap<ArtifactId, Vec<Pair>> = BTreeMap::new();
        for pair @ (prompt, response) in pairs {
            if self.sharers.contains_key(pair) {
                continue;
            }
            self.sharers.insert(*pair, Sharers::default());
            self.size += 1;
            let both = candidates.of_both(*prompt, *response)?;
            // One of them is whoever asks.
            let are_several = both.len() > 1;
            for artifact in both.into_iter().filter(|_| are_several) {
                to_read.entry(artifact).or_default().push(*pair);
            }
        }
        for (artifact, pairs) in to_read {
            let mut exchanges = Exchanges::of(snapshot, artifact)?;
            for pair in pairs {
                let Some(places) = exchanges.pairs.remove(&pair) else { continue };
                let Some(sharers) = self.sharers.get_mut(&pair) else { continue };
                match places.both {
                    Some(both) => sharers.together.push((artifact, both)),
                    None => sharers.apart.push((artifact, places.first)),
                }
                self.size += 1;
            }
        }
        Ok(())
    }
}

/// Who may mention a digest, by the index alone: reading what they mention for each digest would take the square of it.
struct Candidates<'s> {
    snapshot: &'s Snapshot<'s>,
    of_capture: HashMap<CaptureId, Option<ArtifactId>>,
    of_digest: HashMap<Digest, Vec<ArtifactId>>,
}

impl Candidates<'_> {
    /// Who may mention both digests, in their order.
    fn of_both(&mut self, one: Digest, other: Digest) -> Result<Vec<ArtifactId>> {
        self.look_up(one)?;
        self.look_up(other)?;
        let of = |digest| self.of_digest.get(digest).map(Vec::as_slice).unwrap_or_default();
        let (few, many) = if of(&one).len() < of(&other).len() { (&one, &other) } else { (&other, &one) };
        let has = |artifact: &&ArtifactId| of(many).binary_search(artifact).is_ok();
        Ok(of(few).iter().filter(has).copied().collect())
    }

    fn look_up(&mut self, digest: Digest) -> Result<()> {
        if self.of_digest.contains_key(&digest) {
            return Ok(());
        }
        let mut artifacts = Vec::new();
        for capture in self.snapshot.may_mention(digest)? {
            let artifact = match self.of_capture.get(&capture) {
                Some(artifact) => *artifact,
                None => *self.of_capture.entry(capture).or_insert(self.snapshot.artifact_of(capture)?),
            };
            artifacts.extend(artifact);
        }
        artifacts.sort_unstable();
        artifacts.dedup();
        self.of_digest.insert(digest, artifacts);
        Ok(())
    }
}
