//! Responses of the gateway itself.

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, UPGRADE};
use axum::http::{Response, StatusCode};
use serde_json::{Value as Json, json};

use crate::calls::providers::metadata_form;

/// Returns a response with a problem document (RFC 9457).
pub(super) fn problem(status: StatusCode, title: &str, detail: &str) -> Response<Body> {
    json_problem(status, &document(status, title, detail))
}

/// Returns a response with a problem document that clients of a provider can show.
pub(super) fn problem_for(provider: &str, status: StatusCode, title: &str, detail: &str) -> Response<Body> {
    json_problem(status, &for_clients(provider, status, document(status, title, detail)))
}

fn document(status: StatusCode, title: &str, detail: &str) -> Json {
    json!({
        "type": "about:blank",
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
        "error": {"message": format!("{title}: {detail}"), "type": title.replace(' ', "_")},
    })
}

/// Adds the members without which some clients of a provider do not show the message of an error.
pub(super) fn for_clients(provider: &str, status: StatusCode, mut document: Json) -> Json {
    (metadata_form(provider).complete_error)(&mut document, status.as_u16());
    document
}

/// Returns a response with a problem document.
pub(super) fn json_problem(status: StatusCode, document: &Json) -> Response<Body> {
    let mut response = json_response(status, document);
    let value = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

/// Adds the header with which clients do not repeat a request. Only for a response that would be the same again: clients
/// would wait between their attempts.
pub(super) fn not_retried(mut response: Response<Body>) -> Response<Body> {
    let name = HeaderName::from_static("x-should-retry");
    response.headers_mut().insert(name, HeaderValue::from_static("false"));
    response
}

/// Returns the response to a request for a connection of another protocol. Clients use HTTP then.
pub(super) fn upgrade_refused() -> Response<Body> {
    let reason = "the gateway has no WebSockets; the same request can be made with HTTP";
    let mut response = problem(StatusCode::UPGRADE_REQUIRED, "upgrade refused", reason);
    let headers = response.headers_mut();
    // The response must name the protocol that can be used (RFC 9110).
    headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// Returns a response with a JSON document.
pub(super) fn json_response(status: StatusCode, document: &Json) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{document}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
