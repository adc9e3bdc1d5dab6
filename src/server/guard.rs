//! Conditions on every request, and headers of every response.

use std::net::SocketAddr;

use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::host::is_own;

/// Pages load only the style sheet and the script of this server, and nothing in them runs.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every response. Nothing is cached: pages contain what agents did, and the vault changes.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Adds the headers of every response.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns why a request is refused, or `None` if it is not.
pub(super) fn refusal(
    listening: SocketAddr,
    method: &Method,
    headers: &HeaderMap,
) -> Option<(StatusCode, &'static str)> {
    if *method != Method::GET && *method != Method::HEAD {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "pages can only be read"));
    }
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() || !host.is_some_and(|host| is_own(host, listening)) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this server is not at the address that the request names",
        ));
    }
    None
}

/// Adds the header that a refusal with this status needs.
pub(super) fn add_allowed(status: StatusCode, headers: &mut HeaderMap) {
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
}
