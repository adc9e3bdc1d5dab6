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
    ) -> Result<BTreeMap<ArtifactId, (String, String)>> {
        let mut shared = BTreeMap::new();
        let mut examined: BTreeMap<ArtifactId, Self> = BTreeMap::new();
        for ((prompt, response), ours) in &self.pairs {
            let answers = by_artifact(snapshot.mentioning(*response, Some("response"))?);
            for (other, prompts) in by_artifact(snapshot.mentioning(*prompt, Some("prompt"))?) {
                if other == artifact || shared.contains_key(&other) {
                    continue;
                }
                // Both digests are needed, and few artifacts have both by chance.
                let Some(answers) = answers.get(&other) else { continue };
                let together = prompts.iter().find(|prompt| has_place(answers, &prompt.place));
                if self.is_recording == together.is_some() {
                    continue;
                }
                let theirs = if let Some(prompt) = together {
                    Some(place(prompt))
                } else {
                    let theirs = match examined.entry(other) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(unknown) => unknown.insert(Self::of(snapshot, other)?),
                    };
                    theirs.pairs.get(&(*prompt, *response)).cloned()
                };
                if let Some(theirs) = theirs {
                    shared.insert(other, (ours.clone(), theirs));
                }
            }
        }
        Ok(shared)
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
