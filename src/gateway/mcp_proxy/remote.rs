//! A server that is asked over HTTP: the transport that the protocol calls streamable HTTP, or the older one, in which all
//! answers are events of one stream, which begins with the URL for requests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::{self, JoinHandle};
use tokio::time;

use super::lookup::ProxyEvent;
use super::message::{RpcMessage, RpcMessageKind};
use crate::conversation::response::ResponseForm;
use crate::gateway::connection::{UpstreamClient, described};
use crate::gateway::decoding::{data_of, take_event};

/// The headers that a server gives and gets back.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// How servers of the older transport answer a request at the URL of their stream.
const OLDER: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];

/// Maximum time until the stream of a server of the older transport states the URL for requests.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Maximum size of an event of a stream.
const MAX_EVENT: usize = 64 << 20;

/// A server.
pub(super) struct RemoteServer {
    lines: UnboundedSender<String>,
    connection: Arc<RemoteConnection>,
    worker: JoinHandle<()>,
}

/// How a server is asked.
struct RemoteConnection {
    client: UpstreamClient,
    url: Uri,
    /// The URL for requests, if the server has the older transport.
    endpoint: OnceLock<Uri>,
    /// The headers of all requests: those that were given, and those of the session.
    headers: Mutex<HeaderMap>,
    events: UnboundedSender<ProxyEvent>,
}

impl RemoteServer {
    pub(super) fn new(
        url: Uri,
        headers: HeaderMap,
        events: UnboundedSender<ProxyEvent>,
    ) -> Result<Self, String> {
        let client = UpstreamClient::new().map_err(|error| error.to_string())?;
        let (headers, endpoint) = (Mutex::new(headers), OnceLock::new());
        let connection = Arc::new(RemoteConnection { client, url, endpoint, headers, events });
        let (lines, mut received) = mpsc::unbounded_channel::<String>();
        let for_worker = Arc::clone(&connection);
        let worker = task::spawn(async move {
            while let Some(line) = received.recv().await {
                for_worker.pass_on(line).await;
            }
        });
        Ok(Self { lines, connection, worker })
    }

    pub(super) fn send(&self, line: String) {
        // The worker ends with this.
        let _ = self.lines.send(line);
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        self.worker.abort();
        if self.connection.headers.lock().contains_key(SESSION) {
            // A server can refuse it, and forgets sessions by itself.
            let _ = self.connection.request(Method::DELETE, String::new()).await;
        }
    }
}

impl RemoteConnection {
    /// Passes a message on. Only what waits for an answer does not delay the messages after it.
    async fn pass_on(self: &Arc<Self>, line: String) {
        let message = RpcMessage::read(&line);
        let request = message.filter(|message| message.kind() == RpcMessageKind::Request);
        let Some(request) = request else {
            let is_start = line.contains("notifications/initialized");
            // There is no answer to other messages that could state an error.
            let _ = self.request(Method::POST, line).await;
            if is_start && self.endpoint.get().is_none() {
                task::spawn(Arc::clone(self).listen());
            }
            return;
        };
        let connection = Arc::clone(self);
        task::spawn(async move {
            if let Err(reason) = connection.ask(&request, line).await {
                let id = request.id().to_owned();
                let _ = connection.events.send(ProxyEvent::NotAnswered { id, reason });
            }
        });
    }

    async fn ask(self: &Arc<Self>, request: &RpcMessage, line: String) -> Result<(), String> {
        let is_start = request.method.as_deref() == Some("initialize");
        let mut response = self.request(Method::POST, line.clone()).await?;
        if is_start && OLDER.contains(&response.status()) && self.open_stream().await.is_some() {
            response = self.request(Method::POST, line).await?;
        }
        let status = response.status();
        if let Some(session) = response.headers().get(SESSION) {
            self.headers.lock().insert(SESSION, session.clone());
        }
        if !status.is_success() {
            return Err(format!("the server answered with status {status}"));
        }
        if self.endpoint.get().is_some() {
            return Ok(());
        }
        let mut is_answered = false;
        self.read(response, &mut |line| {
            let Some(message) = self.forward(line) else { return };
            if message.kind() == RpcMessageKind::Response && message.id() == request.id() {
                is_answered = true;
                let version = message.text_of_result("protocolVersion").filter(|_| is_start);
                if let Some(version) = version.and_then(|version| HeaderValue::from_str(&version).ok()) {
                    self.headers.lock().insert(VERSION, version);
                }
            }
        })
        .await?;
        if is_answered { Ok(()) } else { Err("the server ended its response without an answer".to_owned()) }
    }

    /// Receives what the server sends without being asked, if it does.
    async fn listen(self: Arc<Self>) {
        let Ok(response) = self.request(Method::GET, String::new()).await else { return };
        if response.status() == StatusCode::OK {
            // It can end at any time.
            let _ = self.read(response, &mut |line| drop(self.forward(line))).await;
        }
    }

    /// Opens the stream of a server of the older transport, and waits for the URL for requests. Returns `None` if there is
    /// no such stream, or it states no URL of the server.
    async fn open_stream(self: &Arc<Self>) -> Option<()> {
        let response = self.request(Method::GET, String::new()).await.ok()?;
        if response.status() != StatusCode::OK || !is_stream(&response) {
            return None;
        }
        let (first, received) = oneshot::channel();
        let connection = Arc::clone(self);
        let reading = task::spawn(async move {
            let mut first = Some(first);
            let mut visit = |line: String| match first.take_if(|_| !line.is_empty()) {
                Some(first) => drop(first.send(line)),
                None => drop(connection.forward(line)),
            };
            let _ = connection.read(response, &mut visit).await;
            // Without it, no request is answered.
            let _ = connection.events.send(ProxyEvent::ServerEnded);
        });
        let stated = time::timeout(MAX_WAIT, received).await.ok().and_then(Result::ok);
        let endpoint = stated.and_then(|stated| resolved(&self.url, &stated));
        if endpoint.is_none() {
            reading.abort();
        }
        self.endpoint.set(endpoint?).ok()
    }

    /// Passes a line on to the client if it is a message, which is returned.
    fn forward(&self, line: String) -> Option<RpcMessage> {
        let message = RpcMessage::read(&line)?;
        let _ = self.events.send(ProxyEvent::FromServer(line));
        Some(message)
    }

    async fn request(&self, method: Method, body: String) -> Result<Response<Incoming>, String> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = self.endpoint.get().unwrap_or(&self.url).clone();
        let mut headers = self.headers.lock().clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        *request.headers_mut() = headers;
        self.client.send(request).await.map_err(|reason| format!("the server could not be asked: {reason}"))
    }

    /// Calls `visit` with each message of a response, as a line: its body, or the events of a stream while they arrive.
    async fn read(
        &self,
        response: Response<Incoming>,
        visit: &mut (dyn FnMut(String) + Send),
    ) -> Result<(), String> {
        let is_stream = is_stream(&response);
        let mut add = |text: &[u8]| visit(String::from_utf8_lossy(text).replace(['\r', '\n'], " "));
        let (mut body, mut buffer) = (response.into_body(), Vec::new());
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| format!("the response was broken off: {}", described(&error)))?;
            buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
            if buffer.len() > MAX_EVENT {
                return Err(format!("a message has more than {MAX_EVENT} bytes"));
            }
            while is_stream && let Some(event) = take_event(&mut buffer) {
                add(&data_of(&event));
            }
        }
        if is_stream {
            add(&data_of(&buffer));
        } else {
            add(&buffer);
        }
        Ok(())
    }
}

fn is_stream(response: &Response<Incoming>) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    ResponseForm::from_content_type(content_type) == ResponseForm::Stream
}

/// Returns the URL that a server states for requests, relative to that of its stream; `None` if it is of another server, which
/// is not to get the headers.
fn resolved(stream: &Uri, stated: &str) -> Option<Uri> {
    let (scheme, host) = (stream.scheme_str()?, stream.authority()?);
    let directory = stream.path().rsplit_once('/').map_or("", |(directory, _)| directory);
    let url = match stated.trim() {
        absolute if absolute.starts_with("http:") || absolute.starts_with("https:") => absolute.to_owned(),
        path if path.starts_with('/') => format!("{scheme}://{host}{path}"),
        message if message.starts_with('{') => return None,
        name => format!("{scheme}://{host}{directory}/{name}"),
    };
    let url = url.parse::<Uri>().ok()?;
    ((url.scheme_str(), url.authority()) == (Some(scheme), Some(host))).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_for_requests_is_of_the_server() {
        let resolved = |stated: &str| {
            resolved(&"http://h:1/a/sse?x".parse().unwrap(), stated).map(|url| url.to_string())
        };
        for (stated, url) in [
            ("/messages/?session_id=1", "http://h:1/messages/?session_id=1"),
            ("messages?id=http://h", "http://h:1/a/messages?id=http://h"),
            ("http://h:1/m", "http://h:1/m"),
        ] {
            assert_eq!(resolved(stated).as_deref(), Some(url));
        }
        for stated in ["http://h:2/m", "https://h:1/m", "http://other/m", "{\"jsonrpc\":\"2.0\"}"] {
            assert_eq!(resolved(stated), None, "{stated}");
        }
    }
}
