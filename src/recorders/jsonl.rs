//! Requests and responses as JSON Lines: `docs/import.md`, "JSON Lines".

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::documents::documents;
use super::error::{ConvertError, Fault, RecorderResult};
use super::exchange::{ImportedExchange, ImportedRequest, ImportedResponse};
use super::node::LocatedValue;
use super::recording::{ConvertInput, ImportedRun, ImportedRuns};
use super::target::ApiTarget;
use crate::calls::call::RetryHeaders;
use crate::json::reader::{Limits, excerpt};
use crate::json::{Value, compact};

/// The members of lines with a request and its response.
const PAIR: &[&str] =
    &["request", "response", "error", "custom_id", "id", "timestamp", "created_at", "latency_ms"];
const OUTPUT: &[&str] = &["id", "custom_id", "response", "error"];
const INPUT: &[&str] = &["custom_id", "method", "url", "body"];
/// The members of lines of the batch API of Anthropic.
const ANTHROPIC_INPUT: &[&str] = &["custom_id", "params"];
const ANTHROPIC_OUTPUT: &[&str] = &["custom_id", "result"];
const REQUEST: &[&str] = &["method", "url", "path", "endpoint", "body", "headers"];
const RESPONSE: &[&str] = &["status_code", "status", "request_id", "body", "headers"];

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

/// A response by the identifier of its request: the number of its file, its location, what it says, and when it came.
type BatchResponse = (usize, String, ImportedResponse, Option<DateTime<Utc>>);

#[derive(Default)]
struct JsonlReader {
    /// In the order of the requests.
    entries: Vec<JsonlEntry>,
    /// The number of the entry of each request of the batch API.
    entry_by_id: HashMap<String, usize>,
    /// The responses of the batch API: their file, location and time.
    replies: HashMap<String, BatchResponse>,
    unmapped: Vec<(usize, String, String)>,
}

struct JsonlEntry {
    file: usize,
    location: String,
    request: std::result::Result<ImportedRequest, String>,
    /// The response, or the name by which it refers to the request.
    reply: std::result::Result<(ImportedResponse, Option<DateTime<Utc>>), String>,
    latency_ms: u64,
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
            Value::Array(_) => (failed(&response), None),
            _ => self.response(file, &response)?,
        };
        let imported_request = self.request(file, &request, Some(response.value))?;
        let location = line.location.clone();
        self.entries.push(JsonlEntry {
            file,
            location,
            request: imported_request,
            reply: Ok(reply),
            latency_ms: 0,
        });
        Ok(())
    }

    /// Reads a line with a request and its response.
    fn pair(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, PAIR);
        let (request, response) = (line.required("request")?, line.member("response"));
        let (reply, created) = self.outcome(file, line)?;
        let body = response.map(|response| response.member("body").map_or(response.value, |body| body.value));
        let imported_request = self.request(file, &request, body)?;
        let timestamp = line.member("timestamp").or_else(|| line.member("created_at"));
        let at = timestamp.and_then(|time| time.any_time()).or(created);
        let latency = line.member("latency_ms");
        let latency_ms = latency.as_ref().map_or(Some(0), LocatedValue::rounded);
        if let (Some(latency), None) = (&latency, latency_ms) {
            self.list(file, latency, "it is not a number of milliseconds");
        }
        let location = line.location.clone();
        self.entries.push(JsonlEntry {
            file,
            location,
            request: imported_request,
            reply: Ok((reply, at)),
            latency_ms: latency_ms.unwrap_or(0),
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
        let request = request_of(params.value, ApiTarget::from_known_provider("anthropic", "/v1/messages"));
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
        self.entries.push(JsonlEntry { file, location, request, reply: Err(id), latency_ms: 0 });
        Ok(())
    }

    fn batch_reply(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, OUTPUT);
        let (reply, at) = self.outcome(file, line)?;
        self.replied_in_batch(file, line, (reply, at))
    }

    /// Reads the response of a line, or why there is none.
    fn outcome(
        &mut self,
        file: usize,
        line: &LocatedValue<'_>,
    ) -> RecorderResult<(ImportedResponse, Option<DateTime<Utc>>)> {
        match (line.member("response"), line.member("error")) {
            (Some(response), error) => {
                if let Some(error) = error {
                    self.list(file, &error, "it is not mapped: there is a response");
                }
                self.response(file, &response)
            }
            (None, Some(error)) => Ok((failed(&error), None)),
            (None, None) => Err(line.fault("the required member response is missing")),
        }
    }

    /// Reads a result, which has no status of HTTP.
    fn anthropic_reply(&mut self, file: usize, line: &LocatedValue<'_>) -> RecorderResult<()> {
        self.others(file, line, ANTHROPIC_OUTPUT);
        let result = line.required("result")?;
        let reply = match (result.required("type")?.text()?, result.member("error")) {
            ("succeeded", _) => reply(200, None, result.required("message")?.value),
            (_, Some(error)) => failed(&error),
            (outcome, None) => ImportedResponse::Failed(format!("the request was {outcome}")),
        };
        self.replied_in_batch(file, line, (reply, None))
    }

    fn replied_in_batch(
        &mut self,
        file: usize,
        line: &LocatedValue<'_>,
        (reply, at): (ImportedResponse, Option<DateTime<Utc>>),
    ) -> RecorderResult<()> {
        let id = line.required("custom_id")?.text()?.to_owned();
        if self.replies.contains_key(&id) {
            self.list(file, line, format!("the custom_id {} occurs more than once", excerpt(&id)));
            return Ok(());
        }
        self.replies.insert(id, (file, line.location.clone(), reply, at));
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
        let url = ["url", "path", "endpoint"].into_iter().find_map(|name| node.member(name));
        let body = node.member("body");
        let is_bare = url.is_some() && (node.value.get("body").is_some() || node.others(REQUEST).is_empty());
        if body.is_none() && !is_bare {
            return Ok(request_of(node.value, ApiTarget::from_bodies(node.value, response)));
        }
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
        let Some(body) = body else { return Ok(Err("the request has no body".to_owned())) };
        Ok(match url {
            Some(url) => {
                ApiTarget::from_url(url.text()?).and_then(|target| request_of(body.value, Some(target)))
            }
            None => request_of(body.value, ApiTarget::from_bodies(body.value, response)),
        })
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

    /// Reads a response: its body, or an object with the status and the body. Returns when it was made, if it says so.
    fn response(
        &mut self,
        file: usize,
        node: &LocatedValue<'_>,
    ) -> RecorderResult<(ImportedResponse, Option<DateTime<Utc>>)> {
        let status = node.member("status_code").or_else(|| node.member("status"));
        let is_wrapped = status.as_ref().is_some_and(|status| status.integer().is_ok())
            || node.member("headers").is_some();
        // A response that failed often has no body.
        let is_bare = status.as_ref().is_some_and(|status| status.status().is_ok())
            && (node.value.get("body").is_some() || node.others(RESPONSE).is_empty());
        let body = node.member("body");
        if !(is_bare || is_wrapped && body.is_some()) {
            return Ok((reply(200, None, node.value), created(node)));
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
        let Some(body) = body else {
            return Ok((ImportedResponse::Answer { status, content_type, retry, body: Vec::new() }, None));
        };
        let reply = match reply(status, content_type, body.value) {
            ImportedResponse::Answer { status, content_type, body, .. } => {
                ImportedResponse::Answer { status, content_type, retry, body }
            }
            other => other,
        };
        Ok((reply, created(&body)))
    }

    fn finish(mut self) -> ImportedRuns {
        let mut exchanges = Vec::new();
        for entry in self.entries {
            let JsonlEntry { file, location, request, reply, latency_ms } = entry;
            let reply = match reply {
                Ok(reply) => Some(reply),
                Err(id) => self.replies.remove(&id).map(|(_, _, reply, at)| (reply, at)),
            };
            match (request, reply) {
                (Ok(request), Some((reply, at))) => {
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

/// Returns an answer. A string is the body as it was received, such as a stream of events.
fn reply(status: u16, content_type: Option<String>, body: &Value<'_>) -> ImportedResponse {
    let Value::String(text) = body else {
        let ImportedResponse::Answer { status, content_type: json, retry, body } =
            ImportedResponse::json(status, body)
        else {
            return ImportedResponse::json(status, body);
        };
        return ImportedResponse::Answer { status, content_type: content_type.or(json), retry, body };
    };
    let is_stream = text.starts_with("data:") || text.starts_with("event:");
    let guessed = if is_stream { "text/event-stream" } else { "application/json" };
    let content_type = Some(content_type.unwrap_or_else(|| guessed.to_owned()));
    let (retry, body) = (RetryHeaders::default(), text.as_bytes().to_vec());
    ImportedResponse::Answer { status, content_type, retry, body }
}

/// Returns the time that a response states.
fn created(body: &LocatedValue<'_>) -> Option<DateTime<Utc>> {
    body.member("created").or_else(|| body.member("created_at"))?.any_time()
}

/// Returns that there is no answer because of an error.
fn failed(error: &LocatedValue<'_>) -> ImportedResponse {
    ImportedResponse::Failed(error.value.as_str().map_or_else(|| compact::text(error.value), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(files: &[&str]) -> ImportedRuns {
        let input = |(index, text): (usize, &&str)| ConvertInput {
            name: index.to_string(),
            bytes: text.as_bytes().to_vec(),
        };
        let inputs: Vec<ConvertInput> = files.iter().enumerate().map(input).collect();
        read(&inputs, &Limits::default()).unwrap()
    }

    fn shown(recording: &ImportedRuns) -> Vec<String> {
        let exchanges = recording.runs.iter().flat_map(|run| &run.exchanges);
        let reply = |reply: &ImportedResponse| match reply {
            ImportedResponse::Answer { status, content_type, body, .. } => {
                format!(
                    "{status} {} {}",
                    content_type.as_deref().unwrap_or_default(),
                    String::from_utf8_lossy(body)
                )
            }
            other => format!("{other:?}"),
        };
        exchanges.map(|(file, one)| format!("{file} {}: {}", one.location, reply(&one.reply))).collect()
    }

    #[test]
    fn batches_of_anthropic_are_joined() {
        let requests = ["a", "b", "c"].map(|id| {
            format!(
                "{{\"custom_id\":\"{id}\",\"params\":{{\"model\":\"c\",\"max_tokens\":1,\"messages\":[]}}}}\n"
            )
        });
        let responses = "{\"custom_id\":\"b\",\"result\":{\"type\":\"expired\"}}\n\
                        {\"custom_id\":\"c\",\"result\":{\"type\":\"errored\",\"error\":{\"type\":\"error\"}}}\n\
                        {\"custom_id\":\"a\",\"result\":{\"type\":\"succeeded\",\"message\":{\"type\":\"message\"}}}\n";
        let recording = recording(&[responses, &requests.concat()]);
        let expected = [
            r#"1 line 1: 200 application/json {"type":"message"}"#,
            r#"1 line 2: Failed("the request was expired")"#,
            r#"1 line 3: Failed("{\"type\":\"error\"}")"#,
        ];
        assert_eq!(
            (shown(&recording).as_slice(), recording.unmapped.len()),
            (&expected.map(str::to_owned)[..], 0)
        );
        let ImportedRequest::Json { target, .. } = &recording.runs[0].exchanges[0].1.request else {
            panic!()
        };
        assert_eq!((target.provider.as_str(), target.endpoint.name), ("anthropic", "messages"));
    }

    #[test]
    fn requests_and_responses_of_a_batch_are_joined() {
        let requests = "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{\"model\":\"m\"}}\n\n\
                     {\"custom_id\":\"b\",\"url\":\"/v1/chat/completions\",\"body\":{}}\n{\"custom_id\":\"d\",\"url\":\"/v1/chat/completions\",\"body\":{}}\n";
        let responses = "{\"id\":\"1\",\"custom_id\":\"c\",\"response\":{\"status_code\":200,\"body\":{}},\"error\":null}\n\
                        {\"id\":\"2\",\"custom_id\":\"b\",\"response\":null,\"error\":{\"code\":\"expired\"}}\n\
                        {\"id\":\"3\",\"custom_id\":\"a\",\"response\":{\"status_code\":200,\"body\":{\"created\":7,\"x\":1.50}},\"error\":null}\n";
        for files in [[responses, requests], [requests, responses]] {
            let recording = recording(&files);
            let file = usize::from(files[0] == responses);
            assert_eq!(
                shown(&recording),
                [
                    format!("{file} line 1: 200 application/json {{\"created\":7,\"x\":1.50}}"),
                    format!("{file} line 3: Failed(\"{{\\\"code\\\":\\\"expired\\\"}}\")"),
                ]
            );
            assert_eq!(recording.runs[0].exchanges[0].1.at.unwrap().timestamp(), 7);
            let reasons: Vec<_> =
                recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why:.20}")).collect();
            assert_eq!(reasons, ["line 4: there is no response", "line 1: there is no request "]);
        }
    }

    #[test]
    fn lines_with_both_are_pairs() {
        let recording = recording(&[
            "{\"request\":{\"model\":\"m\",\"messages\":[]},\"response\":{\"object\":\"chat.completion\"},\"tags\":1}\n\
            [{\"model\":\"m\",\"messages\":[]},{\"choices\":[]},{\"row\":1}]\n\
            {\"request\":{\"url\":\"https://api.openai.com/v1/responses\",\"body\":{}},\"response\":{\"status\":429,\"body\":{}},\"latency_ms\":3}\n\
            {\"request\":{\"model\":\"m\",\"messages\":[]},\"response\":\"data: [DONE]\\n\\n\"}\n\
            {\"request\":{\"url\":\"/v1/files\",\"body\":{}},\"response\":{}}\n{\"request\":{},\"response\":{}}\n",
        ]);
        assert_eq!(
            shown(&recording),
            [
                "0 line 1: 200 application/json {\"object\":\"chat.completion\"}",
                "0 line 2: 200 application/json {\"choices\":[]}",
                "0 line 3: 429 application/json {}",
                "0 line 4: 200 text/event-stream data: [DONE]\n\n",
            ]
        );
        let listed: Vec<_> = recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why}")).collect();
        assert_eq!(
            listed,
            [
                "line 1: the member \"tags\" is not mapped",
                "line 2[2]: it is not mapped",
                "line 5: /v1/files is not the path of a known API",
                "line 6: it has no URL, and its form is not that of a known API",
            ]
        );
    }

    fn listed(recording: &ImportedRuns) -> Vec<String> {
        recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why}")).collect()
    }

    #[test]
    fn responses_without_a_body_keep_their_status() {
        let request = r#""request":{"model":"m","messages":[]}"#;
        let recording = recording(&[&[
            format!(r#"{{{request},"response":{{"status_code":503,"body":null}}}}"#),
            format!(r#"{{{request},"response":{{"status":429,"headers":{{"content-type":"text/plain"}}}}}}"#),
            format!(r#"{{{request},"response":{{"status_code":500,"body":null,"other":1}}}}"#),
            format!(r#"{{{request},"response":{{"status":200,"choices":[]}}}}"#),
            r#"{"custom_id":"a","url":"/v1/responses","body":{}}"#.to_owned(),
            r#"{"custom_id":"a","response":{"status_code":503,"request_id":"x","body":null}}"#.to_owned(),
            r#"{"request":{"url":"/v1/responses","body":null},"response":{"object":"response"}}"#.to_owned(),
        ]
        .join("\n")]);
        assert_eq!(
            shown(&recording),
            [
                "0 line 1: 503  ",
                "0 line 2: 429 text/plain ",
                "0 line 3: 500  ",
                r#"0 line 4: 200 application/json {"status":200,"choices":[]}"#,
                "0 line 5: 503  ",
            ]
        );
        assert_eq!(
            listed(&recording),
            ["line 3.response: the member \"other\" is not mapped", "line 7: the request has no body"]
        );
    }

    #[test]
    fn headers_errors_and_other_values_are_listed() {
        let call = r#""request":{"model":"m","messages":[]},"response":{"choices":[]}"#;
        let recording = recording(&[&[
            r#"{"request":{"url":"/v1/responses","headers":{"Authorization":"k","Content-Type":"x"},"body":{}},"response":{}}"#,
            &format!(r#"{{{call},"error":{{"message":"it failed"}}}}"#),
            r#"{"request":{"model":"m","messages":[]},"response":null,"error":"it failed"}"#,
            r#"{"request":{"url":"/v1/responses","headers":[],"body":{}},"response":{"headers":["x"],"body":{}}}"#,
            "null",
            "\"x\"",
            &format!(r#"{{{call},"latency_ms":12.5}}"#),
            &format!(r#"{{{call},"latency_ms":-1}}"#),
        ]
        .join("\n")]);
        assert_eq!(
            shown(&recording),
            [
                "0 line 1: 200 application/json {}",
                r#"0 line 2: 200 application/json {"choices":[]}"#,
                r#"0 line 3: Failed("it failed")"#,
                "0 line 4: 200 application/json {}",
                r#"0 line 7: 200 application/json {"choices":[]}"#,
                r#"0 line 8: 200 application/json {"choices":[]}"#,
            ]
        );
        assert_eq!(
            listed(&recording),
            [
                "line 1.request.headers.Authorization: this header is not mapped",
                "line 2.error: it is not mapped: there is a response",
                "line 4.response.headers: it is not mapped",
                "line 4.request.headers: it is not mapped",
                "line 5: it is neither a request nor a response",
                "line 6: it is neither a request nor a response",
                "line 8.latency_ms: it is not a number of milliseconds",
            ]
        );
        let latencies: Vec<_> =
            recording.runs[0].exchanges.iter().map(|(_, exchange)| exchange.latency_ms).collect();
        assert_eq!(latencies, [0, 0, 0, 0, 12, 0]);
    }
}
