//! Writes the calls of a run pack in the formats of other programs: `docs/import.md`, "Export"; and a conversation as a
//! trajectory in the Agent Trajectory Interchange Format, version 1.7.

use std::fmt::Write as _;
use std::io::{self, Write};

use chrono::SecondsFormat;

use crate::artifact::timestamp_text;
use crate::calls::recorded_run::{self, AnsweredCall};
use crate::conversation::message::{
    ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
use crate::conversation::providers::Provider;
use crate::conversation::reader::{Conversation, ConversationCall};
use crate::digest::Digest;
use crate::json::members::{integer, object, text};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A cassette of VCR.py, as YAML.
    Vcr,
    /// A line with the request and the response of each call.
    Jsonl,
}

/// The reason that the calls of an artifact are not written.
#[derive(Debug, thiserror::Error)]
pub enum CallExportError {
    /// It is not a run pack that a gateway recorded or that was imported from another program.
    #[error("only run packs of recorded or imported calls can be exported in this form")]
    NoCalls,
    /// A body that is an attachment is not in the vault, or is not text.
    #[error("the body {0} of a call is not in the vault")]
    Missing(Digest),
    /// The output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns whether a document is a run pack with calls that can be written.
#[must_use]
pub fn has_calls(document: &[u8]) -> bool {
    recorded_run::read(document).is_some()
}

/// Writes the complete calls of run packs, and returns their number. Calls without a complete answer are left out.
/// `attachment` returns the bytes of a body that is an attachment.
///
/// # Errors
/// Returns [`CallExportError::NoCalls`] if one of the documents is not a run pack with calls, before anything is
/// written; [`CallExportError::Missing`] if an attachment is missing; and [`CallExportError::Io`] if the output cannot be
/// written.
pub fn write(
    format: ExportFormat,
    packs: &[Vec<u8>],
    attachment: &dyn Fn(Digest) -> Option<Vec<u8>>,
    out: &mut dyn Write,
) -> Result<u64, CallExportError> {
    let mut runs = Vec::new();
    for pack in packs {
        runs.push(recorded_run::read(pack).ok_or(CallExportError::NoCalls)?);
    }
    let count = runs.iter().flatten().filter(|call| !call.request.is_of_tool()).count();
    if format == ExportFormat::Vcr {
        writeln!(out, "interactions:{}", if count == 0 { " []" } else { "" })?;
    }
    for (pack, calls) in packs.iter().zip(runs) {
        let mut requests = recorded_run::requests(pack);
        for mut call in calls.into_iter().filter(|call| !call.request.is_of_tool()) {
            let attached = |digest: Digest| {
                let text = attachment(digest).and_then(|bytes| String::from_utf8(bytes).ok());
                text.ok_or(CallExportError::Missing(digest))
            };
            let request = requests.remove(&call.request.step).map(|request| Ok(request.payload));
            let request = request.or(call.attached_request.map(attached)).transpose()?.unwrap_or_default();
            if let Some(digest) = call.attached_answer {
                call.answer.body = attached(digest)?;
            }
            match format {
                ExportFormat::Vcr => interaction(&call, &request, out)?,
                ExportFormat::Jsonl => line(&call, &request, out)?,
            }
        }
    }
    if format == ExportFormat::Vcr {
        writeln!(out, "version: 1")?;
    }
    Ok(count as u64)
}

fn url(call: &AnsweredCall) -> String {
    match Provider::named(&call.request.provider) {
        Some(provider) => format!("{}{}", provider.url, call.request.path),
        None => format!("http://{}{}", call.request.provider, call.request.path),
    }
}

fn interaction(call: &AnsweredCall, request: &str, out: &mut dyn Write) -> io::Result<()> {
    let answer = &call.answer;
    writeln!(out, "- request:\n    body: {}\n    headers:", quoted(request))?;
    writeln!(
        out,
        "      Content-Type:\n      - application/json\n    method: POST\n    uri: {}",
        quoted(&url(call))
    )?;
    writeln!(out, "  response:\n    body:\n      string: {}", quoted(&answer.body))?;
    writeln!(out, "    headers:")?;
    let date = call.requested_at.map(|at| at.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
    let headers = [("Content-Type", &answer.content_type), ("Date", &date)];
    let mut is_empty = true;
    for (name, value) in headers.into_iter().chain(answer.retry.iter()) {
        if let Some(value) = value {
            writeln!(out, "      {name}:\n      - {}", quoted(value))?;
            is_empty = false;
        }
    }
    if is_empty {
        writeln!(out, "      {{}}")?;
    }
    writeln!(
        out,
        "    status:\n      code: {}\n      message: {}",
        answer.status,
        quoted(phrase(answer.status))
    )
}

/// Returns a text in double quotes, as YAML 1.1 and 1.2 read it. JSON does so too, but permits characters that YAML only
/// permits escaped.
fn quoted(text: &str) -> String {
    let json = compact::text(&Value::String(text.into()));
    let mut yaml = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a string cannot fail.
                let _ = write!(yaml, "\\u{:04x}", u32::from(character));
            }
            other => yaml.push(other),
        }
    }
    yaml
}

/// Returns the reason phrase of a status, which clients do not interpret.
fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    }
}

fn line(call: &AnsweredCall, request: &str, out: &mut dyn Write) -> io::Result<()> {
    let string = |text: &str| compact::text(&Value::String(text.into()));
    let answer = &call.answer;
    // A body that would not be read as the same bytes is written as a string; `null` would be read as no body.
    let body = reader::read(answer.body.as_bytes(), &Limits::most()).ok();
    let body = body
        .map(|body| compact::text(&body))
        .filter(|body| *body == answer.body && !body.starts_with('"') && body != "null");
    let body = body.unwrap_or_else(|| string(&answer.body));
    let timestamp = call.requested_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Micros, true));
    write!(out, "{{")?;
    if let Some(timestamp) = timestamp {
        write!(out, "\"timestamp\":{},", string(&timestamp))?;
    }
    if let Some(latency) = call.latency_ms {
        write!(out, "\"latency_ms\":{latency},")?;
    }
    write!(out, "\"request\":{{\"method\":\"POST\",\"url\":{},\"body\":{}}},", string(&url(call)), request)?;
    write!(out, "\"response\":{{\"status_code\":{},\"headers\":{{", answer.status)?;
    let headers = [("content-type", &answer.content_type)].into_iter().chain(answer.retry.iter());
    let headers =
        headers.filter_map(|(name, value)| Some(format!("\"{name}\":{}", string(value.as_deref()?))));
    write!(out, "{}}},\"body\":{body}}}}}", headers.collect::<Vec<_>>().join(","))?;
    writeln!(out)
}

/// What a trajectory states of its agent and its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryHead {
    /// The id of the session.
    pub session_id: String,
    /// The name of the agent; "unknown" takes the place of one that is not recorded.
    pub agent: Option<String>,
    /// The version of the agent; "unknown" takes the place of one that is not recorded.
    pub version: Option<String>,
}

/// The members of an object.
type Members = Vec<(&'static str, Value<'static>)>;

/// Returns the longest thread of a conversation as a trajectory, and the number of calls in other threads, which it has no
/// place for; `None` if there is no call.
///
/// Media of messages are stated by their type and size: the format names files, and a recording has none.
#[must_use]
pub fn trajectory(conversation: &Conversation, head: &TrajectoryHead) -> Option<(String, u64)> {
    let threads = conversation.threads.iter().enumerate();
    // Of equally long threads, the first one.
    let (main, _) = threads.rev().max_by_key(|(_, thread)| thread.calls)?;
    let calls: Vec<&ConversationCall> =
        conversation.calls.iter().filter(|call| call.thread == main as u64).collect();
    let mut steps: Vec<Members> = Vec::new();
    for call in &calls {
        steps.extend(call.messages.iter().filter_map(said));
        steps.push(answered(call));
    }
    let unknown = || "unknown".to_owned();
    let mut agent = vec![
        ("name", text(head.agent.clone().unwrap_or_else(unknown))),
        ("version", text(head.version.clone().unwrap_or_else(unknown))),
    ];
    let model = calls.iter().find_map(|call| model(call));
    agent.extend(model.map(|model| ("model_name", text(model.to_owned()))));
    let total = |of: fn(&ConversationCall) -> Option<u64>| {
        calls.iter().filter_map(|call| of(call)).reduce(u64::saturating_add).map(integer)
    };
    let mut metrics = vec![("total_steps", integer(steps.len() as u64))];
    metrics.extend(total(|call| call.tokens_in).map(|total| ("total_prompt_tokens", total)));
    metrics.extend(total(|call| call.tokens_out).map(|total| ("total_completion_tokens", total)));
    let numbered =
        (1..).zip(steps).map(|(number, step)| object([("step_id", integer(number))].into_iter().chain(step)));
    let document = object([
        ("schema_version", text("ATIF-v1.7")),
        ("session_id", text(head.session_id.clone())),
        ("agent", object(agent)),
        ("steps", Value::Array(numbered.collect())),
        ("final_metrics", object(metrics)),
    ]);
    let others = conversation.calls.len() - calls.len();
    (!calls.is_empty()).then(|| (compact::text(&document) + "\n", others as u64))
}

/// Returns the step with a message of a request; `None` if it says nothing.
fn said(message: &ConversationMessage) -> Option<Members> {
    let source = match message.role {
        MessageRole::System => "system",
        MessageRole::User | MessageRole::Tool => "user",
        MessageRole::Assistant => "agent",
    };
    let spoken = texts(&message.parts);
    let mut more = Members::new();
    if message.role == MessageRole::Assistant {
        // The program put it into the conversation, and no model answered it.
        more.push(("llm_call_count", integer(0)));
        more.extend(calls_of(&message.parts));
    } else {
        let results: Vec<Value<'static>> =
            results(&message.parts).map(|result| object([("content", text(texts(&result.parts)))])).collect();
        more.extend(observation(results));
    }
    let is_empty = spoken.is_empty() && more.is_empty();
    let step = [("source", text(source)), ("message", text(spoken))].into_iter().chain(more);
    (!is_empty).then(|| step.collect())
}

/// Returns the step with the answer of a call: the first one, if several were asked for.
fn answered(call: &ConversationCall) -> Members {
    let parts = call.answers.first().map(|answer| answer.parts.as_slice()).unwrap_or_default();
    let message = match &call.error {
        Some(error) if parts.is_empty() => error.clone(),
        _ => texts(parts),
    };
    let mut step = vec![("source", text("agent")), ("message", text(message))];
    step.extend(call.requested_at.map(|at| ("timestamp", text(timestamp_text(at.0)))));
    step.extend(model(call).map(|model| ("model_name", text(model.to_owned()))));
    let thought: Vec<&str> = parts.iter().filter_map(thought).collect();
    step.extend((!thought.is_empty()).then(|| ("reasoning_content", text(thought.join("\n")))));
    step.extend(calls_of(parts));
    let metrics = [("prompt_tokens", call.tokens_in), ("completion_tokens", call.tokens_out)];
    let metrics: Members =
        metrics.into_iter().filter_map(|(name, count)| Some((name, integer(count?)))).collect();
    step.extend((!metrics.is_empty()).then(|| ("metrics", object(metrics))));
    step
}

/// Returns the members with the calls of tools, and with their results.
fn calls_of(parts: &[MessagePart]) -> Members {
    let calls = parts.iter().filter_map(|part| match part {
        MessagePart::ToolCall(call) => Some(call),
        _ => None,
    });
    let (mut called, mut returned) = (Vec::new(), Vec::new());
    for (number, call) in (1..).zip(calls) {
        let id = call.id.clone().unwrap_or_else(|| format!("call-{number}"));
        if let Some(result) = &call.result {
            let content = text(texts(&result.parts));
            returned.push(object([("source_call_id", text(id.clone())), ("content", content)]));
        }
        called.push(object([
            ("tool_call_id", text(id)),
            ("function_name", text(call.name.clone())),
            ("arguments", arguments(call)),
        ]));
    }
    let calls = (!called.is_empty()).then_some(("tool_calls", Value::Array(called)));
    calls.into_iter().chain(observation(returned)).collect()
}

fn observation(results: Vec<Value<'static>>) -> Option<(&'static str, Value<'static>)> {
    (!results.is_empty()).then(|| ("observation", object([("results", Value::Array(results))])))
}

/// Returns the model that was asked, if the request names one.
fn model(call: &ConversationCall) -> Option<&str> {
    Some(call.model.as_str()).filter(|model| !model.is_empty() && *model != call.endpoint)
}

/// Returns the arguments of a call as an object, which the format demands.
fn arguments(call: &MessageToolCall) -> Value<'static> {
    match reader::read(call.arguments.as_bytes(), &Limits::most()) {
        Ok(arguments @ Value::Object(_)) => arguments.to_owned_value(),
        Ok(other) => object([("input", other.to_owned_value())]),
        Err(_) if call.arguments.trim().is_empty() => object([]),
        Err(_) => object([("input", text(call.arguments.clone()))]),
    }
}

fn results(parts: &[MessagePart]) -> impl Iterator<Item = &MessageToolResult> {
    parts.iter().filter_map(|part| match part {
        MessagePart::ToolResult(result) => Some(result),
        _ => None,
    })
}

fn thought(part: &MessagePart) -> Option<&str> {
    match part {
        MessagePart::Thinking { text } if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Returns what is said, without thoughts and calls of tools.
fn texts(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } | MessagePart::Refusal { text } => Some(text.clone()),
        MessagePart::Media(media) => {
            let size = media.size.map(|size| format!(", {size} bytes")).unwrap_or_default();
            let location =
                media.location.as_ref().map(|location| format!(", {location}")).unwrap_or_default();
            Some(format!("[{}{size}{location}]", media.media_type))
        }
        MessagePart::Unrecorded { digest } => Some(format!("[{digest}]")),
        MessagePart::Other { value } => Some(value.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::recorded_run::RequestRecord;
    use crate::conversation::response::{CallResponse, ResponseForm, RetryHeaders};
    use crate::recorders::exchange::ConvertInput;
    use crate::recorders::exchange::ImportedResponse;
    use crate::recorders::jsonl;

    #[test]
    fn texts_are_quoted_for_all_versions_of_yaml() {
        assert_eq!(
            quoted("a\"\n\u{7f}\u{85}\u{2028}\u{1f600}"),
            "\"a\\\"\\n\\u007f\\u0085\\u2028\u{1f600}\""
        );
    }

    #[test]
    fn other_documents_have_no_calls() {
        let error = write(ExportFormat::Vcr, &[b"{}".to_vec()], &|_| None, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, CallExportError::NoCalls));
    }

    #[test]
    fn a_body_of_null_is_read_as_it_was_written() {
        let call = AnsweredCall {
            request: RequestRecord {
                pack: 0,
                step: 0,
                provider: "openai".to_owned(),
                endpoint: "responses".to_owned(),
                path: "/v1/responses".to_owned(),
                query: None,
                prompt: Digest::from_content(b""),
            },
            requested_at: None,
            latency_ms: None,
            model: "m".to_owned(),
            attached_request: None,
            form: ResponseForm::from_content_type(None),
            replayed_before: 0,
            failure: None,
            answer: CallResponse {
                status: 200,
                content_type: None,
                retry: RetryHeaders::default(),
                body: "null".to_owned(),
                chunks: Vec::new(),
            },
            attached_answer: None,
        };
        let mut bytes = Vec::new();
        line(&call, "{}", &mut bytes).unwrap();
        let input = ConvertInput { name: "exported".to_owned(), bytes };
        let run = jsonl::read(&[input], &Limits::default()).unwrap().runs.remove(0);
        let ImportedResponse::Answer { body, .. } = &run.exchanges[0].1.reply else { panic!() };
        assert_eq!(body, b"null");
    }
}
