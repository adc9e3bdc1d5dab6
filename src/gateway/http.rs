//! The treatment of a request by the gateway.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, Bytes};
use axum::http::header::{HeaderMap, HeaderValue, ToStrError};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value as Json, json};
use tokio::task;
use tokio::time::Instant;

use super::connection::asks_for_web_socket;
use super::decoding::decoded;
use super::events::GatewayEvent;
use super::finish::FinishError;
use super::forward::{OpenCall, PendingCallRecord, ReceivedRequest, forward, not_recorded};
use super::metadata::{MetadataRequest, estimated_count};
use super::miss::{MISSED, RecordingMiss};
use super::open_calls::OpenCallRecord;
use super::play::play;
use super::problem::{
    for_clients, json_problem, json_response, not_retried, problem, problem_for, upgrade_refused,
};
use super::recordings::RecordingLookup;
use super::refusal::refusal;
use super::replay::{self, RecordingMatch, ReplayFailure, UnmatchedRequest};
use super::route::{Destination, GatewayPath, Route, target};
use super::run::GatewayRun;
use super::shared::{GatewayMode, GatewayState};
use super::usage::replayed_calls;
use crate::calls::call::{CompleteRequest, ResponseForm};
use crate::calls::providers::{self, Endpoint};
use crate::calls::target::query_digest;
use crate::clock;
use crate::digest::CoreHash;
use crate::json::compact;
use crate::json::reader::{self, Limits};
use crate::storage::{check_labels, is_label_value};
use crate::vault::LookupError;
use crate::vault::resolve::ResolveRequest;

/// Maximum size of a request.
const MAX_REQUEST: usize = 64 << 20;

/// The header that names the run of a request, and the one that states labels of it.
const RUN: &str = "x-runvault-run";
const LABEL: &str = "x-runvault-label";
/// The header that names the only recording to replay from.
const RECORDING: &str = "x-runvault-recording";

/// Answers a request.
pub(super) async fn answer(shared: Arc<GatewayState>, request: Request<Body>) -> Response<Body> {
    if let Some((status, why)) = refusal(shared.address, request.headers()) {
        return problem(status, "refused", why);
    }
    if asks_for_web_socket(request.headers()) {
        return upgrade_refused();
    }
    let (parts, body) = request.into_parts();
    let GatewayPath { run, mut labels, recording, destination } = target(&shared.upstreams, &parts.uri);
    let (Ok(header_run), Ok(header_recording)) =
        (header(&parts.headers, RUN), header(&parts.headers, RECORDING))
    else {
        let reason = "the name of the run or of the recording has characters that are not ASCII";
        return problem(StatusCode::BAD_REQUEST, "not valid", reason);
    };
    let (run, recording) = (header_run.or(run), header_recording.or(recording));
    let only = match recording {
        None => None,
        Some(text) => match recording_named(&shared, text).await {
            Ok(core) => Some(core),
            Err((status, reason)) => return problem(status, "no recording", &reason),
        },
    };
    let Some(header_labels) = labels_of(&parts.headers) else {
        let reason = format!("the header {LABEL} is a label, such as job=7");
        return problem(StatusCode::BAD_REQUEST, "not valid", &reason);
    };
    labels.extend(header_labels);
    if check_labels(&labels).is_err() || run.as_deref().is_some_and(|run| !is_label_value(run)) {
        let reason = "the name of the run, or a label, is not valid: both have the form of labels";
        return problem(StatusCode::BAD_REQUEST, "not valid", reason);
    }
    let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
        let reason = format!("the request is longer than {MAX_REQUEST} bytes, or was broken off");
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "not read", &reason);
    };
    let body = body.to_bytes();
    let client = ClientRunProperties { run, labels, only };
    match destination {
        Destination::Own(command) => command_of(&shared, &parts.method, &command, &client).await,
        Destination::Upstream(route) => call(shared, route, client, parts, body).await,
        Destination::Outside => {
            let reason = "the path has segments .. that leave the path of the server";
            problem(StatusCode::BAD_REQUEST, "not valid", reason)
        }
        // Clients ask whether there is a server.
        Destination::Unknown if parts.method == Method::HEAD => Response::new(Body::empty()),
        Destination::Unknown => {
            let reason = format!("{} is the path of no known provider", parts.uri.path());
            problem(StatusCode::NOT_FOUND, "unknown path", &reason)
        }
    }
}

/// Returns the recording that a text refers to: a full hash, also of what is not in the vault, or a prefix of one, a tag
/// or a run id. Returns an error with the status of the response if there is none.
async fn recording_named(shared: &Arc<GatewayState>, text: String) -> Result<CoreHash, (StatusCode, String)> {
    if let Ok(digest) = text.parse() {
        return Ok(CoreHash(digest));
    }
    let for_thread = Arc::clone(shared);
    let located = task::spawn_blocking(move || ResolveRequest::new(text).locate(&for_thread.vault));
    match located.await {
        Ok(Ok(located)) => Ok(located.artifact.core),
        Ok(Err(error @ LookupError::Store(_))) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, error.to_string())),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

/// Returns the value of a header. Returns an error if it is not text.
fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, ToStrError> {
    headers.get(name).map(|value| value.to_str().map(str::to_owned)).transpose()
}

/// Returns the labels in the headers, or `None` if a header has none.
fn labels_of(headers: &HeaderMap) -> Option<BTreeMap<String, String>> {
    let label = |value: &HeaderValue| {
        let (key, value) = value.to_str().ok()?.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    };
    headers.get_all(LABEL).iter().map(label).collect()
}

/// The properties of a run, as its client states them.
struct ClientRunProperties {
    run: Option<String>,
    labels: BTreeMap<String, String>,
    /// The only recording to replay from. With it, nothing is forwarded.
    only: Option<CoreHash>,
}

/// Runs a command to the gateway itself.
async fn command_of(
    shared: &Arc<GatewayState>,
    method: &Method,
    command: &str,
    client: &ClientRunProperties,
) -> Response<Body> {
    match (command, method) {
        ("finish", &Method::POST) => finish(shared, client).await,
        ("status", &Method::GET) => json_response(StatusCode::OK, &status(shared)),
        ("finish" | "status", _) => {
            problem(StatusCode::METHOD_NOT_ALLOWED, "refused", "finish is a POST, status a GET")
        }
        _ => problem(StatusCode::NOT_FOUND, "unknown command", "the commands are finish and status"),
    }
}

/// Returns the mode, the variables that point clients at the gateway, and those in which they expect a key.
fn status(shared: &GatewayState) -> Json {
    let variables: BTreeMap<&str, String> = providers::base_url_variables(shared.address).collect();
    let keys: Vec<&str> = providers::key_variables().collect();
    json!({"mode": shared.mode.name(), "variables": variables, "keys": keys})
}

/// Finishes a run. The response states what was recorded, and what was replayed.
async fn finish(shared: &Arc<GatewayState>, client: &ClientRunProperties) -> Response<Body> {
    let failed = |reason: &str| problem(StatusCode::INTERNAL_SERVER_ERROR, "not finished", reason);
    let usage = shared.usage(client.run.as_deref());
    let (for_thread, only) = (Arc::clone(shared), client.only);
    let replayed = task::spawn_blocking(move || {
        let GatewayState { vault, recordings, .. } = &*for_thread;
        let chosen = match only {
            Some(core) => replay::pack_of(vault, recordings, core)?,
            None => None,
        };
        replayed_calls(vault, recordings, for_thread.scope(chosen), usage)
    });
    // A request that fails can be repeated, so the run is finished last.
    let replayed = match replayed.await {
        Ok(Ok(replayed)) => replayed,
        Ok(Err(error)) => return failed(&error.to_string()),
        Err(error) => return failed(&error.to_string()),
    };
    match shared.finish(client.run.as_deref(), &client.labels).await {
        Ok(finished) => json_response(StatusCode::OK, &json!({"finished": finished, "replayed": replayed})),
        Err(error @ FinishError::TooManyLabels) => {
            problem(StatusCode::BAD_REQUEST, "not finished", &error.to_string())
        }
        Err(error) => failed(&error.to_string()),
    }
}

/// Refuses a call with which its run would have too many labels.
fn too_many_labels(provider: &str) -> Response<Body> {
    let status = StatusCode::BAD_REQUEST;
    not_retried(problem_for(provider, status, "not valid", &FinishError::TooManyLabels.to_string()))
}

/// Answers a call of a provider.
async fn call(
    shared: Arc<GatewayState>,
    route: Route,
    client: ClientRunProperties,
    parts: Parts,
    body: Bytes,
) -> Response<Body> {
    let arrived = Instant::now();
    let received = ReceivedRequest { method: parts.method, headers: parts.headers, body };
    let only_replays = shared.only_replays(client.only);
    let (route, received, parsed) = match parsed(&shared, route, received).await {
        Ok(parsed) => parsed,
        Err(reason) => return problem(StatusCode::INTERNAL_SERVER_ERROR, "not read", &reason),
    };
    let request = match parsed {
        Some(Ok(request)) if only_replays || shared.mode != GatewayMode::Pass => request,
        other => {
            return not_compared(shared, route, received, client.only, other.and_then(Result::err)).await;
        }
    };
    let Ok((run, number)) = shared.begin(client.run.as_deref(), &client.labels) else {
        return too_many_labels(&route.provider);
    };
    let open = OpenCall { run: Arc::clone(&run), number };
    let mut replayed_before = 0;
    if only_replays || shared.mode == GatewayMode::Auto {
        let (shared, route, request, run) = (&shared, &route, &request, &run);
        let call = ComparedCall { shared, route, request, run, only: client.only };
        match call.answer(arrived).await {
            ControlFlow::Break(answer) => return answer,
            ControlFlow::Continue(count) => replayed_before = count,
        }
    }
    let ParsedApiRequest { endpoint, path, query, prompt, request, .. } = request;
    let (requested_at, endpoint) = (clock::now(), endpoint.name);
    let begun = OpenCallRecord { provider: route.provider.clone(), path: path.clone(), requested_at };
    // That the directory cannot be written is reported when the call is to be recorded.
    let entry = shared.open_calls.begin(begun).ok();
    let request = CompleteRequest { prompt, payload: request };
    let recording =
        PendingCallRecord { run: open, entry, requested_at, endpoint, path, query, request, replayed_before };
    forward(shared, route, received, Some(recording)).await
}

/// A request, and what it is in the API of its provider if that compares requests, or why it cannot be read.
type ParsedCall = (Route, ReceivedRequest, Option<Result<ParsedApiRequest, String>>);

/// Reads a request. The error says why that could not be tried.
async fn parsed(
    shared: &Arc<GatewayState>,
    route: Route,
    received: ReceivedRequest,
) -> Result<ParsedCall, String> {
    let shared = Arc::clone(shared);
    // To redact a request can take long.
    let parsed = task::spawn_blocking(move || {
        let comparable = route.endpoint.filter(|_| received.method == Method::POST);
        let parsed = comparable.map(|endpoint| ParsedApiRequest::new(&shared, endpoint, &route, &received));
        (route, received, parsed)
    });
    parsed.await.map_err(|error| error.to_string())
}

/// Answers a request that is not compared with recordings.
async fn not_compared(
    shared: Arc<GatewayState>,
    route: Route,
    received: ReceivedRequest,
    only: Option<CoreHash>,
    unreadable: Option<String>,
) -> Response<Body> {
    let Route { provider, path, .. } = &route;
    if shared.only_replays(only) {
        if let Some(metadata) = MetadataRequest::new(&received.method, &route) {
            return described(&shared, metadata, only, route).await;
        }
        let other = || format!("{} {path} is not a call that can be recorded", received.method);
        let status = if unreadable.is_some() { MISSED } else { StatusCode::NOT_FOUND };
        let reason = unreadable.unwrap_or_else(other);
        shared.report(&GatewayEvent::Missed { provider, path, reason: &reason });
        return not_retried(problem_for(provider, status, "not recorded", &reason));
    }
    match unreadable.filter(|_| shared.mode != GatewayMode::Pass) {
        Some(reason) => {
            let reason = not_recorded(&reason);
            shared.report(&GatewayEvent::NotRecorded { provider, path, reason: &reason });
        }
        None => shared.report(&GatewayEvent::Forwarded { provider, path }),
    }
    forward(shared, route, received, None).await
}

/// Answers a request from what was recorded of a provider.
async fn described(
    shared: &Arc<GatewayState>,
    metadata: MetadataRequest,
    only: Option<CoreHash>,
    route: Route,
) -> Response<Body> {
    let for_thread = Arc::clone(shared);
    let answered = task::spawn_blocking(move || {
        let GatewayState { vault, recordings, .. } = &*for_thread;
        let chosen = match only {
            Some(core) => replay::pack_of(vault, recordings, core)?,
            None => None,
        };
        metadata.answer(vault, recordings, for_thread.scope(chosen).only, &route.provider)
    });
    let failed = |reason: &str| problem(StatusCode::INTERNAL_SERVER_ERROR, "not replayed", reason);
    match answered.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => failed(&error.to_string()),
        Err(error) => failed(&error.to_string()),
    }
}

/// A parsed request.
struct ParsedApiRequest {
    endpoint: &'static Endpoint,
    /// The path, as it is stored.
    path: String,
    /// The digest of the query without keys, if requests of the API are compared by it.
    query: Option<String>,
    prompt: String,
    /// The body, as it is stored.
    request: String,
    form: ResponseForm,
}

impl ParsedApiRequest {
    /// Reads a request. Returns the reason if it is not a JSON object with a canonical form.
    fn new(
        shared: &GatewayState,
        endpoint: &'static Endpoint,
        route: &Route,
        received: &ReceivedRequest,
    ) -> Result<Self, String> {
        let body = decoded(&received.headers, &received.body, MAX_REQUEST)
            .map_err(|failure| format!("the request {failure}"))?;
        let value = reader::read(&body, &Limits::default()).map_err(|error| {
            // The error can quote a name of the request.
            shared
                .rules
                .redacted(&format!("the request is not JSON that can be compared: {error}"))
                .into_owned()
        })?;
        if value.as_object().is_none() {
            return Err("the request is not a JSON object".to_owned());
        }
        let stored = shared.rules.redacted_value(&value);
        let path = shared.rules.redacted_path(&route.path);
        let prompt =
            shared.rules.prompt(endpoint, &path, &stored).ok_or("the request has no canonical form")?;
        let url_query = route.query.as_deref().unwrap_or_default();
        let form = ResponseForm::requested(&route.path, Some(url_query), &value);
        let form = form.unwrap_or(ResponseForm::Whole);
        let compared = Some(shared.rules.redacted(url_query)).filter(|_| endpoint.compares_urls());
        let query = compared.and_then(|compared| query_digest(&compared));
        Ok(Self { endpoint, path, query, prompt, request: compact::text(&stored), form })
    }
}

/// The result of looking for the recorded answer to a request.
enum ReplayResult {
    Found(Box<RecordingMatch>),
    Missed(RecordingMiss),
    /// It has none, and the server is to be asked. Nothing reports why, and to find that out takes long.
    ToForward(UnmatchedRequest),
}

/// A call that is compared with recordings.
struct ComparedCall<'c> {
    shared: &'c Arc<GatewayState>,
    route: &'c Route,
    request: &'c ParsedApiRequest,
    run: &'c Arc<GatewayRun>,
    /// The only recording to replay from.
    only: Option<CoreHash>,
}

impl ComparedCall<'_> {
    /// Returns the answer, or if the server is to be asked, the number of earlier requests of the run with the same prompt
    /// that were answered from recordings.
    async fn answer(&self, arrived: Instant) -> ControlFlow<Response<Body>, u64> {
        let Self { shared, route: Route { provider, path, .. }, request, run, .. } = self;
        ControlFlow::Break(match self.find().await {
            Ok(ReplayResult::Found(found)) => {
                let (from, step) = (found.from, found.recorded.step);
                shared.count(run, |usage| usage.replayed(from, step));
                shared.report(&GatewayEvent::Replayed { provider, path, from, step });
                play(*found, shared.pace, arrived)
            }
            Ok(ReplayResult::Missed(_)) if let Some(count) = request.endpoint.count => {
                estimated_count(count, &request.prompt)
            }
            Ok(ReplayResult::Missed(miss)) => {
                let reason = miss.reason(shared.rule_format);
                shared.report(&GatewayEvent::Missed { provider, path, reason: &reason });
                shared.count(run, |usage| usage.missed(reason.clone()));
                let problem = for_clients(provider, MISSED, miss.problem(shared.rule_format));
                not_retried(json_problem(MISSED, &problem))
            }
            Ok(ReplayResult::ToForward(unmatched)) => {
                if let UnmatchedRequest { recordings: 0, failure: Some(failure), .. } = &unmatched {
                    shared.report(&GatewayEvent::AskedAgain { provider, path, reason: &failure.reason });
                }
                return ControlFlow::Continue(unmatched.replayed_before);
            }
            Err(failure) => {
                let (status, reason) = (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string());
                problem_for(provider, status, "not replayed", &reason)
            }
        })
    }

    /// Looks for the recorded answer.
    async fn find(&self) -> Result<ReplayResult, ReplayFailure> {
        let request = self.request;
        let lookup = RecordingLookup {
            provider: self.route.provider.clone(),
            endpoint: request.endpoint,
            path: request.path.clone(),
            query: request.query.clone(),
            prompt: request.prompt.clone(),
            digest: OnceLock::new(),
            form: request.form,
        };
        let (shared, run, only) = (Arc::clone(self.shared), Arc::clone(self.run), self.only);
        let found = task::spawn_blocking(move || {
            let GatewayState { vault, recordings, .. } = &*shared;
            let chosen = match only {
                Some(core) => match replay::pack_of(vault, recordings, core)? {
                    Some(pack) => Some(pack),
                    None => return Ok(ReplayResult::Missed(RecordingMiss::NoRecording(core))),
                },
                None => None,
            };
            let scope = shared.scope(chosen);
            match replay::find(vault, recordings, scope, (&run, &lookup))? {
                Ok(found) => Ok(ReplayResult::Found(Box::new(found))),
                Err(unmatched) if !shared.only_replays(only) => Ok(ReplayResult::ToForward(unmatched)),
                Err(unmatched) => replay::miss(vault, recordings, scope.only, (&lookup, unmatched))
                    .map(ReplayResult::Missed),
            }
        });
        found.await.unwrap_or_else(|error| Err(ReplayFailure(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::connection::OWN_HEADERS;
    use crate::gateway::play::REPLAYED;

    #[test]
    fn headers_for_the_gateway_have_one_beginning() {
        for name in [RUN, LABEL, RECORDING, REPLAYED] {
            assert!(name.starts_with(OWN_HEADERS));
        }
    }
}
