//! The receiver of spans: OTLP over HTTP, in JSON and Protocol Buffers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use axum::http::{Request, Response, StatusCode};
use axum::routing::post;
use http_body_util::{BodyExt, Limited};
use serde_json::json;
use tokio::task;

use super::decoding::decoded;
use super::http::MAX_REQUEST;
use super::responses::refusal;
use super::shared::{GatewayEvent, GatewayState};
use super::traces::TraceReceiver;
use crate::recorders::{OtlpEncoding, OtlpSignal, ReceivedRecord, ReceivedRecords, received};
use crate::secrets::{self, SecretPolicy};

/// What is received, by path, with the end of the variable that points programs at it.
const SIGNALS: [(&str, OtlpSignal, &str); 2] =
    [("/v1/traces", OtlpSignal::Traces, "TRACES"), ("/v1/logs", OtlpSignal::Logs, "LOGS")];

/// Returns the environment variables that make programs with OpenTelemetry send their spans to a gateway, with their values.
pub fn otlp_variables(address: SocketAddr) -> impl Iterator<Item = (String, String)> {
    let endpoints = SIGNALS.into_iter().map(move |(path, _, name)| {
        (format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT"), format!("http://{address}{path}"))
    });
    // The default of some programs is gRPC.
    endpoints.chain([("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), "http/protobuf".to_owned())])
}

/// Returns the routes of a receiver; none without one.
pub(super) fn routes(traces: Option<&Arc<TraceReceiver>>) -> Router<Arc<GatewayState>> {
    let Some(traces) = traces else { return Router::new() };
    SIGNALS.into_iter().fold(Router::new(), |routes, (path, signal, _)| {
        let traces = Arc::clone(traces);
        routes.route(path, post(move |request: Request<Body>| receive(Arc::clone(&traces), signal, request)))
    })
}

async fn receive(traces: Arc<TraceReceiver>, signal: OtlpSignal, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let encoding = encoding_of(&parts.headers);
    let answer = OtlpAnswer { encoding: encoding.unwrap_or(OtlpEncoding::Json), signal };
    if let Some((status, why)) = refusal(traces.shared.address, &parts.headers) {
        return answer.failure(status, why);
    }
    if encoding.is_none() {
        let why = "the body must be application/x-protobuf or application/json";
        return answer.failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    }
    let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
        let why = format!("the request is longer than {MAX_REQUEST} bytes, or was broken off");
        return answer.failure(StatusCode::PAYLOAD_TOO_LARGE, &why);
    };
    let body = body.to_bytes();
    let kept = task::spawn_blocking(move || {
        let body = decoded(&parts.headers, &body, MAX_REQUEST);
        keep(&traces, &body.map_err(|failure| NotKept::Never(failure.to_string()))?, answer)
    });
    match kept.await.unwrap_or_else(|error| Err(NotKept::Later(io::Error::other(error)))) {
        Ok(rejected) => answer.success(&rejected),
        Err(NotKept::Never(reason)) => answer.failure(StatusCode::BAD_REQUEST, &reason),
        Err(NotKept::Later(error)) => {
            let mut response = answer.failure(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

fn encoding_of(headers: &HeaderMap) -> Option<OtlpEncoding> {
    let stated = headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
    match stated.as_str() {
        "application/x-protobuf" | "application/protobuf" => Some(OtlpEncoding::Protobuf),
        "application/json" => Some(OtlpEncoding::Json),
        _ => None,
    }
}

/// The reason that nothing of a request is kept.
enum NotKept {
    /// It would be the same again.
    Never(String),
    /// It cannot be written now.
    Later(io::Error),
}

/// Writes what a request contains to disk. Returns why parts of it are not accepted.
fn keep(traces: &TraceReceiver, body: &[u8], form: OtlpAnswer) -> Result<Vec<String>, NotKept> {
    let shared = &traces.shared;
    let OtlpAnswer { encoding, signal } = form;
    let read = received(body, encoding, signal, &shared.options.rules).map_err(NotKept::Never)?;
    let ReceivedRecords { mut records, mut rejected } = read;
    records.retain(|record| {
        let is_refused = has_secrets(shared, record);
        if is_refused {
            rejected.push("it contains what looks like a secret, and secrets are refused".to_owned());
        }
        !is_refused
    });
    traces.receive(records).map_err(NotKept::Later)?;
    Ok(rejected)
}

/// Reports what looks like a secret in a record, and returns whether it is refused for that.
fn has_secrets(shared: &GatewayState, record: &ReceivedRecord) -> bool {
    let policy = shared.options.secrets;
    if policy == SecretPolicy::Ignore {
        return false;
    }
    let found = secrets::find(record.line.as_bytes());
    let refused = policy == SecretPolicy::Refuse && !found.is_empty();
    if !found.is_empty() {
        shared.report(&GatewayEvent::Secrets {
            provider: "otlp",
            path: &record.trace,
            secrets: &found,
            refused,
        });
    }
    refused
}

/// The answer to a request, in its encoding.
#[derive(Clone, Copy)]
struct OtlpAnswer {
    encoding: OtlpEncoding,
    signal: OtlpSignal,
}

impl OtlpAnswer {
    /// Returns the answer to a request that was kept, except for parts with these reasons.
    fn success(self, rejected: &[String]) -> Response<Body> {
        let Some(reason) = rejected.first() else {
            return self.response(StatusCode::OK, &json!({}), Vec::new());
        };
        let counted = match self.signal {
            OtlpSignal::Traces => "rejectedSpans",
            OtlpSignal::Logs => "rejectedLogRecords",
        };
        let count = rejected.len() as u64;
        let json = json!({"partialSuccess": {counted: count.to_string(), "errorMessage": reason}});
        let partial = [varint(1 << 3), varint(count), bytes(2, reason.as_bytes())].concat();
        self.response(StatusCode::OK, &json, bytes(1, &partial))
    }

    /// Returns the answer to a request of which nothing was kept: a `google.rpc.Status`.
    fn failure(self, status: StatusCode, reason: &str) -> Response<Body> {
        self.response(status, &json!({"message": reason}), bytes(2, reason.as_bytes()))
    }

    fn response(self, status: StatusCode, json: &serde_json::Value, protobuf: Vec<u8>) -> Response<Body> {
        let (body, content_type) = match self.encoding {
            OtlpEncoding::Json => (json.to_string().into_bytes(), "application/json"),
            OtlpEncoding::Protobuf => (protobuf, "application/x-protobuf"),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }
}

/// Returns a field of Protocol Buffers with bytes.
fn bytes(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_messages_of_protocol_buffers() {
        assert_eq!(varint(0), [0]);
        assert_eq!(varint(300), [0xac, 0x02]);
        assert_eq!(bytes(2, b"no"), b"\x12\x02no");
    }
}
