//! Reads the calls in a run pack (`rpk`): `docs/gateway.md`, "The run pack".

use std::collections::HashMap;
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};

use super::directories::RunDirectories;
use super::matching::DIRECTORIES;
use super::run::CompleteRequest;
use crate::artifact::RequestVisitor;
use crate::conversation::providers::mcp::MCP;
use crate::conversation::response::{CallResponse, Chunk, ResponseForm, RetryHeaders};
use crate::digest::Digest;
use crate::formats;
use crate::json::members::at;
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};

/// The kind.
pub(crate) const KIND: &str = "rpk";

/// The member of a pack's metadata that says that it has the profile, with its version.
pub(super) const GATEWAY: &str = "gateway";

/// The member of a pack's metadata with the file that its calls were imported from.
pub(super) const IMPORT: &str = "import";

/// The members with the number of a run pack among those of its run, from 1, and with the core hash of the one before it.
/// A run with one run pack has neither.
pub(super) const PART: &str = "part";
pub(super) const PREVIOUS: &str = "previous";

/// The member with the rules by which requests were compared.
pub(super) const MATCHING: &str = "matching";

/// The member with the nanoseconds from a request to the arrival of each part of the answer, and the bytes of the part.
pub(super) const CHUNK_TIMES: &str = "captured_ns";

/// The member with the digest of the query of a request.
pub(super) const QUERY: &str = "query_hash";

/// The member with the number of earlier requests with the same prompt that the run answered from recordings.
pub(super) const REPLAYED_BEFORE: &str = "replayed_before";

/// The member with the hash and the size of a body that is an attachment, and the reason.
pub(super) const ATTACHED: &str = "attached";

/// The member that says whether a request whose body is attached asked for a stream.
pub(super) const STREAM: &str = "stream";

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestRecord {
    /// The position of the run pack among those of its run that were read, from 0.
    pub(crate) pack: usize,
    /// The number of the step with the request.
    pub(crate) step: usize,
    pub(crate) provider: String,
    pub(crate) endpoint: String,
    /// The path in the API.
    pub(crate) path: String,
    /// The digest of the query without keys, if requests of the API are compared by it.
    pub(crate) query: Option<String>,
    /// The digest of the text that the request was compared by when it was recorded.
    pub(crate) prompt: Digest,
}

impl RequestRecord {
    /// Returns whether a server of tools was asked, and not a model.
    pub(crate) fn is_of_tool(&self) -> bool {
        self.provider == MCP
    }
}

/// A recorded answer and the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnsweredCall {
    pub(crate) request: RequestRecord,
    pub(crate) requested_at: Option<DateTime<Utc>>,
    pub(crate) latency_ms: Option<u64>,
    /// The model that was asked, or the name of the API if the request names none.
    pub(crate) model: String,
    /// The digest of the body of the request, if it is an attachment.
    pub(crate) attached_request: Option<Digest>,
    /// The form in which the request asked for its answer.
    pub(crate) form: ResponseForm,
    /// Number of earlier requests of the run with the same prompt that were answered from recordings.
    pub(crate) replayed_before: u64,
    /// Why the answer is a failure, by [`CallResponse::failure`]; whatever the program that recorded it took it for.
    pub(crate) failure: Option<String>,
    /// The answer, without its body if that is an attachment.
    pub(crate) answer: CallResponse,
    /// The digest of the body of the answer, if it is an attachment.
    pub(crate) attached_answer: Option<Digest>,
}

/// A request without a complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnansweredCall {
    pub(crate) request: RequestRecord,
    pub(crate) requested_at: Option<DateTime<Utc>>,
    pub(crate) latency_ms: Option<u64>,
    /// Why there is no answer.
    pub(crate) reason: String,
}

/// The calls of a run pack, in the order of their requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedCalls {
    /// The id of the run.
    pub(crate) run_id: String,
    /// Number of its steps.
    pub(crate) steps: usize,
    /// The number of the run pack among those of its run, if it has several.
    pub(crate) part: Option<u64>,
    /// The core hash of the run pack before it.
    pub(crate) previous: Option<Digest>,
    /// The directories that its requests were compared without.
    pub(crate) directories: RunDirectories,
    pub(crate) recorded: Vec<AnsweredCall>,
    pub(crate) unanswered: Vec<UnansweredCall>,
}

/// Returns the complete answers in a run pack that has the profile, in the order of their requests; `None` if it has
/// another form.
pub(crate) fn read(document: &[u8]) -> Option<Vec<AnsweredCall>> {
    read_all(document).map(|run| run.recorded)
}

/// Returns the complete requests in a run pack, by the number of their step. Those whose bodies are attachments are not
/// among them.
pub(crate) fn requests(document: &[u8]) -> HashMap<usize, CompleteRequest> {
    let mut requests = HashMap::new();
    visit_requests(document, &mut |step, request| {
        requests.insert(step, request());
    });
    requests
}

/// Calls `visit` with each request in a run pack whose body is not an attachment.
pub(crate) fn visit_recorded(document: &[u8], visit: &mut RequestVisitor<'_>) {
    let Some(kind) = formats::named(KIND) else { return };
    // A document that cannot be read has no requests.
    drop(kind.requests(document, visit));
}

/// Calls `visit` with what [`visit_recorded`] does, in a run pack that was parsed.
pub(crate) fn visit_recorded_in(root: &Value<'_>, visit: &mut RequestVisitor<'_>) {
    if let Some(kind) = formats::named(KIND) {
        kind.requests_in(root, visit);
    }
}

/// Calls `visit` with the number of the step of each request in a run pack whose body is not an attachment, and a function
/// that returns the complete request.
pub(crate) fn visit_requests(document: &[u8], visit: &mut dyn FnMut(usize, &dyn Fn() -> CompleteRequest)) {
    visit_recorded(document, &mut |request| {
        visit(request.index, &|| CompleteRequest {
            prompt: (request.prompt)().unwrap_or_default(),
            payload: compact::text(request.payload),
        });
        ControlFlow::Continue(())
    });
}

/// Returns the calls in a run pack that has the profile; `None` if it has another form.
pub(crate) fn read_all(document: &[u8]) -> Option<RecordedCalls> {
    let mut run = read_parsed(&reader::read(document, &Limits::most()).ok()?)?;
    for call in run.recorded.iter_mut().filter(|call| call.attached_answer.is_none()) {
        call.failure = call.answer.failure().map(|failure| failure.to_string());
    }
    Some(run)
}

/// Returns what [`read_all`] does, for a run pack that was parsed. It is not looked for failures in the bodies of answers, which
/// takes most of the time.
pub(crate) fn read_parsed(root: &Value<'_>) -> Option<RecordedCalls> {
    let profile = at(root, &["metadata", GATEWAY])?;
    profile.get("profile")?;
    let mut run = RecordedCalls {
        run_id: text_at(root, &["payload", "run", "id"])?,
        part: profile.get(PART).and_then(number),
        previous: profile.get(PREVIOUS).and_then(Value::as_str).and_then(Digest::parse_prefixed),
        directories: at(profile, &[MATCHING, DIRECTORIES]).map(RunDirectories::from_json).unwrap_or_default(),
        ..RecordedCalls::default()
    };
    let steps = at(root, &["payload", "run", "steps"])?.as_array()?;
    run.steps = steps.len();
    for (index, pair) in steps.windows(2).enumerate() {
        let [request, response] = pair else { continue };
        let type_of = |step| at(step, &["type"]).and_then(Value::as_str);
        let id = |step| at(step, &["metadata", "request_id"]);
        let is_request = matches!(type_of(request), Some("model.request" | "tool.request"));
        if !is_request || id(request) != id(response) {
            continue;
        }
        match type_of(response) {
            Some("model.response" | "tool.response") => {
                run.recorded.extend(read_call(index, request, response));
            }
            Some("error.event") => run.unanswered.extend(read_unanswered(index, request, response)),
            _ => {}
        }
    }
    Some(run)
}

fn read_unanswered(step: usize, request: &Value<'_>, event: &Value<'_>) -> Option<UnansweredCall> {
    let reason = text_at(event, &["output", "message"])?;
    let (requested_at, latency_ms) = times(request, event);
    Some(UnansweredCall { request: read_request(step, request)?, requested_at, latency_ms, reason })
}

/// Returns the part of the answer that had arrived of a call without a complete one, by the number of the step with its
/// request: the text, or the digest of the attachment that it is.
pub(crate) fn partial_answer<'v>(root: &'v Value<'_>, step: usize) -> Option<Result<&'v str, Digest>> {
    let event = at(root, &["payload", "run", "steps"])?.as_array()?.get(step + 1)?;
    let text = at(event, &["output", "partial"]).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(Ok).or_else(|| attached(event, "output").map(Err))
}

/// Returns when a request was made, and how long it took.
fn times(request: &Value<'_>, ending: &Value<'_>) -> (Option<DateTime<Utc>>, Option<u64>) {
    let requested_at = request.get("timestamp").and_then(Value::as_str);
    let requested_at = requested_at.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    (requested_at.map(|time| time.to_utc()), at(ending, &["metadata", "latency_ms"]).and_then(number))
}

fn read_request(step: usize, request: &Value<'_>) -> Option<RequestRecord> {
    let input = |name: &str| text_at(request, &["input", name]);
    let stated = input("prompt_hash").and_then(|stated| Digest::parse_prefixed(&stated));
    // Profile 1 states the text.
    let of_text = || input("prompt").map(|prompt| Digest::from_content(prompt.as_bytes()));
    Some(RequestRecord {
        pack: 0,
        step,
        provider: input("provider")?,
        endpoint: input("endpoint")?,
        path: input("path")?,
        query: input(QUERY),
        prompt: stated.or_else(of_text)?,
    })
}

fn attached(step: &Value<'_>, member: &str) -> Option<Digest> {
    at(step, &[member, ATTACHED, "hash"]).and_then(Value::as_str).and_then(Digest::parse_prefixed)
}

fn read_call(step: usize, request: &Value<'_>, response: &Value<'_>) -> Option<AnsweredCall> {
    let recorded = read_request(step, request)?;
    let output = |name: &str| text_at(response, &["output", name]);
    let status = number(at(response, &["output", "status_code"])?)?;
    let (attached_request, attached_answer) = (attached(request, "input"), attached(response, "output"));
    let body =
        if attached_request.is_some() { at(request, &["input"]) } else { at(request, &["input", "payload"]) };
    let answer = CallResponse {
        status: u16::try_from(status).ok()?,
        content_type: output("content_type"),
        retry: RetryHeaders {
            retry_after: output("retry_after"),
            retry_after_ms: output("retry_after_ms"),
            should_retry: output("should_retry"),
        },
        body: if attached_answer.is_some() { String::new() } else { output("content")? },
        chunks: chunks(response),
    };
    let form = ResponseForm::from_request(&recorded.path, None, body?).unwrap_or_else(|| answer.form());
    // What an attachment was found to be when it was stored.
    let error = attached_answer.and_then(|_| at(response, &["output", "error"]));
    let failure = error.map(|error| error.as_str().map_or_else(|| compact::text(error), str::to_owned));
    let (requested_at, latency_ms) = times(request, response);
    Some(AnsweredCall {
        model: text_at(request, &["input", "model"]).unwrap_or_else(|| recorded.endpoint.clone()),
        request: recorded,
        requested_at,
        latency_ms,
        attached_request,
        form,
        replayed_before: at(request, &["metadata", REPLAYED_BEFORE]).and_then(number).unwrap_or(0),
        failure,
        answer,
        attached_answer,
    })
}

fn text_at(step: &Value<'_>, path: &[&str]) -> Option<String> {
    at(step, path).and_then(Value::as_str).map(str::to_owned)
}

fn chunks(response: &Value<'_>) -> Vec<Chunk> {
    let pairs = at(response, &["metadata", "chunks", CHUNK_TIMES]).and_then(Value::as_array);
    let chunk = |pair: &Value<'_>| match pair.as_array()? {
        [at_ns, bytes] => Some(Chunk { at_us: number(at_ns)? / 1_000, bytes: number(bytes)? }),
        _ => None,
    };
    pairs.unwrap_or_default().iter().filter_map(chunk).collect()
}

fn number(value: &Value<'_>) -> Option<u64> {
    value.as_number()?.literal().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_run_packs_are_not_of_a_gateway() {
        assert_eq!(read(br#"{"metadata":{},"payload":{"run":{"steps":[]}}}"#), None);
        assert_eq!(read(b"not JSON"), None);
    }

    #[test]
    fn run_packs_of_earlier_builds_are_read() {
        let steps = r#"[{"type":"model.request","input":{"provider":"openai","endpoint":"responses","path":"/v1/responses",
            "payload":{"stream":true,"input":"hi"},"prompt":"{\"input\":\"hi\"}"},"metadata":{"request_id":"call-0"}},
            {"type":"model.response","output":{"status_code":200,"content":"data: 1\n\n"},"metadata":{"request_id":"call-0"}}]"#;
        let pack = format!(
            r#"{{"metadata":{{"gateway":{{"profile":1}}}},"payload":{{"run":{{"id":"r","steps":{steps}}}}}}}"#
        );
        let recorded = read(pack.as_bytes()).unwrap().remove(0);
        assert_eq!(recorded.request.prompt, Digest::from_content(br#"{"input":"hi"}"#));
        assert_eq!(recorded.form, ResponseForm::Stream);
        let request = requests(pack.as_bytes()).remove(&0).unwrap();
        assert_eq!(
            (request.prompt.as_str(), request.payload.as_str()),
            (r#"{"input":"hi"}"#, r#"{"stream":true,"input":"hi"}"#)
        );
    }
}
