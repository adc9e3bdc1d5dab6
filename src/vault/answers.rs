//! Compares the answers that models gave to the same prompts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{PlaceSummary, Timestamp};
use super::find::{ArtifactFilter, Condition};
use super::query::{self, FindQuery, Hit, RunGroups};
use super::resolve::LookupError;
use super::view::{ViewBody, prompt_texts};
use super::{Vault, limit_of};
use crate::artifact::{BodyContent, BodyRole, Exchange, Kind, Responder, group};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::{AttributeRecord, Filter, Order, Snapshot, StorageError, TimeBasis, created_at};

/// A request for the answers to a prompt, or for the prompts of a set of artifacts that were answered differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnswersRequest {
    /// The artifacts whose answers are compared.
    pub filter: ArtifactFilter,
    /// The only artifacts that can match; any if empty.
    pub artifacts: Vec<CoreHash>,
    /// The prompt; every prompt with different answers if there is none.
    pub prompt: Option<Digest>,
    /// Whether every prompt with several answers is returned, also if they are all the same: the last texts of requests, and
    /// requests as a whole.
    pub repeated: bool,
    /// Maximum number of artifacts that are read, last seen first; unlimited if there is none.
    pub limit: Option<u64>,
    /// Maximum number of characters of each text; unlimited if there is none.
    pub max_text: Option<u64>,
}

/// The answers to prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswersAnswer {
    /// The prompts, by the time of their first answer.
    pub prompts: Vec<PromptAnswers>,
    /// Number of artifacts that were read.
    pub read: u64,
    /// Whether there are more artifacts than were read.
    pub is_more: bool,
    /// Number of prompts with several answers that are all the same. They are listed only on request, or if one was requested.
    pub unanimous: u64,
}

/// A prompt and its answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromptAnswers {
    /// The digest of the prompt.
    pub prompt_hash: Digest,
    /// The text of the prompt, if an artifact in the vault records it.
    pub prompt: Option<ViewBody>,
    /// Number of answers.
    pub count: u64,
    /// The different answers, by the time at which each was first given.
    pub answers: Vec<DistinctAnswer>,
}

/// An answer, with every time at which it was given. What several recordings of one run state was given once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DistinctAnswer {
    /// The text, or the message of the error.
    pub response: ViewBody,
    /// Whether the call failed, so that there was no response.
    pub failed: bool,
    /// Number of times that it was given.
    pub count: u64,
    /// Where and when it was given, by time.
    pub given: Vec<GivenAnswer>,
}

/// An answer in an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GivenAnswer {
    /// The artifact.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The location of the answer.
    pub place: PlaceSummary,
    /// The time: that of creation if the artifact states it, else that of its first addition.
    pub time: Timestamp,
    /// Which time it is.
    pub time_basis: TimeBasis,
    /// The model, if the artifact names one.
    pub model_id: Option<String>,
}

/// The attribute with the model.
const MODEL: &str = "model_id";

impl AnswersRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if this program cannot interpret a document, and [`LookupError::Store`] if
    /// the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<AnswersAnswer, LookupError> {
        let snapshot = vault.snapshot()?;
        let mut gathered =
            AnswerAccumulator { most: self.max_text.unwrap_or(u64::MAX), ..AnswerAccumulator::default() };
        let limit = limit_of(self.limit);
        query::find_until(&*snapshot, &self.query(), None, &mut |hit| {
            if gathered.read == limit {
                gathered.is_more = true;
                return Ok(false);
            }
            gathered.read += 1;
            gathered.take(&*snapshot, &hit, self).map(|()| true)
        })?;
        gathered.keep_one_kind_of_each_run(&*snapshot)?;
        gathered.answer(&*snapshot, self)
    }

    /// Returns the query of the artifacts that record responses and match the filter.
    fn query(&self) -> FindQuery {
        let mut filter = self.filter.clone();
        if filter.kinds.is_empty() {
            let recording = formats::ALL.into_iter().filter(|kind| kind.info().playback.is_some());
            filter.kinds = recording.map(|kind| kind.name().to_owned()).collect();
        }
        if let Some(digest) = self.prompt {
            let mention = Condition::Mention { group: Some(group::PROMPT.to_owned()), digest };
            if !filter.conditions.contains(&mention) {
                filter.conditions.push(mention);
            }
        }
        let among = (!self.artifacts.is_empty()).then(|| self.artifacts.clone());
        FindQuery {
            filter: Filter { among, ..(&filter).into() },
            order: Order::Newest(TimeBasis::LastSeen),
            limit: None,
        }
    }
}

/// The answers read so far, by prompt and by the digest of the response.
#[derive(Default)]
struct AnswerAccumulator {
    prompts: BTreeMap<Digest, BTreeMap<(Digest, bool), DistinctAnswer>>,
    read: usize,
    is_more: bool,
    most: u64,
}

impl AnswerAccumulator {
    /// Reads the requested answers of an artifact.
    fn take(
        &mut self,
        snapshot: &dyn Snapshot,
        hit: &Hit,
        request: &AnswersRequest,
    ) -> Result<(), LookupError> {
        let core = hit.artifact.core;
        let Some(kind) = formats::named(&hit.artifact.kind) else { return Ok(()) };
        let Some(capture) = snapshot.preferred_capture(core)? else { return Ok(()) };
        let members = snapshot.read_members(core, capture.capture)?;
        let document = members.first().map(|member| member.bytes.as_slice()).unwrap_or_default();
        let exchanges = kind
            .exchanges(document)
            .map_err(|error| LookupError::Unreadable { core, message: error.to_string() })?;
        drop(members);
        let attributes = snapshot.attributes_of(core)?;
        for (prompt, exchange) in answered(&exchanges, request) {
            let given = GivenAnswer::new(hit, kind, exchange, &attributes);
            self.add(prompt, exchange, given);
        }
        Ok(())
    }

    fn add(&mut self, prompt: Digest, exchange: &Exchange, given: GivenAnswer) {
        let (text, failed) = (exchange.said.as_deref().unwrap_or(&exchange.response), exchange.is_error);
        let digest = Digest::from_content(text.as_bytes());
        let most = self.most;
        let answer = self.prompts.entry(prompt).or_default().entry((digest, failed)).or_insert_with(|| {
            let content = BodyContent::Text(text.into());
            let role = if failed { BodyRole::Error } else { BodyRole::Response };
            DistinctAnswer {
                response: ViewBody::new(role, &content, most),
                failed,
                count: 0,
                given: Vec::new(),
            }
        });
        answer.given.push(given);
    }

    /// Leaves out what several recordings of one run state: a run, such as one with a session and a run pack, gives an answer
    /// as often as the recordings of one of these kinds say.
    fn keep_one_kind_of_each_run(&mut self, snapshot: &dyn Snapshot) -> Result<(), StorageError> {
        let answers = || self.prompts.values().flat_map(BTreeMap::values);
        let mut cores: Vec<CoreHash> =
            answers().flat_map(|answer| &answer.given).map(|given| given.core_hash).collect();
        cores.sort_unstable();
        cores.dedup();
        let groups = RunGroups::find(snapshot, &cores)?;
        for answer in self.prompts.values_mut().flat_map(BTreeMap::values_mut) {
            answer.keep_one_kind_of_each_run(&groups);
        }
        Ok(())
    }

    fn answer(self, snapshot: &dyn Snapshot, request: &AnswersRequest) -> Result<AnswersAnswer, LookupError> {
        let Self { prompts, read, is_more, most } = self;
        let mut listed = Vec::new();
        let mut unanimous = 0;
        for (prompt_hash, answers) in prompts {
            let count = answers.values().map(|answer| answer.count).sum();
            if answers.len() == 1 {
                unanimous += u64::from(count > 1);
                if request.prompt.is_none() && !(request.repeated && count > 1) {
                    continue;
                }
            }
            let answers = in_order(answers.into_values());
            listed.push(PromptAnswers { prompt_hash, prompt: None, count, answers });
        }
        listed.sort_by_key(|prompt| (first_time(&prompt.answers), prompt.prompt_hash));
        let digests: Vec<Digest> = listed.iter().map(|prompt| prompt.prompt_hash).collect();
        let mut texts = prompt_texts(snapshot, &digests, most)?;
        for prompt in &mut listed {
            prompt.prompt = texts.remove(&prompt.prompt_hash);
        }
        Ok(AnswersAnswer { prompts: listed, read: read as u64, is_more, unanimous })
    }
}

/// Returns the answers of models with their prompts. A request is known by its last text; other texts, such as
/// instructions, are answered only if no request has them as its last.
fn answered<'e>(exchanges: &'e [Exchange], request: &AnswersRequest) -> Vec<(Digest, &'e Exchange)> {
    let of_models = || exchanges.iter().filter(|exchange| exchange.responder == Responder::Model);
    let last = of_models().filter_map(|exchange| Some((*exchange.prompts.last()?, exchange)));
    let Some(requested_prompt) = request.prompt else {
        let mut answered: Vec<_> = last.collect();
        if request.repeated {
            // The digest of a whole request precedes those of its texts.
            let texts: BTreeSet<Digest> = answered.iter().map(|(prompt, _)| *prompt).collect();
            let whole = of_models().filter_map(|exchange| Some((*exchange.prompts.first()?, exchange)));
            answered.extend(whole.filter(|(prompt, _)| !texts.contains(prompt)));
        }
        return answered;
    };
    let matching: Vec<_> = last.filter(|(prompt, _)| *prompt == requested_prompt).collect();
    if !matching.is_empty() {
        return matching;
    }
    of_models()
        .filter(|one| one.prompts.contains(&requested_prompt))
        .map(|exchange| (requested_prompt, exchange))
        .collect()
}

/// Returns answers in the order in which each was first given.
fn in_order(answers: impl Iterator<Item = DistinctAnswer>) -> Vec<DistinctAnswer> {
    let mut answers: Vec<DistinctAnswer> = answers.collect();
    for answer in &mut answers {
        answer.given.sort_by_key(|given| (given.time, given.core_hash));
    }
    answers.sort_by_key(|answer| answer.given.first().map(|given| given.time));
    answers
}

fn first_time(answers: &[DistinctAnswer]) -> Option<Timestamp> {
    answers.first().and_then(|answer| answer.given.first()).map(|given| given.time)
}

/// How often recordings of a kind state an answer of a run, and the position of the first of them in the run.
type RecordingRank = (usize, Reverse<usize>);

impl DistinctAnswer {
    /// Keeps the places in recordings of one kind of each run: that which has most of them, and the first of several such.
    fn keep_one_kind_of_each_run(&mut self, groups: &RunGroups) {
        let mut ranks: BTreeMap<(Option<usize>, String), RecordingRank> = BTreeMap::new();
        for GivenAnswer { core_hash, kind, .. } in &self.given {
            let run = groups.number_of(*core_hash);
            let members = run.map(|run| groups.members(run)).unwrap_or_default();
            let position = Reverse(members.iter().position(|core| core == core_hash).unwrap_or(usize::MAX));
            let (count, first) = ranks.entry((run, kind.clone())).or_insert((0, position));
            (*count, *first) = (*count + 1, position.max(*first));
        }
        let mut kept: BTreeMap<Option<usize>, (RecordingRank, String)> = BTreeMap::new();
        for ((run, kind), rank) in ranks {
            if kept.get(&run).is_none_or(|(best, _)| rank > *best) {
                kept.insert(run, (rank, kind));
            }
        }
        let kind_of =
            |given: &GivenAnswer| kept.get(&groups.number_of(given.core_hash)).map(|(_, kind)| kind);
        self.given.retain(|given| kind_of(given) == Some(&given.kind));
        self.count = self.given.len() as u64;
    }
}

impl GivenAnswer {
    fn new(hit: &Hit, kind: Kind, exchange: &Exchange, attributes: &[AttributeRecord]) -> Self {
        let created = created_at(attributes);
        let mut models = attributes.iter().filter(|attribute| attribute.name == MODEL);
        let model = models.next().filter(|_| models.next().is_none());
        let index = u32::try_from(exchange.index).unwrap_or(u32::MAX);
        Self {
            core_hash: hit.artifact.core,
            kind: hit.artifact.kind.clone(),
            place: PlaceSummary::Index { unit: kind.info().step_noun.to_owned(), index },
            time: created.unwrap_or(hit.artifact.added_at).into(),
            time_basis: if created.is_some() { TimeBasis::Created } else { TimeBasis::FirstSeen },
            model_id: model.map(|model| model.value.clone()),
        }
    }
}
