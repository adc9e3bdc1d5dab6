//! The gateway as its proxies see it: it knows what was recorded, and receives what is, and their events.

use axum::body::Bytes;
use axum::http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value as Json;

use super::message::RpcAnswer;
use crate::conversation::providers::mcp::MCP;
use crate::gateway::connection::described;
use crate::gateway::replay::REPLAYED;
use crate::gateway::route::OWN;
use crate::gateway::server_calls::{RECORD_TOOL_CALL, ServerCall, ServerInstruction, TO_BE_ASKED};

/// A client of the gateway.
pub(super) struct GatewayClient {
    client: Client<HttpConnector, Full<Bytes>>,
    /// The address of the gateway, with the prefixes of the run.
    url: String,
}

/// What the gateway says of a request.
#[derive(Debug)]
pub(super) enum LookupResult {
    /// This is the answer.
    Recorded(RpcAnswer),
    /// The server is to be asked.
    ToBeAsked(ServerInstruction),
}

impl GatewayClient {
    pub(super) fn new(url: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, url: url.trim_end_matches('/').to_owned() }
    }

    /// Looks a request up: the name of the server and the method as a path, and what is recorded of it.
    pub(super) async fn look_up(&self, path: &str, asked: String) -> Result<LookupResult, String> {
        let (status, is_recorded, body) = self.post(&format!("{MCP}{path}"), asked).await?;
        if status == TO_BE_ASKED {
            let instruction = serde_json::from_str(&body).map_err(|error| error.to_string())?;
            return Ok(LookupResult::ToBeAsked(instruction));
        }
        Ok(LookupResult::Recorded(match (is_recorded, status.is_success()) {
            (true, true) => RpcAnswer::Result(body),
            (true, false) => RpcAnswer::Error(body),
            (false, _) => RpcAnswer::error(&message(status, &body)),
        }))
    }

    /// Reports a call.
    pub(super) async fn record(&self, call: &ServerCall) -> Result<(), String> {
        let call = serde_json::to_string(call).map_err(|error| error.to_string())?;
        let (status, _, body) = self.post(&format!("{OWN}/{RECORD_TOOL_CALL}"), call).await?;
        if status.is_success() { Ok(()) } else { Err(message(status, &body)) }
    }

    /// Returns the status of the response, whether it is a recorded one, and its body.
    async fn post(&self, path: &str, body: String) -> Result<(StatusCode, bool, String), String> {
        let failed = |reason: String| format!("the gateway at {} cannot be asked: {reason}", self.url);
        let uri: Uri = format!("{}/{path}", self.url)
            .parse()
            .map_err(|_| failed("its address is not valid".to_owned()))?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let response = self.client.request(request).await.map_err(|error| failed(described(&error)))?;
        let (status, is_recorded) = (response.status(), response.headers().contains_key(REPLAYED));
        let body = response.into_body().collect().await.map_err(|error| failed(described(&error)))?;
        Ok((status, is_recorded, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    }
}

/// Returns the message of a response that is a problem document.
fn message(status: StatusCode, body: &str) -> String {
    let problem: Option<Json> = serde_json::from_str(body).ok();
    let stated = problem.as_ref().and_then(|problem| problem.pointer("/error/message")?.as_str());
    stated.map_or_else(|| format!("the gateway answered with status {status}"), str::to_owned)
}

/// An event.
#[derive(Debug)]
pub(super) enum ProxyEvent {
    /// The client sent a line.
    FromClient(String),
    /// The client sends nothing more.
    ClientEnded,
    /// The server sent a message.
    FromServer(String),
    /// The server sends nothing more.
    ServerEnded,
    /// The server did not answer the request with this id.
    NotAnswered { id: String, reason: String },
}
