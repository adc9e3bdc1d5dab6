//! A request and its response, as all formats state them, and the call that they become.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::target::Target;
use crate::calls::call::{Answer, Call, Chunk, Outcome};
use crate::calls::matching::MatchingRules;
use crate::json::Value;
use crate::json::compact;
use crate::json::reader::{self, Limits};

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Where it is in the file.
    pub(super) location: String,
    pub(super) request: Request,
    pub(super) reply: Reply,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) latency_ms: u64,
}

/// The request.
#[derive(Debug)]
pub(super) enum Request {
    /// As HTTP.
    Http { method: String, url: String, body: Vec<u8> },
    /// As JSON, to an API.
    Json { target: Target, body: Value<'static> },
}

/// The response.
#[derive(Debug)]
pub(super) enum Reply {
    Answer {
        status: u16,
        content_type: Option<String>,
        retry_after: Option<String>,
        body: Vec<u8>,
    },
    /// No answer, for this reason.
    Failed(String),
    /// An answer that cannot be mapped, for this reason.
    Unmapped(String),
}

impl Reply {
    /// Returns an answer that is JSON.
    pub(super) fn json(status: u16, body: &Value<'_>) -> Self {
        let content_type = Some("application/json".to_owned());
        Self::Answer { status, content_type, retry_after: None, body: compact::text(body).into_bytes() }
    }

    /// Returns an answer that is a stream of events.
    pub(super) fn stream(events: String) -> Self {
        let content_type = Some("text/event-stream".to_owned());
        Self::Answer { status: 200, content_type, retry_after: None, body: events.into_bytes() }
    }
}

impl Exchange {
    /// Returns the call. The error says why it cannot be mapped.
    pub(super) fn into_call(
        self,
        number: u64,
        before: DateTime<Utc>,
        rules: &MatchingRules,
    ) -> Result<Call, String> {
        let Self { request, reply, at, latency_ms, .. } = self;
        let (target, body) = match &request {
            Request::Json { target, body } => (target.clone(), Cow::Borrowed(body)),
            Request::Http { method, url, body } => {
                if !method.eq_ignore_ascii_case("POST") {
                    return Err(format!("requests with {method} are not calls of a model"));
                }
                let target = Target::from_url(url)?;
                if let Reply::Unmapped(reason) = &reply {
                    return Err(reason.clone());
                }
                let body = reader::read(body, &Limits::default())
                    .map_err(|error| format!("the body of the request is not JSON: {error}"))?;
                (target, Cow::Owned(body))
            }
        };
        if body.as_object().is_none() {
            return Err(format!("the body of the request is {}, not an object", body.type_name()));
        }
        let Target { provider, endpoint, path } = target;
        let stored = rules.redacted_value(&body);
        let prompt = rules.prompt(endpoint, &path, &stored).ok_or("a number in the request overflows")?;
        Ok(Call {
            number,
            asked_at: at.unwrap_or(before),
            provider,
            endpoint: endpoint.name.to_owned(),
            path,
            prompt,
            request: compact::text(&stored),
            latency_ms,
            outcome: outcome(reply, rules)?,
        })
    }
}

fn outcome(reply: Reply, rules: &MatchingRules) -> Result<Outcome, String> {
    Ok(match reply {
        Reply::Unmapped(reason) => return Err(reason),
        Reply::Failed(reason) => {
            Outcome::Failed { reason: rules.redacted(&reason).into_owned(), partial: String::new() }
        }
        Reply::Answer { status, content_type, retry_after, body } => {
            let body = String::from_utf8(body)
                .map_err(|_| "the response is not text in UTF-8: it has no place in a session".to_owned())?;
            let body = rules.redacted(&body).into_owned();
            // The files do not say when the parts of a body arrived.
            let chunks = vec![Chunk { at_us: 0, bytes: body.len() as u64 }];
            Outcome::Answered(Answer { status, content_type, retry_after, body, chunks })
        }
    })
}
