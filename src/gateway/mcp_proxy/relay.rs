//! The messages between a client and a server, in the order in which they are sent.

use std::collections::HashMap;
use std::io::{self, Write, stdout};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use tokio::sync::mpsc::UnboundedSender;

use super::lookup::{GatewayClient, LookupResult, ProxyEvent};
use super::message::{McpProxyError, RpcAnswer, RpcMessage, RpcMessageKind, ServerTarget};
use super::process::ServerProcess;
use super::remote::RemoteServer;
use crate::clock;
use crate::gateway::server_calls::{ServerCall, ServerInstruction, ServerOutcome};
use crate::server::{is_unreserved, percent_encoded};

/// How long a server may take to end after its client has.
const GRACE: Duration = Duration::from_secs(2);

/// The id of the request with which the proxy itself begins a session. Ids of clients are numbers, or strings without spaces.
const OWN_ID: &str = "\"runvault handshake\"";

/// A request that waits for the answer of the server.
struct AskedRequest {
    path: String,
    asked: String,
    requested_at: DateTime<Utc>,
    started: Instant,
    instruction: ServerInstruction,
}

/// A server that was started.
enum RunningServer {
    Process(ServerProcess),
    Remote(RemoteServer),
}

impl RunningServer {
    fn send(&self, line: String) {
        match self {
            Self::Process(process) => process.send(line),
            Self::Remote(remote) => remote.send(line),
        }
    }
}

/// The state of a server.
enum ServerState {
    /// Nothing needed it yet.
    NotStarted(ServerTarget),
    /// It was started for a request although its client has begun a session already, which was answered from a recording. These
    /// lines wait until the server has begun one, too.
    Beginning(RunningServer, Vec<String>),
    Running(RunningServer),
    Ended,
}

/// Relays messages.
pub(super) struct MessageRelay {
    /// The first segment of the paths under which calls are recorded.
    name: String,
    gateway: GatewayClient,
    server: ServerState,
    events: UnboundedSender<ProxyEvent>,
    asked: HashMap<String, AskedRequest>,
    /// The request with which the client began a session, if it was answered from a recording.
    beginning: Option<RpcMessage>,
    /// The notifications for a server that was not started yet.
    notifications: Vec<String>,
    client_ended: Option<Instant>,
}

impl MessageRelay {
    pub(super) fn new(
        name: &str,
        target: ServerTarget,
        gateway: &str,
        events: UnboundedSender<ProxyEvent>,
    ) -> Self {
        Self {
            name: segment(name),
            gateway: GatewayClient::new(gateway),
            server: ServerState::NotStarted(target),
            events,
            asked: HashMap::new(),
            beginning: None,
            notifications: Vec::new(),
            client_ended: None,
        }
    }

    /// Handles an event, and returns whether there can be further ones.
    pub(super) async fn handle(&mut self, event: ProxyEvent) -> Result<bool, McpProxyError> {
        match event {
            ProxyEvent::FromClient(line) => self.handle_client_line(line).await?,
            ProxyEvent::FromServer(line) => self.handle_server_line(line).await?,
            ProxyEvent::NotAnswered { id, reason } => self.not_answered(&id, &reason).await?,
            ProxyEvent::ServerEnded => return Ok(false),
            ProxyEvent::ClientEnded => {
                self.client_ended = Some(Instant::now());
                return Ok(self.close());
            }
        }
        Ok(true)
    }

    /// Tells the server that its client has ended, and returns whether it may still answer.
    fn close(&mut self) -> bool {
        match &mut self.server {
            ServerState::Running(RunningServer::Process(process)) => {
                process.close();
                true
            }
            ServerState::Running(_) => !self.asked.is_empty(),
            _ => false,
        }
    }

    /// Returns whether the client has ended, and the server does not.
    pub(super) fn has_waited_long_enough(&self) -> bool {
        self.client_ended.is_some_and(|ended| ended.elapsed() >= GRACE)
    }

    /// Ends the server, and records the calls that it did not answer.
    pub(super) async fn finish(mut self) {
        let reason = if self.client_ended.is_some() {
            "the client ended before the answer"
        } else {
            "the server ended"
        };
        let ids: Vec<String> = self.asked.keys().cloned().collect();
        for id in ids {
            // A client that has ended does not read the answer.
            let _ = self.not_answered(&id, reason).await;
        }
        if let ServerState::Running(RunningServer::Remote(remote)) = &self.server {
            remote.close().await;
        }
    }

    async fn handle_client_line(&mut self, line: String) -> Result<(), McpProxyError> {
        match RpcMessage::read(&line) {
            Some(message) if message.kind() == RpcMessageKind::Request => self.request(message, line).await,
            _ => {
                self.send_if_started(line);
                Ok(())
            }
        }
    }

    /// Sends what is not a request. A server that is started later gets it then.
    fn send_if_started(&mut self, line: String) {
        match &mut self.server {
            ServerState::NotStarted(_) => self.notifications.push(line),
            ServerState::Beginning(_, held) => held.push(line),
            ServerState::Running(server) => server.send(line),
            ServerState::Ended => {}
        }
    }

    async fn request(&mut self, message: RpcMessage, line: String) -> Result<(), McpProxyError> {
        let method = message.method.as_deref().unwrap_or_default();
        let is_started = !matches!(self.server, ServerState::NotStarted(_));
        if method == "ping" {
            // It says only that the other end is there, as often as clients like.
            return if is_started {
                self.send_if_started(line);
                Ok(())
            } else {
                to_client(&RpcAnswer::Result("{\"result\":{}}".to_owned()).to_line(message.id()))
            };
        }
        let (path, asked) = (format!("/{}/{}", self.name, path_of(method)), message.asked());
        match self.gateway.look_up(&path, asked.clone()).await {
            Ok(LookupResult::Recorded(answer)) => {
                to_client(&answer.to_line(message.id()))?;
                if method == "initialize" {
                    self.beginning = Some(message);
                }
            }
            Ok(LookupResult::ToBeAsked(instruction)) => {
                let id = message.id().to_owned();
                if method == "initialize" {
                    self.beginning = None;
                }
                let (requested_at, started) = (clock::now(), Instant::now());
                let request = AskedRequest { path, asked, requested_at, started, instruction };
                self.asked.insert(id.clone(), request);
                if let Err(reason) = self.start() {
                    self.not_answered(&id, &reason).await?;
                } else {
                    self.send_if_started(line);
                }
            }
            Err(reason) => to_client(&RpcAnswer::error(&reason).to_line(message.id()))?,
        }
        Ok(())
    }

    /// Starts the server, unless it was. The error says why that is not possible.
    fn start(&mut self) -> Result<(), String> {
        let target = match std::mem::replace(&mut self.server, ServerState::Ended) {
            ServerState::NotStarted(target) => target,
            ServerState::Ended => return Err("the server has ended".to_owned()),
            started => {
                self.server = started;
                return Ok(());
            }
        };
        let events = self.events.clone();
        let server = match target {
            ServerTarget::Process(mut command) => {
                RunningServer::Process(ServerProcess::start(&mut command, events)?)
            }
            ServerTarget::Remote(url, headers) => {
                RunningServer::Remote(RemoteServer::new(url, headers, events)?)
            }
        };
        let notifications = std::mem::take(&mut self.notifications);
        self.server = if let Some(beginning) = self.beginning.take() {
            server.send(beginning.with_id(OWN_ID));
            ServerState::Beginning(server, notifications)
        } else {
            for line in notifications {
                server.send(line);
            }
            ServerState::Running(server)
        };
        Ok(())
    }

    async fn handle_server_line(&mut self, line: String) -> Result<(), McpProxyError> {
        let response = RpcMessage::read(&line).filter(|message| message.kind() == RpcMessageKind::Response);
        let Some(response) = response else { return to_client(&line) };
        if response.id() == OWN_ID {
            self.has_begun();
            return Ok(());
        }
        let Some(asked) = self.asked.remove(response.id()) else { return to_client(&line) };
        let outcome = match response.answered() {
            RpcAnswer::Result(member) => ServerOutcome::Result(raw(member)?),
            RpcAnswer::Error(member) => ServerOutcome::Error(raw(member)?),
        };
        match self.record(asked, outcome).await {
            Ok(()) => to_client(&line),
            // What is not on disk is not passed on, as answers of models are not.
            Err(reason) => to_client(&RpcAnswer::error(&reason).to_line(response.id())),
        }
    }

    /// Sends what waited until the server has begun a session.
    fn has_begun(&mut self) {
        self.server = match std::mem::replace(&mut self.server, ServerState::Ended) {
            ServerState::Beginning(server, held) => {
                for line in held {
                    server.send(line);
                }
                ServerState::Running(server)
            }
            other => other,
        };
    }

    async fn not_answered(&mut self, id: &str, reason: &str) -> Result<(), McpProxyError> {
        if id == OWN_ID {
            let reason = format!("no session with the server can begin: {reason}");
            return Err(McpProxyError::Server(reason));
        }
        let Some(asked) = self.asked.remove(id) else { return Ok(()) };
        // The client gets this error in any case.
        let _ = self.record(asked, ServerOutcome::Failed(reason.to_owned())).await;
        to_client(&RpcAnswer::error(reason).to_line(id))
    }

    async fn record(&self, asked: AskedRequest, outcome: ServerOutcome) -> Result<(), String> {
        let AskedRequest { path, asked, requested_at, started, instruction } = asked;
        if !instruction.record {
            return Ok(());
        }
        let request = RawValue::from_string(asked).map_err(|error| error.to_string())?;
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let replayed_before = instruction.replayed_before;
        let call = ServerCall { path, request, requested_at, latency_ms, replayed_before, outcome };
        self.gateway.record(&call).await
    }
}

fn raw(text: String) -> io::Result<Box<RawValue>> {
    RawValue::from_string(text).map_err(io::Error::other)
}

fn to_client(line: &str) -> Result<(), McpProxyError> {
    let mut out = stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Returns a name as a segment of a path.
fn segment(name: &str) -> String {
    percent_encoded(name, is_unreserved)
}

/// Returns a method as the end of a path.
fn path_of(method: &str) -> String {
    percent_encoded(method, |byte| is_unreserved(byte) || byte == b'/')
}
