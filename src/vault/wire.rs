//! Compares the session of an agent with the calls of models that a gateway recorded at the same time.
//!
//! A call of one and a call of the other are the same if the answers state the same id, or else if they say the same; each
//! call has at most one counterpart. What a session says of a call and what was sent must not contradict each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::resolve::LookupError;
use super::view::{
    ConversationCall, ConversationMessage, MessagePart, MessageRole, MessageToolCall, ViewRequest,
};
use crate::artifact::{Playback, group};
use crate::digest::{CoreHash, Digest};
use crate::formats::{self, STARTED_BY, states_tokens_of_api};
use crate::json::reader::{self, Limits};
use crate::storage::Snapshot;

/// A request for the contradictions between the session of an agent and recorded calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WireAuditRequest {
    /// The agent session.
    pub session: CoreHash,
    /// The run with the recorded calls. Without it, that run is taken which has the most answers of the session.
    #[serde(default)]
    pub run: Option<CoreHash>,
}

/// What a session and recorded calls have in common, and where they contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WireAuditAnswer {
    /// The run; `None` if none in the vault has an answer of the session. Then nothing was compared.
    pub run: Option<CoreHash>,
    /// Number of calls that are in both.
    pub matched: u64,
    /// Number of calls in the session, and in the run.
    pub session_calls: u64,
    /// Number of calls in the run.
    pub run_calls: u64,
    /// Number of calls in the run whose requests offer no tools although those of the session do, and that the session does
    /// not have: programs ask for titles and decide between models with them.
    pub auxiliary: u64,
    /// The contradictions, in the order of the calls of the session, with those of calls that only the run has at the end.
    pub contradictions: Vec<WireContradiction>,
}

/// A contradiction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WireContradiction {
    /// What differs.
    pub kind: WireContradictionKind,
    /// The number of the record with the call in the session, from 0.
    pub session_step: Option<u64>,
    /// The number of the step with the request in the run, from 0.
    pub run_step: Option<u64>,
    /// What each of the two says.
    pub message: String,
}

/// What a session and a recorded call say differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WireContradictionKind {
    /// The answers with the same id say other things.
    Answer,
    /// The numbers of tokens.
    Tokens,
    /// A message of the user is in the session, and was never sent.
    Message,
    /// The result of a tool was sent in another form than the session has it.
    ToolResult,
    /// The session has the call, and the run does not.
    OnlyInSession,
    /// The run has the call, and the session does not.
    OnlyInRun,
}

impl WireContradictionKind {
    /// Returns the machine-readable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Tokens => "tokens",
            Self::Message => "message",
            Self::ToolResult => "tool-result",
            Self::OnlyInSession => "only-in-session",
            Self::OnlyInRun => "only-in-run",
        }
    }
}

impl WireAuditRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if this program cannot interpret one of the documents, and
    /// [`LookupError::Store`] if one is not in the vault or the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<WireAuditAnswer, LookupError> {
        let session = calls_of(vault, self.session)?;
        let candidates = match self.run {
            Some(run) => vec![run],
            None => runs_of(&*vault.snapshot()?, self.session)?,
        };
        let mut best: Option<(RecordedMatch, CoreHash, Vec<ConversationCall>)> = None;
        for run in candidates {
            let recorded = calls_of(vault, run)?;
            let found = RecordedMatch::new(&session, &recorded);
            let is_better = best.as_ref().is_none_or(|(known, ..)| found > *known);
            if is_better && (self.run.is_some() || found.calls > 0) {
                best = Some((found, run, recorded));
            }
        }
        let (run, recorded) = match best {
            Some((_, run, recorded)) => (Some(run), recorded),
            None => (None, Vec::new()),
        };
        let (session_calls, run_calls) = (session.len() as u64, recorded.len() as u64);
        let nothing = WireAuditAnswer {
            run,
            matched: 0,
            session_calls,
            run_calls,
            auxiliary: 0,
            contradictions: Vec::new(),
        };
        Ok(match run {
            Some(_) => compare(&session, &recorded, &others_of(vault, self.session)?, nothing),
            None => nothing,
        })
    }
}

fn calls_of(vault: &Vault, artifact: CoreHash) -> Result<Vec<ConversationCall>, LookupError> {
    let request = ViewRequest { conversation: true, limit: None, ..ViewRequest::new(artifact) };
    Ok(vault.run(&request)?.conversation.map(|conversation| conversation.calls).unwrap_or_default())
}

/// How much of a session a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RecordedMatch {
    /// Number of calls whose answers have the same id.
    ids: usize,
    /// Number of calls.
    calls: usize,
}

impl RecordedMatch {
    fn new(session: &[ConversationCall], run: &[ConversationCall]) -> Self {
        let ids: HashSet<&str> = run.iter().filter_map(|call| call.answer_id.as_deref()).collect();
        let has_id = |call: &&ConversationCall| call.answer_id.as_deref().is_some_and(|id| ids.contains(id));
        Self {
            ids: session.iter().filter(has_id).count(),
            calls: pair(session, run).into_iter().flatten().count(),
        }
    }
}

/// Number of runs that are compared with a session to find the right one.
const CANDIDATES: usize = 8;

/// Returns the recorded runs that mention the most prompts and answers of a session.
fn runs_of(snapshot: &dyn Snapshot, session: CoreHash) -> Result<Vec<CoreHash>, LookupError> {
    let is_recording = |name: &String| {
        formats::named(name).is_some_and(|kind| kind.info().playback == Some(Playback::InOrder))
    };
    let mut counts: BTreeMap<CoreHash, usize> = BTreeMap::new();
    for group in [group::PROMPT, group::RESPONSE] {
        let kinds: Vec<String> = snapshot.kinds_with_group(group)?.into_iter().filter(is_recording).collect();
        let texts = snapshot.mentions(&[session], Some(group))?.into_iter().flatten();
        let texts: BTreeSet<Digest> = texts.map(|mention| mention.digest).collect();
        let texts: Vec<Digest> = texts.into_iter().collect();
        for run in snapshot.candidates(&texts, &kinds)?.into_iter().flatten() {
            *counts.entry(run).or_default() += 1;
        }
    }
    let mut runs: Vec<(CoreHash, usize)> = counts.into_iter().collect();
    runs.sort_by_key(|(_, count)| Reverse(*count));
    Ok(runs.into_iter().take(CANDIDATES).map(|(run, _)| run).collect())
}

/// Returns the calls of the agents that a session started, whose sessions are in the vault.
fn others_of(vault: &Vault, session: CoreHash) -> Result<Vec<ConversationCall>, LookupError> {
    let mut calls = Vec::new();
    for started in vault.linked_by(session, STARTED_BY)? {
        calls.extend(calls_of(vault, started)?);
    }
    Ok(calls)
}

/// Adds the number of calls that both have, and the contradictions, to an answer.
///
/// Calls that `others` have, which the session started, are not missing in it.
fn compare(
    session: &[ConversationCall],
    run: &[ConversationCall],
    others: &[ConversationCall],
    mut answer: WireAuditAnswer,
) -> WireAuditAnswer {
    let pairs = pair(session, run);
    let elsewhere: HashSet<usize> = pair(others, run).into_iter().flatten().collect();
    let sent: HashSet<&str> = run.iter().flat_map(|call| &call.messages).flat_map(texts).collect();
    let mut found = Vec::new();
    for (one, other) in session.iter().zip(&pairs) {
        let recorded = other.and_then(|index| run.get(index));
        let mut report = |kind, message: String| {
            let (session_step, run_step) = (Some(one.step), recorded.map(|call| call.step));
            found.push(WireContradiction { kind, session_step, run_step, message });
        };
        let Some(recorded) = recorded else {
            if !one.answers.is_empty() {
                let message = format!("the session has an answer of {} that was not recorded", model(one));
                report(WireContradictionKind::OnlyInSession, message);
            }
            continue;
        };
        compare_call(one, recorded, &sent, &mut report);
    }
    let known: HashSet<usize> = pairs.iter().flatten().copied().collect();
    let others = run.iter().enumerate().filter(|(index, call)| {
        !known.contains(index) && !elsewhere.contains(index) && !call.answers.is_empty()
    });
    let offers_tools = known.iter().filter_map(|index| run.get(*index)).any(|call| !call.tools.is_empty());
    let (auxiliary, missing): (Vec<_>, Vec<_>) =
        others.map(|(_, call)| call).partition(|call| offers_tools && call.tools.is_empty());
    found.extend(missing.into_iter().map(|call| WireContradiction {
        kind: WireContradictionKind::OnlyInRun,
        session_step: None,
        run_step: Some(call.step),
        message: format!("an answer of {} was recorded that the session does not have", model(call)),
    }));
    answer.matched = known.len() as u64;
    answer.auxiliary = auxiliary.len() as u64;
    answer.contradictions = found;
    answer
}

fn model(call: &ConversationCall) -> &str {
    if call.model.is_empty() { "a model" } else { &call.model }
}

/// Returns, for each call of a session, the index of the same call in the run.
fn pair(session: &[ConversationCall], run: &[ConversationCall]) -> Vec<Option<usize>> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    let mut by_answer: HashMap<Digest, Vec<usize>> = HashMap::new();
    for (index, call) in run.iter().enumerate().rev() {
        if let Some(id) = &call.answer_id {
            by_id.insert(id, index);
        }
        by_answer.entry(said(call)).or_default().push(index);
    }
    let mut pairs: Vec<Option<usize>> =
        session.iter().map(|call| call.answer_id.as_deref().and_then(|id| by_id.remove(id))).collect();
    let mut taken: HashSet<usize> = pairs.iter().flatten().copied().collect();
    for (call, pair) in session.iter().zip(&mut pairs) {
        if pair.is_some() || call.answers.is_empty() {
            continue;
        }
        // Other models may say the same, such as those that make titles.
        let same = by_answer.get(&said(call)).into_iter().flatten().copied();
        let is_of_model = |index: &usize| run.get(*index).is_some_and(|other| other.model == call.model);
        let left = same.filter(|index| !taken.contains(index));
        *pair = left.min_by_key(|index| (!is_of_model(index), *index));
        taken.extend(*pair);
    }
    pairs
}

/// Returns the digest of what the answers of a call say.
fn said(call: &ConversationCall) -> Digest {
    let parts = call.answers.iter().map(|message| message.repetition_digest().to_string());
    Digest::from_content(parts.collect::<Vec<_>>().concat().as_bytes())
}

fn compare_call(
    one: &ConversationCall,
    other: &ConversationCall,
    sent: &HashSet<&str>,
    report: &mut dyn FnMut(WireContradictionKind, String),
) {
    if said(one) != said(other) {
        report(WireContradictionKind::Answer, "the answers have the same id and say other things".to_owned());
    }
    // Some programs count tokens by their own rules.
    let counted = [("input", one.tokens_in, other.tokens_in), ("output", one.tokens_out, other.tokens_out)];
    for (name, ours, theirs) in counted.into_iter().filter(|_| states_tokens_of_api(&one.provider)) {
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && ours != theirs
        {
            let message = format!("{ours} {name} tokens in the session, {theirs} in the recorded answer");
            report(WireContradictionKind::Tokens, message);
        }
    }
    let users = one.messages.iter().filter(|message| message.role == MessageRole::User);
    let unsent = users.flat_map(texts).filter(|text| !sent.iter().any(|sent| sent.contains(text)));
    for text in unsent {
        let message = format!("the message {:?} was not sent in any recorded call", beginning(text));
        report(WireContradictionKind::Message, message);
    }
    for (ours, theirs) in tool_calls(one).zip(tool_calls(other)) {
        if let (Some(our_result), Some(their_result)) = (&ours.result, &theirs.result)
            && content(&our_result.parts) != content(&their_result.parts)
        {
            let message =
                format!("the result of {} was sent in another form than the session has it", ours.name);
            report(WireContradictionKind::ToolResult, message);
        }
    }
}

/// Returns the beginning of a text, for messages.
fn beginning(text: &str) -> String {
    const CHARACTERS: usize = 60;
    let mut shown: String = text.chars().take(CHARACTERS).collect();
    if text.chars().nth(CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

fn texts(message: &ConversationMessage) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(MessagePart::as_text)
}

fn tool_calls(call: &ConversationCall) -> impl Iterator<Item = &MessageToolCall> {
    let parts = call.answers.iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| if let MessagePart::ToolCall(call) = part { Some(call) } else { None })
}

/// Returns the texts and values of a result, without how they are divided into parts.
fn content(parts: &[MessagePart]) -> String {
    let said = parts.iter().map(|part| match part {
        MessagePart::Other { value } => inner_text(value).unwrap_or_else(|| value.clone()),
        part => part.as_text().map_or_else(|| format!("{part:?}"), str::to_owned),
    });
    said.collect::<Vec<_>>().concat()
}

/// Returns the text in an object that has nothing else, as the API of Gemini sends results.
fn inner_text(value: &str) -> Option<String> {
    let read = reader::read(value.as_bytes(), &Limits::most()).ok()?;
    let mut members = read.as_object()?.iter();
    let (_, only) = members.next().filter(|_| members.next().is_none())?;
    only.as_str().map(str::to_owned)
}
