//! A run of calls: its name, its labels, where the calls are from, and of each call what was asked and what came back.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::conversation::providers::mcp::MCP;
use crate::conversation::response::CallResponse;
use crate::digest::Digest;
use crate::formats::IMPORT_ADAPTER;
use crate::json::Value;
use crate::json::members::{integer, object, text};
use crate::json::splice::Splice;

/// The label with the name of a run.
const RUN_LABEL: &str = "run";

/// The properties of a run that are known when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunHead {
    /// Its id, which no other run has.
    pub(crate) id: String,
    /// The name that the client gave it.
    pub(crate) name: Option<String>,
    /// When it began, if that is known.
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) labels: BTreeMap<String, String>,
    /// The rules by which its requests are compared, as JSON.
    pub(crate) rules: String,
    /// The id of the run of which it makes calls again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_run_id: Option<String>,
}

/// The labels of a run are more than an artifact can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run would have more than {MAX_LABELS} labels together")]
pub(crate) struct TooManyLabels;

/// The most labels that an artifact can have.
const MAX_LABELS: usize = 100;

impl RunHead {
    /// Creates the head of a run that begins now.
    pub(crate) fn new(name: Option<&str>, number: u64, at: DateTime<Utc>, rules: String) -> Self {
        let time = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let id = format!("{}-{time}-{}-{number}", name.unwrap_or("gateway"), std::process::id());
        Self {
            id,
            name: name.map(str::to_owned),
            started_at: Some(at),
            labels: BTreeMap::new(),
            rules,
            source_run_id: None,
        }
    }

    /// Adds labels to those of the run.
    ///
    /// # Errors
    /// Returns an error if it would have too many, and adds none then.
    pub(crate) fn add_labels(&mut self, labels: &BTreeMap<String, String>) -> Result<(), TooManyLabels> {
        let before = self.labels.clone();
        self.labels.extend(labels.clone());
        if self.all_labels().len() > MAX_LABELS {
            self.labels = before;
            return Err(TooManyLabels);
        }
        Ok(())
    }

    /// Returns the labels of what is stored, with the name of the run.
    pub(crate) fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        if let Some(name) = &self.name {
            labels.entry(RUN_LABEL.to_owned()).or_insert_with(|| name.clone());
        }
        labels
    }
}

/// The version of the profile of run packs in `docs/gateway.md`. Those of version 1 are read, too.
pub(crate) const PROFILE: u64 = 2;

/// The version of the profile of sessions.
pub(crate) const SESSION_PROFILE: u64 = 1;

/// The attribute of run packs with the program that made them.
pub(crate) const SOURCE: &str = "source";

/// The sources of run packs that have the profile, in the order in which recordings are looked for.
pub(crate) const SOURCES: [&str; 2] = [CallOrigin::Gateway.source(), IMPORT];

const IMPORT: &str = "runvault-import";

/// Where the calls of a run are from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallOrigin<'o> {
    /// A gateway of this machine forwarded them.
    Gateway,
    /// A file of another program.
    File(&'o ImportSource),
}

/// A file of another program.
#[derive(Clone, Debug)]
pub(crate) struct ImportSource {
    /// The format of the file.
    pub(crate) format: &'static str,
    /// The digests of the file, or of the files.
    pub(crate) digests: Vec<Digest>,
    /// Other properties of the run that the file states.
    pub(crate) details: Vec<(&'static str, Value<'static>)>,
}

impl CallOrigin<'_> {
    /// Returns the adapter that sessions state, with the version of their profile.
    pub(crate) const fn adapter(self) -> &'static str {
        match self {
            Self::Gateway => "runvault-gateway/1",
            Self::File(_) => IMPORT_ADAPTER,
        }
    }

    /// Returns the source that run packs state.
    pub(crate) const fn source(self) -> &'static str {
        match self {
            Self::Gateway => "runvault-gateway",
            Self::File(_) => IMPORT,
        }
    }

    pub(crate) const fn capture_mode(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::File(_) => "import",
        }
    }

    /// Returns the environment in which the calls were recorded. That of imported calls is not known, and the machine
    /// that imports them must not change their hashes.
    pub(crate) fn environment(self) -> Value<'static> {
        match self {
            Self::Gateway => object([("os", text(std::env::consts::OS))]),
            Self::File(_) => object([]),
        }
    }

    pub(crate) fn versions(self) -> Value<'static> {
        match self {
            Self::Gateway => object([("runvault", text(env!("CARGO_PKG_VERSION")))]),
            Self::File(_) => object([]),
        }
    }

    /// Returns what documents with this version of their profile state of the file.
    pub(crate) fn import(self, profile: u64) -> Option<Value<'static>> {
        let Self::File(ImportSource { format, digests, details }) = self else { return None };
        let digests = digests.iter().map(|digest| text(digest.to_string())).collect();
        let members = [("format", text(*format)), ("originals", Value::Array(digests))];
        let members = members.into_iter().chain(details.iter().cloned());
        Some(object(members.chain([("profile", integer(profile))])))
    }
}

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
