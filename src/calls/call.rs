//! A call of a model: what was asked, and what came back.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::conversation::providers::mcp::MCP;
use crate::conversation::response::CallResponse;
use crate::digest::Digest;
use crate::json::splice::Splice;

/// A call with its complete request.
pub(crate) type CallRecord = Call<CompleteRequest>;

/// A call as it is written to disk before its last byte is sent to the client: what an earlier request of the run has
/// already is left out of its request.
pub(crate) type StoredCall = Call<StoredRequest>;

/// A call, with its request in a form `R`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call<R> {
    /// Its number in the run, in the order in which calls arrived.
    pub(crate) number: u64,
    /// When it was asked, if that is known.
    #[serde(rename = "asked_at")]
    pub(crate) requested_at: Option<DateTime<Utc>>,
    pub(crate) provider: String,
    /// The name of the request in the API.
    pub(crate) endpoint: String,
    pub(crate) path: String,
    /// The digest of the query without keys, if requests of the API are compared by it.
    #[serde(default)]
    pub(crate) query: Option<String>,
    #[serde(flatten)]
    pub(crate) request: R,
    /// How long it took in milliseconds until all of the answer had arrived, if that is known.
    pub(crate) latency_ms: Option<u64>,
    /// Number of earlier requests of the run with the same prompt that were answered from recordings.
    #[serde(default)]
    pub(crate) replayed_before: u64,
    pub(crate) outcome: CallOutcome,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompleteRequest {
    /// The text that the request is compared by.
    pub(crate) prompt: String,
    /// The body of the request, as JSON without white space.
    #[serde(rename = "request")]
    pub(crate) payload: String,
}

/// A request without what an earlier one has already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    /// The model that was asked, or the name of the API if the request names none.
    pub(crate) model: String,
    /// The digest of the text that the request is compared by.
    pub(crate) prompt_hash: Digest,
    /// The body, as JSON without white space: complete, or the rest of a difference.
    pub(crate) payload: String,
    /// What the body takes from that of an earlier call.
    #[serde(default)]
    pub(crate) payload_difference: Option<CallDifference>,
    /// The rest of the text that the request is compared by, which is a difference.
    pub(crate) prompt: String,
    /// What that text takes from the one of an earlier call, or from the body of the request if no call is stated.
    pub(crate) prompt_difference: CallDifference,
}

/// What a value takes from that of another call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallDifference {
    /// The number of the call.
    pub(crate) call: Option<u64>,
    pub(crate) splices: Vec<Splice>,
}

/// The response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallOutcome {
    /// The answer, complete.
    Answered(CallResponse),
    /// No answer, or only its beginning.
    Failed {
        /// Why, for people.
        reason: String,
        /// The part of the response that had arrived by then.
        #[serde(with = "crate::conversation::response::pieces")]
        partial: String,
    },
}

impl StoredCall {
    /// Returns the numbers of the calls from which its request is a difference.
    pub(crate) fn bases(&self) -> impl Iterator<Item = u64> {
        let StoredRequest { payload_difference, prompt_difference, .. } = &self.request;
        payload_difference.iter().chain([prompt_difference]).filter_map(|difference| difference.call)
    }
}

impl<R> Call<R> {
    /// Returns whether a server of tools was asked, and not a model.
    pub(crate) fn is_of_tool(&self) -> bool {
        self.provider == MCP
    }

    /// Returns when all of the answer had arrived, or when it was asked if it is not known how long it took.
    pub(crate) fn ended_at(&self) -> Option<DateTime<Utc>> {
        let latency = self.latency_ms.and_then(|latency| i64::try_from(latency).ok());
        let asked = self.requested_at?;
        Some(asked.checked_add_signed(TimeDelta::milliseconds(latency.unwrap_or(0))).unwrap_or(asked))
    }

    /// Returns the call with its request in another form.
    pub(crate) fn with_request<S>(self, request: S) -> Call<S> {
        Call {
            number: self.number,
            requested_at: self.requested_at,
            provider: self.provider,
            endpoint: self.endpoint,
            path: self.path,
            query: self.query,
            request,
            latency_ms: self.latency_ms,
            replayed_before: self.replayed_before,
            outcome: self.outcome,
        }
    }

    /// Returns the answer if it is complete, also if it is an error.
    pub(crate) fn answer(&self) -> Option<&CallResponse> {
        match &self.outcome {
            CallOutcome::Answered(answer) => Some(answer),
            CallOutcome::Failed { .. } => None,
        }
    }
}

#[cfg(test)]
impl CallRecord {
    /// Returns a call of a test.
    pub(crate) fn sample(number: u64, request: CompleteRequest, outcome: CallOutcome) -> Self {
        Self {
            number,
            requested_at: Some(DateTime::UNIX_EPOCH),
            provider: "openai".to_owned(),
            endpoint: "chat.completions".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            query: None,
            request,
            latency_ms: Some(7),
            replayed_before: 0,
            outcome,
        }
    }
}
