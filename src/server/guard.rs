//! Conditions on every request, and headers of every response.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

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

/// Returns whether `host` names the address at which the server listens. A page of another site can give a name of its
/// own this address and then read the response; it cannot do so with a numeric address or `localhost`.
pub(crate) fn is_own(host: &str, listening: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, parsed(port)),
        _ => (host, Some(80)),
    };
    if port != Some(listening.port()) {
        return false;
    }
    let is_any = listening.ip().is_unspecified();
    if name.eq_ignore_ascii_case("localhost") {
        return is_any || listening.ip().is_loopback();
    }
    let numeric = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    numeric.parse::<IpAddr>().is_ok_and(|address| is_any || address == listening.ip())
}

/// Returns the number of a port: digits alone, unlike what numbers are parsed from.
fn parsed(port: &str) -> Option<u16> {
    port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_address_is_served() {
        let own = |host: &str, listening: &str| is_own(host, listening.parse().unwrap());
        for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080"] {
            assert!(own(host, "127.0.0.1:8080"), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "127.0.0.1.evil.example:8080",
            "127.0.0.2:8080",
            "[::1]:8080",
            "",
            ":8080",
            "localhost:8080:8080",
            "127.0.0.1:+8080",
            "user@localhost:8080",
        ] {
            assert!(!own(host, "127.0.0.1:8080"), "{host}");
        }
        assert!(own("[::1]:9", "[::1]:9") && own("localhost", "127.0.0.1:80"));
        assert!(own("192.0.2.7:9", "0.0.0.0:9") && !own("vault.example:9", "0.0.0.0:9"));
        assert!(!own("localhost:9", "192.0.2.7:9"));
    }
}
