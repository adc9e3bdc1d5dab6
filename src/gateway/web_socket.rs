//! Connections over which models are asked with WebSocket. With the Responses API, each event with a request and the events
//! that answer it are a call, as if it was made with HTTP and streamed. Over a live connection, what a client sends until the
//! server answers, and what the server sends until the client sends more, are a call.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;
use std::{borrow::Cow, ops::ControlFlow};

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use axum::http::{Request, Response, StatusCode};
use chrono::{DateTime, Utc};
use futures_util::future::{Either, select};
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Value as Json, json};
use tokio::task;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::connection::{described, elements, forwarded_upgrade, returned};
use super::decoding::{data_of, take_event};
use super::forward::{CLIENT_LEFT, MAX_ANSWER, not_recorded};
use super::recording::{OpenCall, PendingCall};
use super::recordings::{RecordedRunPack, RecordingSearch, RunPackCache};
use super::responses::{problem, problem_for, upgrade_refused};
use super::route::Route;
use super::shared::{GatewayEvent, GatewayMode, GatewayState};
use crate::calls::run::CallOutcome;
use crate::calls::target::percent_decoded;
use crate::clock;
use crate::conversation::providers::live;
use crate::conversation::response::{CallResponse, Chunk, LIVE_CONTENT, ResponseForm, RetryHeaders};
use crate::digest::CoreHash;
use crate::json::members::word;
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value, compact};
use crate::vault::LookupError;

/// The end of the path of sockets that are relayed.
const PATH: &str = "/responses";

/// The event with a request, and the events that end its answer.
const REQUEST: &str = "response.create";
const LAST_EVENTS: [&str; 4] = ["response.completed", "response.failed", "response.incomplete", "error"];

/// The type of content of an answer over a socket: that of a stream, with a parameter by which it is recognized.
const CONTENT: &str = "text/event-stream; transport=websocket";

/// What is awaited of calls.
pub(super) type SocketFuture<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

/// The reason that what a client sent over a live connection has no recorded answer.
#[derive(Debug)]
pub(super) enum LiveMiss {
    /// It is the beginning of a recorded request.
    Incomplete,
    /// It was not recorded, for this reason.
    Missed(String),
}

/// Makes calls of what is sent over a socket.
pub(super) trait SocketCalls: Send + Sync {
    /// Begins a call with this body. Returns the response if the server is not to be asked.
    fn ask(&self, body: Bytes) -> SocketFuture<'_, ControlFlow<Response<Body>, PendingCall>>;

    /// Returns the recorded answer to a request of a live connection.
    fn find(&self, body: Bytes) -> SocketFuture<'_, Result<Response<Body>, LiveMiss>>;

    /// Begins a live connection: its run is not finished before it has ended.
    fn open(&self) -> Option<OpenCall>;

    /// Begins a call of a live connection that has its answer already.
    fn record(&self, body: Bytes) -> SocketFuture<'_, Result<PendingCall, String>>;
}

/// A connection over which messages are sent.
type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Returns whether a socket with this route is relayed.
pub(super) fn is_relayed(route: &Route) -> bool {
    route.path.ends_with(PATH) || is_live(route)
}

fn is_live(route: &Route) -> bool {
    route.endpoint.is_some_and(live::is_live)
}

/// Number of run packs in which calls over sockets are looked for.
const SEARCHED: usize = 32;

/// Returns whether the run pack `only`, or one of those that were seen last, has a call of a provider over a socket.
pub(super) fn is_recorded(
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    provider: &str,
) -> Result<bool, LookupError> {
    let (mut is_found, mut searched) = (false, 0);
    recordings.visit(only, RecordingSearch::All, &mut |pack: RecordedRunPack| {
        let mut own = pack.recorded.iter().filter(|call| call.request.provider == provider);
        is_found = own.any(|call| {
            call.answer.content_type.as_deref().is_some_and(|it| [CONTENT, LIVE_CONTENT].contains(&it))
        });
        searched += 1;
        !is_found && searched < SEARCHED
    })?;
    Ok(is_found)
}

/// A request for a socket.
pub(super) struct SocketRequest {
    pub(super) shared: Arc<GatewayState>,
    pub(super) route: Route,
    pub(super) headers: HeaderMap,
    pub(super) upgrade: OnUpgrade,
    pub(super) only_replays: bool,
    pub(super) calls: Box<dyn SocketCalls>,
}

/// What a server said to a request for a socket.
enum Handshake {
    Accepted(OnUpgrade, Option<HeaderValue>),
    Refused(Response<Body>),
}

impl SocketRequest {
    /// Answers the request, and relays the messages of the socket on a task of its own.
    pub(super) async fn answer(self) -> Response<Body> {
        let Some(key) = self.headers.get(SEC_WEBSOCKET_KEY) else {
            let reason = "the request for a WebSocket has no key";
            return problem(StatusCode::BAD_REQUEST, "not valid", reason);
        };
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
        let (server, protocol) = match self.connect().await {
            Ok(Handshake::Accepted(server, protocol)) => (Some(server), protocol),
            Ok(Handshake::Refused(response)) if self.passes_on(response.status()) => return response,
            // Some clients try again, and state that in their request, which would differ from that of a replay.
            Ok(Handshake::Refused(_)) => return upgrade_refused(),
            // What is recorded can be answered.
            Err(_) if self.only_replays || self.shared.options.mode == GatewayMode::Auto => {
                let offered = elements(&self.headers, &SEC_WEBSOCKET_PROTOCOL).next();
                (None, offered.and_then(|offered| HeaderValue::from_bytes(offered).ok()))
            }
            Err(reason) => {
                let provider = &self.route.provider;
                let reason = format!("the server of {provider} could not be asked: {reason}");
                return problem_for(provider, StatusCode::BAD_GATEWAY, "upstream failed", &reason);
            }
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let upgraded = [(CONNECTION, "upgrade"), (UPGRADE, "websocket")];
        let mut headers: Vec<(HeaderName, HeaderValue)> =
            upgraded.map(|(name, value)| (name, HeaderValue::from_static(value))).into();
        headers.extend(accept.ok().map(|accept| (SEC_WEBSOCKET_ACCEPT, accept)));
        headers.extend(protocol.map(|protocol| (SEC_WEBSOCKET_PROTOCOL, protocol)));
        response.headers_mut().extend(headers);
        let Self { shared, route, upgrade, calls, .. } = self;
        task::spawn(async move {
            // The client can have left.
            let Ok(client) = upgrade.await else { return };
            let client = socket_of(client, Role::Server).await;
            let server = match server {
                Some(server) => match server.await {
                    Ok(server) => Some(socket_of(server, Role::Client).await),
                    Err(_) => return,
                },
                None => None,
            };
            let model = model_in_query(route.query.as_deref());
            let exchange = LiveExchange::new();
            let relay = SocketRelay { shared, route, calls, client, server, turn: None, exchange, model };
            if is_live(&relay.route) { relay.run_live().await } else { relay.run().await }
        });
        response
    }

    /// Returns whether the client gets the status with which a server refused a socket: it would get the same with HTTP, or
    /// cannot use HTTP instead.
    fn passes_on(&self, status: StatusCode) -> bool {
        const OF_CLIENT: [StatusCode; 3] =
            [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
        is_live(&self.route) || OF_CLIENT.contains(&status)
    }

    /// Asks the server for a socket.
    async fn connect(&self) -> Result<Handshake, String> {
        let client = self.shared.upstream.as_ref().filter(|_| !self.only_replays);
        let client = client.ok_or("replaying never asks a server")?;
        let mut request = Request::new(Full::default());
        *request.uri_mut() = self.route.url.parse().map_err(|_| "the path is not valid")?;
        *request.headers_mut() = forwarded_upgrade(&self.headers);
        let mut response = client.send(request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let protocol = response.headers().get(SEC_WEBSOCKET_PROTOCOL).cloned();
            return Ok(Handshake::Accepted(hyper::upgrade::on(&mut response), protocol));
        }
        let (mut parts, body) = response.into_parts();
        parts.headers = returned(&parts.headers);
        Ok(Handshake::Refused(Response::from_parts(parts, Body::new(body))))
    }
}

async fn socket_of(upgraded: Upgraded, role: Role) -> Socket {
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), role, None).await
}

/// A socket between a client and a server.
struct SocketRelay {
    shared: Arc<GatewayState>,
    route: Route,
    calls: Box<dyn SocketCalls>,
    client: Socket,
    /// There is none if only recordings are answered.
    server: Option<Socket>,
    turn: Option<SocketTurn>,
    /// What was sent over a live connection since the last call.
    exchange: LiveExchange,
    /// The model of a live connection, once it is known.
    model: Option<String>,
}

/// What a client sent over a live connection, and what the server sent after that.
struct LiveExchange {
    requested_at: DateTime<Utc>,
    started: Instant,
    frames: Vec<String>,
    answer: String,
    chunks: Vec<Chunk>,
}

impl LiveExchange {
    fn new() -> Self {
        let (requested_at, started) = (clock::now(), Instant::now());
        Self { requested_at, started, frames: Vec::new(), answer: String::new(), chunks: Vec::new() }
    }

    fn add_answer(&mut self, text: &str) {
        let before = self.answer.len();
        self.answer.push_str(&in_one_line(text));
        self.answer.push('\n');
        let at_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.chunks.push(Chunk { at_us, bytes: (self.answer.len() - before) as u64 });
    }
}

/// Returns JSON without line breaks, which strings do not contain.
fn in_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// A call that the server is answering.
struct SocketTurn {
    recording: PendingCall,
    started: Instant,
    /// The events so far, in the form of a stream.
    body: String,
    chunks: Vec<Chunk>,
}

/// A message, or the end of a connection.
type ReceivedMessage = Option<Result<Message, SocketError>>;

impl SocketRelay {
    /// Relays the messages of a live connection, or answers those of the client from recordings if there is no server.
    async fn run_live(mut self) {
        let only_replays = self.server.is_none();
        let _open = self.calls.open();
        // Servers can begin.
        let mut goes_on = !only_replays || self.replay_live().await;
        while goes_on {
            goes_on = match self.receive().await {
                Either::Left(Some(Ok(message))) if only_replays => match text_of(&message) {
                    Some(text) => {
                        self.exchange.frames.push(in_one_line(text));
                        self.replay_live().await
                    }
                    None => !message.is_close(),
                },
                Either::Left(Some(Ok(message))) => {
                    if let Some(text) = text_of(&message) {
                        if !self.exchange.answer.is_empty() {
                            self.record_live().await;
                        }
                        self.exchange.frames.push(in_one_line(text));
                    }
                    self.send_to_server(message).await.is_ok()
                }
                Either::Right(Some(Ok(message))) => {
                    if let Some(text) = text_of(&message) {
                        self.exchange.add_answer(text);
                    }
                    self.send_to_client(message).await.is_ok()
                }
                _ => false,
            };
        }
        if !only_replays {
            self.record_live().await;
        }
        self.close().await;
    }

    /// Returns the body of the request that the client made since the last call.
    fn live_request(&mut self) -> Bytes {
        if self.model.is_none() {
            let first = self.exchange.frames.first();
            let setup: Option<Json> = first.and_then(|first| serde_json::from_str(first).ok());
            self.model = setup.and_then(|it| Some(it.pointer("/setup/model")?.as_str()?.to_owned()));
        }
        let frames = self.exchange.frames.join(",");
        let model = self.model.as_ref().map(|model| format!("\"model\":{},", json!(model)));
        Bytes::from(format!("{{\"frames\":[{frames}],{}\"stream\":true}}", model.unwrap_or_default()))
    }

    /// Sends the recorded answer to what the client sent so far, if there is one, and returns whether the connection goes on.
    async fn replay_live(&mut self) -> bool {
        let body = self.live_request();
        let response = match self.calls.find(body).await {
            Ok(response) => response,
            Err(LiveMiss::Incomplete) => return true,
            Err(LiveMiss::Missed(_)) if self.exchange.frames.is_empty() => return true,
            Err(LiveMiss::Missed(reason)) => {
                let message = format!("not recorded: {reason}");
                // The client may have left.
                let _ = self
                    .send_to_client(error_event(StatusCode::BAD_REQUEST, &json!({"message": message})))
                    .await;
                self.close().await;
                return false;
            }
        };
        self.exchange.frames.clear();
        let Ok(body) = response.into_body().collect().await else { return false };
        let body = body.to_bytes();
        for line in String::from_utf8_lossy(&body).lines() {
            // Gemini sends all of them as data.
            let message = if self.route.provider == "gemini" {
                Message::binary(line.as_bytes().to_vec())
            } else {
                Message::text(line)
            };
            if self.send_to_client(message).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Records what the client sent and the server answered since the last call.
    async fn record_live(&mut self) {
        let body = self.live_request();
        let LiveExchange { requested_at, started, frames, answer, chunks } =
            std::mem::replace(&mut self.exchange, LiveExchange::new());
        let is_recorded = self.shared.options.mode != GatewayMode::Pass;
        if !is_recorded || frames.is_empty() && answer.is_empty() {
            return;
        }
        let failed = match self.calls.record(body).await {
            Ok(mut recording) => {
                recording.record.requested_at = Some(requested_at);
                recording.record.latency_ms = u64::try_from(started.elapsed().as_millis()).ok();
                let status = StatusCode::OK.as_u16();
                recording.record.outcome = CallOutcome::Answered(CallResponse {
                    status,
                    content_type: Some(LIVE_CONTENT.to_owned()),
                    retry: RetryHeaders::default(),
                    body: answer,
                    chunks,
                });
                match recording.write_on_thread(&self.shared).await {
                    Ok(is_written) => {
                        let Route { provider, path, .. } = &self.route;
                        if is_written {
                            self.shared.report(&GatewayEvent::Recorded { provider, path, status });
                        }
                        return;
                    }
                    Err(error) => format!("the call could not be recorded: {error}"),
                }
            }
            Err(reason) => reason,
        };
        self.shared.report(&self.not_recorded(&not_recorded(&failed)));
    }

    async fn run(mut self) {
        let reason = loop {
            let received = self.receive().await;
            let relayed = match received {
                Either::Left(Some(Ok(Message::Text(text)))) => {
                    self.handle_client_message(text.as_str()).await
                }
                Either::Left(Some(Ok(message))) => self.send_to_server(message).await,
                Either::Right(Some(Ok(Message::Text(text)))) => {
                    self.handle_server_message(text.as_str()).await
                }
                Either::Right(Some(Ok(message))) => self.send_to_client(message).await,
                Either::Left(None | Some(Err(_))) => Err(CLIENT_LEFT.to_owned()),
                Either::Right(Some(Err(error))) => Err(described(&error)),
                Either::Right(None) => Err("the server closed the connection".to_owned()),
            };
            if let Err(reason) = relayed {
                break reason;
            }
        };
        if let Some(turn) = self.turn.take() {
            self.shared.report(&self.not_recorded(&reason));
            let SocketTurn { mut recording, started, body, .. } = turn;
            recording.record.latency_ms = u64::try_from(started.elapsed().as_millis()).ok();
            recording.record.outcome = CallOutcome::Failed { reason, partial: body };
            // A failure is reported where it is written.
            let shared = Arc::clone(&self.shared);
            let _ = task::spawn_blocking(move || recording.write_failure(&shared)).await;
        }
        self.close().await;
    }

    async fn close(&mut self) {
        // They may be closed.
        let _ = self.client.close(None).await;
        if let Some(server) = &mut self.server {
            let _ = server.close(None).await;
        }
    }

    /// Returns the next message of the client (left) or of the server.
    async fn receive(&mut self) -> Either<ReceivedMessage, ReceivedMessage> {
        let Self { client, server, .. } = self;
        let Some(server) = server else { return Either::Left(client.next().await) };
        match select(pin!(client.next()), pin!(server.next())).await {
            Either::Left((message, _)) => Either::Left(message),
            Either::Right((message, _)) => Either::Right(message),
        }
    }

    async fn send_to_client(&mut self, message: Message) -> Result<(), String> {
        self.client.send(message).await.map_err(|_| CLIENT_LEFT.to_owned())
    }

    async fn send_to_server(&mut self, message: Message) -> Result<(), String> {
        match &mut self.server {
            Some(server) => server.send(message).await.map_err(|error| described(&error)),
            None if message.is_close() => Err(CLIENT_LEFT.to_owned()),
            None => Ok(()),
        }
    }

    async fn handle_client_message(&mut self, text: &str) -> Result<(), String> {
        let message = Message::text(text);
        let is_relayed_only = self.shared.options.mode == GatewayMode::Pass && self.server.is_some();
        let Some(body) = request_of(text).filter(|_| !is_relayed_only) else {
            return self.send_to_server(message).await;
        };
        if self.turn.is_some() {
            self.shared.report(&self.not_recorded(&not_recorded("another call is open on the socket")));
            return self.send_to_server(message).await;
        }
        let started = Instant::now();
        match self.calls.ask(body).await {
            ControlFlow::Break(response) => self.replay(response).await,
            ControlFlow::Continue(recording) => {
                self.turn = Some(SocketTurn { recording, started, body: String::new(), chunks: Vec::new() });
                if self.server.is_none() {
                    let reason = "the server could not be asked";
                    self.send_to_client(error_event(StatusCode::BAD_GATEWAY, &json!({"message": reason})))
                        .await?;
                    return Err(reason.to_owned());
                }
                self.send_to_server(message).await
            }
        }
    }

    async fn handle_server_message(&mut self, text: &str) -> Result<(), String> {
        let event: Json = serde_json::from_str(text).unwrap_or_default();
        let event_type = event.get("type").and_then(Json::as_str).unwrap_or_default();
        if let Some(turn) = &mut self.turn {
            turn.add(event_type, text);
            if LAST_EVENTS.contains(&event_type)
                && let Some(turn) = self.turn.take()
            {
                self.complete(turn).await?;
            }
        }
        self.send_to_client(Message::text(text)).await
    }

    /// Records a call whose last event arrived, before that is passed on.
    async fn complete(&mut self, turn: SocketTurn) -> Result<(), String> {
        let SocketTurn { mut recording, started, body, chunks } = turn;
        if body.len() > MAX_ANSWER {
            let reason = not_recorded("the answer is too large to be recorded");
            self.shared.report(&self.not_recorded(&reason));
            return Ok(());
        }
        let status = StatusCode::OK.as_u16();
        recording.record.latency_ms = u64::try_from(started.elapsed().as_millis()).ok();
        recording.record.outcome = CallOutcome::Answered(CallResponse {
            status,
            content_type: Some(CONTENT.to_owned()),
            retry: RetryHeaders::default(),
            body,
            chunks,
        });
        match recording.write_on_thread(&self.shared).await {
            Ok(true) => {
                let Route { provider, path, .. } = &self.route;
                self.shared.report(&GatewayEvent::Recorded { provider, path, status });
            }
            Ok(false) => {}
            Err(error) => {
                let reason = format!("the call could not be recorded: {error}");
                self.shared.report(&self.not_recorded(&reason));
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Sends the events of a recorded answer, or an error.
    async fn replay(&mut self, response: Response<Body>) -> Result<(), String> {
        let status = response.status();
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = ResponseForm::from_content_type(content_type) == ResponseForm::Stream;
        let (mut body, mut buffer) = (response.into_body(), Vec::new());
        while let Some(Ok(frame)) = body.frame().await {
            buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
            while is_stream && let Some(event) = take_event(&mut buffer) {
                let data = data_of(&event);
                self.send_to_client(Message::text(String::from_utf8_lossy(&data).into_owned())).await?;
            }
        }
        if is_stream {
            return Ok(());
        }
        let document: Json = serde_json::from_slice(&buffer).unwrap_or_default();
        self.send_to_client(error_event(status, document.get("error").unwrap_or(&Json::Null))).await
    }

    fn not_recorded<'r>(&'r self, reason: &'r str) -> GatewayEvent<'r> {
        let Route { provider, path, .. } = &self.route;
        GatewayEvent::NotRecorded { provider, path, reason }
    }
}

impl SocketTurn {
    fn add(&mut self, event_type: &str, text: &str) {
        if self.body.len() > MAX_ANSWER {
            return;
        }
        let before = self.body.len();
        // A message can have several lines, of which each is one of data.
        let data = text.replace('\r', "").replace('\n', "\ndata: ");
        self.body.extend(["event: ", event_type, "\ndata: ", &data, "\n\n"]);
        let at_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.chunks.push(Chunk { at_us, bytes: (self.body.len() - before) as u64 });
    }
}

/// Returns the body that a request over HTTP would have; `None` if a message is not a request.
fn request_of(text: &str) -> Option<Bytes> {
    let event = reader::read(text.as_bytes(), &Limits::default()).ok()?;
    if word(&event, "type") != Some(REQUEST) {
        return None;
    }
    let members = event.as_object()?.iter().filter(|(name, _)| !["type", "stream"].contains(name));
    let members = members.map(|(name, member)| (Cow::Borrowed(name), member.clone()));
    let members = members.chain([(Cow::Borrowed("stream"), Value::Bool(true))]);
    let body = Value::Object(Object::from_members(members.collect()));
    Some(Bytes::from(compact::text(&body)))
}

/// Returns the text of a message that has one: some servers send JSON as data.
fn text_of(message: &Message) -> Option<&str> {
    match message {
        Message::Text(text) => Some(text.as_str()),
        Message::Binary(data) => std::str::from_utf8(data).ok(),
        _ => None,
    }
}

/// Returns the model that a query names.
fn model_in_query(query: Option<&str>) -> Option<String> {
    let named = query?.split('&').find_map(|parameter| parameter.strip_prefix("model="));
    named.map(percent_decoded)
}

fn error_event(status: StatusCode, error: &Json) -> Message {
    Message::text(json!({"type": "error", "status": status.as_u16(), "error": error}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_a_request_is_one_for_a_stream() {
        let body = request_of(r#"{"type":"response.create","model":"m","input":[1.50],"stream":false}"#);
        assert_eq!(body.unwrap(), r#"{"model":"m","input":[1.50],"stream":true}"#);
        for other in [r#"{"type":"response.cancel"}"#, "[]", "no JSON"] {
            assert!(request_of(other).is_none(), "{other}");
        }
    }
}
