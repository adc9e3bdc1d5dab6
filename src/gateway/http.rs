//! The treatment of a request by the gateway.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{HeaderMap, HeaderValue, ToStrError};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::upgrade::OnUpgrade;
use serde_json::{Value as Json, json};
use tokio::task;
use tokio::time::Instant;

use super::connection::asks_for_web_socket;
use super::decoding::decoded;
use super::finish::FinishError;
use super::forward::{ReceivedRequest, forward, not_recorded};
use super::miss::{RecordingMiss, missed_status};
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
use super::server_calls::{RECORD_TOOL_CALL, ServerCall};
use super::shared::{GatewayEvent, GatewayMode, GatewayState};
use super::web_socket::{self, LiveMiss, SocketCalls, SocketFuture, SocketRequest};
use crate::calls::run::{CallOutcome, CallRecord, CompleteRequest};
use crate::calls::target::query_digest;
use crate::clock;
use crate::conversation::providers::mcp::{self, MCP};
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
    let is_upgrade = asks_for_web_socket(request.headers());
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
        Destination::Own(command) => command_of(&shared, &parts.method, &command, &client, body).await,
        Destination::Upstream(route) if is_upgrade => socket(shared, route, client, parts).await,
        _ if is_upgrade => upgrade_refused(),
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
    body: Bytes,
) -> Response<Body> {
    match (command, method) {
        ("finish", &Method::POST) => finish(shared, client).await,
        (RECORD_TOOL_CALL, &Method::POST) => record_tool_call(shared, client, body).await,
        ("status", &Method::GET) => json_response(StatusCode::OK, &status(shared)),
        ("finish" | "status", _) => {
            problem(StatusCode::METHOD_NOT_ALLOWED, "refused", "finish is a POST, status a GET")
        }
        _ => problem(StatusCode::NOT_FOUND, "unknown command", "the commands are finish and status"),
    }
}

/// Returns the mode, the variables that point clients at the gateway, and those in which they expect a key.
fn status(shared: &GatewayState) -> Json {
    let variables: BTreeMap<&str, String> = shared.upstreams.variables(shared.address).collect();
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
    let received = ReceivedRequest { method: parts.method, headers: parts.headers, body };
    match prepare(&shared, route, &client, received).await {
        ControlFlow::Break(answer) => answer,
        ControlFlow::Continue(PreparedCall { route, received, recording }) => {
            forward(shared, route, received, Some(recording)).await
        }
    }
}

/// A call that is to be forwarded and recorded.
struct PreparedCall {
    route: Route,
    received: ReceivedRequest,
    recording: PendingCall,
}

/// Begins a call. Returns the response if it was recorded, is not recorded, or cannot be made.
async fn prepare(
    shared: &Arc<GatewayState>,
    route: Route,
    client: &ClientRunProperties,
    received: ReceivedRequest,
) -> ControlFlow<Response<Body>, PreparedCall> {
    let arrived = Instant::now();
    let only_replays = shared.only_replays(client.only);
    let for_thread = Arc::clone(shared);
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
            let unreadable = other.and_then(Result::err);
            let shared = Arc::clone(shared);
            return ControlFlow::Break(not_compared(shared, route, received, client.only, unreadable).await);
        }
        Err(error) => {
            let reason = error.to_string();
            return ControlFlow::Break(problem(StatusCode::INTERNAL_SERVER_ERROR, "not read", &reason));
        }
    };
    let Ok((run, number)) = shared.begin(client.run.as_deref(), &client.labels) else {
        return ControlFlow::Break(too_many_labels(&route.provider));
    };
    let open = OpenCall(Arc::clone(&run));
    let mut replayed_before = 0;
    if only_replays || shared.options.mode == GatewayMode::Auto {
        let lookup = Arc::clone(&lookup);
        let missed = missed_status(&received.headers);
        let call = ComparedCall { shared: Arc::clone(shared), lookup, run, only: client.only, missed };
        match call.answer(&route.path, arrived).await {
            ControlFlow::Break(answer) => return ControlFlow::Break(answer),
            ControlFlow::Continue(count) => replayed_before = count,
        }
    }
    let mut recording = pending_call(Arc::unwrap_or_clone(lookup), open, number);
    recording.record.replayed_before = replayed_before;
    let CallRecord { provider, path, .. } = &recording.record;
    let requested_at = clock::now();
    let begun = OpenCallRecord { provider: provider.clone(), path: path.clone(), requested_at };
    // That the directory cannot be written is reported when the call is to be recorded.
    recording.entry = shared.open_calls.begin(begun).ok();
    recording.record.requested_at = Some(requested_at);
    ControlFlow::Continue(PreparedCall { route, received, recording })
}

/// Answers a request for a WebSocket: one over which responses of models are asked for becomes calls, others are refused.
async fn socket(
    shared: Arc<GatewayState>,
    route: Route,
    client: ClientRunProperties,
    mut parts: Parts,
) -> Response<Body> {
    let Some(upgrade) = parts.extensions.remove::<OnUpgrade>().filter(|_| web_socket::is_relayed(&route))
    else {
        return upgrade_refused();
    };
    let only_replays = shared.only_replays(client.only);
    if only_replays {
        // Clients of which no socket was recorded use HTTP, of which their calls were recorded.
        let (for_thread, only, provider) = (Arc::clone(&shared), client.only, route.provider.clone());
        let recorded = blocking(move || {
            let scope = for_thread.scope(for_thread.chosen(only)?);
            web_socket::is_recorded(&for_thread.recordings, scope.only, &provider)
        });
        match recorded.await {
            Ok(true) => {}
            Ok(false) => return upgrade_refused(),
            Err(reason) => return problem(StatusCode::INTERNAL_SERVER_ERROR, "not replayed", &reason),
        }
    }
    let calls = Box::new(CallsOfSocket { shared: Arc::clone(&shared), route: route.clone(), client });
    SocketRequest { shared, route, headers: parts.headers, upgrade, only_replays, calls }.answer().await
}

/// The calls that are made over a socket.
struct CallsOfSocket {
    shared: Arc<GatewayState>,
    route: Route,
    client: ClientRunProperties,
}

impl CallsOfSocket {
    /// Reads a request, and begins a call with it.
    async fn begin(&self, body: Bytes) -> Result<(RecordingLookup, Arc<GatewayRun>, u64), String> {
        let (shared, route) = (Arc::clone(&self.shared), self.route.clone());
        let lookup = blocking(move || {
            let received = ReceivedRequest { method: Method::POST, headers: HeaderMap::new(), body };
            let endpoint = route.endpoint.unwrap_or(&Endpoint::ANY);
            lookup_of(&shared, endpoint, &route, &received)
        });
        let lookup = lookup.await?;
        let begun = self.shared.begin(self.client.run.as_deref(), &self.client.labels);
        let (run, number) = begun.map_err(|error| error.to_string())?;
        Ok((lookup, run, number))
    }

    /// Returns the recorded answer to what a client sent over a live connection so far.
    async fn find_live(&self, body: Bytes) -> Result<Response<Body>, LiveMiss> {
        let arrived = Instant::now();
        let (lookup, run, _) = self.begin(body).await.map_err(LiveMiss::Missed)?;
        let _open = OpenCall(Arc::clone(&run));
        let (shared, lookup) = (Arc::clone(&self.shared), Arc::new(lookup));
        let of_call = (Arc::clone(&lookup), Arc::clone(&run));
        let missed = StatusCode::BAD_REQUEST;
        let call = ComparedCall { shared: Arc::clone(&shared), lookup, run, only: self.client.only, missed };
        let (lookup, run) = of_call;
        let found = blocking(move || -> Result<_, ReplayFailure> {
            let found = call.find()?;
            let scope = call.shared.scope(call.shared.chosen(call.only)?);
            let is_beginning = !matches!(found, ReplayResult::Found(_))
                && replay::is_beginning(&call.shared.recordings, scope.only, &call.lookup)?;
            Ok((found, is_beginning))
        });
        let (found, is_beginning) = found.await.map_err(LiveMiss::Missed)?;
        let (provider, path) = (lookup.provider.as_str(), lookup.path.as_str());
        let reason = match found {
            ReplayResult::Found(found) => {
                return Ok(replayed(&shared, &run, provider, path, *found, arrived));
            }
            _ if is_beginning => return Err(LiveMiss::Incomplete),
            ReplayResult::Missed(miss) => miss.reason(shared.options.rule_format),
            ReplayResult::ToForward(_) => "the server could not be asked".to_owned(),
        };
        missed_call(&shared, &run, provider, path, &reason);
        Err(LiveMiss::Missed(reason))
    }
}

impl SocketCalls for CallsOfSocket {
    fn ask(&self, body: Bytes) -> SocketFuture<'_, ControlFlow<Response<Body>, PendingCall>> {
        let received = ReceivedRequest { method: Method::POST, headers: HeaderMap::new(), body };
        let prepared = prepare(&self.shared, self.route.clone(), &self.client, received);
        Box::pin(async { prepared.await.map_continue(|call| call.recording) })
    }

    fn find(&self, body: Bytes) -> SocketFuture<'_, Result<Response<Body>, LiveMiss>> {
        Box::pin(self.find_live(body))
    }

    fn open(&self) -> Option<OpenCall> {
        let begun = self.shared.begin(self.client.run.as_deref(), &self.client.labels);
        begun.ok().map(|(run, _)| OpenCall(run))
    }

    fn record(&self, body: Bytes) -> SocketFuture<'_, Result<PendingCall, String>> {
        Box::pin(async {
            let (lookup, run, number) = self.begin(body).await?;
            Ok(pending_call(lookup, OpenCall(run), number))
        })
    }
}

/// Returns a call of which only the request is known.
fn pending_call(lookup: RecordingLookup, open: OpenCall, number: u64) -> PendingCall {
    let RecordingLookup { provider, endpoint, path, query, payload, .. } = lookup;
    let record = CallRecord {
        number,
        requested_at: None,
        provider,
        endpoint: endpoint.name.to_owned(),
        path,
        query,
        request: CompleteRequest { prompt: String::new(), payload },
        latency_ms: None,
        replayed_before: 0,
        outcome: CallOutcome::Failed { reason: String::new(), partial: String::new() },
    };
    PendingCall { open, entry: None, endpoint, record }
}

/// Records a call of a tool that a client made itself. It is on disk when the response is sent.
async fn record_tool_call(
    shared: &Arc<GatewayState>,
    client: &ClientRunProperties,
    body: Bytes,
) -> Response<Body> {
    let invalid = |reason: &str| problem(StatusCode::BAD_REQUEST, "not recorded", reason);
    let call: ServerCall = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return invalid(&error.to_string()),
    };
    let (route, body) = (call.route(), Bytes::copy_from_slice(call.request.get().as_bytes()));
    let received = ReceivedRequest { method: Method::POST, headers: HeaderMap::new(), body };
    let endpoint = mcp::endpoint(&route.path);
    let Route { provider, path, .. } = &route;
    let report = |reason: &str| shared.report(&GatewayEvent::NotRecorded { provider, path, reason });
    let lookup = match lookup_of(shared, endpoint, &route, &received) {
        Ok(lookup) => lookup,
        Err(reason) => {
            report(&not_recorded(&reason));
            return invalid(&reason);
        }
    };
    let Ok((run, number)) = shared.begin(client.run.as_deref(), &client.labels) else {
        return too_many_labels(MCP);
    };
    match call.record(shared, pending_call(lookup, OpenCall(run), number)).await {
        Ok(()) => json_response(StatusCode::OK, &json!({})),
        Err(error) => {
            let reason = format!("the call could not be recorded: {error}");
            report(&reason);
            problem(StatusCode::INTERNAL_SERVER_ERROR, "not recorded", &reason)
        }
    }
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
        let status =
            if unreadable.is_some() { missed_status(&received.headers) } else { StatusCode::NOT_FOUND };
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

/// Counts and reports a call that was recorded, and sends its answer.
fn replayed(
    shared: &GatewayState,
    run: &GatewayRun,
    provider: &str,
    path: &str,
    found: RecordingMatch,
    arrived: Instant,
) -> Response<Body> {
    let (from, step) = (found.from, found.recorded.request.step);
    shared.count(run, |usage| usage.replayed(from, step));
    shared.report(&match &found.difference {
        Some(difference) => GatewayEvent::ReplayedLoosely { provider, path, from, step, difference },
        None => GatewayEvent::Replayed { provider, path, from, step },
    });
    play(found, shared.options.pace, arrived)
}

/// Counts and reports a call that was not recorded.
fn missed_call(shared: &GatewayState, run: &GatewayRun, provider: &str, path: &str, reason: &str) {
    shared.report(&GatewayEvent::Missed { provider, path, reason });
    shared.count(run, |usage| usage.missed(reason.to_owned()));
}

/// A call that is compared with recordings.
struct ComparedCall {
    shared: Arc<GatewayState>,
    lookup: Arc<RecordingLookup>,
    run: Arc<GatewayRun>,
    /// The only recording to replay from.
    only: Option<CoreHash>,
    /// The status of the answer if it was not recorded.
    missed: StatusCode,
}

impl ComparedCall {
    /// Returns the answer to the call with this path, or if the server is to be asked, the number of earlier requests of the
    /// run with the same prompt that were answered from recordings.
    async fn answer(self, path: &str, arrived: Instant) -> ControlFlow<Response<Body>, u64> {
        let (shared, run, lookup) =
            (Arc::clone(&self.shared), Arc::clone(&self.run), Arc::clone(&self.lookup));
        let (provider, format, missed) = (lookup.provider.as_str(), shared.options.rule_format, self.missed);
        ControlFlow::Break(match blocking(move || self.find()).await {
            Ok(ReplayResult::Found(found)) => {
                replayed(&shared, &run, &lookup.provider, path, *found, arrived)
            }
            Ok(ReplayResult::Missed(_)) if let Some(count) = lookup.endpoint.count => {
                estimated_count(count, &lookup.prompt(&shared.options.rules).unwrap_or_default())
            }
            Ok(ReplayResult::Missed(miss)) => {
                missed_call(&shared, &run, provider, path, &miss.reason(format));
                let problem = for_clients(provider, missed, miss.problem(missed, format));
                not_retried(json_problem(missed, &problem))
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
        let Self { shared, lookup, run, only, .. } = self;
        let chosen = shared.chosen(*only)?;
        if let (Some(core), None) = (only, chosen) {
            return Ok(ReplayResult::Missed(RecordingMiss::NoRecording(*core)));
        }
        let (scope, only_replays) = (shared.scope(chosen), shared.only_replays(*only));
        let loosely = match &shared.loose {
            Some(recordings) => replay::find_loosely(recordings, scope, run, lookup)?,
            None => None,
        };
        match replay::find(&shared.recordings, scope, run, lookup, only_replays)? {
            Ok(found) => Ok(ReplayResult::Found(Box::new(found))),
            Err(_) if let Some(mut found) = loosely => {
                found.difference = Some(replay::difference(&shared.recordings, &found, lookup)?);
                Ok(ReplayResult::Found(Box::new(found)))
            }
            Err(unmatched) if !only_replays => Ok(ReplayResult::ToForward(unmatched)),
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
