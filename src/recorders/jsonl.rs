//! Requests and responses as JSON Lines: `docs/import.md`, "JSON Lines".

use std::borrow::Cow;
use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::exchange::{
    ConvertInput, ImportedExchange, ImportedRequest, ImportedResponse, ImportedRun, ImportedRuns,
};
use super::reading::{ConvertError, Fault, LocatedValue, RecorderResult, documents};
use crate::calls::call::RetryHeaders;
use crate::calls::events;
use crate::calls::target::ApiTarget;
use crate::json::reader::{self, Limits, excerpt};
use crate::json::{Object, Value, compact};

/// The members of lines with a request and its response.
const PAIR: &[&str] =
    &["request", "response", "error", "custom_id", "id", "timestamp", "created_at", "latency_ms"];
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
pub(super) fn read(
    inputs: &[ConvertInput],
    limits: &Limits,
) -> std::result::Result<ImportedRuns, ConvertError> {
    let mut lines = JsonlReader::default();
    for (file, input) in inputs.iter().enumerate() {
        let mut read = || {
            for (number, document) in documents(&input.bytes, limits)? {
                lines.line(file, &LocatedValue::new(&document, format!("line {number}")))?;
            }
            Ok(())
        };
        read().map_err(|fault: Fault| fault.in_file(&input.name))?;
    }
    Ok(lines.finish())
}

/// A response by the identifier of its request: the number of its file, its location, and what it says.
type BatchResponse = (usize, String, ImportedResponse);

#[derive(Default)]
struct JsonlReader {
    /// In the order of the requests.
    entries: Vec<JsonlEntry>,
    /// The number of the entry of each request of the batch API.
    entry_by_id: HashMap<String, usize>,
    /// The responses of the batch API.
    replies: HashMap<String, BatchResponse>,
    unmapped: Vec<(usize, String, String)>,
}

struct JsonlEntry {
    file: usize,
    location: String,
    request: std::result::Result<ImportedRequest, String>,
    /// The response, or the name by which it refers to the request.
    reply: std::result::Result<ImportedResponse, String>,
    at: Option<DateTime<Utc>>,
    latency_ms: Option<u64>,
}

impl JsonlReader {
    fn line(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        let has = |name: &str| line.member(name).is_some();
        let has_outcome = has("response") || has("error");
        if let Value::Array(_) = line.value {
            return self.pair_in_list(file, line);
        }
        match (has("request") && has_outcome, has("custom_id") && has("body")) {
            (true, _) => self.pair(file, line),
            (false, true) => self.batch_request(file, line),
            (false, false) if has("custom_id") && has_outcome => self.batch_reply(file, line),
            (false, false) if has("custom_id") && has("params") => self.anthropic_request(file, line),
            (false, false) if has("custom_id") && has("result") => self.anthropic_reply(file, line),
            _ => {
                self.list(file, line, "it is neither a request nor a response");
                Ok(())
            }
        }
    }

    fn list(&mut self, file: usize, node: &LocatedValue<'_>, reason: impl Into<String>) {
        self.unmapped.push((file, node.location.clone(), reason.into()));
    }

    /// Lists members that are not known.
    fn others(&mut self, file: usize, node: &LocatedValue<'_>, known: &[&str]) {
        for name in node.others(known) {
            self.list(file, node, format!("the member {} is not mapped", excerpt(name)));
        }
    }

    /// Reads a line with a request, its response and what a program stored with them.
    fn pair_in_list(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        let mut elements = line.elements()?;
        let (Some(request), Some(response)) = (elements.next(), elements.next()) else {
            self.list(file, line, "it is neither a request nor a response");
            return Ok(());
        };
        for other in elements {
            self.list(file, &other, "it is not mapped");
        }
        let reply = match response.value {
            Value::Array(_) => failed(&response),
            _ => self.response(file, &response)?,
        };
        let imported_request = self.request(file, &request, Some(response.value))?;
        let location = line.location.clone();
        self.entries.push(JsonlEntry {
            file,
            location,
            request: imported_request,
            reply: Ok(reply),
            at: None,
            latency_ms: None,
        });
        Ok(())
    }

    /// Reads a line with a request and its response.
    fn pair(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, PAIR);
        let (request, response) = (line.required("request")?, line.member("response"));
        let reply = self.outcome(file, line)?;
        let body = response.map(|response| {
            RESPONSE_BODIES
                .iter()
                .find_map(|name| response.member(name))
                .map_or(response.value, |body| body.value)
        });
        let imported_request = self.request(file, &request, body)?;
        let timestamp = line.member("timestamp").or_else(|| line.member("created_at"));
        let at = timestamp.and_then(|time| time.time());
        let latency = line.member("latency_ms");
        let latency_ms = latency.as_ref().and_then(LocatedValue::rounded);
        if let (Some(latency), None) = (&latency, latency_ms) {
            self.list(file, latency, "it is not a number of milliseconds");
        }
        let location = line.location.clone();
        self.entries.push(JsonlEntry {
            file,
            location,
            request: imported_request,
            reply: Ok(reply),
            at,
            latency_ms,
        });
        Ok(())
    }

    fn batch_request(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, INPUT);
        let request = self.request(file, line, None)?;
        self.add_batch_request(file, line, request)
    }

    fn anthropic_request(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, ANTHROPIC_INPUT);
        let params = line.required("params")?;
        let target = ApiTarget::from_name("anthropic", "/v1/messages");
        let request = request_of(params.value, target);
        self.add_batch_request(file, line, request)
    }

    fn add_batch_request(
        &mut self,
        file: usize,
        line: &LocatedValue<'_>,
        request: std::result::Result<ImportedRequest, String>,
    ) -> RecorderResult<()> {
        let id = line.required("custom_id")?.text()?.to_owned();
        if self.entry_by_id.contains_key(&id) {
            self.list(file, line, format!("the custom_id {} occurs more than once", excerpt(&id)));
            return Ok(());
        }
        self.entry_by_id.insert(id.clone(), self.entries.len());
        let location = line.location.clone();
        self.entries.push(JsonlEntry { file, location, request, reply: Err(id), at: None, latency_ms: None });
        Ok(())
    }

    fn batch_reply(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, OUTPUT);
        let reply = self.outcome(file, line)?;
        self.replied_in_batch(file, line, reply)
    }

    /// Reads the response of a line, or why there is none.
    fn outcome(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<ImportedResponse> {
        match (line.member("response"), line.member("error")) {
            (Some(response), error) => {
                if let Some(error) = error {
                    self.list(file, &error, "it is not mapped: there is a response");
                }
                self.response(file, &response)
            }
            (None, Some(error)) => Ok(failed(&error)),
            (None, None) => Err(line.fault("the required member response is missing")),
        }
    }

    /// Reads a result, which has no status of HTTP.
    fn anthropic_reply(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, ANTHROPIC_OUTPUT);
        let result = line.required("result")?;
        let reply = match (result.required("type")?.text()?, result.member("error")) {
            ("succeeded", _) => reply(200, None, RetryHeaders::default(), result.required("message")?.value),
            (_, Some(error)) => failed(&error),
            (outcome, None) => ImportedResponse::Failed(format!("the request was {outcome}")),
        };
        self.replied_in_batch(file, line, reply)
    }

    fn replied_in_batch(
        &mut self,
        file: usize,
        line: &LocatedValue<'_>,
        reply: ImportedResponse,
    ) -> RecorderResult<()> {
        let id = line.required("custom_id")?.text()?.to_owned();
        if self.replies.contains_key(&id) {
            self.list(file, line, format!("the custom_id {} occurs more than once", excerpt(&id)));
            return Ok(());
        }
        self.replies.insert(id, (file, line.location.clone(), reply));
        Ok(())
    }

    /// Reads a request: its body, or an object with the body, and the URL or the path. Without them, the form of the
    /// bodies says which API it is of. The inner error says why it cannot be mapped.
    fn request(
        &mut self,
        file: usize,
        node: &LocatedValue<'_>,
        response: Option<&Value<'_>>,
    ) -> RecorderResult<std::result::Result<ImportedRequest, String>> {
        if !has_one(node, REQUEST_ENVELOPE) && !is_only(node, REQUEST_BODIES) {
            let target = ApiTarget::from_bodies(node.value, response);
            return Ok(request_of(node.value, target));
        }
        let url = ["url", "uri", "path", "endpoint"].into_iter().find_map(|name| node.member(name));
        if node.member("custom_id").is_none() {
            self.others(file, node, REQUEST);
            for (name, value) in self.headers(file, node)? {
                if name != "content-type" {
                    self.list(file, &value, "this header is not mapped");
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
            None => ApiTarget::from_bodies(body.value, response),
        };
        Ok(request_of(body.value, target))
    }

    /// Returns the headers of a request or a response, with their names in lower case.
    fn headers<'v>(
        &mut self,
        file: usize,
        node: &LocatedValue<'v>,
    ) -> RecorderResult<Vec<(String, LocatedValue<'v>)>> {
        let Some(headers) = node.member("headers") else { return Ok(Vec::new()) };
        if headers.value.as_object().is_none() {
            self.list(file, &headers, "it is not mapped");
            return Ok(Vec::new());
        }
        Ok(headers.members()?.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
    }

    /// Reads a response: its body, or an object with the status and the body.
    fn response(&mut self, file: usize, node: &LocatedValue<'_>) -> RecorderResult<ImportedResponse> {
        let status = node.member("status_code").or_else(|| node.member("status"));
        let is_status = status.as_ref().is_some_and(|status| status.status().is_ok());
        // A response that failed often has no body.
        let is_bare = is_status && node.others(RESPONSE).is_empty();
        if !has_one(node, RESPONSE_ENVELOPE) && !is_bare {
            return Ok(reply(200, None, RetryHeaders::default(), node.value));
        }
        self.others(file, node, RESPONSE);
        let status = status.map_or(Ok(200), |status| status.status())?;
        let (mut content_type, mut retry) = (None, RetryHeaders::default());
        for (name, value) in self.headers(file, node)? {
            match name.as_str() {
                "content-type" => content_type = Some(value.text()?.to_owned()),
                other => {
                    let text = value.text().ok().map(str::to_owned);
                    if text.is_none() || !retry.set(other, text) {
                        self.list(file, &value, "this header is not mapped");
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
                Err(id) => self.replies.remove(&id).map(|(_, _, reply)| reply),
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
        let mut left: Vec<_> =
            self.replies.into_values().map(|(file, location, ..)| (file, location)).collect();
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

fn request_of(body: &Value<'_>, target: Option<ApiTarget>) -> std::result::Result<ImportedRequest, String> {
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
