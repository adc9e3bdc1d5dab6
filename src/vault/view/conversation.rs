//! Runs as conversations.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::core_check::CoreOfBytes;
use super::request::{PageCount, ViewFilter, ViewRequest, located_kind};
use super::step::prompt_texts;
use crate::artifact::{AttributeInfo, Exchange, Kind, Playback, RepeatedElements, Timestamp};
use crate::calls::recorded_run::{self, AnsweredCall, RecordedCalls, RequestRecord, UnansweredCall};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole, MessageToolCall};
use crate::conversation::providers::mcp;
use crate::conversation::reader::{
    CallBodies, CallHead, Conversation, ConversationCall, ConversationReader, DecodedCall, RequestBody,
    RequestedMessages, decode_text, is_answer_body, read_request,
};
use crate::conversation::response::CallResponse;
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::json::Value;
use crate::json::reader::{self, Limits, ReadError};
use crate::storage::{Snapshot, StoredMember};
use crate::vault::resolve::LookupError;

/// A page of a conversation.
#[derive(Debug)]
pub(super) struct ConversationPage {
    /// The calls of the page, and the threads of all that were read.
    pub(super) conversation: Conversation,
    pub(super) count: PageCount,
}

/// Returns the part of the conversation of a run that a request asks for; `None` if its artifacts, which are `parts`, do not
/// have the bodies of its calls.
pub(super) fn read(
    snapshot: &dyn Snapshot,
    request: &ViewRequest,
    parts: &[CoreHash],
) -> Result<Option<ConversationPage>, LookupError> {
    let (mut reader, mut first_step) = (ConversationReader::default(), 0);
    let mut progress = PageProgress { request, is_complete: false, unread: 0 };
    for part in parts {
        let capture = request.capture.filter(|_| *part == request.artifact);
        let located = ViewRequest { capture, ..ViewRequest::new(*part) }.locate(snapshot)?;
        let kind = located_kind(&located)?;
        let members = snapshot.read_members(*part, located.capture.capture)?;
        let [StoredMember { bytes, .. }] = &members[..] else { return Ok(None) };
        let root = (kind.name() == recorded_run::KIND).then(|| reader::read(bytes, &Limits::most()).ok());
        let root = root.flatten();
        let core = CoreOfBytes { core: *part, kind, members: &members, root: root.as_ref() };
        let Some((root, run)) = root.as_ref().and_then(|root| Some((root, recorded_run::read_parsed(root)?)))
        else {
            let read = || read_other(snapshot, kind, parts, bytes);
            let conversation = core.check_while(request, read)?;
            return Ok(conversation.map(|conversation| page(conversation, request, 0)));
        };
        let steps = run.steps as u64;
        let part_reader = PartReader::new(snapshot, first_step, root, run, &mut reader, &mut progress);
        core.check_while(request, || part_reader.read())?;
        first_step += steps;
    }
    let conversation = reader.finish();
    // Of a run in which only tools were called, the steps say more.
    let conversation = Some(conversation).filter(|it| first_step == 0 || !it.calls.is_empty());
    Ok(conversation.map(|conversation| page(conversation, request, progress.unread)))
}

/// Returns the conversation in the parts of a run that was not recorded by a gateway or imported; `None` if its kind has none.
fn read_other(
    snapshot: &dyn Snapshot,
    kind: Kind,
    parts: &[CoreHash],
    document: &[u8],
) -> Result<Option<Conversation>, LookupError> {
    let [core, others @ ..] = parts else { return Ok(None) };
    let core = *core;
    let unreadable = |error: ReadError| LookupError::Unreadable { core, message: error.to_string() };
    if kind.info().playback != Some(Playback::ByPrompt) {
        let read = |part: &CoreHash| {
            let capture = ViewRequest::new(*part).locate(snapshot)?.capture.capture;
            Ok::<_, LookupError>(snapshot.read_members(*part, capture)?)
        };
        let others = others.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let others = others.iter().flatten().map(|member| member.bytes.as_slice());
        let documents: Vec<&[u8]> = std::iter::once(document).chain(others).collect();
        return formats::conversation_of_steps(kind, &documents).map_err(unreadable);
    }
    let exchanges = kind.exchanges(document).map_err(unreadable)?;
    // Plain texts are read as they are.
    if !exchanges.iter().any(|exchange| is_answer_body(&exchange.response)) {
        return Ok(None);
    }
    read_session(snapshot, core, &exchanges).map(Some)
}

/// Returns the conversation of a session, whose prompts are those of the vault, as far as it has them.
fn read_session(
    snapshot: &dyn Snapshot,
    core: CoreHash,
    exchanges: &[Exchange],
) -> Result<Conversation, LookupError> {
    let attributes = snapshot.attributes_of(core)?;
    let model = attributes.iter().find(|attribute| attribute.name == AttributeInfo::MODEL_ID.name);
    let model = model.map_or("", |attribute| &attribute.value);
    let digests: Vec<Digest> = exchanges.iter().flat_map(|exchange| &exchange.prompts).copied().collect();
    let prompts = prompt_texts(snapshot, &digests, u64::MAX)?;
    let mut reader = ConversationReader::default();
    for exchange in exchanges {
        let prompt_hash = exchange.prompts.last().copied();
        let head = CallHead { step: exchange.index as u64, model, prompt_hash, ..CallHead::default() };
        let recorded = exchange.prompts.last().and_then(|digest| prompts.get(digest)?.text.as_deref());
        let read =
            recorded.and_then(|text| read_request(&reader::read(text.as_bytes(), &Limits::most()).ok()?));
        let continues = read.is_none();
        let request = read.unwrap_or_else(|| {
            let unrecorded = |digest: &Digest| MessagePart::Unrecorded { digest: *digest };
            let part = recorded.map(MessagePart::text).or_else(|| exchange.prompts.last().map(unrecorded));
            let parts = part.into_iter().collect();
            let messages = vec![ConversationMessage::new(MessageRole::User, parts)];
            RequestedMessages { messages, ..RequestedMessages::default() }
        });
        let answer = decode_text(&exchange.response);
        reader.add_decoded(DecodedCall { head, request, answer, continues, ..DecodedCall::default() });
    }
    Ok(reader.finish())
}

/// Why an answer is not shown that is an attachment.
const NOT_STORED: &str = "the answer is an attachment that is not in the vault";

/// A call of a run pack, without its request.
enum RecordedOutcome {
    Answered(Box<AnsweredCall>),
    Unanswered(UnansweredCall),
}

impl RecordedOutcome {
    fn request(&self) -> &RequestRecord {
        match self {
            Self::Answered(call) => &call.request,
            Self::Unanswered(call) => &call.request,
        }
    }
}

/// What was read of a run for a page.
struct PageProgress<'r> {
    request: &'r ViewRequest,
    /// Whether the calls of the page and what their tools returned were read.
    is_complete: bool,
    /// Number of calls that were left unread.
    unread: u64,
}

impl PageProgress<'_> {
    /// Learns whether what `reader` has read, which is one call more than before, is enough.
    fn update(&mut self, reader: &ConversationReader) {
        let ViewRequest { from, to, only: None, limit: Some(limit), partial: true, .. } = *self.request
        else {
            return;
        };
        let calls = reader.calls();
        let begin = calls.partition_point(|call| call.step < from);
        let end = begin.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX));
        let end = end.min(calls.partition_point(|call| to.is_none_or(|to| call.step <= to)));
        // A result can be far behind its call, so that it is looked for after one, two, four and more calls.
        let after = calls.len().saturating_sub(end);
        self.is_complete = after.is_power_of_two() && !reader.awaits_results(end);
    }
}

/// Reads the calls of a run pack.
struct PartReader<'r, 'q> {
    snapshot: &'r dyn Snapshot,
    /// The number of its first step in the run.
    first_step: u64,
    root: &'r Value<'r>,
    reader: &'r mut ConversationReader,
    progress: &'r mut PageProgress<'q>,
    /// The calls that were not added yet, in the order of their requests.
    waiting: VecDeque<RecordedOutcome>,
    outcome: Result<(), LookupError>,
}

impl<'r, 'q> PartReader<'r, 'q> {
    fn new(
        snapshot: &'r dyn Snapshot,
        first_step: u64,
        root: &'r Value<'r>,
        run: RecordedCalls,
        reader: &'r mut ConversationReader,
        progress: &'r mut PageProgress<'q>,
    ) -> Self {
        let answered = run.recorded.into_iter().map(|call| RecordedOutcome::Answered(Box::new(call)));
        let unanswered = run.unanswered.into_iter().map(RecordedOutcome::Unanswered);
        let mut waiting: Vec<_> = answered.chain(unanswered).collect();
        waiting.sort_by_key(|call| call.request().step);
        Self { snapshot, first_step, root, reader, progress, waiting: waiting.into(), outcome: Ok(()) }
    }

    fn read(mut self) -> Result<(), LookupError> {
        let first_step = usize::try_from(self.first_step).unwrap_or(usize::MAX);
        recorded_run::visit_recorded_in(self.root, &mut |request| {
            let repeated = request.repeated.map(|repeated| RepeatedElements {
                index: first_step.saturating_add(repeated.index),
                ..repeated
            });
            self.add_up_to(request.index, Some(RequestBody { body: request.payload, repeated }));
            if self.progress.is_complete { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.add_up_to(usize::MAX, None);
        self.outcome
    }

    /// Adds the calls up to the step with a request, whose body this is. The bodies of those before it are attachments.
    fn add_up_to(&mut self, step: usize, body: Option<RequestBody<'_>>) {
        while self.outcome.is_ok()
            && let Some(call) = self.waiting.pop_front_if(|call| call.request().step <= step)
        {
            if self.progress.is_complete {
                self.progress.unread += u64::from(!call.request().is_of_tool());
                continue;
            }
            let body = body.filter(|_| call.request().step == step);
            self.outcome = self.add(call, body);
            self.progress.update(self.reader);
        }
    }

    fn add(&mut self, call: RecordedOutcome, body: Option<RequestBody<'_>>) -> Result<(), LookupError> {
        let step = self.first_step + call.request().step as u64;
        let mut call = match call {
            RecordedOutcome::Answered(call) => call,
            RecordedOutcome::Unanswered(call) => return self.add_unanswered(step, &call, body),
        };
        let mut has_answer = true;
        if let Some(digest) = call.attached_answer {
            let body = self.attached_text(digest)?;
            has_answer = body.is_some();
            call.answer.body = body.unwrap_or_default();
        }
        let attached = match call.attached_request {
            Some(digest) if body.is_none() => self.attachment(digest)?,
            _ => None,
        };
        let attached = attached.as_deref().and_then(|bytes| reader::read(bytes, &Limits::most()).ok());
        if call.request.is_of_tool() {
            self.add_tool_call(body.map(|it| it.body).or(attached.as_ref()), &call.answer.body, None);
            return Ok(());
        }
        let AnsweredCall { request, requested_at, latency_ms, model, failure, answer, .. } = &*call;
        let head = CallHead {
            step,
            provider: &request.provider,
            endpoint: &request.endpoint,
            model,
            prompt_hash: Some(request.prompt),
            requested_at: requested_at.map(Timestamp),
            duration_ms: *latency_ms,
            error: failure.as_deref().or((!has_answer).then_some(NOT_STORED)),
            ..CallHead::default()
        };
        let request = body.or(attached.as_ref().map(RequestBody::new));
        self.reader.add(&CallBodies { head, request, answer: has_answer.then_some(answer) });
        Ok(())
    }

    /// Adds a call without a complete answer, with what had arrived of that.
    fn add_unanswered(
        &mut self,
        step: u64,
        call: &UnansweredCall,
        body: Option<RequestBody<'_>>,
    ) -> Result<(), LookupError> {
        let UnansweredCall { request, requested_at, latency_ms, reason } = call;
        if request.is_of_tool() {
            self.add_tool_call(body.map(|it| it.body), "", Some(reason));
            return Ok(());
        }
        let model = body.and_then(|request| request.body.get("model")).and_then(Value::as_str);
        let head = CallHead {
            step,
            provider: &request.provider,
            endpoint: &request.endpoint,
            model: model.unwrap_or(&request.endpoint),
            prompt_hash: Some(request.prompt),
            requested_at: requested_at.map(Timestamp),
            duration_ms: *latency_ms,
            error: Some(reason),
            ..CallHead::default()
        };
        let arrived = match recorded_run::partial_answer(self.root, request.step) {
            Some(Ok(text)) => Some(text.to_owned()),
            Some(Err(digest)) => self.attached_text(digest)?,
            None => None,
        };
        let answer = arrived.map(CallResponse::from_text);
        self.reader.add(&CallBodies { head, request: body, answer: answer.as_ref() });
        Ok(())
    }

    /// Adds a call of a tool whose server was asked. Other requests to servers of tools are no part of a conversation.
    fn add_tool_call(&mut self, payload: Option<&Value<'_>>, answer: &str, error: Option<&str>) {
        let answer = reader::read(answer.as_bytes(), &Limits::most()).ok();
        let call = payload.and_then(|payload| mcp::tool_call(payload, answer.as_ref(), error));
        if let Some(call) = call {
            self.reader.add_executed_call(call);
        }
    }

    /// Returns the text of an attachment, if it is in the vault.
    fn attached_text(&self, digest: Digest) -> Result<Option<String>, LookupError> {
        Ok(self.attachment(digest)?.map(|bytes| reader::lossy(&bytes).into_owned()))
    }

    /// Returns the bytes of an attachment, if it is in the vault.
    fn attachment(&self, digest: Digest) -> Result<Option<Vec<u8>>, LookupError> {
        let core = CoreHash(digest);
        let Some(capture) = self.snapshot.preferred_capture(core)? else { return Ok(None) };
        let members = self.snapshot.read_members(core, capture.capture)?;
        Ok(members.into_iter().next().map(|member| member.bytes))
    }
}

/// Returns the page of a conversation that a request asks for. `unread` further calls follow it.
fn page(conversation: Conversation, request: &ViewRequest, unread: u64) -> ConversationPage {
    let Conversation { calls, threads } = conversation;
    let mut count = PageCount {
        total: calls.len() as u64 + unread,
        failed: calls.iter().filter(|call| is_failed(call)).count() as u64,
        matching: unread,
        core_checked: request.check_core,
        ..PageCount::default()
    };
    let matching = calls.into_iter().filter(|call| request.only.is_none_or(|only| is_of(only, call)));
    let calls = matching.filter(|call| count.admits(request, call.step)).collect();
    ConversationPage { conversation: Conversation { calls, threads }, count }
}

/// Returns whether a filter selects a call.
fn is_of(only: ViewFilter, call: &ConversationCall) -> bool {
    match only {
        ViewFilter::Tools => {
            parts(call).any(|part| matches!(part, MessagePart::ToolCall(_) | MessagePart::ToolResult(_)))
        }
        ViewFilter::Errors => is_failed(call),
    }
}

/// Returns whether a call failed, or a tool that its answer calls or whose result it has.
fn is_failed(call: &ConversationCall) -> bool {
    let is_error = |part: &MessagePart| match part {
        MessagePart::ToolCall(MessageToolCall { result, .. }) => {
            result.as_ref().is_some_and(|result| result.is_error)
        }
        MessagePart::ToolResult(result) => result.is_error,
        _ => false,
    };
    call.error.is_some() || parts(call).any(is_error)
}

fn parts(call: &ConversationCall) -> impl Iterator<Item = &MessagePart> {
    call.messages.iter().chain(&call.answers).flat_map(|ConversationMessage { parts, .. }| parts)
}
