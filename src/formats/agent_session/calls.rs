//! The calls of models in an agent session, and the conversation that they are.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::form::{AgentDialect, RecordedAnswer, SessionRecord};
use super::record::visit_admitted;
use crate::artifact::Timestamp;
use crate::conversation::message::{
    ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
use crate::conversation::reader::{
    AnsweredMessages, CallHead, Conversation, ConversationReader, DecodedCall, RequestedMessages,
};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::reader::{self, Limits, ReadError};

/// A call of a model, as the records of a session state it.
#[derive(Default)]
pub(super) struct AgentCall {
    /// The number of the record with the last of what was asked, or with the beginning of the answer.
    pub(super) record: usize,
    /// The call whose answer it follows.
    previous: Option<usize>,
    pub(super) asked: Vec<ConversationMessage>,
    asked_at: Option<DateTime<Utc>>,
    answered_at: Option<DateTime<Utc>>,
    pub(super) parts: Vec<MessagePart>,
    id: Option<String>,
    model: String,
    pub(super) tokens: [Option<u64>; 2],
    pub(super) cost: Option<i64>,
    finish_reason: Option<String>,
    pub(super) error: Option<String>,
}

/// What was asked, and not answered so far.
struct PendingRequest {
    record: usize,
    at: Option<DateTime<Utc>>,
    messages: Vec<ConversationMessage>,
}

/// Collects the calls of a session from its records.
///
/// A record follows the one that it names, or else the one before it. Records with the id of an answer are parts of that
/// answer, also if results of tools were recorded between them.
#[derive(Default)]
pub(super) struct AgentCalls {
    calls: Vec<AgentCall>,
    /// By the call whose answer they follow.
    pending: HashMap<Option<usize>, Vec<PendingRequest>>,
    /// The last call before or in the record with an id.
    by_record: HashMap<String, Option<usize>>,
    by_answer: HashMap<String, usize>,
    /// The ids of the calls of tools whose results are known.
    results: HashSet<String>,
    /// The files that records state.
    files: BTreeSet<String>,
    last: Option<usize>,
    model: String,
}

impl AgentCall {
    /// Returns the answer.
    pub(super) fn answered(&self) -> AnsweredMessages {
        let message = || ConversationMessage::new(MessageRole::Assistant, self.parts.clone());
        AnsweredMessages {
            messages: (!self.parts.is_empty()).then(message).into_iter().collect(),
            finish_reason: self.finish_reason.clone(),
            id: None,
        }
    }
}

impl AgentCalls {
    /// Adds the record with this number.
    pub(super) fn add(&mut self, number: usize, record: &mut SessionRecord<'_>) {
        let before = self.call_before(record);
        self.files.extend(record.files.iter().map(|file| (*file).to_owned()));
        if let Some(model) = record.model {
            model.clone_into(&mut self.model);
        }
        for message in &mut record.asked {
            message.parts.retain(|part| self.is_new(part));
        }
        record.asked.retain(|message| !message.parts.is_empty());
        if !record.asked.is_empty() {
            let messages = std::mem::take(&mut record.asked);
            let request = PendingRequest { record: number, at: record.time, messages };
            self.pending.entry(before).or_default().push(request);
        }
        let (mut current, has_answer) = (before, record.answer.is_some());
        if let Some(answer) = record.answer.take() {
            current = Some(self.answer(number, before, answer, record));
        }
        if let Some(error) = &record.error {
            let call = match current.filter(|_| has_answer) {
                Some(call) => call,
                None => self.begin(number, before, record.time),
            };
            if let Some(call) = self.calls.get_mut(call) {
                call.error = Some(error.clone().into_owned());
            }
            current = Some(call);
        }
        if let Some(call) = current.and_then(|call| self.calls.get_mut(call)) {
            call.tokens = record.tokens.unwrap_or(call.tokens);
            call.cost = record.cost.or(call.cost);
        }
        if let Some(id) = record.id {
            self.by_record.insert(id.to_owned(), current);
        }
        self.last = current;
    }

    /// Returns whether a part is not the result of a tool that an earlier record has: some programs record it twice.
    fn is_new(&mut self, part: &MessagePart) -> bool {
        match part {
            MessagePart::ToolResult(MessageToolResult { id: Some(id), .. }) => {
                self.results.insert(id.clone())
            }
            _ => true,
        }
    }

    /// Returns the calls.
    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentCall> {
        self.calls.iter()
    }

    /// Returns the files that tools were called with, or that were changed.
    pub(super) fn files(&self) -> BTreeSet<String> {
        let parts = self.calls.iter().flat_map(|call| &call.parts);
        let called =
            parts.filter_map(|part| if let MessagePart::ToolCall(call) = part { Some(call) } else { None });
        called.flat_map(files_of).chain(self.files.iter().cloned()).collect()
    }

    /// Adds what was asked and never answered, as calls without answers.
    pub(super) fn end(&mut self) {
        let record_of = |requests: &[PendingRequest]| requests.first().map(|request| request.record);
        let mut left: Vec<_> =
            self.pending.iter().map(|(previous, requests)| (record_of(requests), *previous)).collect();
        left.sort_unstable();
        for (record, previous) in left {
            let is_only_results =
                self.pending.get(&previous).is_some_and(|requests| requests.iter().all(is_of_results));
            // The results of tools are shown with their calls.
            let call = self.begin(record.unwrap_or_default(), previous, None);
            if let Some(call) = self.calls.get_mut(call).filter(|_| is_only_results) {
                call.model.clear();
            }
        }
    }

    fn call_before(&self, record: &SessionRecord<'_>) -> Option<usize> {
        match (record.id, record.parent) {
            (Some(_), Some(parent)) => self.by_record.get(parent).copied().unwrap_or(self.last),
            (Some(_), None) => None,
            (None, _) => self.last,
        }
    }

    /// Adds a part of an answer, which a record states, and returns its call.
    fn answer(
        &mut self,
        number: usize,
        before: Option<usize>,
        mut answer: RecordedAnswer<'_>,
        record: &SessionRecord<'_>,
    ) -> usize {
        let continued = match answer.id {
            Some(id) => self.by_answer.get(id).copied(),
            None => before.filter(|call| {
                !answer.is_complete
                    && !self.pending.contains_key(&before)
                    && self.calls.get(*call).is_some_and(|call| call.error.is_none())
            }),
        };
        let index = continued.unwrap_or_else(|| self.begin(number, before, record.time));
        if let Some(id) = answer.id {
            self.by_answer.insert(id.to_owned(), index);
        }
        // A complete answer that comes a second time has more than the first time.
        if answer.is_complete
            && let Some(call) = self.calls.get_mut(index)
        {
            for part in std::mem::take(&mut call.parts) {
                if let MessagePart::ToolResult(MessageToolResult { id: Some(id), .. }) = part {
                    self.results.remove(&id);
                }
            }
        }
        answer.parts.retain(|part| self.is_new(part));
        if let Some(call) = self.calls.get_mut(index) {
            call.parts.extend(answer.parts);
            call.answered_at = record.ended.or(record.time).or(call.answered_at);
            call.id = answer.id.map(str::to_owned).or(call.id.take());
            if let Some(reason) = answer.finish_reason {
                call.finish_reason = Some(reason.to_owned());
            }
        }
        index
    }

    /// Begins a call with what is pending after the call before it.
    fn begin(&mut self, number: usize, previous: Option<usize>, time: Option<DateTime<Utc>>) -> usize {
        let taken = self.pending.remove(&previous).unwrap_or_default();
        let last = taken.last().map(|request| (request.record, request.at));
        self.calls.push(AgentCall {
            record: last.map_or(number, |(record, _)| record),
            previous,
            asked_at: last.and_then(|(_, at)| at).or(time),
            answered_at: time,
            asked: taken.into_iter().flat_map(|request| request.messages).collect(),
            model: self.model.clone(),
            ..AgentCall::default()
        });
        self.calls.len() - 1
    }

    /// Returns the conversation.
    fn into_conversation(self, dialect: &AgentDialect) -> Conversation {
        let mut reader = ConversationReader::default();
        for (index, call) in self.calls.into_iter().enumerate() {
            let answer = AnsweredMessages { id: Some(index.to_string()), ..call.answered() };
            let took = call.asked_at.zip(call.answered_at).map(|(asked, answered)| answered - asked);
            let head = CallHead {
                step: call.record as u64,
                provider: dialect.name,
                model: &call.model,
                prompt_hash: prompt_of(&call.asked),
                answer_id: call.id.as_deref(),
                requested_at: call.asked_at.map(Timestamp),
                duration_ms: took.and_then(|took| u64::try_from(took.num_milliseconds()).ok()),
                error: call.error.as_deref(),
                ..CallHead::default()
            };
            let request = RequestedMessages {
                messages: call.asked,
                previous_answer: call.previous.map(|call| call.to_string()),
                ..RequestedMessages::default()
            };
            reader.add_decoded(DecodedCall { head, request, answer, tokens: call.tokens, continues: false });
        }
        reader.finish()
    }
}

fn is_of_results(request: &PendingRequest) -> bool {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.all(|part| matches!(part, MessagePart::ToolResult(_)))
}

/// Returns the digest of the last text of a user.
fn prompt_of(asked: &[ConversationMessage]) -> Option<Digest> {
    let users = asked.iter().filter(|message| message.role == MessageRole::User);
    let text = users.flat_map(|message| &message.parts).filter_map(MessagePart::as_text).next_back()?;
    Some(Digest::from_content(text.as_bytes()))
}

/// Members of arguments that are paths of files.
const PATHS: [&str; 6] = ["file_path", "filePath", "notebook_path", "absolute_path", "filename", "path"];

/// The beginnings of lines of a patch that name a file.
const PATCHED: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// Returns the files that a tool is called with.
fn files_of(call: &MessageToolCall) -> Vec<String> {
    let read = reader::read(call.arguments.as_bytes(), &Limits::most());
    let mut found = Vec::new();
    if let Ok(arguments) = &read {
        let stated = PATHS.iter().filter_map(|name| arguments.get(name).and_then(Value::as_non_empty_str));
        found.extend(stated.map(str::to_owned));
    }
    let text = read
        .as_ref()
        .ok()
        .and_then(|value| ["input", "patch"].iter().find_map(|name| value.get(name)?.as_str()));
    for line in text.unwrap_or(&call.arguments).lines() {
        found.extend(
            PATCHED.iter().filter_map(|begins| line.strip_prefix(begins)).map(|path| path.trim().to_owned()),
        );
    }
    found
}

/// Returns the conversation in an admitted document.
///
/// # Errors
/// Returns an error if the document cannot be read.
pub(crate) fn read(document: &[u8]) -> Result<Option<Conversation>, ReadError> {
    let mut calls = AgentCalls::default();
    let mut of = None;
    visit_admitted(document, &mut |dialect, unit| {
        of = Some(dialect);
        calls.add(unit.index, &mut (dialect.read)(unit.value));
    })?;
    calls.end();
    let conversation = of.map(|dialect| calls.into_conversation(dialect));
    Ok(conversation.filter(|conversation| !conversation.calls.is_empty()))
}
