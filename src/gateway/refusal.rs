//! Requests that are refused, because a page of another site can have made them.

use std::net::SocketAddr;

use axum::http::StatusCode;
use axum::http::header::{HOST, HeaderMap, ORIGIN};

use crate::server::is_own_host;

/// Returns why a request is refused. Pages of other sites that a browser shows cannot use the gateway.
pub(super) fn refusal(listening: SocketAddr, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if headers.get_all(HOST).iter().count() > 1 {
        return Some((StatusCode::BAD_REQUEST, "the request has several Host headers"));
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // At another interface, the gateway has names that it does not know.
    if listening.ip().is_loopback() && !host.is_some_and(|host| is_own_host(host, listening)) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this gateway is not at the address that the request names",
        ));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_of_other_site = site.is_some_and(|site| ["cross-site", "same-site"].contains(&site));
    let mut origins = headers.get_all(ORIGIN).iter();
    let is_of_other_origin =
        origins.any(|origin| !origin.to_str().is_ok_and(|origin| is_own_origin(origin, host, listening)));
    (is_of_other_site || is_of_other_origin)
        .then_some((StatusCode::FORBIDDEN, "pages of other sites cannot use this gateway"))
}

/// Returns whether an origin is that of the gateway: the host that the request names, or another name of the address at
/// which the gateway listens.
fn is_own_origin(origin: &str, host: Option<&str>, listening: SocketAddr) -> bool {
    // A server in front of the gateway can add TLS.
    let Some(name) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else {
        return false;
    };
    host.is_some_and(|host| host.eq_ignore_ascii_case(name)) || is_own_host(name, listening)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(listening: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers: HeaderMap = headers.fold(HeaderMap::new(), |mut all, (name, value)| {
            let name: axum::http::HeaderName = name;
            all.append(name, value);
            all
        });
        refusal(listening.parse().unwrap(), &headers).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn other_hosts_and_origins_are_refused() {
        let own = ("host", "127.0.0.1:9");
        for (headers, expected) in [
            (&[own][..], None),
            (&[("host", "evil.example:9")], Some(421)),
            (&[own, ("host", "evil.example:9")], Some(400)),
            (&[own, ("origin", "http://127.0.0.1:9")], None),
            (&[own, ("origin", "http://localhost:9")], None),
            (&[own, ("origin", "http://localhost:8")], Some(403)),
            (&[own, ("origin", "https://evil.example")], Some(403)),
            (&[own, ("origin", "null")], Some(403)),
            (&[own, ("sec-fetch-site", "same-site")], Some(403)),
            (&[own, ("sec-fetch-site", "none")], None),
        ] {
            assert_eq!(status("127.0.0.1:9", headers), expected, "{headers:?}");
        }
        assert_eq!(status("0.0.0.0:9", &[("host", "models.example")]), None);
        assert_eq!(status("0.0.0.0:9", &[("host", "a"), ("host", "b")]), Some(400));
        let origin = ("origin", "https://models.example");
        assert_eq!(status("0.0.0.0:9", &[("host", "models.example"), origin]), None);
        assert_eq!(status("0.0.0.0:9", &[("host", "192.0.2.7:9"), origin]), Some(403));
    }
}
