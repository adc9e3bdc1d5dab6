//! The treatment of a request by the gateway.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

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
use super::finish::FinishError;
use super::forward::{ReceivedRequest, forward, not_recorded};
use super::miss::{MISSED, RecordingMiss};
use super::open_calls::OpenCallRecord;
use super::recording::{OpenCall, PendingCall};
use super::recordings::RecordingLookup;
use super::replay::{self, RecordingMatch, ReplayFailure, UnmatchedRequest, play};
use super::responses::{
    MetadataRequest, estimated_count, for_clients, json_problem, json_response, not_retried, problem,
    problem_for, refusal, upgrade_refused,
};
use super::route::{Destination, GatewayPath, Route, target};
use super::run::GatewayRun;
use super::shared::{GatewayEvent, GatewayMode, GatewayState};
use crate::calls::call::{CallOutcome, CallRecord, CompleteRequest};
use crate::calls::target::query_digest;
use crate::clock;
use crate::conversation::providers::{self, Endpoint};
use crate::conversation::response::ResponseForm;
use crate::digest::CoreHash;
use crate::json::compact;
use crate::json::reader::{self, Limits};
use crate::storage::{check_labels, is_label_value};
use crate::vault::LookupError;
use crate::vault::resolve::ResolveRequest;

/// Maximum size of a request.
pub(super) const MAX_REQUEST: usize = 64 << 20;

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
    json!({"mode": shared.options.mode.name(), "variables": variables, "keys": keys})
}

/// Finishes a run. The response states what was recorded, and what was replayed.
async fn finish(shared: &Arc<GatewayState>, client: &ClientRunProperties) -> Response<Body> {
    let failed = |reason: &str| problem(StatusCode::INTERNAL_SERVER_ERROR, "not finished", reason);
    let usage = shared.usage(client.run.as_deref());
    let (for_thread, only) = (Arc::clone(shared), client.only);
    // A request that fails can be repeated, so the run is finished last.
    let replayed = blocking(move || for_thread.replayed(for_thread.chosen(only)?, usage)).await;
    let replayed = match replayed {
        Ok(replayed) => replayed,
        Err(reason) => return failed(&reason),
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
    let for_thread = Arc::clone(&shared);
    // To redact a request can take long.
    let parsed = task::spawn_blocking(move || {
        let comparable = route.endpoint.filter(|_| received.method == Method::POST);
        let parsed = comparable.map(|endpoint| lookup_of(&for_thread, endpoint, &route, &received));
        (route, received, parsed)
    });
    let (route, received, lookup) = match parsed.await {
        Ok((route, received, Some(Ok(lookup))))
            if only_replays || shared.options.mode != GatewayMode::Pass =>
        {
            (route, received, Arc::new(lookup))
        }
        Ok((route, received, other)) => {
            return not_compared(shared, route, received, client.only, other.and_then(Result::err)).await;
        }
        Err(error) => return problem(StatusCode::INTERNAL_SERVER_ERROR, "not read", &error.to_string()),
    };
    let Ok((run, number)) = shared.begin(client.run.as_deref(), &client.labels) else {
        return too_many_labels(&route.provider);
    };
    let open = OpenCall(Arc::clone(&run));
    let mut replayed_before = 0;
    if only_replays || shared.options.mode == GatewayMode::Auto {
        let lookup = Arc::clone(&lookup);
        let call = ComparedCall { shared: Arc::clone(&shared), lookup, run, only: client.only };
        match call.answer(&route.path, arrived).await {
            ControlFlow::Break(answer) => return answer,
            ControlFlow::Continue(count) => replayed_before = count,
        }
    }
    let RecordingLookup { provider, endpoint, path, query, payload, .. } = Arc::unwrap_or_clone(lookup);
    let requested_at = clock::now();
    let begun = OpenCallRecord { provider: provider.clone(), path: path.clone(), requested_at };
    // That the directory cannot be written is reported when the call is to be recorded.
    let entry = shared.open_calls.begin(begun).ok();
    let record = CallRecord {
        number,
        requested_at: Some(requested_at),
        provider,
        endpoint: endpoint.name.to_owned(),
        path,
        query,
        request: CompleteRequest { prompt: String::new(), payload },
        latency_ms: None,
        replayed_before,
        outcome: CallOutcome::Failed { reason: String::new(), partial: String::new() },
    };
    forward(shared, route, received, Some(PendingCall { open, entry, endpoint, record })).await
}

/// Does what can take long on a thread of its own. The error says why that was not possible.
async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, String>
where
    T: Send + 'static,
    E: ToString + Send + 'static,
{
    match task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
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
    match unreadable.filter(|_| shared.options.mode != GatewayMode::Pass) {
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
    let shared = Arc::clone(shared);
    let answered = blocking(move || {
        let scope = shared.scope(shared.chosen(only)?);
        metadata.answer(&shared.recordings, scope.only, &route.provider)
    });
    let failed = |reason: String| problem(StatusCode::INTERNAL_SERVER_ERROR, "not replayed", &reason);
    answered.await.unwrap_or_else(failed)
}

/// Reads a request. Returns the reason if it is not a JSON object with a canonical form.
fn lookup_of(
    shared: &GatewayState,
    endpoint: &'static Endpoint,
    route: &Route,
    received: &ReceivedRequest,
) -> Result<RecordingLookup, String> {
    let rules = &shared.options.rules;
    let body = decoded(&received.headers, &received.body, MAX_REQUEST)
        .map_err(|failure| format!("the request {failure}"))?;
    let value = reader::read(&body, &Limits::default()).map_err(|error| {
        // The error can quote a name of the request.
        let reason = format!("the request is not JSON that can be compared: {error}");
        rules.redacted(&reason).into_owned()
    })?;
    if value.as_object().is_none() {
        return Err("the request is not a JSON object".to_owned());
    }
    let stored = rules.redacted_value(&value);
    let path = rules.redacted_path(&route.path);
    let digest = rules.prompt_digest(endpoint, &path, &stored).ok_or("the request has no canonical form")?;
    let query = route.query.as_deref().unwrap_or_default();
    let form = ResponseForm::from_request(&route.path, Some(query), &value).unwrap_or(ResponseForm::Whole);
    let compared = Some(rules.redacted(query)).filter(|_| endpoint.compares_urls());
    let query = compared.and_then(|compared| query_digest(&compared));
    let (provider, payload) = (route.provider.clone(), compact::text(&stored));
    Ok(RecordingLookup { provider, endpoint, path, query, payload, digest, form })
}

/// The result of looking for the recorded answer to a request.
enum ReplayResult {
    Found(Box<RecordingMatch>),
    Missed(RecordingMiss),
    /// It has none, and the server is to be asked. Nothing reports why, and to find that out takes long.
    ToForward(UnmatchedRequest),
}

/// A call that is compared with recordings.
struct ComparedCall {
    shared: Arc<GatewayState>,
    lookup: Arc<RecordingLookup>,
    run: Arc<GatewayRun>,
    /// The only recording to replay from.
    only: Option<CoreHash>,
}

impl ComparedCall {
    /// Returns the answer to the call with this path, or if the server is to be asked, the number of earlier requests of the
    /// run with the same prompt that were answered from recordings.
    async fn answer(self, path: &str, arrived: Instant) -> ControlFlow<Response<Body>, u64> {
        let (shared, run, lookup) =
            (Arc::clone(&self.shared), Arc::clone(&self.run), Arc::clone(&self.lookup));
        let (provider, format) = (lookup.provider.as_str(), shared.options.rule_format);
        ControlFlow::Break(match blocking(move || self.find()).await {
            Ok(ReplayResult::Found(found)) => {
                let (from, step) = (found.from, found.recorded.request.step);
                shared.count(&run, |usage| usage.replayed(from, step));
                shared.report(&GatewayEvent::Replayed { provider, path, from, step });
                play(*found, shared.options.pace, arrived)
            }
            Ok(ReplayResult::Missed(_)) if let Some(count) = lookup.endpoint.count => {
                estimated_count(count, &lookup.prompt(&shared.options.rules).unwrap_or_default())
            }
            Ok(ReplayResult::Missed(miss)) => {
                let reason = miss.reason(format);
                shared.report(&GatewayEvent::Missed { provider, path, reason: &reason });
                shared.count(&run, |usage| usage.missed(reason.clone()));
                let problem = for_clients(provider, MISSED, miss.problem(format));
                not_retried(json_problem(MISSED, &problem))
            }
            Ok(ReplayResult::ToForward(unmatched)) => {
                if let UnmatchedRequest { recordings: 0, failure: Some(failure), .. } = &unmatched {
                    shared.report(&GatewayEvent::AskedAgain { provider, path, reason: &failure.reason });
                }
                return ControlFlow::Continue(unmatched.replayed_before);
            }
            Err(reason) => problem_for(provider, StatusCode::INTERNAL_SERVER_ERROR, "not replayed", &reason),
        })
    }

    /// Looks for the recorded answer.
    fn find(&self) -> Result<ReplayResult, ReplayFailure> {
        let Self { shared, lookup, run, only } = self;
        let chosen = shared.chosen(*only)?;
        if let (Some(core), None) = (only, chosen) {
            return Ok(ReplayResult::Missed(RecordingMiss::NoRecording(*core)));
        }
        let scope = shared.scope(chosen);
        match replay::find(&shared.recordings, scope, run, lookup)? {
            Ok(found) => Ok(ReplayResult::Found(Box::new(found))),
            Err(unmatched) if !shared.only_replays(*only) => Ok(ReplayResult::ToForward(unmatched)),
            Err(unmatched) => {
                replay::miss(&shared.recordings, scope.only, lookup, unmatched).map(ReplayResult::Missed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::connection::OWN_HEADERS;
    use crate::gateway::replay::REPLAYED;

    #[test]
    fn headers_for_the_gateway_have_one_beginning() {
        for name in [RUN, LABEL, RECORDING, REPLAYED] {
            assert!(name.starts_with(OWN_HEADERS));
        }
    }
}
