//! The server of a proxy.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use axum::http::header::{HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue};
use axum::http::uri::InvalidUri;
use axum::http::{HeaderMap, Uri};

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
