//! Connections to the servers that requests are forwarded to.

use std::io;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// A client of upstream servers.
pub(super) type UpstreamClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Headers of a connection, which end at each server, with a constant. [`CONNECTION`] names others.
const OF_CONNECTIONS: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The beginning of the names of headers that are for the gateway.
pub(super) const OWN_HEADERS: &str = "x-runvault-";

/// Creates a client. Certificates of servers are verified with the authorities that the system trusts.
pub(super) fn client() -> io::Result<UpstreamClient> {
    let mut roots = RootCertStore::empty();
    // Without authorities, servers without encryption can still be reached.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let tls = builder.with_root_certificates(roots).with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    // The parts of a request are not to wait until earlier ones are acknowledged.
    http.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let connector = connector.enable_http1().wrap_connector(http);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Returns the headers of a request that are forwarded. The answer must not be compressed: it is recorded as it arrives.
pub(super) fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let passed = end_to_end(headers).filter(|(name, _)| {
        !name.as_str().starts_with(OWN_HEADERS) && ![HOST, CONTENT_LENGTH, ACCEPT_ENCODING].contains(name)
    });
    let mut forwarded = copied(passed);
    // Without this header, a server may compress its answer.
    forwarded.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    forwarded
}

/// Returns whether a body is compressed.
pub(super) fn is_compressed(headers: &HeaderMap) -> bool {
    elements(headers, &CONTENT_ENCODING).any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// Returns the headers of an answer that are passed on. A length beside `transfer-encoding` is not that of the body.
pub(super) fn returned(headers: &HeaderMap) -> HeaderMap {
    let is_length_valid = !headers.contains_key(TRANSFER_ENCODING);
    copied(end_to_end(headers).filter(|(name, _)| is_length_valid || *name != CONTENT_LENGTH))
}

/// Returns the headers that do not end at the gateway.
fn end_to_end(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let named: Vec<&[u8]> = elements(headers, &CONNECTION).collect();
    headers.iter().filter(move |(name, _)| {
        !OF_CONNECTIONS.contains(name)
            && !["keep-alive", "proxy-connection"].contains(&name.as_str())
            && !named.iter().any(|other| other.eq_ignore_ascii_case(name.as_str().as_bytes()))
    })
}

fn copied<'h>(headers: impl Iterator<Item = (&'h HeaderName, &'h HeaderValue)>) -> HeaderMap {
    let mut copied = HeaderMap::new();
    for (name, value) in headers {
        copied.append(name, value.clone());
    }
    copied
}

/// Returns the elements of a header that is a list.
fn elements<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let lists = headers.get_all(name).into_iter();
    let elements = lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    elements.filter(|element| !element.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let parsed = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(parsed).collect()
    }

    #[test]
    fn a_length_beside_a_transfer_encoding_is_not_returned() {
        let length = ("content-length", "3");
        assert_eq!(returned(&headers(&[length, ("transfer-encoding", "chunked")])), HeaderMap::new());
        assert_eq!(returned(&headers(&[length])), headers(&[length]));
    }

    #[test]
    fn headers_that_connection_names_end_at_the_gateway() {
        let all = headers(&[
            ("connection", "close, X-Hop"),
            ("connection", "x-other ,"),
            ("x-hop", "1"),
            ("x-other", "1"),
            ("keep-alive", "3"),
            ("proxy-connection", "close"),
            ("x-end", "1"),
        ]);
        assert_eq!(returned(&all), headers(&[("x-end", "1")]));
        assert_eq!(forwarded(&all), headers(&[("x-end", "1"), ("accept-encoding", "identity")]));
    }

    #[test]
    fn identity_in_any_case_is_not_a_compression() {
        for (coding, expected) in [
            ("Identity", false),
            ("", false),
            ("identity, IDENTITY", false),
            ("identity, gzip", true),
            ("GZIP", true),
        ] {
            assert_eq!(is_compressed(&headers(&[("content-encoding", coding)])), expected, "{coding}");
        }
    }
}
