//! Forwards requests, and records the answers on their way to the client.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use axum::http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task;
use tokio::time::timeout;

use super::connection::{described, forwarded, returned};
use super::decoding::{BodyDecoder, DecodingFailure};
use super::recording::PendingCall;
use super::responses::{not_retried, problem_for};
use super::route::Route;
use super::server_calls::to_be_asked;
use super::shared::{GatewayEvent, GatewayState};
use super::signing::{AwsKey, AwsSignature, OutgoingRequest};
use crate::calls::aws_events;
use crate::calls::run::CallOutcome;
use crate::conversation::events::StreamEnd;
use crate::conversation::providers::mcp::MCP;
use crate::conversation::response::{CallResponse, Chunk, ResponseForm, RetryHeaders};

/// Number of chunks that wait for a slow client.
const WAITING: usize = 16;

/// Maximum size of an answer that is recorded.
pub(super) const MAX_ANSWER: usize = 128 << 20;

/// Maximum number of parts of an answer whose times are recorded. Further ones count as one with the last of them.
const MAX_CHUNKS: usize = 100_000;

/// How long a server may keep a connection open after the event that ends a stream, or after the client has left.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The reason for a record of a call for which the client did not wait.
pub(super) const CLIENT_LEFT: &str = "the client closed the connection";

/// A request as it arrived.
pub(super) struct ReceivedRequest {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Forwards a request. The answer is passed on while it arrives, and recorded if `recording` is given.
pub(super) async fn forward(
    shared: Arc<GatewayState>,
    route: Route,
    received: ReceivedRequest,
    recording: Option<PendingCall>,
) -> Response<Body> {
    if route.provider == MCP {
        return to_be_asked(recording.map(|recording| recording.record.replayed_before));
    }
    if let Some(reason) = obstacle(&route, &received.headers, shared.options.aws_key.as_ref()) {
        let Route { provider, path, .. } = &route;
        shared.report(&GatewayEvent::NotRecorded { provider, path, reason: &reason });
        return not_retried(problem_for(provider, StatusCode::BAD_REQUEST, "not forwarded", &reason));
    }
    let started = Instant::now();
    let mut relay = Relay {
        shared,
        route,
        recording,
        started,
        decoder: BodyDecoder::default(),
        unreadable: None,
        body: Vec::new(),
        chunks: Vec::new(),
    };
    match relay.send(received).await {
        Ok(response) => {
            let (mut parts, incoming) = response.into_parts();
            let (sender, body) = Channel::<Bytes, io::Error>::new(WAITING);
            let headers = std::mem::take(&mut parts.headers);
            parts.headers = returned(&headers);
            // The body owns one end, and is dropped when the connection to the client is closed.
            let (client, client_left) = oneshot::channel::<()>();
            let body = body.map_frame(move |frame| {
                let _ = &client;
                frame
            });
            let upstream = UpstreamBody { incoming, client_left: Some(client_left) };
            task::spawn(relay.pass_on(parts.status, headers, upstream, sender));
            Response::from_parts(parts, Body::new(body))
        }
        Err(reason) => {
            let provider = &relay.route.provider;
            let reason = format!("the server of {provider} could not be asked: {reason}");
            let answer = problem_for(provider, StatusCode::BAD_GATEWAY, "upstream failed", &reason);
            relay.not_answered(reason).await;
            answer
        }
    }
}

/// The end of the names of the servers of AWS, and the beginning of a signature of a request to them.
const AWS: &str = ".amazonaws.com";
const SIGNATURE: &str = "AWS4-";

/// Returns why a server cannot answer a request.
fn obstacle(route: &Route, headers: &HeaderMap, key: Option<&AwsKey>) -> Option<String> {
    let provider = &route.provider;
    if route.url.is_empty() {
        return Some(format!(
            "no URL of the server of {provider} is given: its host depends on a region or a resource"
        ));
    }
    let is_signed = text(headers, AUTHORIZATION.as_str()).is_some_and(|value| value.starts_with(SIGNATURE));
    let signature = AwsSignature::of(headers);
    let can_sign = signature.as_ref().is_some_and(|signature| key.is_some_and(|key| key.made(signature)));
    let host = route.url.parse::<Uri>().ok()?.host()?.to_ascii_lowercase();
    (is_signed && !can_sign && host.ends_with(AWS)).then(|| {
        let key = signature.map(|signature| format!(", with the key {}", signature.key)).unwrap_or_default();
        format!(
            "the request is signed for the address of this gateway{key}, so that {host} would refuse it: give the gateway the \
             key in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a client with a bearer token"
        )
    })
}

/// An answer on its way to the client.
struct Relay {
    shared: Arc<GatewayState>,
    route: Route,
    recording: Option<PendingCall>,
    started: Instant,
    /// It decodes what is recorded. The client gets the body as it arrives.
    decoder: BodyDecoder,
    /// Why the body cannot be decoded.
    unreadable: Option<DecodingFailure>,
    /// What arrived of the body, decoded.
    body: Vec<u8>,
    chunks: Vec<Chunk>,
}

/// The body of an answer, while the client waits for it.
struct UpstreamBody {
    incoming: Incoming,
    /// Completes when the client has closed the connection.
    client_left: Option<oneshot::Receiver<()>>,
}

/// A part of a body, or the end of the body.
type BodyFrame = Option<Result<Frame<Bytes>, hyper::Error>>;

impl UpstreamBody {
    /// Returns the next part. Returns `None` if the client has left and there is none soon: a server can be silent for as
    /// long as it likes. A client that has read all that it needs leaves shortly before the end.
    async fn frame(&mut self) -> Option<BodyFrame> {
        let Self { incoming, client_left } = self;
        if let Some(left) = client_left {
            let (mut frame, mut left) = (pin!(incoming.frame()), pin!(left));
            let next = poll_fn(|context| match frame.as_mut().poll(context) {
                Poll::Ready(frame) => Poll::Ready(Some(frame)),
                Poll::Pending => left.as_mut().poll(context).map(|_| None),
            });
            if let Some(frame) = next.await {
                return Some(frame);
            }
        }
        *client_left = None;
        timeout(LAST_WAIT, incoming.frame()).await.ok()
    }
}

/// The reason that passing on ended.
enum RelayEnd {
    /// All of the answer arrived.
    Complete,
    /// The server broke it off.
    Broken(String),
    /// The client does not wait for it any more.
    ClientLeft,
}

impl Relay {
    async fn send(&mut self, received: ReceivedRequest) -> Result<Response<Incoming>, String> {
        let client = self.shared.upstream.as_ref().ok_or("replaying never asks a server")?;
        let ReceivedRequest { method, headers, body } = received;
        let url: Uri = self.route.url.parse().map_err(|_| "the path is not valid")?;
        let mut headers = forwarded(&headers);
        if let Some(key) = &self.shared.options.aws_key {
            let request = OutgoingRequest { method: &method, url: &url, headers: &headers, body: &body };
            if let Some(signature) = request.signed(key) {
                headers.insert(AUTHORIZATION, signature);
            }
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = url;
        *request.headers_mut() = headers;
        client.send(request).await
    }

    /// Passes the answer on. Its last part is held back until it is on disk.
    async fn pass_on(
        mut self,
        status: StatusCode,
        headers: HeaderMap,
        upstream: UpstreamBody,
        mut sender: Sender<Bytes, io::Error>,
    ) {
        let mut held = Vec::new();
        match BodyDecoder::new(&headers, MAX_ANSWER + 1) {
            Ok(decoder) => self.decoder = decoder,
            Err(failure) => self.unreadable = Some(failure),
        }
        let form = ResponseForm::from_content_type(text(&headers, CONTENT_TYPE.as_str()).as_deref());
        match self.relay(form, upstream, &mut sender, &mut held).await {
            RelayEnd::Complete => {
                if let Err(error) = self.complete(status, &headers).await {
                    let reason = format!("the call could not be recorded: {error}");
                    self.report(&reason);
                    sender.abort(io::Error::other(reason));
                    return;
                }
                for chunk in held {
                    if sender.send_data(chunk).await.is_err() {
                        break;
                    }
                }
            }
            RelayEnd::Broken(reason) => {
                let reason = format!("the answer was broken off: {reason}");
                self.not_answered(reason.clone()).await;
                sender.abort(io::Error::other(reason));
            }
            RelayEnd::ClientLeft => self.not_answered(CLIENT_LEFT.to_owned()).await,
        }
    }

    async fn relay(
        &mut self,
        form: ResponseForm,
        mut upstream: UpstreamBody,
        sender: &mut Sender<Bytes, io::Error>,
        held: &mut Vec<Bytes>,
    ) -> RelayEnd {
        let mut end = StreamEnd::default();
        loop {
            let frame = if end.is_complete() {
                timeout(LAST_WAIT, upstream.incoming.frame()).await.map_err(|_| RelayEnd::Complete)
            } else {
                upstream.frame().await.ok_or(RelayEnd::ClientLeft)
            };
            let data = match frame {
                Err(end) => return end,
                Ok(None) => return RelayEnd::Complete,
                Ok(Some(Err(error))) => return RelayEnd::Broken(described(&error)),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
            };
            let at = self.body.len();
            self.record_chunk(&data);
            if form == ResponseForm::Stream {
                end.update(self.body.get(at..).unwrap_or_default());
            }
            if form == ResponseForm::Whole {
                // Clients need all of it, so that its last part can wait, whichever it is.
                for before in held.drain(..) {
                    if sender.send_data(before).await.is_err() {
                        return RelayEnd::ClientLeft;
                    }
                }
            }
            if end.has_begun() || form == ResponseForm::Whole {
                held.push(data);
            } else if sender.send_data(data).await.is_err() {
                return RelayEnd::ClientLeft;
            }
        }
    }

    /// Adds a part of the answer to what is recorded: nothing if no answer is, or after a part that was too much.
    fn record_chunk(&mut self, data: &Bytes) {
        if self.recording.is_none() || self.unreadable.is_some() || self.body.len() > MAX_ANSWER {
            return;
        }
        if self.decoder.is_identity() {
            self.add(data);
        } else {
            let decoded = self.decoder.decode(data);
            self.add_decoded(decoded);
        }
    }

    fn add_decoded(&mut self, decoded: Result<Vec<u8>, DecodingFailure>) {
        match decoded {
            Ok(decoded) => self.add(&decoded),
            Err(failure) => self.unreadable = Some(failure),
        }
    }

    fn add(&mut self, decoded: &[u8]) {
        if !decoded.is_empty() {
            let at_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
            let is_full = self.chunks.len() == MAX_CHUNKS;
            match self.chunks.last_mut() {
                Some(last) if is_full => last.bytes += decoded.len() as u64,
                _ => self.chunks.push(Chunk { at_us, bytes: decoded.len() as u64 }),
            }
            self.body.extend_from_slice(decoded);
        }
    }

    /// Records the answer. If it cannot be recorded as what it is, that is reported; an error means that it could not be
    /// written.
    async fn complete(&mut self, status: StatusCode, headers: &HeaderMap) -> io::Result<()> {
        let Some(recording) = self.recording.take() else { return Ok(()) };
        if self.unreadable.is_none() {
            let rest = self.decoder.finish();
            self.add_decoded(rest);
        }
        let unreadable = self.unreadable.take();
        let is_damaged = matches!(unreadable, Some(DecodingFailure::Damaged { .. }));
        let unreadable = unreadable.map(|failure| format!("the answer {failure}"));
        if let Some(reason) = unreadable.as_deref().filter(|_| is_damaged) {
            return self.failed(recording, reason).write_on_thread(&self.shared).await.map(drop);
        }
        let body = std::mem::take(&mut self.body);
        let reason = if body.len() > MAX_ANSWER {
            "the answer is too large to be recorded"
        } else if let Some(reason) = &unreadable {
            reason
        } else if status.is_redirection() {
            // The client asks again at the other address, and that answer is recorded.
            "the server redirects to another address"
        } else {
            ""
        };
        let (Ok(body), true) = (String::from_utf8(body), reason.is_empty()) else {
            let reason = if reason.is_empty() { "the answer is not text in UTF-8" } else { reason };
            self.report(&not_recorded(reason));
            return Ok(());
        };
        let answer = CallResponse {
            status: status.as_u16(),
            content_type: text(headers, CONTENT_TYPE.as_str()).map(aws_events::recorded_type),
            retry: RetryHeaders::read(|name| text(headers, name)),
            body,
            chunks: std::mem::take(&mut self.chunks),
        };
        let call = self.ended(recording, CallOutcome::Answered(answer));
        if call.write_on_thread(&self.shared).await? {
            let Route { provider, path, .. } = &self.route;
            self.shared.report(&GatewayEvent::Recorded { provider, path, status: status.as_u16() });
        }
        Ok(())
    }

    /// Records that there was no answer, or no complete one.
    async fn not_answered(&mut self, reason: String) {
        if let Some(write) = self.failure_to_write(&reason) {
            // A failure of this is a panic, which is reported as such.
            let _ = task::spawn_blocking(write).await;
        }
    }

    /// Returns what writes that there was no complete answer, and reports that; `None` if the call is not recorded.
    fn failure_to_write(&mut self, reason: &str) -> Option<impl FnOnce() + Send + 'static> {
        let recording = self.recording.take()?;
        let call = self.failed(recording, reason);
        let shared = Arc::clone(&self.shared);
        Some(move || call.write_failure(&shared))
    }

    /// Reports that there was no complete answer, and returns the call with that.
    fn failed(&mut self, recording: PendingCall, reason: &str) -> PendingCall {
        self.report(reason);
        let partial = String::from_utf8_lossy(&std::mem::take(&mut self.body)).into_owned();
        self.ended(recording, CallOutcome::Failed { reason: reason.to_owned(), partial })
    }

    fn ended(&self, mut recording: PendingCall, outcome: CallOutcome) -> PendingCall {
        recording.record.latency_ms = u64::try_from(self.started.elapsed().as_millis()).ok();
        recording.record.outcome = outcome;
        recording
    }

    fn report(&self, reason: &str) {
        let Route { provider, path, .. } = &self.route;
        self.shared.report(&GatewayEvent::NotRecorded { provider, path, reason });
    }
}

/// Returns what is reported of a call that is answered and of which nothing is recorded.
pub(super) fn not_recorded(reason: &str) -> String {
    format!("{reason}; the call is not recorded")
}

impl Drop for Relay {
    /// Records a call of which the client closed the connection before the answer began: nothing else ends then.
    fn drop(&mut self) {
        if let (Some(write), Ok(runtime)) = (self.failure_to_write(CLIENT_LEFT), Handle::try_current()) {
            runtime.spawn_blocking(write);
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
