//! Requests to servers of the Model Context Protocol. Their clients look them up, ask the server themselves if they are not
//! recorded, and then report what it answered.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::recording::PendingCall;
use super::responses::json_response;
use super::route::Route;
use super::shared::{GatewayEvent, GatewayState};
use crate::calls::run::CallOutcome;
use crate::conversation::providers::mcp::{self, MCP};
use crate::conversation::response::{CallResponse, RetryHeaders};

/// The command that records a call.
pub(super) const RECORD_TOOL_CALL: &str = "record-tool-call";

/// The status of the response to a request that the client asks the server itself.
pub(super) const TO_BE_ASKED: StatusCode = StatusCode::ACCEPTED;

/// What a client is to do with a request that was not recorded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ServerInstruction {
    /// Whether the answer is to be recorded.
    pub(super) record: bool,
    /// Number of earlier requests of the run with the same prompt that were answered from recordings.
    pub(super) replayed_before: u64,
}

/// Returns the response to a request that the client asks the server itself, with the number of earlier requests that were
/// replayed if it is to be recorded.
pub(super) fn to_be_asked(replayed_before: Option<u64>) -> Response<Body> {
    let instruction = ServerInstruction {
        record: replayed_before.is_some(),
        replayed_before: replayed_before.unwrap_or_default(),
    };
    json_response(TO_BE_ASKED, &json!(instruction))
}

/// A call that a client made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerCall {
    /// The name of the server and the method, as a path.
    pub(super) path: String,
    /// The method and the parameters.
    pub(super) request: Box<RawValue>,
    pub(super) requested_at: DateTime<Utc>,
    pub(super) latency_ms: u64,
    pub(super) replayed_before: u64,
    pub(super) outcome: ServerOutcome,
}

/// What a server answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServerOutcome {
    /// An object with the result.
    Result(Box<RawValue>),
    /// An object with the error.
    Error(Box<RawValue>),
    /// The reason that there is no answer.
    Failed(String),
}

impl ServerCall {
    /// Returns the route that the request would have.
    pub(super) fn route(&self) -> Route {
        let (path, endpoint) = (self.path.clone(), Some(mcp::endpoint(&self.path)));
        Route { provider: MCP.to_owned(), url: String::new(), path, query: None, endpoint }
    }

    /// Writes the call to disk.
    pub(super) async fn record(self, shared: &Arc<GatewayState>, mut call: PendingCall) -> io::Result<()> {
        let Self { path, requested_at, latency_ms, replayed_before, outcome, .. } = self;
        let (status, outcome) = match outcome {
            ServerOutcome::Result(body) => (StatusCode::OK, Ok(body)),
            // Errors are replayed, and asked for again where failures are.
            ServerOutcome::Error(body) => (StatusCode::INTERNAL_SERVER_ERROR, Ok(body)),
            ServerOutcome::Failed(reason) => (StatusCode::BAD_GATEWAY, Err(reason)),
        };
        let status = status.as_u16();
        call.record.requested_at = Some(requested_at);
        call.record.latency_ms = Some(latency_ms);
        call.record.replayed_before = replayed_before;
        let provider = MCP;
        if let Err(reason) = &outcome {
            shared.report(&GatewayEvent::NotRecorded { provider, path: &path, reason });
        }
        let is_answered = outcome.is_ok();
        call.record.outcome = match outcome {
            Ok(body) => CallOutcome::Answered(CallResponse {
                status,
                content_type: Some("application/json".to_owned()),
                retry: RetryHeaders::default(),
                body: String::from(Box::<str>::from(body)),
                chunks: Vec::new(),
            }),
            Err(reason) => CallOutcome::Failed { reason, partial: String::new() },
        };
        if call.write_on_thread(shared).await? && is_answered {
            shared.report(&GatewayEvent::Recorded { provider, path: &path, status });
        }
        Ok(())
    }
}
