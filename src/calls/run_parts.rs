//! Makes the run packs of a run: `docs/gateway.md`, "The run pack". A run has as many as the limits of documents need.

use std::collections::{HashMap, HashSet, VecDeque};

use chrono::{DateTime, SecondsFormat, Utc};

use super::recorded_run::{
    ATTACHED, CHUNK_TIMES, GATEWAY, IMPORT, MATCHING, PART, PREVIOUS, QUERY, REPLAYED_BEFORE, STREAM,
};
use super::request_store::RequestRestorer;
use super::run::{CallDifference, CallOrigin, CallOutcome, PROFILE, RunHead, SOURCE, StoredCall};
use crate::conversation::assembled;
use crate::conversation::providers::mcp::{self, ServerRequest};
use crate::conversation::providers::{AnswerContent, AnswerFailure};
use crate::conversation::response::{CallResponse, RetryHeaders};
use crate::digest::Digest;
use crate::json::canonical::replaykit::{self, VolatilePolicy};
use crate::json::members::{integer, object, text};
use crate::json::reader::{self, Limits};
use crate::json::splice::{self, Splice, ValueDifference};
use crate::json::{Value, compact};

/// The most bytes of the steps of a run pack, unless a single call has more.
const MAX_BYTES: usize = 64 << 20;
/// The most values of the steps of a run pack.
const MAX_VALUES: usize = 4_000_000;
/// The most bytes of the body of a request, and of an answer as a string of JSON, in a run pack.
const MAX_REQUEST: usize = 64 << 20;
const MAX_ANSWER: usize = 16 << 20;
/// The levels of a run pack around the body of a request, and around the differences of it.
const LEVELS: usize = 9;

/// What the documents of a run may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartLimits {
    bytes: usize,
    values: usize,
    request: usize,
    answer: usize,
    depth: usize,
}

impl PartLimits {
    /// Returns the limits of run packs that are within the limits of documents.
    pub(crate) fn new(limits: &Limits) -> Self {
        let bytes = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
        Self {
            bytes: MAX_BYTES.min(bytes / 2),
            values: MAX_VALUES.min(limits.values / 2),
            request: MAX_REQUEST.min(bytes / 4),
            answer: MAX_ANSWER.min(bytes / 8),
            depth: limits.depth.saturating_sub(LEVELS),
        }
    }
}

/// The reason that a run has no run pack.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunPartError<E> {
    /// A call has no canonical form, also without its bodies.
    #[error("what was recorded has no canonical form")]
    NonCanonical,
    /// A document with a single call was not accepted.
    #[error("the call {0} is not accepted")]
    Rejected(u64),
    /// It could not be passed on.
    #[error(transparent)]
    Sink(E),
}

/// Receives what a run becomes.
pub(crate) trait RunSink {
    /// The reason that something cannot be received.
    type Error;

    /// Receives a body that is not in a run pack, before the run pack that names it.
    fn attachment(&mut self, bytes: Vec<u8>) -> Result<(), Self::Error>;

    /// Receives a run pack, with its core hash. Returns whether it is accepted: not if it is beyond a limit.
    fn run_pack(&mut self, document: Vec<u8>, core: Digest) -> Result<bool, Self::Error>;
}

/// A run that becomes run packs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunDocuments<'r> {
    pub(crate) origin: CallOrigin<'r>,
    pub(crate) head: &'r RunHead,
    pub(crate) limits: PartLimits,
}

impl RunDocuments<'_> {
    /// Passes the run packs on, of which each states the one before it. Large answers are passed on as attachments
    /// first, and `calls` do not have them afterwards.
    pub(crate) fn write<S: RunSink>(
        &self,
        calls: &mut [StoredCall],
        sink: &mut S,
    ) -> Result<(), RunPartError<S::Error>> {
        let limits = &self.limits;
        let attached = attach_answers(limits, calls, sink).map_err(RunPartError::Sink)?;
        let calls: &[StoredCall] = calls;
        let mut restorer = RequestRestorer::new(calls);
        let mut queue = VecDeque::from([(calls, false)]);
        let mut position = PartPosition { number: 1, previous: None, is_last: true };
        while let Some((calls, are_bodies_attached)) = queue.pop_front() {
            let mut writer = PartWriter::new(limits, &attached, &mut restorer, are_bodies_attached);
            let count = writer.take(calls).ok_or(RunPartError::NonCanonical)?;
            let PartWriter { steps, attachments, .. } = writer;
            let (these, others) = calls.split_at(count);
            if !others.is_empty() {
                queue.push_front((others, are_bodies_attached));
            }
            position.is_last = queue.is_empty();
            let (document, core) = self.document(steps, &position).ok_or(RunPartError::NonCanonical)?;
            for bytes in attachments {
                sink.attachment(bytes).map_err(RunPartError::Sink)?;
            }
            if sink.run_pack(document, core).map_err(RunPartError::Sink)? {
                position = PartPosition { number: position.number + 1, previous: Some(core), is_last: true };
            } else if let [only] = these {
                if are_bodies_attached {
                    return Err(RunPartError::Rejected(only.number));
                }
                queue.push_front((these, true));
            } else {
                let (first, second) = these.split_at(these.len() / 2);
                queue.push_front((second, are_bodies_attached));
                queue.push_front((first, are_bodies_attached));
            }
        }
        Ok(())
    }

    /// Returns a run pack, and its core hash.
    fn document(&self, steps: Vec<Value<'_>>, position: &PartPosition) -> Option<(Vec<u8>, Digest)> {
        let Self { origin, head, .. } = *self;
        let rules = reader::read(head.rules.as_bytes(), &Limits::most()).ok()?;
        let PartPosition { number, previous, is_last } = position;
        let part = (*number > 1 || !is_last).then(|| (PART, integer(*number)));
        let previous = previous.map(|previous| (PREVIOUS, text(previous.to_string())));
        let profile = [(MATCHING, rules)].into_iter().chain(part).chain(previous);
        let profile = object(profile.chain([("profile", integer(PROFILE))]));
        let metadata = [("created_at", text(time_or_unknown(head.started_at))), (GATEWAY, profile)];
        let import = origin.import(PROFILE).map(|import| (IMPORT, import));
        let source = head.source_run_id.as_deref().map(|id| ("source_run_id", text(id)));
        let names = [("run_id", text(head.id.as_str()))].into_iter().chain(source);
        let metadata = object(metadata.into_iter().chain(import).chain(names));
        let run = object([
            ("capture_mode", text(origin.capture_mode())),
            ("environment_fingerprint", origin.environment()),
            ("id", text(head.id.as_str())),
            ("runtime_versions", origin.versions()),
            (SOURCE, text(origin.source())),
            ("steps", Value::Array(steps)),
            ("timestamp", text(time_or_unknown(head.started_at))),
        ]);
        let payload = object([("run", run)]);
        let version = text("1.0");
        let core = [("version", &version), ("metadata", &metadata), ("payload", &payload)];
        let checksum = digest(&core, VolatilePolicy::Include)?;
        let pack = object([
            ("checksum", text(checksum.to_string())),
            ("metadata", metadata),
            ("payload", payload),
            ("version", version),
        ]);
        Some((compact::text(&pack).into_bytes(), checksum))
    }
}

/// What steps state of an answer that is an attachment.
struct AttachedAnswer {
    stated: Value<'static>,
    usage: Option<Value<'static>>,
    failure: Option<AnswerFailure>,
}

/// Passes the answers on that are too large for a run pack, so that each is in memory only once. Returns what their steps
/// state, by the number of the call.
fn attach_answers<S: RunSink>(
    limits: &PartLimits,
    calls: &mut [StoredCall],
    sink: &mut S,
) -> Result<HashMap<u64, AttachedAnswer>, S::Error> {
    let limit = limits.answer;
    let is_large = |body: &str| body.len() > limit || escaped_len(body) > limit;
    let mut attached = HashMap::new();
    for call in calls {
        let (body, AnswerContent { usage, failure, .. }) = match &mut call.outcome {
            CallOutcome::Answered(answer) if is_large(&answer.body) => {
                let content = assembled::read_without_texts(answer);
                (std::mem::take(&mut answer.body), content)
            }
            CallOutcome::Failed { partial, .. } if is_large(partial) => {
                (std::mem::take(partial), AnswerContent::default())
            }
            _ => continue,
        };
        let stated = attachment(body.as_bytes(), &format!("it has more than {limit} bytes"));
        sink.attachment(body.into_bytes())?;
        attached.insert(call.number, AttachedAnswer { stated, usage, failure });
    }
    Ok(attached)
}

/// Returns what a step states of a body that is an attachment.
fn attachment(bytes: &[u8], reason: &str) -> Value<'static> {
    object([
        ("bytes", integer(bytes.len() as u64)),
        ("hash", text(Digest::from_content(bytes).to_string())),
        ("reason", text(reason.to_owned())),
    ])
}

/// The position of a run pack among those of its run.
struct PartPosition {
    /// Its number, from 1.
    number: u64,
    /// The core hash of the one before it.
    previous: Option<Digest>,
    is_last: bool,
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The format requires a text where the time of a run is: one that is not a time states that it is not known.
fn time_or_unknown(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(|| "unknown".to_owned(), time)
}

fn digest(members: &[(&str, &Value<'_>)], volatile: VolatilePolicy) -> Option<Digest> {
    replaykit::digest(members, volatile).ok()
}

/// The steps of a run pack so far.
struct PartWriter<'w, 'c> {
    limits: &'w PartLimits,
    /// The answers that are attachments, by the number of the call.
    attached: &'w HashMap<u64, AttachedAnswer>,
    restorer: &'w mut RequestRestorer<'c>,
    /// Whether all bodies are attached, because the run pack with them was not accepted.
    are_bodies_attached: bool,
    steps: Vec<Value<'c>>,
    /// The bodies that are not in the steps.
    attachments: Vec<Vec<u8>>,
    /// The calls whose requests, and those whose prompts, later ones can be differences from.
    payloads: HashSet<u64>,
    prompts: HashSet<u64>,
    bytes: usize,
    values: usize,
}

/// A body as a step states it.
enum StoredBody<'c> {
    Inline(Value<'c>),
    /// It is attached; what the step states instead.
    Attached(Value<'static>),
}

impl<'w, 'c> PartWriter<'w, 'c> {
    fn new(
        limits: &'w PartLimits,
        attached: &'w HashMap<u64, AttachedAnswer>,
        restorer: &'w mut RequestRestorer<'c>,
        are_bodies_attached: bool,
    ) -> Self {
        Self {
            limits,
            attached,
            restorer,
            are_bodies_attached,
            steps: Vec::new(),
            attachments: Vec::new(),
            payloads: HashSet::new(),
            prompts: HashSet::new(),
            bytes: 0,
            values: 0,
        }
    }

    /// Adds the steps of the first of these calls, as many as fit, and returns their number. Returns `None` if a call has
    /// no canonical form.
    fn take(&mut self, calls: &'c [StoredCall]) -> Option<usize> {
        for (index, call) in calls.iter().enumerate() {
            let attached = self.attachments.len();
            let steps = self.call_steps(call)?;
            let size = steps.iter().map(compact::len).sum::<usize>();
            let values = steps.iter().map(count).sum::<usize>();
            let is_full = self.bytes + size > self.limits.bytes || self.values + values > self.limits.values;
            if index > 0 && (is_full || self.are_bodies_attached) {
                self.attachments.truncate(attached);
                return Some(index);
            }
            self.bytes += size;
            self.values += values;
            self.steps.extend(steps);
        }
        Some(calls.len())
    }

    /// Returns the steps of a call: what was asked, and what came back.
    fn call_steps(&mut self, call: &'c StoredCall) -> Option<[Value<'c>; 2]> {
        let request = match self.request_step(call, self.are_bodies_attached) {
            Some(step) => step,
            None => self.request_step(call, true)?,
        };
        Some([request, self.response_step(call)?])
    }

    fn request_step(&mut self, call: &'c StoredCall, is_attached: bool) -> Option<Value<'c>> {
        let mut input = vec![("endpoint", text(call.endpoint.as_str()))];
        if call.is_of_tool() {
            input.extend(self.tool_members(call, is_attached)?);
        } else {
            input.push(("model", text(call.request.model.as_str())));
        }
        input.push(("path", text(call.path.as_str())));
        input.extend(self.request_members(call, is_attached)?);
        input.push(("prompt_hash", text(call.request.prompt_hash.to_string())));
        input.push(("provider", text(call.provider.as_str())));
        input.extend(call.query.as_ref().map(|digest| (QUERY, text(digest.as_str()))));
        // The run answered the requests before this one from recordings, so this one comes after them.
        let replayed = Some(call.replayed_before).filter(|count| *count > 0);
        let replayed = replayed.map(|count| (REPLAYED_BEFORE, integer(count)));
        let metadata = step_metadata(call, replayed);
        let output = object([("status", text("sent"))]);
        let step = NewStep {
            number: call.number * 2,
            step_type: if call.is_of_tool() { "tool.request" } else { "model.request" },
            at: call.requested_at,
            input: object(input),
            output,
            metadata,
        };
        let step = step.into_value();
        if step.is_none() {
            self.payloads.remove(&call.number);
            self.prompts.remove(&call.number);
        }
        step
    }

    /// Returns the members with the tool that a request calls, and with what it is called with, where steps of tools have them.
    fn tool_members(
        &mut self,
        call: &StoredCall,
        is_attached: bool,
    ) -> Option<Vec<(&'static str, Value<'c>)>> {
        let payload = self.restorer.payload(call.number)?;
        let ServerRequest { tool, arguments } = ServerRequest::new(&payload);
        let arguments = arguments.filter(|arguments| !is_attached && self.beyond_limit(arguments).is_none());
        let arguments = arguments.and_then(mcp::without_metadata).map(|arguments| ("arguments", arguments));
        let tool = tool.map(|tool| ("tool", text(tool.to_owned())));
        Some(arguments.into_iter().chain(tool).collect())
    }

    /// Returns the tool that a request calls.
    fn called_tool(&mut self, call: &StoredCall) -> Option<String> {
        let payload = self.restorer.payload(call.number)?;
        ServerRequest::new(&payload).tool.map(str::to_owned)
    }

    /// Returns the members with the body of a request, and with what it is compared by.
    fn request_members(
        &mut self,
        call: &'c StoredCall,
        is_attached: bool,
    ) -> Option<Vec<(&'static str, Value<'c>)>> {
        let difference = call.request.payload_difference.as_ref();
        let stated = difference.filter(|it| it.call.is_some_and(|base| self.payloads.contains(&base)));
        let rest = match (difference, stated) {
            (Some(_), None) => Value::clone(&*self.restorer.payload(call.number)?),
            _ => reader::read(call.request.payload.as_bytes(), &Limits::most()).ok()?,
        };
        let reason = if is_attached { Some(NOT_ACCEPTED.to_owned()) } else { self.beyond_limit(&rest) };
        if let Some(reason) = reason {
            let payload = self.restorer.payload(call.number)?;
            let is_stream = payload.get("stream") == Some(&Value::Bool(true));
            let attached = self.attach(compact::text(&payload).into_bytes(), &reason);
            return Some(vec![(ATTACHED, attached), (STREAM, Value::Bool(is_stream))]);
        }
        let mut members = vec![("payload", rest)];
        members.extend(stated.map(|it| ("payload_difference", object(difference_members(it)))));
        members.push(("prompt_difference", self.prompt_difference(call)?));
        self.payloads.insert(call.number);
        Some(members)
    }

    /// Returns what a request is compared by, as a difference from its body or from that of an earlier request.
    fn prompt_difference(&mut self, call: &'c StoredCall) -> Option<Value<'c>> {
        let request = &call.request;
        let is_stated = request.prompt_difference.call.is_none_or(|base| self.prompts.contains(&base));
        self.prompts.insert(call.number);
        if is_stated {
            let rest = reader::read(request.prompt.as_bytes(), &Limits::most()).ok()?;
            let members = difference_members(&request.prompt_difference);
            return Some(object([("rest", rest)].into_iter().chain(members)));
        }
        let (payload, prompt) = (self.restorer.payload(call.number)?, self.restorer.prompt(call.number)?);
        let ValueDifference { rest, splices } = splice::difference(&payload, &prompt);
        let members = difference_members(&CallDifference { call: None, splices });
        Some(object([("rest", rest)].into_iter().chain(members)))
    }

    /// Returns the limit that the body of a request is beyond.
    fn beyond_limit(&self, body: &Value<'_>) -> Option<String> {
        let PartLimits { request, depth, values, .. } = self.limits;
        if depth_of(body) > *depth {
            return Some(format!("it is nested deeper than {depth} levels"));
        }
        if count(body) > *values / 2 {
            return Some(format!("it has more than {} values", values / 2));
        }
        (compact::len(body) > *request).then(|| format!("it has more than {request} bytes"))
    }

    /// Keeps a body to be attached, and returns what its step states of it.
    fn attach(&mut self, bytes: Vec<u8>, reason: &str) -> Value<'static> {
        let stated = attachment(&bytes, reason);
        self.attachments.push(bytes);
        stated
    }

    fn response_step(&mut self, call: &'c StoredCall) -> Option<Value<'c>> {
        let tool = call.is_of_tool().then(|| self.called_tool(call)).flatten();
        let asked = |name, target| {
            let tool = tool.clone().map(|tool| ("tool", text(tool)));
            object([(name, text(target))].into_iter().chain(tool))
        };
        let (step_type, input, output, chunks) = match &call.outcome {
            CallOutcome::Answered(answer) => {
                let (step_type, input) = if call.is_of_tool() {
                    ("tool.response", asked("endpoint", call.endpoint.as_str()))
                } else {
                    ("model.response", asked("model", call.request.model.as_str()))
                };
                (step_type, input, self.answered(call.number, answer), answer.chunks.as_slice())
            }
            CallOutcome::Failed { reason, partial } => {
                let target = if call.is_of_tool() {
                    asked("endpoint", call.endpoint.as_str())
                } else {
                    let model = call.request.model.as_str();
                    object([("boundary", text("model")), ("target", text(model))])
                };
                let mut output = vec![("message", text(reason.as_str()))];
                output.push(match self.text_body(call.number, partial) {
                    StoredBody::Inline(partial) => ("partial", partial),
                    StoredBody::Attached(attached) => (ATTACHED, attached),
                });
                ("error.event", target, object(output), [].as_slice())
            }
        };
        // When parts arrived is different in each recording, so it is in a member that step hashes leave out.
        let arrived = chunks.iter().map(|chunk| {
            Value::Array(vec![integer(chunk.at_us.saturating_mul(1_000)), integer(chunk.bytes)])
        });
        let latency = call.latency_ms.map(|latency| ("latency_ms", integer(latency)));
        let details = [("chunks", object([(CHUNK_TIMES, Value::Array(arrived.collect()))]))];
        let details = details.into_iter().chain(latency);
        let (number, at, metadata) = (call.number * 2 + 1, call.ended_at(), step_metadata(call, details));
        NewStep { number, step_type, at, input, output, metadata }.into_value()
    }

    /// Returns the body of the answer of a call.
    fn text_body(&mut self, number: u64, body: &'c str) -> StoredBody<'c> {
        if let Some(attached) = self.attached.get(&number) {
            return StoredBody::Attached(attached.stated.clone());
        }
        if self.are_bodies_attached {
            return StoredBody::Attached(self.attach(body.as_bytes().to_vec(), NOT_ACCEPTED));
        }
        StoredBody::Inline(text(body))
    }

    fn answered(&mut self, number: u64, answer: &'c CallResponse) -> Value<'c> {
        let mut output = Vec::new();
        let body = self.text_body(number, &answer.body);
        let is_inline = matches!(body, StoredBody::Inline(_));
        let AnswerContent { mut texts, usage, failure, .. } = match self.attached.get(&number) {
            Some(AttachedAnswer { usage, failure, .. }) => {
                let (usage, failure) = (usage.clone(), failure.clone());
                AnswerContent { usage, failure, ..AnswerContent::default() }
            }
            None => assembled::read(answer),
        };
        if is_inline && failure.is_none() {
            match texts.len() {
                0 => {}
                1 => output.extend(texts.pop().map(|only| ("assembled_text", text(only)))),
                _ => output.push(("assembled_text", Value::Array(texts.into_iter().map(text).collect()))),
            }
        }
        output.push(match body {
            StoredBody::Inline(content) => ("content", content),
            StoredBody::Attached(attached) => (ATTACHED, attached),
        });
        if let Some(content_type) = &answer.content_type {
            output.push(("content_type", text(content_type.as_str())));
        }
        let is_storable = |error: &Value<'_>| {
            self.beyond_limit(error).is_none()
                && digest(&[("error", error)], VolatilePolicy::Include).is_some()
        };
        output.extend(failure.map(|failure| {
            let stated = Some(failure.to_value()).filter(is_storable);
            ("error", stated.unwrap_or_else(|| text(format!("HTTP status {}", answer.status))))
        }));
        // A body in one piece states them itself.
        let parsed = reader::read(answer.body.as_bytes(), &Limits::default()).ok().filter(|_| is_inline);
        let states = |name| parsed.as_ref().is_some_and(|body| body.get(name).is_some());
        let usage = usage.filter(|_| !states("usage") && !states("usageMetadata"));
        let RetryHeaders { retry_after, retry_after_ms, should_retry } = &answer.retry;
        for (name, value) in
            [("retry_after", retry_after), ("retry_after_ms", retry_after_ms), ("should_retry", should_retry)]
        {
            output.extend(value.as_deref().map(|value| (name, text(value))));
        }
        if parsed.as_ref().is_some_and(mcp::is_tool_error) {
            output.push(("is_error", Value::Bool(true)));
        }
        output.push(("status_code", integer(u64::from(answer.status))));
        output.extend(usage.map(|usage| ("usage", usage)));
        object(output)
    }
}

/// The reason for which a body is attached that is within the limits by itself.
const NOT_ACCEPTED: &str = "a run pack with it is not valid";

/// Returns the members of a difference that say from what it is one.
fn difference_members<'v>(difference: &CallDifference) -> Vec<(&'static str, Value<'v>)> {
    let splices = difference.splices.iter().map(Splice::to_value).collect();
    let step = difference.call.map(|call| ("step", text(step_id(call * 2))));
    [("splices", Value::Array(splices))].into_iter().chain(step).collect()
}

/// Returns what both steps of a call state of it, and more.
fn step_metadata<'v>(
    call: &'v StoredCall,
    more: impl IntoIterator<Item = (&'static str, Value<'v>)>,
) -> Value<'v> {
    let request_id = format!("call-{}", call.number);
    let common = [("provider", text(call.provider.as_str())), ("request_id", text(request_id))];
    object(common.into_iter().chain(more))
}

fn step_id(number: u64) -> String {
    format!("step-{number:06}")
}

/// A step of a run pack.
struct NewStep<'v> {
    number: u64,
    step_type: &'static str,
    at: Option<DateTime<Utc>>,
    input: Value<'v>,
    output: Value<'v>,
    metadata: Value<'v>,
}

impl<'v> NewStep<'v> {
    /// Returns the step with its hash; `None` if it has no canonical form.
    fn into_value(self) -> Option<Value<'v>> {
        let Self { number, step_type, at, input, output, metadata } = self;
        let step_type = text(step_type);
        let members = [("type", &step_type), ("input", &input), ("output", &output), ("metadata", &metadata)];
        let hash = digest(&members, VolatilePolicy::Omit)?;
        digest(&members, VolatilePolicy::Include)?;
        let members = [
            ("hash", text(hash.to_string())),
            ("id", text(step_id(number))),
            ("input", input),
            ("metadata", metadata),
            ("output", output),
        ];
        let timestamp = at.map(|at| ("timestamp", text(time(at))));
        Some(object(members.into_iter().chain(timestamp).chain([("type", step_type)])))
    }
}

/// Returns the number of values in a value.
fn count(value: &Value<'_>) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(members) => members.iter().map(|(_, member)| count(member)).sum(),
        _ => 0,
    }
}

/// Returns the number of levels of arrays and objects in a value.
fn depth_of(value: &Value<'_>) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.iter().map(|(_, member)| depth_of(member)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the number of bytes of a text as a string of JSON.
fn escaped_len(body: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    };
    body.bytes().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::artifact::AdmitOptions;
    use crate::calls::recorded_run;
    use crate::calls::request_store::RequestStore;
    use crate::calls::run::{CallRecord, CompleteRequest};
    use crate::conversation::response::Chunk;
    use crate::formats;

    fn call(number: u64, outcome: CallOutcome) -> CallRecord {
        let request = CompleteRequest {
            prompt: r#"{"messages":[],"model":"m"}"#.to_owned(),
            payload: r#"{"model":"m","messages":[],"stream":true,"n":1.50}"#.to_owned(),
        };
        CallRecord { replayed_before: number, ..CallRecord::sample(number, request, outcome) }
    }

    fn asked(number: u64, payload: &str) -> CallRecord {
        let request = CompleteRequest { prompt: payload.to_owned(), payload: payload.to_owned() };
        CallRecord { request, ..call(number, CallOutcome::Answered(answer(200, "application/json", "{}"))) }
    }

    fn answer(status: u16, content_type: &str, body: &str) -> CallResponse {
        let chunks = vec![Chunk { at_us: 1, bytes: 2 }, Chunk { at_us: 5, bytes: body.len() as u64 - 2 }];
        let content_type = Some(content_type.to_owned());
        let retry = RetryHeaders {
            retry_after: Some("2".to_owned()),
            retry_after_ms: Some("1500".to_owned()),
            should_retry: Some("false".to_owned()),
        };
        CallResponse { status, content_type, retry, body: body.to_owned(), chunks }
    }

    /// What a run became, and whether a run pack is accepted.
    struct Received<'r> {
        packs: Vec<Vec<u8>>,
        attachments: Vec<Vec<u8>>,
        is_accepted: &'r dyn Fn(&[u8]) -> bool,
    }

    impl RunSink for Received<'_> {
        type Error = Infallible;

        fn attachment(&mut self, bytes: Vec<u8>) -> Result<(), Infallible> {
            self.attachments.push(bytes);
            Ok(())
        }

        fn run_pack(&mut self, document: Vec<u8>, core: Digest) -> Result<bool, Infallible> {
            let kind = formats::named("rpk").unwrap();
            let admitted = kind.admit(document.clone(), &AdmitOptions::default());
            assert_eq!(admitted.unwrap().core().0, core);
            let is_accepted = (self.is_accepted)(&document);
            if is_accepted {
                self.packs.push(document);
            }
            Ok(is_accepted)
        }
    }

    fn received<'r>(
        calls: Vec<CallRecord>,
        limits: &PartLimits,
        is_accepted: &'r dyn Fn(&[u8]) -> bool,
    ) -> Received<'r> {
        let head = RunHead::new(Some("nightly"), 3, DateTime::UNIX_EPOCH, "{}".to_owned());
        let mut calls = RequestStore::store_all(calls).unwrap();
        let mut received = Received { packs: Vec::new(), attachments: Vec::new(), is_accepted };
        let run = RunDocuments { origin: CallOrigin::Gateway, head: &head, limits: *limits };
        run.write(&mut calls, &mut received).unwrap();
        received
    }

    fn limits() -> PartLimits {
        PartLimits::new(&Limits::default())
    }

    #[test]
    fn a_pack_is_valid_and_is_read_as_it_was_made() {
        let stream = answer(
            200,
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\u{e4}\"}}]}\r\n\r\n",
        );
        let whole = answer(
            200,
            "application/json",
            r#"{"choices":[{"message":{"content":"hi"}}],"usage":{"total_tokens":3}}"#,
        );
        let error = answer(429, "application/json", r#"{"error":{"message":"slow down"}}"#);
        let aborted =
            CallOutcome::Failed { reason: "the connection was lost".to_owned(), partial: "da".to_owned() };
        let calls = vec![
            call(0, CallOutcome::Answered(stream.clone())),
            call(1, CallOutcome::Answered(whole.clone())),
            call(2, aborted),
            call(3, CallOutcome::Answered(error.clone())),
        ];
        let request = calls[0].request.clone();
        let pack = received(calls, &limits(), &|_| true).packs.remove(0);
        let read = recorded_run::read(&pack).unwrap();
        let answers: Vec<_> = read.iter().map(|recorded| recorded.answer.clone()).collect();
        assert_eq!(answers, [stream, whole, error]);
        assert_eq!((read[2].request.step, read[2].replayed_before), (6, 3));
        let requests = recorded_run::requests(&pack);
        for recorded in &read {
            assert_eq!(requests[&recorded.request.step], request);
            assert_eq!(recorded.request.prompt, Digest::from_content(request.prompt.as_bytes()));
        }
        // Each body is there once.
        let text = String::from_utf8(pack).unwrap();
        for body in ["slow down", "total_tokens", r#""n":1.50"#] {
            let stated = text.matches(body).count();
            assert_eq!(
                stated,
                if body == r#""n":1.50"# { 4 } else { 1 + usize::from(body == "slow down") },
                "{body}"
            );
        }
    }

    /// Returns calls whose requests each repeat the one before.
    fn conversation(turns: usize) -> Vec<CallRecord> {
        let message = |turn: usize| format!(r#"{{"content":"{turn} {}"}}"#, "word ".repeat(40));
        let request = |turn: usize| (0..=turn).map(message).collect::<Vec<_>>().join(",");
        (0..turns).map(|turn| asked(turn as u64, &format!(r#"{{"messages":[{}]}}"#, request(turn)))).collect()
    }

    fn complete(packs: &[Vec<u8>]) -> Vec<CompleteRequest> {
        let of_pack = |pack: &Vec<u8>| {
            let mut requests = recorded_run::requests(pack);
            let calls = recorded_run::read(pack).unwrap();
            calls
                .into_iter()
                .map(move |call| requests.remove(&call.request.step).unwrap())
                .collect::<Vec<_>>()
        };
        packs.iter().flat_map(of_pack).collect()
    }

    #[test]
    fn run_packs_of_conversations_grow_with_their_turns() {
        let size = |turns| received(conversation(turns), &limits(), &|_| true).packs[0].len();
        let (few, many) = (size(20), size(80));
        assert!(many < 5 * few, "{few} {many}");
    }

    #[test]
    fn a_run_is_divided_where_a_limit_is_reached() {
        let calls = conversation(30);
        let expected: Vec<CompleteRequest> = calls.iter().map(|call| call.request.clone()).collect();
        let limits = PartLimits { bytes: 12_000, ..limits() };
        let Received { packs, attachments, .. } = received(calls, &limits, &|_| true);
        assert!(packs.len() > 2 && attachments.is_empty(), "{}", packs.len());
        assert_eq!(complete(&packs), expected);
        let mut previous = None;
        for (number, pack) in (1..).zip(&packs) {
            let run = recorded_run::read_all(pack).unwrap();
            assert_eq!((run.part, run.previous), (Some(number), previous));
            let kind = formats::named("rpk").unwrap();
            previous = Some(kind.admit(pack.clone(), &AdmitOptions::default()).unwrap().core().0);
        }
    }

    #[test]
    fn a_run_is_divided_where_a_run_pack_is_not_accepted() {
        let calls = conversation(9);
        let expected: Vec<CompleteRequest> = calls.iter().map(|call| call.request.clone()).collect();
        let packs = received(calls, &limits(), &|pack| pack.len() < 7_000).packs;
        assert!(packs.len() > 1);
        assert_eq!(complete(&packs), expected);
        let parts: Vec<_> = packs.iter().map(|pack| recorded_run::read_all(pack).unwrap().part).collect();
        assert_eq!(parts, (1..=packs.len() as u64).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_body_beyond_a_limit_is_attached_and_named() {
        let deep = format!(r#"{{"stream":true,"a":{}{}}}"#, "[".repeat(130), "]".repeat(130));
        let dated = r#"{"timestamp":"0001-01-01T00:00:00+14:00"}"#;
        let many = format!("[{}0]", "0,".repeat(60));
        let long = format!("\"{}\"", "x".repeat(3_000));
        let small = PartLimits { values: 100, request: 2_000, answer: 2_000, ..limits() };
        for (payload, body, reason) in [
            (deep.as_str(), "{}", "it is nested deeper than 119 levels"),
            (dated, "{}", NOT_ACCEPTED),
            (&many, "{}", "it has more than 50 values"),
            (&long, "{}", "it has more than 2000 bytes"),
            ("{}", &long, "it has more than 2000 bytes"),
        ] {
            let mut call = asked(0, payload);
            call.outcome = CallOutcome::Answered(answer(200, "application/json", body));
            let Received { packs, attachments, .. } = received(vec![call], &small, &|_| true);
            let attached = if payload == "{}" { body } else { payload };
            assert_eq!(attachments, [attached.as_bytes()], "{reason}");
            let text = std::str::from_utf8(&packs[0]).unwrap();
            assert!(text.contains(reason), "{text}");
            let recorded = recorded_run::read(&packs[0]).unwrap().remove(0);
            let digest = Some(Digest::from_content(attached.as_bytes()));
            assert!([recorded.attached_request, recorded.attached_answer].contains(&digest));
            assert_eq!(recorded.request.prompt, Digest::from_content(payload.as_bytes()));
        }
        // A run pack that is not accepted although nothing in it is beyond a known limit.
        let received =
            received(conversation(1), &limits(), &|pack| !pack.windows(9).any(|text| text == b"word word"));
        assert_eq!((received.packs.len(), received.attachments.len()), (1, 2));
    }
}
