//! Requests and responses as JSON Lines: `docs/import.md`, "JSON Lines".

use std::borrow::Cow;
use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::exchange::{
    ConvertInput, ImportedExchange, ImportedRequest, ImportedResponse, ImportedRun, ImportedRuns,
    contents_target,
};
use super::reading::{ConvertError, LocatedValue, RecorderResult, documents};
use crate::calls::target::ApiTarget;
use crate::conversation::events;
use crate::conversation::response::RetryHeaders;
use crate::json::members::word;
use crate::json::reader::{self, Limits, excerpt};
use crate::json::{Object, Value, compact};

/// The members of lines with a request and its response.
const PAIR: &[&str] = &[
    "request",
    "response",
    "error",
    "custom_id",
    "id",
    "timestamp",
    "created_at",
    "processed_time",
    "latency_ms",
];
const OUTPUT: &[&str] = &["id", "custom_id", "response", "error"];
const INPUT: &[&str] = &["custom_id", "method", "url", "body"];
/// The members of lines of the batch API of Anthropic.
const ANTHROPIC_INPUT: &[&str] = &["custom_id", "params"];
const ANTHROPIC_OUTPUT: &[&str] = &["custom_id", "result"];
const REQUEST: &[&str] =
    &["method", "url", "uri", "path", "endpoint", "body", "json", "data", "content", "headers"];
const RESPONSE: &[&str] =
    &["status_code", "status", "request_id", "body", "json", "data", "content", "text", "headers"];

/// The members with the body of a request and of a response, in envelopes of several programs.
const REQUEST_BODIES: &[&str] = &["body", "json", "data", "content"];
const RESPONSE_BODIES: &[&str] = &["body", "json", "data", "content", "text"];

/// The members that envelopes of requests and of responses have, and bodies do not: nothing else of an object with one of
/// them is taken as a body.
const REQUEST_ENVELOPE: &[&str] = &[
    "url",
    "uri",
    "path",
    "endpoint",
    "method",
    "headers",
    "header",
    "cookies",
    "query",
    "query_string",
    "auth",
    "proxies",
    "proxy",
    "body",
    "json",
];
const RESPONSE_ENVELOPE: &[&str] = &[
    "status_code",
    "headers",
    "header",
    "cookies",
    "url",
    "request",
    "config",
    "method",
    "body",
    "json",
    "history",
];

/// The members of errors that are kept: programs also state requests with their headers in them.
const ERROR: &[&str] = &["code", "error", "message", "param", "status", "type"];

/// The reason for which other lines are not mapped.
const NEITHER: &str = "it is neither a request nor a response";

/// The members of which a line of a batch has one beside `custom_id`.
const BATCH: &[&str] = &["body", "response", "error", "params", "result"];

/// Returns whether a document is a line of one of the forms.
pub(super) fn is_line(document: &Value<'_>) -> bool {
    let has = |name: &str| document.get(name).is_some();
    match document {
        Value::Array(pair) => {
            matches!(pair.as_slice(), [Value::Object(request), Value::Object(_) | Value::Array(_), ..] if request.contains("model"))
        }
        _ => has("custom_id") && BATCH.iter().any(|name| has(name)) || has("request") && has("response"),
    }
}

/// Reads files of lines. Lines of the batch API with the same `custom_id` are a request and its response, in any order
/// and in any of the files.
pub(super) fn read(inputs: &[ConvertInput], limits: &Limits) -> Result<ImportedRuns, ConvertError> {
    let mut lines = JsonlReader::default();
    for (file, input) in inputs.iter().enumerate() {
        lines.file = file;
        lines.read(&input.bytes, limits).map_err(|fault| fault.in_file(&input.name))?;
    }
    Ok(lines.finish())
}

/// A response of the batch API: the number of its file, its location, and what it says.
struct BatchResponse {
    file: usize,
    location: String,
    reply: ImportedResponse,
}

#[derive(Default)]
struct JsonlReader {
    /// The number of the file that is read.
    file: usize,
    /// In the order of the requests.
    entries: Vec<JsonlEntry>,
    /// The number of the entry of each request of the batch API.
    entry_by_id: HashMap<String, usize>,
    /// The responses of the batch API by the identifiers of their requests.
    replies: HashMap<String, BatchResponse>,
    unmapped: Vec<(usize, String, String)>,
}

/// A request, or why it cannot be mapped.
type JsonlRequest = Result<ImportedRequest, String>;

struct JsonlEntry {
    file: usize,
    location: String,
    request: JsonlRequest,
    /// The response, or the name by which it refers to the request.
    reply: Result<ImportedResponse, String>,
    at: Option<DateTime<Utc>>,
    latency_ms: Option<u64>,
}

impl JsonlReader {
    fn read(&mut self, bytes: &[u8], limits: &Limits) -> RecorderResult<()> {
        for (number, document) in documents(bytes, limits)? {
            self.line(&LocatedValue::new(&document, format!("line {number}")))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &LocatedValue<'_>) -> RecorderResult<()> {
        let has = |name: &str| line.member(name).is_some();
        let has_outcome = has("response") || has("error");
        if let Value::Array(_) = line.value {
            return self.pair_in_list(line);
        }
        if has("request") && has_outcome {
            return self.pair(line);
        }
        let is_batch = has("custom_id");
        if is_batch && has("body") {
            self.others(line, INPUT);
            let request = self.request(line, None)?;
            self.add_batch_request(line, request)
        } else if is_batch && has_outcome {
            self.others(line, OUTPUT);
            let reply = self.outcome(line)?;
            self.add_batch_reply(line, reply)
        } else if is_batch && has("params") {
            self.others(line, ANTHROPIC_INPUT);
            let target = ApiTarget::from_name("anthropic", "/v1/messages");
            self.add_batch_request(line, request_of(line.required("params")?.value, target))
        } else if is_batch && has("result") {
            self.others(line, ANTHROPIC_OUTPUT);
            let reply = anthropic_reply(&line.required("result")?)?;
            self.add_batch_reply(line, reply)
        } else {
            self.list(line, NEITHER);
            Ok(())
        }
    }

    fn list(&mut self, node: &LocatedValue<'_>, reason: impl Into<String>) {
        self.unmapped.push((self.file, node.location.clone(), reason.into()));
    }

    /// Returns an entry with its response, or with the name by which that refers to the request.
    fn entry(
        &self,
        line: &LocatedValue<'_>,
        request: JsonlRequest,
        reply: Result<ImportedResponse, String>,
    ) -> JsonlEntry {
        let (file, location) = (self.file, line.location.clone());
        JsonlEntry { file, location, request, reply, at: None, latency_ms: None }
    }

    /// Lists members that are not known.
    fn others(&mut self, node: &LocatedValue<'_>, known: &[&str]) {
        for name in node.others(known) {
            self.list(node, format!("the member {} is not mapped", excerpt(name)));
        }
    }

    /// Reads a line with a request, its response and what a program stored with them.
    fn pair_in_list(&mut self, line: &LocatedValue<'_>) -> RecorderResult<()> {
        let mut elements = line.elements()?;
        let (Some(request), Some(response)) = (elements.next(), elements.next()) else {
            self.list(line, NEITHER);
            return Ok(());
        };
        for other in elements {
            self.list(&other, "it is not mapped");
        }
        let reply = match response.value {
            Value::Array(_) => failed(&response),
            _ => self.response(&response)?,
        };
        let imported_request = self.request(&request, Some(response.value))?;
        let entry = self.entry(line, imported_request, Ok(reply));
        self.entries.push(entry);
        Ok(())
    }

    /// Reads a line with a request and its response.
    fn pair(&mut self, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(line, PAIR);
        let (request, response) = (line.required("request")?, line.member("response"));
        let reply = self.outcome(line)?;
        let body = response.map(|response| {
            RESPONSE_BODIES
                .iter()
                .find_map(|name| response.member(name))
                .map_or(response.value, |body| body.value)
        });
        let imported_request = self.request(&request, body)?;
        let timestamps = ["timestamp", "created_at", "processed_time"];
        let timestamp = timestamps.into_iter().find_map(|name| line.member(name));
        let latency = line.member("latency_ms");
        let latency_ms = latency.as_ref().and_then(LocatedValue::rounded);
        if let (Some(latency), None) = (&latency, latency_ms) {
            self.list(latency, "it is not a number of milliseconds");
        }
        let at = timestamp.and_then(|time| time.time());
        let entry = self.entry(line, imported_request, Ok(reply));
        self.entries.push(JsonlEntry { at, latency_ms, ..entry });
        Ok(())
    }

    fn add_batch_request(&mut self, line: &LocatedValue<'_>, request: JsonlRequest) -> RecorderResult<()> {
        let id = line.required("custom_id")?.text()?.to_owned();
        if self.entry_by_id.contains_key(&id) {
            self.list(line, format!("the custom_id {} occurs more than once", excerpt(&id)));
            return Ok(());
        }
        self.entry_by_id.insert(id.clone(), self.entries.len());
        let entry = self.entry(line, request, Err(id));
        self.entries.push(entry);
        Ok(())
    }

    /// Reads the response of a line, or why there is none.
    fn outcome(&mut self, line: &LocatedValue<'_>) -> RecorderResult<ImportedResponse> {
        match (line.member("response"), line.member("error")) {
            (Some(response), error) => {
                if let Some(error) = error {
                    self.list(&error, "it is not mapped: there is a response");
                }
                self.response(&response)
            }
            (None, Some(error)) => Ok(failed(&error)),
            (None, None) => Err(line.fault("the required member response is missing")),
        }
    }

    fn add_batch_reply(&mut self, line: &LocatedValue<'_>, reply: ImportedResponse) -> RecorderResult<()> {
        let id = line.required("custom_id")?.text()?.to_owned();
        if self.replies.contains_key(&id) {
            self.list(line, format!("the custom_id {} occurs more than once", excerpt(&id)));
            return Ok(());
        }
        let (file, location) = (self.file, line.location.clone());
        self.replies.insert(id, BatchResponse { file, location, reply });
        Ok(())
    }

    /// Reads a request: its body, or an object with the body, and the URL or the path. Without them, the form of the
    /// bodies says which API it is of. The inner error says why it cannot be mapped.
    fn request(
        &mut self,
        node: &LocatedValue<'_>,
        response: Option<&Value<'_>>,
    ) -> RecorderResult<JsonlRequest> {
        if !has_one(node, REQUEST_ENVELOPE) && !is_only(node, REQUEST_BODIES) {
            let target = target_of_bodies(node.value, response);
            return Ok(request_of(node.value, target));
        }
        let url = ["url", "uri", "path", "endpoint"].into_iter().find_map(|name| node.member(name));
        if node.member("custom_id").is_none() {
            self.others(node, REQUEST);
            for (name, value) in self.headers(node)? {
                if name != "content-type" {
                    self.list(&value, "this header is not mapped");
                }
            }
        }
        if let Some(method) = node.member("method")
            && !method.text()?.eq_ignore_ascii_case("POST")
        {
            return Ok(Err(format!("requests with {} are not calls of a model", excerpt(method.text()?))));
        }
        let Some(body) = REQUEST_BODIES.iter().find_map(|name| node.member(name)) else {
            return Ok(Err("the request has no body".to_owned()));
        };
        let sent = body.value.as_str().map(|text| reader::read(text.as_bytes(), &Limits::default()));
        let body = match &sent {
            None => body,
            Some(Ok(sent)) => LocatedValue::new(sent, body.location),
            Some(Err(error)) => return Ok(Err(format!("the body of the request is not JSON: {error}"))),
        };
        let target = match url {
            Some(url) => match ApiTarget::from_url(url.text()?, body.value) {
                Ok(target) => Some(target),
                Err(reason) => return Ok(Err(reason)),
            },
            None => target_of_bodies(body.value, response),
        };
        Ok(request_of(body.value, target))
    }

    /// Returns the headers of a request or a response, with their names in lower case.
    fn headers<'v>(&mut self, node: &LocatedValue<'v>) -> RecorderResult<Vec<(String, LocatedValue<'v>)>> {
        let Some(headers) = node.member("headers") else { return Ok(Vec::new()) };
        if headers.value.as_object().is_none() {
            self.list(&headers, "it is not mapped");
            return Ok(Vec::new());
        }
        Ok(headers.members()?.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
    }

    /// Reads a response: its body, or an object with the status and the body.
    fn response(&mut self, node: &LocatedValue<'_>) -> RecorderResult<ImportedResponse> {
        let status = node.member("status_code").or_else(|| node.member("status"));
        let is_status = status.as_ref().is_some_and(|status| status.status().is_ok());
        // A response that failed often has no body.
        let is_bare = is_status && node.others(RESPONSE).is_empty();
        if !has_one(node, RESPONSE_ENVELOPE) && !is_bare {
            return Ok(reply(200, None, RetryHeaders::default(), node.value));
        }
        self.others(node, RESPONSE);
        let status = status.map_or(Ok(200), |status| status.status())?;
        let (mut content_type, mut retry) = (None, RetryHeaders::default());
        for (name, value) in self.headers(node)? {
            match name.as_str() {
                "content-type" => content_type = Some(value.text()?.to_owned()),
                other => {
                    let text = value.text().ok().map(str::to_owned);
                    if text.is_none() || !retry.set(other, text) {
                        self.list(&value, "this header is not mapped");
                    }
                }
            }
        }
        Ok(match RESPONSE_BODIES.iter().find_map(|name| node.member(name)) {
            Some(body) => reply(status, content_type, retry, body.value),
            None => ImportedResponse::without_body(status, content_type, retry),
        })
    }

    fn finish(mut self) -> ImportedRuns {
        let mut exchanges = Vec::new();
        for entry in self.entries {
            let JsonlEntry { file, location, request, reply, at, latency_ms } = entry;
            let reply = match reply {
                Ok(reply) => Some(reply),
                Err(id) => self.replies.remove(&id).map(|found| found.reply),
            };
            match (request, reply) {
                (Ok(request), Some(reply)) => {
                    exchanges.push((file, ImportedExchange { location, request, reply, at, latency_ms }));
                }
                (Err(reason), _) => self.unmapped.push((file, location, reason)),
                (Ok(_), None) => {
                    self.unmapped.push((file, location, "there is no response to this request".to_owned()));
                }
            }
        }
        let left = self.replies.into_values();
        let mut left: Vec<_> = left.map(|BatchResponse { file, location, .. }| (file, location)).collect();
        left.sort_unstable();
        let without =
            "there is no request for this response; import the file with the requests together with this one";
        self.unmapped.extend(left.into_iter().map(|(file, location)| (file, location, without.to_owned())));
        ImportedRuns {
            runs: vec![ImportedRun { exchanges, ..ImportedRun::default() }],
            unmapped: self.unmapped,
        }
    }
}

/// Reads a result of the batch API of Anthropic, which has no status of HTTP.
fn anthropic_reply(result: &LocatedValue<'_>) -> RecorderResult<ImportedResponse> {
    Ok(match (result.required("type")?.text()?, result.member("error")) {
        ("succeeded", _) => reply(200, None, RetryHeaders::default(), result.required("message")?.value),
        (_, Some(error)) => failed(&error),
        (outcome, None) => ImportedResponse::Failed(format!("the request was {outcome}")),
    })
}

/// Returns the request with these bodies. One to Gemini is to the model that answered, which only the response states.
fn target_of_bodies(request: &Value<'_>, response: Option<&Value<'_>>) -> Option<ApiTarget> {
    ApiTarget::from_bodies(request, response).or_else(|| {
        let response = response?;
        contents_target(request, response, word(response, "modelVersion")?)
    })
}

fn request_of(body: &Value<'_>, target: Option<ApiTarget>) -> JsonlRequest {
    let target = target.ok_or("it has no URL, and its form is not that of a known API")?;
    Ok(ImportedRequest::Json { target, body: body.to_owned_value() })
}

/// Returns whether an object has one of the members, whatever its value.
fn has_one(node: &LocatedValue<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| node.value.get(name).is_some())
}

/// Returns whether all members of an object are ones of these.
fn is_only(node: &LocatedValue<'_>, names: &[&str]) -> bool {
    node.value.as_object().is_some_and(|object| object.iter().len() > 0) && node.others(names).is_empty()
}

/// Returns an answer. A string is the body as it was received, such as a stream of events.
fn reply(
    status: u16,
    content_type: Option<String>,
    retry: RetryHeaders,
    body: &Value<'_>,
) -> ImportedResponse {
    let (guessed, body) = match body {
        Value::String(text) if events::begins_as_events(text) => {
            ("text/event-stream", text.clone().into_owned())
        }
        Value::String(text) => ("application/json", text.clone().into_owned()),
        other => ("application/json", compact::text(other)),
    };
    let content_type = Some(content_type.unwrap_or_else(|| guessed.to_owned()));
    ImportedResponse::Answer { status, content_type, retry, body: body.into_bytes() }
}

/// Returns that there is no answer because of an error.
fn failed(error: &LocatedValue<'_>) -> ImportedResponse {
    ImportedResponse::Failed(match error.value {
        Value::String(text) => text.clone().into_owned(),
        other => compact::text(&stated(other)),
    })
}

/// Returns what an error states.
fn stated(error: &Value<'_>) -> Value<'static> {
    match error {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| ERROR.contains(name));
            let kept = kept.map(|(name, value)| (Cow::Owned(name.to_owned()), stated(value)));
            Value::Object(Object::from_members(kept.collect()))
        }
        Value::Array(elements) => Value::Array(elements.iter().map(stated).collect()),
        other => other.to_owned_value(),
    }
}

#[cfg(test)]
mod tests;
