//! The conversation of an agent with models: what was new in each request, what was answered, and which calls continue
//! each other. It is decoded from the bodies of requests and responses.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::assembled;
use super::events;
use super::histories::{HistoryIndex, MessageHistory};
use super::message::{ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult};
use super::providers::mcp::is_name_of;
use super::providers::{AnswerContent, AnswerDecoder, PROVIDERS, normalized, responses_item, role};

pub(crate) use super::providers::{AnsweredMessages, RequestedMessages};
use super::references::AnsweredItems;
use super::response::{CallResponse, ResponseForm};
use crate::artifact::attribute::parse_count;
use crate::artifact::{RepeatedElements, Timestamp};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::members::word;
use crate::json::reader::{self, Limits};

/// A call of a model in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConversationCall {
    /// The number of the step with the request in the artifact, from 0.
    pub step: u64,
    /// The number of its thread, from 0.
    pub thread: u64,
    /// The provider of the model.
    pub provider: String,
    /// The name of the request in the API of the provider.
    pub endpoint: String,
    /// The model that was asked.
    pub model: String,
    /// The digest by which other artifacts with the same prompt are found, if it is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<Digest>,
    /// The id of the answer, if the API or the program that records it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_id: Option<String>,
    /// When it was asked, if recorded.
    pub requested_at: Option<Timestamp>,
    /// The time until all of the answer had arrived, in milliseconds, if recorded.
    pub duration_ms: Option<u64>,
    /// Number of messages of the request that are those of the earlier calls of its thread.
    pub repeated: u64,
    /// The other messages of the request, without the results of calls of tools that the thread has.
    pub messages: Vec<ConversationMessage>,
    /// The answers: one, or several if several were asked for.
    pub answers: Vec<ConversationMessage>,
    /// The names of the tools that were offered.
    pub tools: Vec<String>,
    /// The parameters of the request, as JSON, by name.
    pub parameters: BTreeMap<String, String>,
    /// Number of tokens in the request, if stated.
    pub tokens_in: Option<u64>,
    /// Number of tokens in the answer, if stated.
    pub tokens_out: Option<u64>,
    /// Why the answer ended, in the word of the API.
    pub finish_reason: Option<String>,
    /// Why there is no answer, or only its beginning.
    pub error: Option<String>,
}

/// Calls that continue each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConversationThread {
    /// The thread with which it has the first messages in common, more than instructions.
    pub parent: Option<u64>,
    /// Number of its calls.
    pub calls: u64,
}

/// A conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    /// The calls in their order.
    pub calls: Vec<ConversationCall>,
    /// The threads, in the order of their first calls.
    pub threads: Vec<ConversationThread>,
}

/// A call with its bodies.
pub(crate) struct CallBodies<'b> {
    pub(crate) head: CallHead<'b>,
    /// The request, if it is recorded as JSON.
    pub(crate) request: Option<RequestBody<'b>>,
    /// The answer, if there is one.
    pub(crate) answer: Option<&'b CallResponse>,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestBody<'b> {
    pub(crate) body: &'b Value<'b>,
    /// The messages that it repeats of an earlier step of the conversation, if that is known.
    pub(crate) repeated: Option<RepeatedElements<'b>>,
}

impl<'b> RequestBody<'b> {
    /// Returns a body of which it is not known what it repeats.
    pub(crate) fn new(body: &'b Value<'b>) -> Self {
        Self { body, repeated: None }
    }
}

/// What is recorded of a call beside its bodies.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallHead<'b> {
    pub(crate) step: u64,
    pub(crate) provider: &'b str,
    pub(crate) endpoint: &'b str,
    pub(crate) model: &'b str,
    pub(crate) prompt_hash: Option<Digest>,
    pub(crate) answer_id: Option<&'b str>,
    pub(crate) requested_at: Option<Timestamp>,
    pub(crate) duration_ms: Option<u64>,
    /// Why there is no answer, if the recorder states it.
    pub(crate) error: Option<&'b str>,
}

/// A call whose bodies are decoded.
#[derive(Default)]
pub(crate) struct DecodedCall<'b> {
    pub(crate) head: CallHead<'b>,
    pub(crate) request: RequestedMessages,
    pub(crate) answer: AnsweredMessages,
    /// Numbers of tokens in the request and in the answer.
    pub(crate) tokens: [Option<u64>; 2],
    /// Whether it is in the thread of the call before it, although its request does not show that.
    pub(crate) continues: bool,
}

/// Members of usages with numbers of tokens.
struct TokenMembers {
    /// The number has one of these names.
    names: &'static [&'static str],
    /// What is counted apart from that number.
    added: &'static [&'static str],
}

/// Those of the tokens of requests, and of answers. Gemini counts the results of the tools that it calls itself, and what the
/// model thought, apart; other APIs count both in the number.
const TOKENS_IN: TokenMembers = TokenMembers {
    names: &["prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "prompt_eval_count"],
    added: &["toolUsePromptTokenCount"],
};
const TOKENS_OUT: TokenMembers = TokenMembers {
    names: &["completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "eval_count"],
    added: &["thoughtsTokenCount"],
};

impl TokenMembers {
    /// Returns the number of tokens that a usage states. A model can think and not answer.
    fn number(&self, usage: &Value<'_>) -> Option<i64> {
        let stated = |name: &&str| usage.get(name).and_then(parse_count);
        let added = self.added.iter().filter_map(stated).reduce(i64::saturating_add);
        match (self.names.iter().find_map(stated), added) {
            (Some(number), Some(added)) => Some(number.saturating_add(added)),
            (number, added) => number.or(added),
        }
    }
}

/// Returns the numbers of tokens in the request and in the answer that a usage states.
pub(crate) fn tokens(usage: &Value<'_>) -> [Option<i64>; 2] {
    [TOKENS_IN, TOKENS_OUT].map(|members| members.number(usage))
}

/// Returns these numbers without a sign.
pub(crate) fn unsigned_tokens(usage: &Value<'_>) -> [Option<u64>; 2] {
    tokens(usage).map(|number| number.and_then(|number| u64::try_from(number).ok()))
}

/// Returns the numbers of tokens in the request and in the answer, as far as the content of an answer states them.
pub(crate) fn tokens_of(content: &AnswerContent) -> [Option<u64>; 2] {
    content.usage.as_ref().map(unsigned_tokens).unwrap_or_default()
}

/// Returns what a request asks; `None` if it is in no known form.
pub(crate) fn read_request(body: &Value<'_>) -> Option<RequestedMessages> {
    read_form(body).map(|(_, request)| request)
}

/// Returns what a request asks, and the name of the provider whose form it has.
fn read_form(body: &Value<'_>) -> Option<(&'static str, RequestedMessages)> {
    // Others extend the form of the first one.
    PROVIDERS.iter().rev().find_map(|provider| Some((provider.name, (provider.messages.request)(body)?)))
}

/// Adds a body in one piece, or an event of a stream.
fn read_document(decoder: &mut AnswerDecoder, document: &Value<'_>) {
    match document {
        // Gemini sends a stream as an array of events.
        Value::Array(events) => events.iter().for_each(|event| read_document(decoder, event)),
        document => {
            PROVIDERS.iter().rev().any(|provider| (provider.messages.answer)(decoder, document));
        }
    }
}

/// Returns what the body of an answer says, if it is in a known form.
pub(crate) fn read_answer(body: &Value<'_>) -> Option<AnsweredMessages> {
    let mut decoder = AnswerDecoder::default();
    read_document(&mut decoder, body);
    Some(decoder.finish(events::with_characters)).filter(AnsweredMessages::says_something)
}

/// Returns what a text that was answered says, if it is the body of an answer in a known form.
pub(crate) fn read_body(text: &str) -> Option<AnsweredMessages> {
    let mut decoder = AnswerDecoder::default();
    CallResponse::from_text(text.to_owned())
        .visit_documents(|document| read_document(&mut decoder, document));
    Some(decoder.finish(events::with_characters)).filter(AnsweredMessages::says_something)
}

/// Returns what an answer says. One in no known form is a message with its body.
pub(crate) fn decode_answer(answer: &CallResponse) -> AnsweredMessages {
    let mut decoder = AnswerDecoder::default();
    let is_json = answer.visit_documents(|document| read_document(&mut decoder, document));
    said_by(answer, decoder, is_json)
}

/// Returns the content of an answer without its texts, and what it says, and adds its items to those of the answers before it.
/// Its body is parsed once.
fn decode_with_content(
    answer: &CallResponse,
    items: &mut AnsweredItems,
) -> (AnswerContent, AnsweredMessages) {
    let mut decoder = AnswerDecoder::default();
    let mut is_json = answer.form() == ResponseForm::Stream;
    let content = assembled::read_visiting(answer, &mut |document| {
        is_json = true;
        items.add(document);
        read_document(&mut decoder, document);
    });
    (content, said_by(answer, decoder, is_json))
}

/// Returns what was decoded, or the body as it is if that is nothing.
fn said_by(answer: &CallResponse, decoder: AnswerDecoder, is_json: bool) -> AnsweredMessages {
    let mut said = decoder.finish(events::with_characters);
    let has_content = answer.has_success_status() && !answer.body.trim().is_empty();
    if has_content && !said.says_something() {
        let part = if is_json {
            MessagePart::Other { value: normalized(&answer.body) }
        } else {
            MessagePart::text(answer.body.as_str())
        };
        said.messages.push(ConversationMessage::new(MessageRole::Assistant, vec![part]));
    }
    said
}

/// Returns whether a text begins as the body of an answer does. Most texts do not, and need not be decoded.
pub(crate) fn may_be_answer_body(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']) || events::begins_as_events(text)
}

/// Returns whether a text is the body of an answer in a known form, in one piece or as a stream.
pub(crate) fn is_answer_body(text: &str) -> bool {
    events::begins_as_events(text) || events::read(text).as_ref().and_then(read_answer).is_some()
}

/// Returns what a text that was answered says: the body of an answer, or plain text.
pub(crate) fn decode_text(text: &str) -> AnsweredMessages {
    decode_answer(&CallResponse::from_text(text.to_owned()))
}

/// Number of calls of models before a call of a tool among which is the one that asked for it: agents can work at the same time.
const MAX_ASKED_BEFORE: usize = 16;

/// Returns arguments as a value that does not depend on the order of members.
fn parsed(arguments: &str) -> Option<Vec<u8>> {
    let text = if arguments.is_empty() { "{}" } else { arguments };
    rfc8785::to_vec_with_distinct_integers(&reader::read(text.as_bytes(), &Limits::most()).ok()?).ok()
}

/// Reads a conversation, call by call.
#[derive(Default)]
pub(crate) struct ConversationReader {
    read: Conversation,
    states: Vec<ThreadState>,
    /// The threads of answers, by their ids.
    answered: HashMap<String, usize>,
    /// The histories of the threads.
    histories: HistoryIndex,
    /// The items of answers to which requests refer.
    items: AnsweredItems,
}

/// What is known of a thread.
#[derive(Default)]
struct ThreadState {
    /// Its messages, with those of the last answer.
    history: MessageHistory,
    /// The last request.
    last: RequestSummary,
    /// The id of the last answer.
    answer_id: Option<String>,
    /// The calls of tools without results.
    open: Vec<PartAddress>,
}

/// The address of a part in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartAddress {
    call: usize,
    /// Whether it is in an answer, and not in a message of the request.
    is_answer: bool,
    message: usize,
    part: usize,
}

impl ConversationReader {
    /// Adds the next call.
    pub(crate) fn add(&mut self, call: &CallBodies<'_>) {
        let continued = call.request.and_then(|request| self.continued(request));
        let request = continued.unwrap_or_else(|| self.request(call.request.map(|it| it.body)));
        let (content, answer) =
            call.answer.map(|answer| decode_with_content(answer, &mut self.items)).unzip();
        let failure = content.as_ref().and_then(|content| content.failure.as_ref()).map(ToString::to_string);
        let answer = answer.unwrap_or_default();
        let answer_id = answer.id.clone();
        let call = DecodedCall {
            head: CallHead {
                error: call.head.error.or(failure.as_deref()),
                answer_id: answer_id.as_deref(),
                ..call.head
            },
            request: RequestedMessages::default(),
            answer,
            tokens: content.as_ref().map(tokens_of).unwrap_or_default(),
            continues: false,
        };
        self.add_keyed(request, call);
    }

    /// Adds the next call, whose bodies are decoded.
    pub(crate) fn add_decoded(&mut self, mut call: DecodedCall<'_>) {
        let request = KeyedRequest::new(std::mem::take(&mut call.request));
        self.add_keyed(request, call);
    }

    fn add_keyed(&mut self, request: KeyedRequest, call: DecodedCall<'_>) {
        let last = self.read.calls.last().filter(|_| call.continues);
        let ThreadPlace { thread, repeated } = match last.and_then(|call| usize::try_from(call.thread).ok()) {
            Some(thread) => ThreadPlace { thread, repeated: 0 },
            None => self.place(&request),
        };
        let DecodedCall { head, answer, tokens: [tokens_in, tokens_out], .. } = call;
        let AnsweredMessages { messages: answers, finish_reason, id } = answer;
        let KeyedRequest { request, mut history, left_out, summary } = request;
        let RequestedMessages { messages, tools, parameters, .. } = request;
        if let Some(state) = self.states.get_mut(thread) {
            state.last = RequestSummary { step: head.step, messages: history.len(), ..summary };
            history.extend(&answers);
            self.histories.add(thread, &state.history, &history);
            state.history = history;
            self.answered.extend(id.clone().map(|id| (id, thread)));
            state.answer_id = id;
        }
        if let Some(thread) = self.read.threads.get_mut(thread) {
            thread.calls += 1;
        }
        self.read.calls.push(ConversationCall {
            step: head.step,
            thread: thread as u64,
            provider: head.provider.to_owned(),
            endpoint: head.endpoint.to_owned(),
            model: head.model.to_owned(),
            prompt_hash: head.prompt_hash,
            answer_id: head.answer_id.map(str::to_owned),
            requested_at: head.requested_at,
            duration_ms: head.duration_ms,
            repeated: repeated as u64,
            messages: messages.into_iter().skip(repeated.saturating_sub(left_out)).collect(),
            answers,
            tools,
            parameters,
            tokens_in,
            tokens_out,
            finish_reason,
            error: head.error.map(str::to_owned),
        });
        self.pair_results(thread);
    }

    /// Adds a call of a tool that is recorded apart from the answers of models, after the last call of a model.
    pub(crate) fn add_tool_call(&mut self, call: MessageToolCall) {
        if let Some(last) = self.read.calls.last_mut() {
            last.answers
                .push(ConversationMessage::new(MessageRole::Assistant, vec![MessagePart::ToolCall(call)]));
        }
    }

    /// Adds a call of a tool as its server got it, unless a model asked for it: the result is then in a later request.
    pub(crate) fn add_executed_call(&mut self, call: MessageToolCall) {
        let recent = self.read.calls.iter().rev().take(MAX_ASKED_BEFORE);
        let mut parts = recent.flat_map(|asked| &asked.answers).flat_map(|answer| &answer.parts);
        let is_asked_for = parts.any(|part| match part {
            MessagePart::ToolCall(asked) => {
                is_name_of(&asked.name, &call.name) && parsed(&asked.arguments) == parsed(&call.arguments)
            }
            _ => false,
        });
        if !is_asked_for {
            self.add_tool_call(call);
        }
    }

    /// Returns the calls that were added.
    pub(crate) fn calls(&self) -> &[ConversationCall] {
        &self.read.calls
    }

    /// Returns whether one of the first `calls` asks for a tool whose result was not added.
    pub(crate) fn awaits_results(&self, calls: usize) -> bool {
        self.states.iter().flat_map(|state| &state.open).any(|address| address.call < calls)
    }

    /// Returns the conversation.
    pub(crate) fn finish(self) -> Conversation {
        self.read
    }

    /// Decodes a request as a whole.
    fn request(&self, body: Option<&Value<'_>>) -> KeyedRequest {
        let resolved = body.and_then(|body| LISTS.iter().find_map(|list| self.items.resolved(body, list)));
        KeyedRequest::from_body(resolved.as_ref().or(body))
    }

    /// Returns a request that repeats the messages of an earlier one and states which, decoded without these: a run in which
    /// each request repeats all before it could not be read in a time that is proportional to its size otherwise. Returns
    /// `None` if that would differ from the request decoded as a whole.
    fn continued(&self, request: RequestBody<'_>) -> Option<KeyedRequest> {
        let RequestBody { body, repeated: Some(repeated) } = request else { return None };
        let step = repeated.index as u64;
        let call = self.read.calls.binary_search_by_key(&step, |call| call.step).ok()?;
        let thread = self.read.calls.get(call).and_then(|call| usize::try_from(call.thread).ok())?;
        let state = self.states.get(thread)?;
        if state.last.step != step || state.last.messages == 0 {
            return None;
        }
        let known = state.history.first(state.last.messages);
        let rest = self.rest(body, repeated)?;
        let continued = KeyedRequest::from_rest(&rest, &state.last, known)?;
        let (_, repeated) = self.nearest(&continued);
        (repeated >= continued.left_out).then_some(continued)
    }

    /// Returns a body without the elements that it repeats; `None` if it cannot be decoded without these.
    fn rest<'b>(&'b self, body: &'b Value<'b>, repeated: RepeatedElements<'_>) -> Option<Value<'b>> {
        let elements = body.get(repeated.name)?.as_array()?;
        let rest = elements.get(repeated.count..)?;
        // Instructions among them could not be told from those that are not in the list.
        if rest.is_empty() || rest.iter().any(is_instruction) {
            return None;
        }
        // An answer of several elements is one message, which must not be divided.
        let last = repeated.count.checked_sub(1).and_then(|last| elements.get(last));
        if [last, rest.first()].into_iter().flatten().filter(|one| is_of_model(one)).count() > 1 {
            return None;
        }
        self.items.with_list(body, repeated.name, rest)
    }

    /// Returns the thread that has the most first messages of a request, and how many: the last one of several.
    fn nearest(&self, request: &KeyedRequest) -> (usize, usize) {
        let (thread, repeated) = self.histories.nearest(&request.history);
        let common = |state: &ThreadState| state.history.common(&request.history);
        if repeated == 0 || self.states.get(thread).is_some_and(|state| common(state) == repeated) {
            return (thread, repeated);
        }
        // The thread had these messages, and was continued without them.
        let candidates = self.states.iter().enumerate().map(|(thread, state)| (common(state), thread));
        let (repeated, thread) = candidates.max().unwrap_or((0, 0));
        (thread, repeated)
    }

    /// Returns the thread of a request, which may be a new one: that whose messages the request repeats completely, else one
    /// that branches off where they differ.
    fn place(&mut self, request: &KeyedRequest) -> ThreadPlace {
        let previous = request.request.previous_answer.as_deref();
        let continued = |state: &ThreadState| state.answer_id.as_deref() == previous;
        if previous.is_some()
            && let Some(thread) = self.states.iter().rposition(continued)
        {
            return ThreadPlace { thread, repeated: 0 };
        }
        if let Some(parent) = previous.and_then(|answer| self.answered.get(answer)) {
            let thread = self.begin_thread(Some(*parent as u64));
            return ThreadPlace { thread, repeated: 0 };
        }
        let (thread, repeated) = self.nearest(request);
        if self.states.get(thread).is_some_and(|state| repeated == state.history.len() && repeated > 0) {
            return ThreadPlace { thread, repeated };
        }
        let parent = (repeated > request.summary.instructions).then_some(thread as u64);
        let thread = self.begin_thread(parent);
        ThreadPlace { thread, repeated: if parent.is_some() { repeated } else { 0 } }
    }

    fn begin_thread(&mut self, parent: Option<u64>) -> usize {
        self.states.push(ThreadState::default());
        self.read.threads.push(ConversationThread { parent, calls: 0 });
        self.states.len() - 1
    }

    /// Moves the results of tools in the last call, which is of this thread, to their calls.
    fn pair_results(&mut self, thread: usize) {
        let Some(call) = self.read.calls.len().checked_sub(1) else { return };
        let open = self.states.get_mut(thread).map(|state| std::mem::take(&mut state.open));
        let mut open = open.unwrap_or_default();
        for is_answer in [false, true] {
            let messages = self.read.messages_mut(call, is_answer).map(std::mem::take);
            for message in messages.unwrap_or_default() {
                self.read.add_message(message, call, is_answer, &mut open);
            }
        }
        if let Some(state) = self.states.get_mut(thread) {
            state.open = open;
        }
    }
}

/// What is known of a request whose messages are not kept.
#[derive(Clone, Copy, Debug, Default)]
struct RequestSummary {
    /// The number of its step.
    step: u64,
    /// The provider whose form it has.
    form: Option<&'static str>,
    /// Number of its messages.
    messages: usize,
    /// Number of its first messages that are instructions, and of those among them that are not in the list of messages.
    instructions: usize,
    apart: usize,
}

/// A request with the history that its messages make.
struct KeyedRequest {
    /// The request, without its first messages.
    request: RequestedMessages,
    /// Number of the messages that it is without.
    left_out: usize,
    /// All messages.
    history: MessageHistory,
    summary: RequestSummary,
}

/// Members of bodies with lists of messages.
pub(crate) const LISTS: [&str; 3] = ["messages", "input", "contents"];

impl KeyedRequest {
    fn new(request: RequestedMessages) -> Self {
        let instructions = instructions(&request.messages);
        let mut history = MessageHistory::default();
        history.extend(&request.messages);
        let summary = RequestSummary { instructions, ..RequestSummary::default() };
        Self { request, left_out: 0, history, summary }
    }

    /// Decodes a request. One in no known form is a message with its body.
    fn from_body(body: Option<&Value<'_>>) -> Self {
        let Some(body) = body else { return Self::new(RequestedMessages::default()) };
        let Some((form, request)) = read_form(body) else {
            let messages = vec![ConversationMessage::new(MessageRole::User, vec![MessagePart::other(body)])];
            return Self::new(RequestedMessages { messages, ..RequestedMessages::default() });
        };
        let mut keyed = Self::new(request);
        let elements = LISTS.iter().find_map(|name| body.get(name)?.as_array()).unwrap_or_default();
        let listed = elements.iter().take_while(|element| is_instruction(element)).count();
        keyed.summary.form = Some(form);
        keyed.summary.apart = keyed.summary.instructions.saturating_sub(listed);
        keyed
    }

    /// Decodes the rest of a request that repeats an earlier one, which has the messages `known`.
    fn from_rest(rest: &Value<'_>, earlier: &RequestSummary, known: MessageHistory) -> Option<Self> {
        if earlier.instructions == known.len() {
            return None;
        }
        let Self { mut request, history: new, mut summary, .. } = Self::from_body(Some(rest));
        let apart = summary.instructions;
        let is_of_form = summary.form.is_some() && summary.form == earlier.form;
        let is_continued = apart == earlier.apart && new.common(&known) >= apart;
        if !is_of_form || !is_continued || request.previous_answer.is_some() {
            return None;
        }
        request.messages.drain(..apart);
        summary.instructions = earlier.instructions;
        let (left_out, mut history) = (known.len(), known);
        history.extend(&request.messages);
        Some(Self { request, left_out, history, summary })
    }
}

/// Returns the number of first messages that are instructions.
fn instructions(messages: &[ConversationMessage]) -> usize {
    messages.iter().take_while(|message| message.role == MessageRole::System).count()
}

/// Returns whether an element of a list of messages is an instruction.
fn is_instruction(element: &Value<'_>) -> bool {
    role(word(element, "role")) == MessageRole::System
}

/// Returns whether an element of a list of messages is said by the model, whatever the form of the request.
fn is_of_model(element: &Value<'_>) -> bool {
    responses_item(element).role == MessageRole::Assistant
}

/// The place of a request among the threads.
struct ThreadPlace {
    thread: usize,
    /// Number of its messages that the thread, or the one that it branches off from, has already.
    repeated: usize,
}

impl Conversation {
    fn messages_mut(&mut self, call: usize, is_answer: bool) -> Option<&mut Vec<ConversationMessage>> {
        let call = self.calls.get_mut(call)?;
        Some(if is_answer { &mut call.answers } else { &mut call.messages })
    }

    fn part_mut(&mut self, at: PartAddress) -> Option<&mut MessagePart> {
        self.messages_mut(at.call, at.is_answer)?.get_mut(at.message)?.parts.get_mut(at.part)
    }

    /// Adds a message to a call, without the results of open calls of tools, which it gives to these. A message without other
    /// parts is left out.
    fn add_message(
        &mut self,
        message: ConversationMessage,
        call: usize,
        is_answer: bool,
        open: &mut Vec<PartAddress>,
    ) {
        let Some(messages) = self.messages_mut(call, is_answer) else { return };
        let at = messages.len();
        messages.push(ConversationMessage::new(message.role, Vec::new()));
        for part in message.parts {
            let part = match part {
                MessagePart::ToolResult(result) => match self.give_result(result, open) {
                    Some(result) => MessagePart::ToolResult(result),
                    None => continue,
                },
                part => part,
            };
            let Some(kept) = self.messages_mut(call, is_answer).and_then(|messages| messages.last_mut())
            else {
                return;
            };
            if matches!(part, MessagePart::ToolCall(_)) {
                open.push(PartAddress { call, is_answer, message: at, part: kept.parts.len() });
            }
            kept.parts.push(part);
        }
        if let Some(messages) = self.messages_mut(call, is_answer) {
            messages.pop_if(|message| message.parts.is_empty());
        }
    }

    /// Gives a result to its call, if that is open, and returns it otherwise.
    fn give_result(
        &mut self,
        result: MessageToolResult,
        open: &mut Vec<PartAddress>,
    ) -> Option<MessageToolResult> {
        let is_of = |call: &MessageToolCall| match (&call.id, &result.id) {
            (Some(one), Some(other)) => one == other,
            _ => result.name.as_ref().is_none_or(|name| *name == call.name),
        };
        let position = open.iter().position(
            |address| matches!(self.part_mut(*address), Some(MessagePart::ToolCall(call)) if is_of(call)),
        );
        let Some(position) = position else { return Some(result) };
        if let Some(MessagePart::ToolCall(call)) = self.part_mut(open.remove(position)) {
            call.result = Some(result);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::conversation::assembled::testing::answer;
    use crate::json::reader::{self, Limits};

    /// Returns the conversation of calls, each a request and a response.
    fn conversation(calls: &[(Json, CallResponse)]) -> Conversation {
        let mut reader = ConversationReader::default();
        for (step, (request, answer)) in (0..).zip(calls) {
            let request = request.to_string();
            let request = reader::read(request.as_bytes(), &Limits::default()).unwrap();
            let head = CallHead { step, provider: "p", endpoint: "e", model: "m", ..CallHead::default() };
            let request = Some(RequestBody::new(&request));
            reader.add(&CallBodies { head, request, answer: Some(answer) });
        }
        reader.finish()
    }

    fn said(body: &Json) -> CallResponse {
        answer(200, Some("application/json"), &body.to_string())
    }

    fn streamed(events: &[Json]) -> CallResponse {
        let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        answer(200, Some("text/event-stream"), &lines.concat())
    }

    /// Describes a part in one word or line.
    fn part(part: &MessagePart) -> String {
        match part {
            MessagePart::Text { text } => text.clone(),
            MessagePart::Thinking { text } => format!("({text})"),
            MessagePart::Refusal { text } => format!("!{text}"),
            MessagePart::Media(media) => format!("<{} {}>", media.media_type, media.size.unwrap_or_default()),
            MessagePart::ToolCall(MessageToolCall { name, arguments, result, .. }) => {
                let result = result.as_ref().map(|result| {
                    let mark = if result.is_error { "!" } else { "" };
                    format!(" = {mark}{}", result.parts.iter().map(self::part).collect::<String>())
                });
                format!("{name}{arguments}{}", result.unwrap_or_default())
            }
            MessagePart::ToolResult(result) => {
                format!("? = {}", result.parts.iter().map(self::part).collect::<String>())
            }
            MessagePart::Embeddings { count, dimensions } => format!("{count}x{dimensions}"),
            MessagePart::Unrecorded { digest } => digest.to_string(),
            MessagePart::Other { value } => format!("other {value}"),
        }
    }

    /// Describes the new messages and the answers of each call.
    fn described(conversation: &Conversation) -> Vec<String> {
        let message = |message: &ConversationMessage| {
            let role = format!("{:?}", message.role).chars().next().unwrap();
            format!("{role}:{}", message.parts.iter().map(part).collect::<Vec<_>>().join("|"))
        };
        let call = |call: &ConversationCall| {
            let all = call.messages.iter().chain(&call.answers).map(message).collect::<Vec<_>>();
            format!("{} {}", call.thread, all.join(" "))
        };
        conversation.calls.iter().map(call).collect()
    }

    /// The weather in two turns, as each API states it: what is asked, an answer with a call of a tool, the second request, and
    /// the last answer.
    #[expect(clippy::too_many_lines, reason = "it is a table of the forms of all APIs")]
    fn weather() -> Vec<(&'static str, [(Json, CallResponse); 2])> {
        let chat_call = json!({"id": "c1", "type": "function",
            "function": {"name": "weather", "arguments": "{\"city\": \"Paris\"}"}});
        let system = json!({"role": "system", "content": "Be kind."});
        let asked = json!({"role": "user", "content": "Weather?"});
        let called = json!({"role": "assistant", "content": null, "tool_calls": [chat_call]});
        let result = json!({"role": "tool", "tool_call_id": "c1", "content": "sunny"});
        let choice = |message: &Json| json!({"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        let last = json!({"role": "assistant", "content": "It is sunny."});
        let delta = |delta: Json| json!({"choices": [{"index": 0, "delta": delta}]});
        let block = json!({"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}});
        let person = json!({"role": "user", "content": [{"type": "text", "text": "Weather?"}]});
        let returned = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]});
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        let message = |content: Json| json!({"type": "message", "id": "2", "content": content, "stop_reason": "end_turn"});
        let item = json!({"type": "function_call", "id": "fc", "call_id": "c1", "name": "weather",
            "arguments": "{\"city\":\"Paris\"}"});
        let output = json!({"type": "function_call_output", "call_id": "c1", "output": "sunny"});
        let response = |id: &str, output: Json| json!({"id": id, "object": "response", "status": "completed", "output": output});
        let text = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is sunny."}]});
        let content = |role: &str, part: Json| json!({"role": role, "parts": [part]});
        let gemini_call = json!({"functionCall": {"name": "weather", "args": {"city": "Paris"}}});
        let gemini_result = json!({"functionResponse": {"name": "weather", "response": {"is": "sunny"}}});
        let candidate = |part: Json| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]});
        let kind = json!({"parts": [{"text": "Be kind."}]});
        let tool_use = json!({"toolUse": {"toolUseId": "b1", "name": "weather", "input": {"city": "Paris"}}});
        let converse = |content: Json| json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"});
        let ollama_call = json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Paris"}}}]});
        vec![
            (
                "chat",
                [
                    (json!({"model": "m", "messages": [system, asked]}), said(&choice(&called))),
                    (
                        json!({"model": "m", "messages": [system, asked, called, result]}),
                        said(&choice(&last)),
                    ),
                ],
            ),
            (
                "streamed chat",
                [
                    (
                        json!({"messages": [system, asked]}),
                        streamed(&[
                            delta(
                                json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}}]}),
                            ),
                            delta(
                                json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"city\": "}}]}),
                            ),
                            delta(
                                json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"Paris\"}"}}]}),
                            ),
                        ]),
                    ),
                    (
                        json!({"messages": [system, asked, called, result]}),
                        streamed(&[delta(json!({"content": "It is "})), delta(json!({"content": "sunny."}))]),
                    ),
                ],
            ),
            (
                "messages",
                [
                    (
                        json!({"system": "Be kind.", "messages": [asked]}),
                        said(&message(json!([thought, block]))),
                    ),
                    (
                        json!({"system": "Be kind.", "messages": [person, {"role": "assistant", "content": [thought, block]}, returned]}),
                        said(&message(json!([{"type": "text", "text": "It is sunny."}]))),
                    ),
                ],
            ),
            (
                "streamed messages",
                [
                    (
                        json!({"system": [{"type": "text", "text": "Be kind."}], "messages": [asked]}),
                        streamed(&[
                            json!({"type": "message_start", "message": {"id": "2", "content": []}}),
                            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}}),
                            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"city\":"}}),
                            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "\"Paris\"}"}}),
                            json!({"type": "message_stop"}),
                        ]),
                    ),
                    (
                        json!({"system": "Be kind.", "messages": [person, {"role": "assistant", "content": [block]}, returned]}),
                        streamed(&[
                            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is sunny."}}),
                        ]),
                    ),
                ],
            ),
            (
                "responses",
                [
                    (
                        json!({"instructions": "Be kind.", "input": "Weather?"}),
                        said(&response("r1", json!([item]))),
                    ),
                    (
                        json!({"instructions": "Be kind.", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}, item, output]}),
                        said(&response("r2", json!([text]))),
                    ),
                ],
            ),
            (
                "continued responses",
                [
                    (
                        json!({"instructions": "Be kind.", "input": "Weather?"}),
                        streamed(&[
                            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                            json!({"type": "response.completed", "response": response("r1", json!([item]))}),
                        ]),
                    ),
                    (
                        json!({"previous_response_id": "r1", "input": [output]}),
                        streamed(&[
                            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "It is sunny."}),
                        ]),
                    ),
                ],
            ),
            (
                "gemini",
                [
                    (
                        json!({"systemInstruction": kind, "contents": [content("user", json!({"text": "Weather?"}))]}),
                        said(&candidate(gemini_call.clone())),
                    ),
                    (
                        json!({"systemInstruction": kind, "contents": [content("user", json!({"text": "Weather?"})),
                        content("model", gemini_call), content("user", gemini_result)]}),
                        streamed(&[
                            candidate(json!({"text": "It is "})),
                            candidate(json!({"text": "sunny."})),
                        ]),
                    ),
                ],
            ),
            (
                "converse",
                [
                    (
                        json!({"system": [{"text": "Be kind."}], "messages": [{"role": "user", "content": [{"text": "Weather?"}]}]}),
                        said(&converse(json!([tool_use]))),
                    ),
                    (
                        json!({"system": [{"text": "Be kind."}], "messages": [{"role": "user", "content": [{"text": "Weather?"}]},
                        {"role": "assistant", "content": [tool_use]},
                        {"role": "user", "content": [{"toolResult": {"toolUseId": "b1", "content": [{"text": "sunny"}]}}]}]}),
                        said(&converse(json!([{"text": "It is sunny."}]))),
                    ),
                ],
            ),
            (
                "ollama",
                [
                    (
                        json!({"messages": [system, asked], "options": {}}),
                        answer(
                            200,
                            None,
                            &format!(
                                "{}\n{}\n",
                                json!({"message": ollama_call, "done": false}),
                                json!({"message": {"content": ""}, "done": true})
                            ),
                        ),
                    ),
                    (
                        json!({"messages": [system, asked, ollama_call, {"role": "tool", "tool_name": "weather", "content": "sunny"}]}),
                        said(
                            &json!({"message": {"role": "assistant", "content": "It is sunny."}, "done": true, "done_reason": "stop"}),
                        ),
                    ),
                ],
            ),
            (
                "cohere",
                [
                    (
                        json!({"messages": [system, asked]}),
                        said(
                            &json!({"id": "1", "message": {"role": "assistant", "tool_calls": [chat_call]}, "finish_reason": "TOOL_CALL"}),
                        ),
                    ),
                    (
                        json!({"messages": [system, asked, called, result]}),
                        streamed(&[
                            json!({"type": "message-start", "id": "2"}),
                            json!({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "It is sunny."}}}}),
                            json!({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}),
                        ]),
                    ),
                ],
            ),
        ]
    }

    /// Returns the list of messages of a body, with its name.
    fn list(body: &Json) -> (&'static str, &[Json]) {
        LISTS.iter().find_map(|name| Some((*name, body[name].as_array()?.as_slice()))).unwrap_or(("", &[]))
    }

    /// Reads calls of which each states what it repeats of the one before it. Returns the conversation, and the number of
    /// requests that were decoded without that.
    fn continued(calls: &[(Json, CallResponse)]) -> (Conversation, usize) {
        let mut reader = ConversationReader::default();
        let mut shortened = 0;
        for (step, (body, answer)) in calls.iter().enumerate() {
            let (name, elements) = list(body);
            let before = step.checked_sub(1).map(|index| (index, list(&calls[index].0).1));
            let before = before.filter(|(_, before)| !before.is_empty() && elements.starts_with(before));
            let repeated =
                before.map(|(index, before)| RepeatedElements { index, name, count: before.len() });
            let text = body.to_string();
            let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
            let request = RequestBody { body: &value, repeated };
            shortened += usize::from(reader.continued(request).is_some());
            let step = step as u64;
            let head = CallHead { step, provider: "p", endpoint: "e", model: "m", ..CallHead::default() };
            reader.add(&CallBodies { head, request: Some(request), answer: Some(answer) });
        }
        (reader.finish(), shortened)
    }

    #[test]
    fn requests_that_state_what_they_repeat_are_decoded_as_others() {
        let mut shortened = Vec::new();
        for (name, calls) in weather() {
            let (read, count) = continued(&calls);
            assert_eq!(read, conversation(&calls), "{name}");
            shortened.extend((count > 0).then_some(name));
        }
        assert_eq!(shortened, ["chat", "streamed chat", "gemini", "converse", "ollama", "cohere"]);
    }

    proptest! {
        #[test]
        fn histories_are_read_whatever_they_state_of_what_they_repeat(
            steps in proptest::collection::vec((0..4_usize, 0..3_usize, any::<bool>()), 1..12),
        ) {
            let mut messages: Vec<Json> = Vec::new();
            let mut calls = Vec::new();
            for (step, (role, count, is_repeated)) in steps.into_iter().enumerate() {
                if role == 0 {
                    messages.clear();
                }
                if let Some(said) = calls.last().filter(|_| !messages.is_empty()).map(|_| step - 1) {
                    let mark = if is_repeated { "" } else { "!" };
                    messages.push(json!({"role": "assistant", "content": format!("answer {said}{mark}")}));
                }
                let role = ["user", "system", "user", "tool"][role];
                messages.extend((0..count).map(|number| json!({"role": role, "content": format!("{step} {number}")})));
                let message = json!({"role": "assistant", "content": format!("answer {step}")});
                calls.push((json!({"messages": messages}), said(&json!({"choices": [{"message": message}]}))));
            }
            prop_assert_eq!(continued(&calls).0, conversation(&calls));
        }
    }

    #[test]
    fn each_message_is_shown_once_with_calls_and_their_results_together() {
        for (name, calls) in weather() {
            let found = conversation(&calls);
            let mut shown = described(&found).join("\n").replace("(hm)|", "");
            if name == "gemini" {
                shown = shown.replace(r#"other {"is":"sunny"}"#, "sunny");
            }
            let expected = "0 S:Be kind. U:Weather? A:weather{\"city\":\"Paris\"} = sunny\n0 A:It is sunny.";
            assert_eq!(shown, expected, "{name}");
            assert_eq!(found.threads, [ConversationThread { parent: None, calls: 2 }], "{name}");
        }
    }

    fn chat(messages: &[(&str, &str)], says: &str) -> (Json, CallResponse) {
        let messages: Vec<Json> =
            messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
        let answer = json!({"choices": [{"message": {"role": "assistant", "content": says}}]});
        (json!({"messages": messages}), said(&answer))
    }

    #[test]
    fn threads_are_told_apart_by_their_first_messages() {
        let (s, one, two) = (("system", "S"), ("user", "one"), ("user", "two"));
        let a = ("assistant", "a");
        let found = conversation(&[
            chat(&[s, one], "a"),
            // Another agent with the same instructions.
            chat(&[s, two], "b"),
            chat(&[s, one, a, two], "c"),
            // The same request once more, and a branch.
            chat(&[s, one, a, ("user", "three")], "d"),
            // After a compaction.
            chat(&[s, ("user", "summary")], "e"),
        ]);
        assert_eq!(
            described(&found),
            ["0 S:S U:one A:a", "1 S:S U:two A:b", "0 U:two A:c", "2 U:three A:d", "3 S:S U:summary A:e"]
        );
        let parents: Vec<_> = found.threads.iter().map(|thread| thread.parent).collect();
        assert_eq!(parents, [None, None, Some(0), None]);
    }

    #[test]
    fn results_belong_to_calls_of_the_same_answer_and_of_a_history_that_was_not_recorded() {
        let block = |id: &str| json!({"type": "tool_use", "id": id, "name": id, "input": {}});
        let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": id});
        let message = |role: &str, content: Json| json!({"role": role, "content": content});
        let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": "found"});
        let answers =
            json!({"type": "message", "content": [block("s"), found, {"type": "text", "text": "so"}]});
        let mut history = vec![
            message("user", json!("go")),
            message("assistant", json!([block("a")])),
            message("user", json!([result("a"), {"type": "text", "text": "and"}])),
            message("assistant", json!([block("b")])),
        ];
        let first = json!({"system": "S", "messages": history});
        history.extend([
            message("assistant", answers["content"].clone()),
            message("user", json!([result("b")])),
        ]);
        let second = json!({"system": "S", "messages": history});
        let last = json!({"type": "message", "content": [{"type": "text", "text": "done"}]});
        let shown = described(&conversation(&[(first, said(&answers)), (second, said(&last))]));
        assert_eq!(shown, ["0 S:S U:go A:a{} = a U:and A:b{} = b A:s{} = found|so", "0 A:done"]);
    }

    #[test]
    fn indexes_of_answers_may_be_any_number() {
        let most = u64::MAX;
        let events = [
            json!({"type": "response.output_text.delta", "output_index": most, "content_index": most, "delta": "a"}),
            json!({"type": "content_block_delta", "index": most, "delta": {"type": "text_delta", "text": "b"}}),
            json!({"type": "tool-call-start", "index": most, "delta": {"message": {"tool_calls": {"id": "c"}}}}),
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": most, "function": {"name": "d"}}]}}]}),
            json!({"completion": "e"}),
        ];
        let found = conversation(&[(json!({"messages": []}), streamed(&events))]);
        assert_eq!(found.calls[0].answers.len(), 1);
    }

    #[test]
    fn what_cannot_be_decoded_is_shown_as_it_is() {
        let found = conversation(&[
            (json!({"unknown": 1}), said(&json!({"other": [2]}))),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "video", "v": 3}]}]}),
                answer(200, None, "text"),
            ),
        ]);
        assert_eq!(
            described(&found),
            [
                r#"0 U:other {"unknown":1} A:other {"other":[2]}"#,
                r#"1 U:other {"type":"video","v":3} A:text"#
            ]
        );
    }

    #[test]
    fn files_refusals_errors_and_embeddings_are_parts() {
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
        let failed = json!({"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": true});
        let called = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}});
        let vectors = json!({"object": "list", "data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]});
        let found = conversation(&[
            (
                json!({"messages": [{"role": "user", "content": [image]}]}),
                said(
                    &json!({"choices": [{"message": {"refusal": "never"}}, {"index": 1, "message": {"content": "b"}}]}),
                ),
            ),
            (
                json!({"system": "", "messages": [{"role": "assistant", "content": [called]}, {"role": "user", "content": [failed]}]}),
                answer(529, Some("application/json"), r#"{"type":"error","error":{"message":"busy"}}"#),
            ),
            (json!({"input": ["a", "b"]}), said(&vectors)),
        ]);
        assert_eq!(described(&found), ["0 U:<image/png 3> A:!never A:b", "1 A:f{} = !no", "2 U:a U:b A:2x2"]);
        let errors: Vec<_> = found.calls.iter().map(|call| call.error.as_deref()).collect();
        assert_eq!(errors, [None, Some("busy"), None]);
    }

    #[test]
    fn answers_that_clients_repeat_as_several_contents_are_one() {
        let content = |role: &str, part: Json| json!({"role": role, "parts": [part]});
        let event = |part: &Json| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
        let pieces = [
            json!({"text": "hm", "thought": true}),
            json!({"text": "Hel"}),
            json!({"text": "lo."}),
            json!({"functionCall": {"name": "f", "args": {}}}),
            json!({"text": ""}),
        ];
        let mut contents = vec![content("user", json!({"text": "hi"}))];
        let mut calls = Vec::new();
        for turn in ["a", "b"] {
            let answer = streamed(&pieces.each_ref().map(event));
            calls.push((json!({"contents": contents}), answer));
            contents.extend(pieces.iter().map(|piece| content("model", piece.clone())));
            contents.push(content("user", json!({"functionResponse": {"name": "f", "response": {}}})));
            contents.push(content("user", json!({"text": turn})));
        }
        calls.push((json!({"contents": contents}), said(&event(&json!({"text": "bye"})))));
        let found = conversation(&calls);
        let expected =
            ["0 U:hi A:(hm)|Hello.|f{} = other {}", "0 U:a A:(hm)|Hello.|f{} = other {}", "0 U:b A:bye"];
        assert_eq!(described(&found), expected);
        assert_eq!(continued(&calls).0, found);
        // Alone, they are one message, too.
        let alone = conversation(&[(json!({"contents": contents}), said(&json!({"candidates": []})))]);
        assert!(described(&alone)[0].starts_with("0 U:hi A:(hm)|Hello.|f{} = other {} U:a A:"));
    }

    #[test]
    fn requests_refer_to_items_of_earlier_answers() {
        let text = |id: &str, text: &str| {
            json!({"type": "message", "id": id, "role": "assistant",
            "content": [{"type": "output_text", "text": text}]})
        };
        let call =
            json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"});
        let thought =
            json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]});
        let refer = |id: &str| json!({"type": "item_reference", "id": id});
        let user = |text: &str| json!({"role": "user", "content": text});
        let result = json!({"type": "function_call_output", "call_id": "c", "output": "done"});
        let response = |output: Json| json!({"id": "r", "object": "response", "output": output});
        let item =
            |item: &Json| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        let first = vec![user("one")];
        let second = [first.clone(), vec![refer("rs"), refer("fc"), result]].concat();
        let third = [second.clone(), vec![refer("m1"), user("two")]].concat();
        let fourth = [third.clone(), vec![refer("m2"), refer("unknown")]].concat();
        let calls = [
            (json!({"input": first}), said(&response(json!([thought, call])))),
            (json!({"input": second}), streamed(&[item(&text("m1", "It is."))])),
            (json!({"input": third}), said(&response(json!([text("m2", "Two.")])))),
            (json!({"input": fourth}), said(&response(json!([text("m3", "Three.")])))),
        ];
        let found = conversation(&calls);
        assert_eq!(
            described(&found),
            [
                "0 U:one A:(hm)|f{} = done",
                "0 A:It is.",
                "0 U:two A:Two.",
                r#"1 A:Two.|other {"id":"unknown","type":"item_reference"} A:Three."#
            ]
        );
        assert_eq!(continued(&calls).0, found);
    }

    #[test]
    fn parts_that_few_servers_state_are_shown() {
        let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]});
        let text = json!({"type": "text", "text": "yes"});
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
        let messages = [
            (json!({"content": [thinking, text]}), "(hm)|yes"),
            (json!({"content": null, "audio": {"id": "a", "data": "AAAA", "transcript": "aloud"}}), "aloud"),
            (json!({"content": "see", "images": [image, image]}), "see|<image/png 3>|<image/png 3>"),
        ];
        for (message, expected) in messages {
            let expected = format!("0 U:q A:{expected}");
            let request = json!({"messages": [{"role": "user", "content": "q"}]});
            let whole = said(&json!({"choices": [{"message": message}]}));
            let stream = streamed(&[json!({"choices": [{"delta": message}]})]);
            for answer in [whole, stream] {
                let found = conversation(&[(request.clone(), answer)]);
                assert_eq!(described(&found), [expected.as_str()]);
            }
        }
        // Without a signature, such parts are not of Anthropic.
        let mut repeated = json!({"role": "assistant", "content": [thinking, text], "tool_calls":
            [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]});
        let result = json!({"role": "tool", "tool_call_id": "c", "content": "done"});
        for thought in [thinking, json!({"type": "thinking", "thinking": "hm"})] {
            repeated["content"][0] = thought;
            let request = json!({"messages": [repeated, result]});
            let cohere =
                json!({"message": {"role": "assistant", "tool_plan": "so", "content": repeated["content"]}});
            let found = conversation(&[(request, said(&cohere))]);
            assert_eq!(described(&found), ["0 A:(hm)|yes|f{} = done A:(so)|(hm)|yes"]);
        }
    }

    #[test]
    fn what_was_said_aloud_is_referred_to_by_its_id() {
        let user = |text: &str| json!({"role": "user", "content": text});
        let aloud =
            json!({"role": "assistant", "content": null, "audio": {"id": "a", "transcript": "aloud"}});
        let refer = json!({"role": "assistant", "audio": {"id": "a"}});
        let found = conversation(&[
            (json!({"messages": [user("one")]}), said(&json!({"choices": [{"message": aloud}]}))),
            (json!({"messages": [user("one"), refer, user("two")]}), said(&json!({"choices": []}))),
        ]);
        assert_eq!(found.threads, [ConversationThread { parent: None, calls: 2 }]);
        assert_eq!(described(&found)[0], "0 U:one A:aloud");
    }

    #[test]
    fn blocked_prompts_have_a_reason_and_no_answer() {
        let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "Not this."},
            "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": 4}});
        let silent = json!({"promptFeedback": {"blockReason": "SAFETY"}});
        let request = || json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
        let found = conversation(&[
            (request(), said(&blocked)),
            (request(), streamed(&[blocked.clone(), blocked.clone()])),
            (request(), said(&silent)),
            (request(), streamed(&[silent])),
        ]);
        let shown = described(&found);
        assert_eq!(shown, ["0 U:hi A:!Not this.", "1 A:!Not this.", "2 ", "2 "]);
        let reasons = found.calls.iter().map(|call| call.finish_reason.as_deref().unwrap_or_default());
        assert_eq!(
            reasons.collect::<Vec<_>>(),
            ["PROHIBITED_CONTENT", "PROHIBITED_CONTENT", "SAFETY", "SAFETY"]
        );
    }

    #[test]
    fn tools_of_anthropic_state_why_they_failed() {
        let used = |id: &str| json!({"type": "server_tool_use", "id": id, "name": "w", "input": {}});
        let result = |kind: &str, id: &str, content: Json| json!({"type": kind, "tool_use_id": id, "content": content});
        let search = result(
            "web_search_tool_result",
            "1",
            json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}),
        );
        let fetch = result(
            "web_fetch_tool_result",
            "2",
            json!({"type": "web_fetch_tool_error", "error_code": "url_not_accessible"}),
        );
        let edit = result(
            "text_editor_code_execution_tool_result",
            "3",
            json!({"type": "text_editor_code_execution_tool_result_error", "error_code": "file_not_found", "error_message": "no a.txt"}),
        );
        let blocks = json!([used("1"), search, used("2"), fetch, used("3"), edit]);
        let events = (0..).zip(blocks.as_array().unwrap()).map(
            |(index, block): (u64, _)| json!({"type": "content_block_start", "index": index, "content_block": block}),
        );
        let streamed = streamed(&events.collect::<Vec<_>>());
        for answer in [said(&json!({"type": "message", "content": blocks})), streamed] {
            let found = conversation(&[(json!({"system": "S", "messages": []}), answer)]);
            let expected = "0 S:S A:w{} = !max_uses_exceeded|w{} = !url_not_accessible|w{} = !no a.txt";
            assert_eq!(described(&found), [expected]);
        }
    }

    /// What is asked and answered with a call of a tool without arguments, as each API streams it, and the message by which
    /// clients repeat the answer.
    fn calls_without_arguments() -> Vec<(&'static str, CallResponse, Json)> {
        let chat = |arguments: Json| json!({"index": 0, "id": "c", "function": {"name": "now", "arguments": arguments}});
        let delta = |arguments: Json| json!({"choices": [{"delta": {"tool_calls": [chat(arguments)]}}]});
        let item = |arguments: &str| json!({"type": "function_call", "call_id": "c", "name": "now", "arguments": arguments});
        let block = json!({"type": "tool_use", "id": "c", "name": "now", "input": {}});
        let gemini = |call: Json| json!({"role": "model", "parts": [{"functionCall": call}]});
        let tool_use = |input: Json| json!({"toolUseId": "c", "name": "now", "input": input});
        let repeated = json!({"role": "assistant", "tool_calls": [chat(json!("{}"))]});
        vec![
            ("messages", streamed(&[delta(json!(""))]), repeated.clone()),
            ("messages", streamed(&[delta(json!(null))]), repeated.clone()),
            (
                "messages",
                said(&json!({"choices": [{"message": {"tool_calls": [chat(json!(""))]}}]})),
                repeated,
            ),
            (
                "input",
                streamed(&[json!({"type": "response.output_item.done", "item": item("")})]),
                item("{}"),
            ),
            (
                "messages",
                streamed(&[
                    json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}}),
                ]),
                json!({"role": "assistant", "content": [block]}),
            ),
            (
                "contents",
                said(&json!({"candidates": [{"content": gemini(json!({"name": "now"}))}]})),
                gemini(json!({"name": "now", "args": {}})),
            ),
            (
                "messages",
                streamed(&[
                    json!({"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "now"}}}),
                    json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": ""}}}),
                ]),
                json!({"role": "assistant", "content": [{"toolUse": tool_use(json!({}))}]}),
            ),
        ]
    }

    #[test]
    fn calls_without_arguments_are_recognized_where_they_are_repeated() {
        for (list, answer, repeated) in calls_without_arguments() {
            let asked = match list {
                "contents" => json!({"role": "user", "parts": [{"text": "time?"}]}),
                _ => json!({"role": "user", "content": "time?"}),
            };
            let found = conversation(&[
                (json!({list: [asked]}), answer),
                (json!({list: [asked, repeated]}), said(&json!({"choices": []}))),
            ]);
            assert_eq!(
                described(&found).first().map(String::as_str),
                Some("0 U:time? A:now{}"),
                "{repeated}"
            );
            assert_eq!(found.threads, [ConversationThread { parent: None, calls: 2 }], "{repeated}");
        }
    }

    #[test]
    fn tools_that_servers_run_are_called_and_return() {
        let output = json!([
            {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}},
            {"type": "file_search_call", "id": "f", "status": "failed", "queries": ["q"], "results": null},
            {"type": "code_interpreter_call", "id": "c", "code": "1 + 1", "outputs": [{"type": "logs", "logs": "2"}]},
            {"type": "mcp_call", "id": "m", "name": "t", "arguments": "{\"x\": 1}", "output": null, "error": "down"},
            {"type": "image_generation_call", "id": "i", "result": "AAAA", "output_format": "png"},
        ]);
        let run = json!([
            {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
            {"text": "Two."},
        ]);
        let vectors = json!({"predictions": [{"embeddings": {"values": [1, 2, 3], "statistics": {}}}]});
        let found = conversation(&[
            (json!({"input": "search"}), said(&json!({"id": "1", "output": output}))),
            (
                json!({"contents": [{"parts": [{"text": "two"}]}]}),
                said(&json!({"candidates": [{"content": {"parts": run}}]})),
            ),
            (json!({"instances": [{"content": "a", "task_type": "RETRIEVAL_QUERY"}]}), said(&vectors)),
        ]);
        assert_eq!(
            described(&found),
            [
                r#"0 U:search A:web_search{"query":"q","type":"search"}|file_search["q"] = !|code_interpreter1 + 1 = 2|t{"x":1} = !down|image_generation{} = <png 3>"#,
                "1 U:two A:code_executionprint(2) = 2|Two.",
                "2 U:a A:1x3"
            ]
        );
    }
}
