//! Responses of the gateway itself.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use serde_json::{Value as Json, json};

/// Returns a problem document (RFC 9457).
pub(super) fn problem(status: StatusCode, title: &str, detail: &str) -> Response<Body> {
    json_problem(
        status,
        &json!({
            "type": "about:blank",
            "title": title,
            "status": status.as_u16(),
            "detail": detail,
            "error": {"message": format!("{title}: {detail}"), "type": title.replace(' ', "_")},
        }),
    )
}

/// Returns a response with a problem document.
pub(super) fn json_problem(status: StatusCode, document: &Json) -> Response<Body> {
    let mut response = json_response(status, document);
    let value = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    // Asking again would not help, and clients would wait between their attempts.
    let name = HeaderName::from_static("x-should-retry");
    response.headers_mut().insert(name, HeaderValue::from_static("false"));
    response
}

/// Returns a response with a JSON document.
pub(super) fn json_response(status: StatusCode, document: &Json) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{document}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
