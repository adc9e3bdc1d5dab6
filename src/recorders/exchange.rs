//! The runs of a file: requests and their responses, as all formats state them, and the calls that they become.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::reading::LocatedValue;
use crate::calls::matching::MatchingRules;
use crate::calls::run::{CallOutcome, CallRecord, CompleteRequest};
use crate::calls::target::{ApiTarget, query_digest};
use crate::conversation::assembled;
use crate::conversation::providers::chat::Chat;
use crate::conversation::providers::{ChatResponse, FormedChat};
use crate::conversation::response::{CallResponse, Chunk, RetryHeaders};
use crate::json::reader::{self, Limits};
use crate::json::splice::{self, ValueDifference};
use crate::json::{Object, Value, compact};

/// A file to convert.
#[derive(Clone, Debug)]
pub struct ConvertInput {
    /// Its name, for reports.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The runs read from files of a format.
#[derive(Debug, Default)]
pub(super) struct ImportedRuns {
    pub(super) runs: Vec<ImportedRun>,
    /// Values that cannot be mapped: the number of the file, the location and the reason.
    pub(super) unmapped: Vec<(usize, String, String)>,
}

/// The calls of a run, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct ImportedRun {
    /// The name that distinguishes the run from others in the file.
    pub(super) name: Option<String>,
    /// Other properties of the run that the file states.
    pub(super) details: Vec<(&'static str, Value<'static>)>,
    /// Its original, if that is not the files.
    pub(super) original: Option<Vec<u8>>,
    /// The calls, each with the number of its file.
    pub(super) exchanges: Vec<(usize, ImportedExchange)>,
}

/// A request and its response.
#[derive(Debug)]
pub(super) struct ImportedExchange {
    /// Where it is in the file.
    pub(super) location: String,
    pub(super) request: ImportedRequest,
    pub(super) reply: ImportedResponse,
    pub(super) at: Option<DateTime<Utc>>,
    /// How long it took, if the file states that.
    pub(super) latency_ms: Option<u64>,
}

/// The request.
#[derive(Debug)]
pub(super) enum ImportedRequest {
    /// As HTTP.
    Http { method: String, url: String, body: Vec<u8> },
    /// As JSON, to an API.
    Json { target: ApiTarget, body: Value<'static> },
    /// As JSON that is a difference from the body of the exchange before it.
    Repeating { target: ApiTarget, difference: ValueDifference },
}

/// The response.
#[derive(Debug)]
pub(super) enum ImportedResponse {
    Answer {
        status: u16,
        content_type: Option<String>,
        retry: RetryHeaders,
        body: Vec<u8>,
    },
    /// No answer, for this reason.
    Failed(String),
    /// An answer that cannot be mapped, for this reason.
    Unmapped(String),
}

impl ImportedResponse {
    /// Returns an answer that is JSON.
    pub(super) fn json(body: &Value<'_>) -> Self {
        Self::success("application/json", compact::text(body))
    }

    /// Returns an answer that is a stream of events.
    pub(super) fn stream(events: String) -> Self {
        Self::success("text/event-stream", events)
    }

    fn success(content_type: &str, body: String) -> Self {
        let (content_type, body) = (Some(content_type.to_owned()), body.into_bytes());
        Self::Answer { status: 200, content_type, retry: RetryHeaders::default(), body }
    }

    /// Returns a response of which the file states no body: one with an error status can have none.
    pub(super) fn without_body(status: u16, content_type: Option<String>, retry: RetryHeaders) -> Self {
        if status < 400 {
            return Self::Unmapped("the file does not state the body of the response".to_owned());
        }
        Self::Answer { status, content_type, retry, body: Vec::new() }
    }
}

/// A conversation as a request and its response.
#[derive(Debug)]
pub(super) struct ApiExchange {
    pub(super) request: ImportedRequest,
    pub(super) reply: ImportedResponse,
    /// The values that the form of the API cannot represent.
    pub(super) unmapped: Vec<String>,
}

impl ApiExchange {
    /// Returns a conversation in the form of the API of its provider.
    pub(super) fn new(chat: &Chat) -> Self {
        Self::from_formed(chat, FormedChat::new(chat))
    }

    /// Returns the request for the embeddings of the texts in the messages of a conversation. Most files do not state the
    /// vectors.
    ///
    /// # Errors
    /// Returns why there is none.
    pub(super) fn embedding(chat: &Chat) -> Result<Self, String> {
        let exchange = Self::from_formed(chat, FormedChat::embedding(chat)?);
        let Self { request, reply: ImportedResponse::Unmapped(_), .. } = exchange else {
            return Ok(exchange);
        };
        let reason = "the span does not contain the vectors".to_owned();
        Ok(Self { request, reply: ImportedResponse::Failed(reason.clone()), unmapped: vec![reason] })
    }

    fn from_formed(chat: &Chat, formed: FormedChat) -> Self {
        let FormedChat { provider, path, request: body, response, unmapped } = formed;
        let known = provider.and_then(|provider| ApiTarget::from_provider(provider, &path));
        let unknown = || ApiTarget::from_unknown_provider(&chat.provider, &path);
        let request = ImportedRequest::Json { target: known.unwrap_or_else(unknown), body };
        let reply = match response {
            ChatResponse::Whole(body) => ImportedResponse::json(&body),
            ChatResponse::Stream(events) => ImportedResponse::stream(events),
            ChatResponse::Missing => ImportedResponse::Unmapped("there is no answer".to_owned()),
        };
        Self { request, reply, unmapped }
    }
}

/// Returns the request to Gemini with these bodies, if they have its form. The model, which may have a provider before its name
/// and a version after it, is in the path, not in the body.
pub(super) fn contents_target(request: &Value<'_>, response: &Value<'_>, model: &str) -> Option<ApiTarget> {
    let asks = request.get("contents").is_some();
    let answers = ["candidates", "promptFeedback"].iter().any(|name| response.get(name).is_some());
    let model = model.rsplit('/').next()?.split('@').next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(asks && answers) || model.is_empty() || !model.chars().all(is_name) {
        return None;
    }
    ApiTarget::from_name("gemini", &format!("/v1beta/models/{model}:generateContent"))
}

/// The members of a request that say how a client sends it. They can contain keys, and are not in the body that was sent.
const TRANSPORT: [&str; 16] = [
    "api_base",
    "api_key",
    "apiKey",
    "authorization",
    "base_url",
    "baseURL",
    "cookies",
    "default_headers",
    "default_query",
    "extra_headers",
    "extra_query",
    "headers",
    "http_client",
    "proxies",
    "proxy",
    "query",
];

impl ImportedExchange {
    /// Makes the body of the request a difference from `before`, the body of the exchange before this one, and puts it in
    /// the place of `before`. Returns what remains of it; `None` if it is not JSON.
    pub(super) fn repeat(&mut self, before: &mut Option<Value<'static>>) -> Option<&Value<'static>> {
        let ImportedRequest::Json { target, body } = &mut self.request else { return None };
        let base = before.take().unwrap_or(Value::Null);
        let (target, difference) = (target.clone(), splice::difference(&base, body));
        *before = Some(std::mem::replace(body, Value::Null));
        self.request = ImportedRequest::Repeating { target, difference };
        match &self.request {
            ImportedRequest::Repeating { difference, .. } => Some(&difference.rest),
            _ => None,
        }
    }

    /// Restores the body of the request from `before`, the body of the exchange before this one, and puts it in the place
    /// of `before`.
    pub(super) fn restore(&mut self, before: &mut Option<Value<'static>>) {
        let ImportedRequest::Repeating { target, difference } = &self.request else { return };
        let base = before.take().unwrap_or(Value::Null);
        let body = splice::restore(&base, &difference.rest, &difference.splices);
        // A difference that was made from the same value can be restored, unless it is too large.
        let body = body.unwrap_or(Value::Null);
        *before = Some(body.clone());
        self.request = ImportedRequest::Json { target: target.clone(), body };
    }

    /// Removes what a request says about how it is sent, and returns the names of these members. A body that was
    /// recorded as it was sent has none.
    pub(super) fn take_transport(&mut self) -> Vec<&'static str> {
        let ImportedRequest::Json { body: Value::Object(members), target } = &mut self.request else {
            return Vec::new();
        };
        // APIs that are not known have this member, such as those that rank documents.
        let is_of_api = |name: &str| name == "query" && target.endpoint.compares_urls();
        let taken: Vec<&str> =
            TRANSPORT.into_iter().filter(|name| members.contains(name) && !is_of_api(name)).collect();
        if !taken.is_empty() {
            let kept = members.iter().filter(|(name, _)| !taken.contains(name));
            let kept = kept.map(|(name, member)| (Cow::Owned(name.to_owned()), member.to_owned_value()));
            *members = Object::from_members(kept.collect());
        }
        taken
    }

    /// Returns the call, and the body of the request as it is stored. The error says why it cannot be mapped.
    pub(super) fn into_call(
        self,
        number: u64,
        rules: &MatchingRules,
    ) -> Result<(CallRecord, Value<'static>), String> {
        let Self { request, reply, at, latency_ms, .. } = self;
        let (target, body) = match request {
            ImportedRequest::Json { target, body } => (target, body),
            ImportedRequest::Repeating { .. } => return Err("the request before it is missing".to_owned()),
            ImportedRequest::Http { method, url, body } => {
                if !method.eq_ignore_ascii_case("POST") {
                    return Err(format!("requests with {method} are not calls of a model"));
                }
                let body = reader::read(&body, &Limits::default())
                    .map_err(|error| format!("the body of the request is not JSON: {error}"));
                let target = ApiTarget::from_url(&url, body.as_ref().unwrap_or(&Value::Null))?;
                if let ImportedResponse::Unmapped(reason) = &reply {
                    return Err(reason.clone());
                }
                let body = body.map_err(|reason| rules.redacted(&reason).into_owned())?;
                (target, body.to_owned_value())
            }
        };
        if body.as_object().is_none() {
            return Err(format!("the body of the request is {}, not an object", body.type_name()));
        }
        let ApiTarget { provider, endpoint, path, query } = target;
        let stored = rules.redacted_owned(body);
        let path = rules.redacted_path(&path);
        let prompt = rules.prompt(endpoint, &path, &stored).ok_or("a number in the request overflows")?;
        let query = query.filter(|_| endpoint.compares_urls());
        let outcome = outcome(reply, rules)?;
        let call = CallRecord {
            number,
            requested_at: at.or_else(|| created(&outcome)),
            provider,
            endpoint: endpoint.name.to_owned(),
            path,
            query: query.and_then(|query| query_digest(&rules.redacted(&query))),
            request: CompleteRequest { prompt, payload: compact::text(&stored) },
            latency_ms,
            replayed_before: 0,
            outcome,
        };
        Ok((call, stored))
    }
}

/// Returns the time that a response states.
fn created(outcome: &CallOutcome) -> Option<DateTime<Utc>> {
    let CallOutcome::Answered(answer) = outcome else { return None };
    LocatedValue::new(&assembled::read_without_texts(answer).created?, "created").time()
}

fn outcome(reply: ImportedResponse, rules: &MatchingRules) -> Result<CallOutcome, String> {
    Ok(match reply {
        ImportedResponse::Unmapped(reason) => return Err(reason),
        ImportedResponse::Failed(reason) => {
            CallOutcome::Failed { reason: rules.redacted(&reason).into_owned(), partial: String::new() }
        }
        ImportedResponse::Answer { status, content_type, retry, body } => {
            let body = String::from_utf8(body)
                .map_err(|_| "the response is not text in UTF-8: it has no place in a session".to_owned())?;
            let body = rules.redacted_body(&body);
            let body = body.map_err(|reason| format!("the body of the response: {reason}"))?.into_owned();
            let redacted = |value: &str| rules.redacted(value).into_owned();
            let (content_type, retry) = (content_type.as_deref().map(redacted), retry.map(redacted));
            // The files do not say when the parts of a body arrived.
            let chunks = vec![Chunk { at_us: 0, bytes: body.len() as u64 }];
            CallOutcome::Answered(CallResponse { status, content_type, retry, body, chunks })
        }
    })
}
