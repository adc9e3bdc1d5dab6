//! Messages of the protocol: JSON-RPC, in which the texts of values stay as they were sent; and the server that they are
//! for.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use axum::http::header::{HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue};
use axum::http::uri::InvalidUri;
use axum::http::{HeaderMap, Uri};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// A message.
#[derive(Debug, Deserialize)]
pub(super) struct RpcMessage {
    /// The id of a request, or of the request that is answered.
    pub(super) id: Option<Box<RawValue>>,
    /// The method of a request or a notification.
    pub(super) method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RpcMessageKind {
    Request,
    Notification,
    Response,
}

impl RpcMessage {
    /// Reads a line; `None` if it is not a message.
    pub(super) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    pub(super) fn kind(&self) -> RpcMessageKind {
        match (&self.method, &self.id) {
            (Some(_), Some(_)) => RpcMessageKind::Request,
            (Some(_), None) => RpcMessageKind::Notification,
            (None, _) => RpcMessageKind::Response,
        }
    }

    /// Returns the id as it is written.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().map_or("null", RawValue::get)
    }

    /// Returns what is recorded of a request: its method and its parameters.
    pub(super) fn asked(&self) -> String {
        let method = json!(self.method);
        match &self.params {
            Some(params) => format!("{{\"method\":{method},\"params\":{params}}}"),
            None => format!("{{\"method\":{method}}}"),
        }
    }

    /// Returns the request with another id, as a line.
    pub(super) fn with_id(&self, id: &str) -> String {
        let asked = self.asked();
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{}", asked.trim_start_matches('{'))
    }

    /// Returns what is recorded of a response: an object with the result, or the error.
    pub(super) fn answered(&self) -> RpcAnswer {
        match (&self.error, &self.result) {
            (Some(error), _) => RpcAnswer::Error(format!("{{\"error\":{error}}}")),
            (None, Some(result)) => RpcAnswer::Result(format!("{{\"result\":{result}}}")),
            (None, None) => RpcAnswer::Result("{\"result\":null}".to_owned()),
        }
    }

    /// Returns a member of the result that is a text.
    pub(super) fn text_of_result(&self, name: &str) -> Option<String> {
        let result: serde_json::Value = serde_json::from_str(self.result.as_deref()?.get()).ok()?;
        Some(result.get(name)?.as_str()?.to_owned())
    }
}

/// The answer of a server: an object with one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RpcAnswer {
    Result(String),
    Error(String),
}

impl RpcAnswer {
    /// Returns an error.
    pub(super) fn error(message: &str) -> Self {
        Self::Error(json!({"error": {"code": SERVER_ERROR, "message": message}}).to_string())
    }

    /// Returns the response to the request with an id, as a line.
    pub(super) fn to_line(&self, id: &str) -> String {
        let (Self::Result(member) | Self::Error(member)) = self;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{}", member.trim().trim_start_matches('{'))
    }
}

/// The code of errors that the protocol does not define.
const SERVER_ERROR: i32 = -32_000;

/// The reason that a proxy cannot run.
#[derive(Debug, thiserror::Error)]
pub enum McpProxyError {
    /// The system does not permit threads or pipes.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The address of a server is not a URL.
    #[error("{url} is not the URL of a server: {source}")]
    Url {
        /// The address.
        url: String,
        /// What is wrong with it.
        source: InvalidUri,
    },
    /// The name of a header is not valid.
    #[error(transparent)]
    HeaderName(#[from] InvalidHeaderName),
    /// The value of a header is not valid.
    #[error(transparent)]
    HeaderValue(#[from] InvalidHeaderValue),
    /// The server cannot be started or asked.
    #[error("{0}")]
    Server(String),
}

/// A server of the Model Context Protocol.
#[derive(Debug)]
pub struct McpTarget(pub(super) ServerTarget);

#[derive(Debug)]
pub(super) enum ServerTarget {
    /// A process, which is asked over its standard input and output.
    Process(Command),
    /// A server that is asked over HTTP, with these headers.
    Remote(Uri, HeaderMap),
}

impl McpTarget {
    /// Returns a server that is started with a command.
    #[must_use]
    pub fn from_command(command: Command) -> Self {
        Self(ServerTarget::Process(command))
    }

    /// Returns a server with a URL, which gets these headers with every request.
    ///
    /// # Errors
    /// Returns an error if the URL or a header is not valid.
    pub fn from_url(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, McpProxyError> {
        let uri: Uri = url.parse().map_err(|source| McpProxyError::Url { url: url.to_owned(), source })?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        Ok(Self(ServerTarget::Remote(uri, map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_were_sent() {
        let request = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"n":1.50}}"#;
        let request = RpcMessage::read(request).unwrap();
        assert_eq!((request.kind(), request.id()), (RpcMessageKind::Request, "\"a\""));
        assert_eq!(request.asked(), r#"{"method":"tools/call","params":{"n":1.50}}"#);
        let expected = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":1.50}}"#;
        assert_eq!(request.with_id("7"), expected);
        let response = RpcMessage::read(r#"{"id":1,"result":{"n":1.50}}"#).unwrap();
        assert_eq!(response.kind(), RpcMessageKind::Response);
        assert_eq!(response.answered().to_line("2"), r#"{"jsonrpc":"2.0","id":2,"result":{"n":1.50}}"#);
        let error = RpcMessage::read(r#"{"id":1,"error":{"code":-1,"message":"no"}}"#).unwrap();
        assert_eq!(error.answered(), RpcAnswer::Error(r#"{"error":{"code":-1,"message":"no"}}"#.to_owned()));
    }
}
