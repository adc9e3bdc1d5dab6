//! Prompts with the responses that answer them: what runs and sessions have in common.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::links::place;
use crate::artifact::Place;
use crate::digest::Digest;
use crate::store::{ArtifactId, MentionRow, Result, Snapshot};

/// The exchanges of an artifact, with the place of the prompt in words.
pub(super) struct Exchanges {
    is_recording: bool,
    pairs: BTreeMap<(Digest, Digest), String>,
}

impl Exchanges {
    /// The response to a prompt is what the first place at or after the prompt's carries.
    pub(super) fn of(snapshot: &Snapshot<'_>, artifact: ArtifactId) -> Result<Self> {
        let prompts = snapshot.mentions_of(artifact, "prompt")?;
        let responses = snapshot.mentions_of(artifact, "response")?;
        let mut pairs = BTreeMap::new();
        let mut is_recording = true;
        for prompt in &prompts {
            let first = responses.partition_point(|response| response.place < prompt.place);
            let answers = responses.get(first..).unwrap_or_default();
            let at = answers.first().map(|answer| &answer.place);
            is_recording &= at == Some(&prompt.place);
            for answer in answers.iter().take_while(|answer| Some(&answer.place) == at) {
                pairs.entry((prompt.digest, answer.digest)).or_insert_with(|| place(prompt));
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
        let mut shared = BTreeMap::new();
        for (pair, ours) in &self.pairs {
            let sharers = match known.sharers.entry(*pair) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let sharers = unknown.insert(Sharers::of(snapshot, *pair)?);
                    known.size += 1 + sharers.together.len() + sharers.apart.len();
                    sharers
                }
            };
            if !self.is_recording {
                for (other, theirs) in sharers.together.iter().filter(|(other, _)| *other != artifact) {
                    shared.entry(*other).or_insert_with(|| (ours.clone(), theirs.clone()));
                }
                continue;
            }
            for other in sharers.apart.iter().filter(|other| **other != artifact) {
                if shared.contains_key(other) {
                    continue;
                }
                let theirs = match known.exchanges.entry(*other) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => {
                        let exchanges = unknown.insert(Self::of(snapshot, *other)?);
                        known.size += 1 + exchanges.pairs.len();
                        exchanges
                    }
                };
                if let Some(theirs) = theirs.pairs.get(pair) {
                    shared.insert(*other, (ours.clone(), theirs.clone()));
                }
            }
        }
        Ok(shared)
    }
}

/// What was looked up already. Very many artifacts may share an exchange, and a walk comes to each of them.
#[derive(Default)]
pub(super) struct Known {
    exchanges: BTreeMap<ArtifactId, Exchanges>,
    sharers: BTreeMap<(Digest, Digest), Sharers>,
    /// How many exchanges, and artifacts that have them, that is.
    size: usize,
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
}

/// Who has both digests of an exchange.
#[derive(Default)]
struct Sharers {
    /// Those that have them at one place, and that place in words.
    together: Vec<(ArtifactId, String)>,
    /// The others.
    apart: Vec<ArtifactId>,
}

impl Sharers {
    fn of(snapshot: &Snapshot<'_>, (prompt, response): (Digest, Digest)) -> Result<Self> {
        let mut sharers = Self::default();
        let answers = by_artifact(snapshot.mentioning(response, Some("response"))?);
        // One of them is whoever asks.
        if answers.len() < 2 {
            return Ok(sharers);
        }
        for (artifact, prompts) in by_artifact(snapshot.mentioning(prompt, Some("prompt"))?) {
            // Both digests are needed, and few artifacts have both by chance.
            let Some(answers) = answers.get(&artifact) else { continue };
            match prompts.iter().find(|prompt| has_place(answers, &prompt.place)) {
                Some(prompt) => sharers.together.push((artifact, place(prompt))),
                None => sharers.apart.push(artifact),
            }
        }
        Ok(sharers)
    }
}

fn by_artifact(mentions: Vec<MentionRow>) -> BTreeMap<ArtifactId, Vec<MentionRow>> {
    let mut grouped: BTreeMap<ArtifactId, Vec<MentionRow>> = BTreeMap::new();
    for mention in mentions {
        grouped.entry(mention.artifact).or_default().push(mention);
    }
    grouped
}

fn has_place(mentions: &[MentionRow], place: &Place) -> bool {
    mentions.iter().any(|mention| mention.place == *place)
}
