//! Connections to the servers that requests are forwarded to, through a proxy where the environment says so.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SEC_WEBSOCKET_EXTENSIONS, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, Request, Response, StatusCode, Uri, uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower_service::Service;

/// A client of upstream servers.
pub(super) struct UpstreamClient {
    client: Client<HttpsConnector<ProxyConnector>, Full<Bytes>>,
    proxies: Proxies,
    /// Why certificates of authorities could not be read.
    certificate_errors: Vec<String>,
}

/// Headers of a connection, which end at each server, with a constant. [`CONNECTION`] names others.
const OF_CONNECTIONS: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The beginning of the names of headers that are for the gateway.
pub(super) const OWN_HEADERS: &str = "x-runvault-";

impl UpstreamClient {
    /// Creates a client. Certificates of servers are verified with the authorities that the system trusts, or with those
    /// of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    pub(super) fn new() -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        // Without authorities, servers without encryption can still be reached.
        roots.add_parsable_certificates(native.certs);
        let certificate_errors = native.errors.iter().map(ToString::to_string).collect();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let tls = builder.with_root_certificates(roots).with_no_client_auth();
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        // The parts of a request are not to wait until earlier ones are acknowledged.
        direct.set_nodelay(true);
        let proxies = Proxies::from_environment();
        let to_proxies = with_tls(tls.clone(), direct.clone());
        let connector = with_tls(tls, ProxyConnector { proxies: proxies.clone(), direct, to_proxies });
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, proxies, certificate_errors })
    }

    /// Sends a request. The error says why there is no response.
    pub(super) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        let Some(proxy) = self.proxies.proxy(request.uri()) else {
            let port = request.uri().port().map(|port| format!(":{port}")).unwrap_or_default();
            let server = format!("{}{port}", request.uri().host().unwrap_or_default());
            let response = self.client.request(request).await;
            return response.map_err(|error| format!("{server}: {}", self.failure(&error)));
        };
        let through = format!("through the proxy {}", proxy.url());
        let is_forwarding = proxy.forwards(request.uri());
        if let Some(authorization) = proxy.authorization(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
        }
        let response = self.client.request(request).await;
        let response = response.map_err(|error| format!("{through}: {}", self.failure(&error)))?;
        if is_forwarding && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Err(format!("{through}: proxy authorization required"));
        }
        Ok(response)
    }

    /// Describes an error, and what decides about certificates if it is about one.
    fn failure(&self, error: &(dyn Error + 'static)) -> String {
        let reason = described(error);
        if !is_about_certificate(error) {
            return reason;
        }
        let mut reason = format!(
            "{reason}; trusted are the authorities of the system, or in their place those in SSL_CERT_FILE or SSL_CERT_DIR"
        );
        for error in &self.certificate_errors {
            reason = format!("{reason}; {error}");
        }
        reason
    }
}

fn with_tls<C>(tls: ClientConfig, connector: C) -> HttpsConnector<C> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    builder.enable_http1().wrap_connector(connector)
}

/// Returns whether an error or one of its causes is that a certificate is not trusted.
fn is_about_certificate(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let mut cause = cause;
        // The errors of connections contain that of the encryption, and do not return it as their cause.
        while let Some(contained) = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            cause = contained;
        }
        matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
    })
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// Returns an error with its causes.
pub(super) fn described(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns the headers of a request that are forwarded. Servers are asked not to compress the answer.
pub(super) fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let passed = end_to_end(headers).filter(|(name, _)| {
        !name.as_str().starts_with(OWN_HEADERS) && ![HOST, CONTENT_LENGTH, ACCEPT_ENCODING].contains(name)
    });
    let mut forwarded = copied(passed);
    // Without this header, a server may compress its answer.
    forwarded.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    forwarded
}

/// Returns the headers of a request for a WebSocket that are forwarded. Frames are not compressed.
pub(super) fn forwarded_upgrade(headers: &HeaderMap) -> HeaderMap {
    let mut forwarded = forwarded(headers);
    forwarded.remove(SEC_WEBSOCKET_EXTENSIONS);
    forwarded.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    forwarded.insert(UPGRADE, HeaderValue::from_static("websocket"));
    forwarded
}

/// Returns whether a request asks for a WebSocket.
pub(super) fn asks_for_web_socket(headers: &HeaderMap) -> bool {
    elements(headers, &UPGRADE).any(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
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
pub(super) fn elements<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let lists = headers.get_all(name).into_iter();
    let elements = lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    elements.filter(|element| !element.is_empty())
}

/// The proxies that the environment names: those of `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`, except for the hosts of
/// `NO_PROXY`; also in lower case.
#[derive(Clone, Debug)]
struct Proxies(Arc<Matcher>);

impl Proxies {
    fn from_environment() -> Self {
        Self(Arc::new(Matcher::from_env()))
    }

    /// Returns the proxy for a server.
    fn proxy(&self, server: &Uri) -> Option<UpstreamProxy> {
        self.0.intercept(server).map(UpstreamProxy)
    }
}

/// A proxy.
struct UpstreamProxy(Intercept);

impl UpstreamProxy {
    /// Returns its URL, without user and password.
    fn url(&self) -> String {
        self.0.uri().to_string().trim_end_matches('/').to_owned()
    }

    /// Returns the header for a request to a server without encryption, which the proxy reads.
    fn authorization(&self, server: &Uri) -> Option<HeaderValue> {
        self.0.basic_auth().filter(|_| self.forwards(server)).cloned()
    }

    /// Returns whether the proxy forwards requests to a server, and not only a connection.
    fn forwards(&self, server: &Uri) -> bool {
        !self.is_socks() && server.scheme() == Some(&uri::Scheme::HTTP)
    }

    fn is_socks(&self) -> bool {
        self.0.uri().scheme_str().is_some_and(|scheme| scheme.starts_with("socks"))
    }
}

type ConnectError = Box<dyn Error + Send + Sync>;

/// A connection to a server, or to the proxy that has one.
type PlainStream = TokioIo<TcpStream>;

/// Connects to servers or to their proxies. What is encrypted for the server is added outside of it.
#[derive(Clone)]
struct ProxyConnector {
    proxies: Proxies,
    direct: HttpConnector,
    /// Connects to proxies, which can have encryption of their own.
    to_proxies: HttpsConnector<HttpConnector>,
}

impl ProxyConnector {
    async fn connect(mut self, server: Uri) -> Result<ServerStream, ConnectError> {
        let Some(proxy) = self.proxies.proxy(&server) else {
            let stream = self.direct.call(server).await?;
            return Ok(ServerStream { stream: stream.into(), is_forwarding: false });
        };
        let is_forwarding = proxy.forwards(&server);
        let stream = if proxy.is_socks() {
            self.connect_socks(&proxy.0, server).await?.into()
        } else if is_forwarding {
            self.to_proxies.call(proxy.0.uri().clone()).await?
        } else {
            let tunnel = Tunnel::new(proxy.0.uri().clone(), self.to_proxies);
            let mut tunnel = match proxy.0.basic_auth() {
                Some(authorization) => tunnel.with_auth(authorization.clone()),
                None => tunnel,
            };
            tunnel.call(server).await?
        };
        Ok(ServerStream { stream, is_forwarding })
    }

    async fn connect_socks(self, proxy: &Intercept, server: Uri) -> Result<PlainStream, ConnectError> {
        let server_port = if server.scheme() == Some(&uri::Scheme::HTTP) { 80 } else { 443 };
        let (uri, server) = (with_port(proxy.uri().clone(), 1080)?, with_port(server, server_port)?);
        let scheme = proxy.uri().scheme_str();
        // With these, the proxy looks up the name of the server.
        let local_dns = !matches!(scheme, Some("socks4a" | "socks5h"));
        if matches!(scheme, Some("socks4" | "socks4a")) {
            return Ok(SocksV4::new(uri, self.direct).local_dns(local_dns).call(server).await?);
        }
        let socks = SocksV5::new(uri, self.direct).local_dns(local_dns);
        let mut socks = match proxy.raw_auth() {
            Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
            None => socks,
        };
        Ok(socks.call(server).await?)
    }
}

/// Adds the port that a URL leaves out.
fn with_port(url: Uri, port: u16) -> Result<Uri, uri::InvalidUriParts> {
    let mut parts = url.into_parts();
    if let Some(authority) = parts.authority.as_ref().filter(|authority| authority.port().is_none()) {
        parts.authority = format!("{authority}:{port}").parse().ok().or(parts.authority);
    }
    Uri::from_parts(parts)
}

impl Service<Uri> for ProxyConnector {
    type Response = ServerStream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<ServerStream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        // The connectors are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().connect(server))
    }
}

/// A connection over which a server is asked.
struct ServerStream {
    stream: MaybeHttpsStream<PlainStream>,
    /// Whether the other end is a proxy that forwards requests, which must then have the whole URL.
    is_forwarding: bool,
}

impl Connection for ServerStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarding)
    }
}

impl Read for ServerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for ServerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_are_not_trusted_are_recognized_in_errors_of_connections() {
        let refused = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, refused));
        assert!(is_about_certificate(&error));
        assert!(!is_about_certificate(&io::Error::other(io::Error::other("refused"))));
    }

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
}
