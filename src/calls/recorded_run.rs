//! Makes the run pack (`rpk`) of a run, and reads it: `docs/gateway.md`, "The run pack".

use chrono::{DateTime, SecondsFormat, Utc};

use super::assembled::{self, AnswerContent};
use super::call::{CallOutcome, CallRecord, CallResponse, Chunk, ResponseForm, RetryHeaders};
use super::head::RunHead;
use super::origin::{CallOrigin, PROFILE, SOURCE};
use super::values::{at, integer, object, text};
use crate::digest::Digest;
use crate::json::canonical::replaykit::{self, VolatilePolicy};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};

/// The kind.
pub(crate) const KIND: &str = "rpk";

/// The member of a pack's metadata that says that it has the profile, with its version.
const GATEWAY: &str = "gateway";

/// The member of a pack's metadata with the file that its calls were imported from.
const IMPORT: &str = "import";

/// The member with the nanoseconds from a request to the arrival of each part of the answer, and the bytes of the part.
const CHUNK_TIMES: &str = "captured_ns";

/// The member with the digest of the query of a request.
const QUERY: &str = "query_hash";

/// The member with the number of earlier requests with the same prompt that the run answered from recordings.
const REPLAYED_BEFORE: &str = "replayed_before";

/// The reason that a run has no run pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was recorded has no canonical form")]
pub(crate) struct NonCanonicalRun;

/// Returns the run pack of a run.
pub(crate) fn document(
    origin: CallOrigin<'_>,
    head: &RunHead,
    calls: &[CallRecord],
) -> Result<Vec<u8>, NonCanonicalRun> {
    let mut steps = Vec::new();
    for call in calls {
        steps.extend(call_steps(call)?);
    }
    let rules = reader::read(head.rules.as_bytes(), &Limits::most()).map_err(|_| NonCanonicalRun)?;
    let metadata = [
        ("created_at", text(time_or_unknown(head.started_at))),
        (GATEWAY, object([("matching", rules), ("profile", integer(PROFILE))])),
    ];
    let import = origin.import().map(|import| (IMPORT, import));
    let metadata = object(metadata.into_iter().chain(import).chain([("run_id", text(head.id.as_str()))]));
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
    Ok(compact::text(&pack).into_bytes())
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The format requires a text where the time of a run is: one that is not a time states that it is not known.
fn time_or_unknown(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(|| "unknown".to_owned(), time)
}

fn digest(members: &[(&str, &Value<'_>)], volatile: VolatilePolicy) -> Result<Digest, NonCanonicalRun> {
    let canonical = replaykit::object(members, volatile).map_err(|_| NonCanonicalRun)?;
    Ok(Digest::from_content(&canonical))
}

/// Returns the steps of a call: what was asked, and what came back.
fn call_steps(call: &CallRecord) -> Result<[Value<'_>; 2], NonCanonicalRun> {
    let request = reader::read(call.request.as_bytes(), &Limits::most()).map_err(|_| NonCanonicalRun)?;
    let query = call.query.as_ref().map(|digest| (QUERY, text(digest.as_str())));
    let request_input = [
        ("endpoint", text(call.endpoint.as_str())),
        ("model", text(call.model())),
        ("path", text(call.path.as_str())),
        ("payload", request),
        ("prompt", text(call.prompt.as_str())),
        ("provider", text(call.provider.as_str())),
    ];
    let request_input = object(request_input.into_iter().chain(query));
    let request_id = format!("call-{}", call.number);
    let metadata = |more: Vec<(&'static str, Value<'static>)>| {
        let common = [("provider", text(call.provider.clone())), ("request_id", text(request_id.clone()))];
        object(common.into_iter().chain(more))
    };
    // The run answered the requests before this one from recordings, so this one comes after them.
    let replayed = Some(call.replayed_before).filter(|count| *count > 0);
    let replayed = replayed.map(|count| (REPLAYED_BEFORE, integer(count))).into_iter().collect();
    let request = step(
        call.number * 2,
        "model.request",
        call.requested_at,
        [request_input, object([("status", text("sent"))]), metadata(replayed)],
    )?;
    let (step_type, input, output, chunks) = match &call.outcome {
        CallOutcome::Answered(answer) => (
            "model.response",
            object([("model", text(call.model()))]),
            answered(answer),
            answer.chunks.as_slice(),
        ),
        CallOutcome::Failed { reason, partial } => {
            let target = object([("boundary", text("model")), ("target", text(call.model()))]);
            let output = [("message", text(reason.as_str())), ("partial", text(partial.as_str()))];
            ("error.event", target, object(output), [].as_slice())
        }
    };
    // When parts arrived is different in each recording, so it is in a member that step hashes leave out.
    let arrived = chunks
        .iter()
        .map(|chunk| Value::Array(vec![integer(chunk.at_us.saturating_mul(1_000)), integer(chunk.bytes)]));
    let mut details = vec![("chunks", object([(CHUNK_TIMES, Value::Array(arrived.collect()))]))];
    details.extend(call.latency_ms.map(|latency| ("latency_ms", integer(latency))));
    let details = metadata(details);
    let response = step(call.number * 2 + 1, step_type, call.ended_at(), [input, output, details])?;
    Ok([request, response])
}

fn answered(answer: &CallResponse) -> Value<'_> {
    let mut output = Vec::new();
    let AnswerContent { mut texts, usage, failure, .. } = assembled::read(answer);
    match (&failure, texts.len()) {
        (Some(_), _) | (_, 0) => {}
        (None, 1) => output.extend(texts.pop().map(|only| ("assembled_text", text(only)))),
        (None, _) => {
            output.push(("assembled_text", Value::Array(texts.into_iter().map(text).collect())));
        }
    }
    output.push(("content", text(answer.body.as_str())));
    if let Some(content_type) = &answer.content_type {
        output.push(("content_type", text(content_type.as_str())));
    }
    output.extend(failure.map(|failure| ("error", failure.to_value())));
    let parsed = reader::read(answer.body.as_bytes(), &Limits::default()).ok();
    let parsed = parsed.filter(|body| body.as_object().is_some());
    // A body in one piece states them itself.
    let states = |name| parsed.as_ref().is_some_and(|body| body.get(name).is_some());
    let usage = usage.filter(|_| !states("usage") && !states("usageMetadata"));
    output.extend(parsed.map(|parsed| ("output", parsed)));
    let RetryHeaders { retry_after, retry_after_ms, should_retry } = &answer.retry;
    for (name, value) in
        [("retry_after", retry_after), ("retry_after_ms", retry_after_ms), ("should_retry", should_retry)]
    {
        output.extend(value.as_deref().map(|value| (name, text(value))));
    }
    output.push(("status_code", integer(u64::from(answer.status))));
    output.extend(usage.map(|usage| ("usage", usage)));
    object(output)
}

/// Makes a step of its input, output and metadata.
fn step<'v>(
    number: u64,
    step_type: &'static str,
    at: Option<DateTime<Utc>>,
    [input, output, metadata]: [Value<'v>; 3],
) -> Result<Value<'v>, NonCanonicalRun> {
    let step_type = text(step_type);
    let members = [("type", &step_type), ("input", &input), ("output", &output), ("metadata", &metadata)];
    let hash = digest(&members, VolatilePolicy::Omit)?;
    let members = [
        ("hash", text(hash.to_string())),
        ("id", text(format!("step-{number:06}"))),
        ("input", input),
        ("metadata", metadata),
        ("output", output),
    ];
    let timestamp = at.map(|at| ("timestamp", text(time(at))));
    Ok(object(members.into_iter().chain(timestamp).chain([("type", step_type)])))
}

/// A recorded answer and the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnsweredCall {
    /// The number of the step with the request.
    pub(crate) step: usize,
    pub(crate) provider: String,
    pub(crate) endpoint: String,
    /// The path in the API.
    pub(crate) path: String,
    /// The digest of the query without keys, if requests of the API are compared by it.
    pub(crate) query: Option<String>,
    pub(crate) requested_at: Option<DateTime<Utc>>,
    pub(crate) latency_ms: Option<u64>,
    /// The text that the request was compared by when it was recorded.
    pub(crate) prompt: String,
    /// The body of the request.
    pub(crate) request: String,
    /// The form in which the request asked for its answer.
    pub(crate) form: ResponseForm,
    /// Number of earlier requests of the run with the same prompt that were answered from recordings.
    pub(crate) replayed_before: u64,
    /// Why the answer is a failure, by [`CallResponse::failure`]; whatever the program that recorded it took it for.
    pub(crate) failure: Option<String>,
    pub(crate) answer: CallResponse,
}

/// A request without a complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnansweredCall {
    /// The number of the step with the request.
    pub(crate) step: usize,
    pub(crate) provider: String,
    pub(crate) endpoint: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) prompt: String,
    /// The body of the request.
    pub(crate) request: String,
    /// Why there is no answer.
    pub(crate) reason: String,
}

/// The calls of a run pack, in the order of their requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedCalls {
    pub(crate) recorded: Vec<AnsweredCall>,
    pub(crate) unanswered: Vec<UnansweredCall>,
}

/// Returns the complete answers in a run pack that has the profile, in the order of their requests; `None` if it has
/// another form.
pub(crate) fn read(document: &[u8]) -> Option<Vec<AnsweredCall>> {
    read_all(document).map(|run| run.recorded)
}

/// Returns the calls in a run pack that has the profile; `None` if it has another form.
pub(crate) fn read_all(document: &[u8]) -> Option<RecordedCalls> {
    let root = reader::read(document, &Limits::most()).ok()?;
    at(&root, &["metadata", GATEWAY, "profile"])?;
    let steps = at(&root, &["payload", "run", "steps"])?.as_array()?;
    let mut run = RecordedCalls::default();
    for (index, pair) in steps.windows(2).enumerate() {
        let [request, response] = pair else { continue };
        let type_of = |step| at(step, &["type"]).and_then(Value::as_str);
        let id = |step| at(step, &["metadata", "request_id"]);
        if type_of(request) != Some("model.request") || id(request) != id(response) {
            continue;
        }
        match type_of(response) {
            Some("model.response") => run.recorded.extend(read_call(index, request, response)),
            Some("error.event") => run.unanswered.extend(read_unanswered(index, request, response)),
            _ => {}
        }
    }
    Some(run)
}

fn read_unanswered(step: usize, request: &Value<'_>, event: &Value<'_>) -> Option<UnansweredCall> {
    let input = |name: &str| text_at(request, &["input", name]);
    let reason = text_at(event, &["output", "message"])?;
    let (provider, endpoint, prompt) = (input("provider")?, input("endpoint")?, input("prompt")?);
    let (path, query) = (input("path")?, input(QUERY));
    let request = compact::text(at(request, &["input", "payload"])?);
    Some(UnansweredCall { step, provider, endpoint, path, query, prompt, request, reason })
}

fn read_call(step: usize, request: &Value<'_>, response: &Value<'_>) -> Option<AnsweredCall> {
    let input = |name: &str| text_at(request, &["input", name]);
    let output = |name: &str| text_at(response, &["output", name]);
    let status = number(at(response, &["output", "status_code"])?)?;
    let payload = at(request, &["input", "payload"])?;
    let answer = CallResponse {
        status: u16::try_from(status).ok()?,
        content_type: output("content_type"),
        retry: RetryHeaders {
            retry_after: output("retry_after"),
            retry_after_ms: output("retry_after_ms"),
            should_retry: output("should_retry"),
        },
        body: output("content")?,
        chunks: chunks(response),
    };
    let form = ResponseForm::requested(&input("path")?, payload).unwrap_or_else(|| answer.form());
    Some(AnsweredCall {
        step,
        provider: input("provider")?,
        endpoint: input("endpoint")?,
        path: input("path")?,
        query: input(QUERY),
        requested_at: request
            .get("timestamp")
            .and_then(Value::as_str)
            .and_then(|time| DateTime::parse_from_rfc3339(time).ok())
            .map(|time| time.to_utc()),
        latency_ms: at(response, &["metadata", "latency_ms"]).and_then(number),
        prompt: input("prompt")?,
        request: compact::text(payload),
        form,
        replayed_before: at(request, &["metadata", REPLAYED_BEFORE]).and_then(number).unwrap_or(0),
        failure: answer.failure().map(|failure| failure.to_string()),
        answer,
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
    use crate::artifact::AdmitOptions;
    use crate::formats;

    fn call(number: u64, outcome: CallOutcome) -> CallRecord {
        CallRecord {
            number,
            requested_at: Some(DateTime::UNIX_EPOCH),
            provider: "openai".to_owned(),
            endpoint: "chat.completions".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            query: None,
            prompt: r#"{"messages":[],"model":"m"}"#.to_owned(),
            request: r#"{"model":"m","messages":[],"stream":true,"n":1.50}"#.to_owned(),
            latency_ms: Some(7),
            replayed_before: number,
            outcome,
        }
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

    #[test]
    fn a_pack_is_valid_and_is_read_as_it_was_made() {
        let head = RunHead::new(Some("nightly"), 3, DateTime::UNIX_EPOCH, "{}".to_owned());
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
        let calls = [
            call(0, CallOutcome::Answered(stream.clone())),
            call(1, CallOutcome::Answered(whole.clone())),
            call(2, aborted),
            call(3, CallOutcome::Answered(error.clone())),
        ];
        let document = document(CallOrigin::Gateway, &head, &calls).unwrap();
        let kind = formats::named("rpk").unwrap();
        assert!(kind.admit(document.clone(), &AdmitOptions::default()).is_ok());
        let read = read(&document).unwrap();
        assert_eq!(
            read.iter().map(|recorded| recorded.answer.clone()).collect::<Vec<_>>(),
            [stream, whole, error]
        );
        assert_eq!((read[2].step, read[2].replayed_before), (6, 3));
        assert!(
            read.iter()
                .all(|recorded| recorded.prompt == calls[0].prompt && recorded.request == calls[0].request)
        );
    }

    #[test]
    fn other_run_packs_are_not_of_a_gateway() {
        assert_eq!(read(br#"{"metadata":{},"payload":{"run":{"steps":[]}}}"#), None);
        assert_eq!(read(b"not JSON"), None);
    }
}
