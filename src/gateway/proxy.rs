//! Connects to servers, through a proxy where the environment says so.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::{HeaderValue, Uri, uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// The proxies that the environment names: those of `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`, except for the hosts of
/// `NO_PROXY`; also in lower case.
#[derive(Clone, Debug)]
pub(super) struct Proxies(Arc<Matcher>);

impl Proxies {
    pub(super) fn from_environment() -> Self {
        Self(Arc::new(Matcher::from_env()))
    }

    /// Returns the proxy for a server.
    pub(super) fn proxy(&self, server: &Uri) -> Option<UpstreamProxy> {
        self.0.intercept(server).map(UpstreamProxy)
    }
}

/// A proxy.
pub(super) struct UpstreamProxy(Intercept);

impl UpstreamProxy {
    /// Returns its URL, without user and password.
    pub(super) fn url(&self) -> String {
        self.0.uri().to_string().trim_end_matches('/').to_owned()
    }

    /// Returns the header for a request to a server without encryption, which the proxy reads.
    pub(super) fn authorization(&self, server: &Uri) -> Option<HeaderValue> {
        self.0.basic_auth().filter(|_| self.forwards(server)).cloned()
    }

    /// Returns whether the proxy forwards requests to a server, and not only a connection.
    pub(super) fn forwards(&self, server: &Uri) -> bool {
        !self.is_socks() && server.scheme() == Some(&uri::Scheme::HTTP)
    }

    fn is_socks(&self) -> bool {
        self.0.uri().scheme_str().is_some_and(|scheme| scheme.starts_with("socks"))
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A connection to a server, or to the proxy that has one.
type PlainStream = TokioIo<TcpStream>;

/// Connects to servers or to their proxies. What is encrypted for the server is added outside of it.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    pub(super) proxies: Proxies,
    pub(super) direct: HttpConnector,
    /// Connects to proxies, which can have encryption of their own.
    pub(super) to_proxies: HttpsConnector<HttpConnector>,
}

impl ProxyConnector {
    async fn connect(mut self, server: Uri) -> Result<ServerStream, Error> {
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

    async fn connect_socks(self, proxy: &Intercept, server: Uri) -> Result<PlainStream, Error> {
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
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServerStream, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // The connectors are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().connect(server))
    }
}

/// A connection over which a server is asked.
pub(super) struct ServerStream {
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
