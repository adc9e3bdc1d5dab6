//! The HTTP server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{DefaultBodyLimit, RawPathParams, Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::routing::{MethodRouter, get};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task;
use tokio::time::timeout;

use super::connections::{self, ConnectionLimits, DownloadBody, GRACE, HEAD_TIMEOUT, READ_TIMEOUT};
use super::frame::{self, PageLayout};
use super::visit::{
    self, Download, FormToken, Hint, MAX_FORM_BYTES, Medium, PageError, PageRequest, ResponseContent,
};
use super::{address, pages};
use crate::vault::Vault;
use crate::vault::prices::ModelPrice;

/// Number of pages that are made at once. Each may have a whole artifact in memory, in several forms.
const MAX_WORK: usize = 4;

/// Number of downloads that are sent at once: clients may be slow.
const MAX_DOWNLOADS: usize = 4;

/// How long a request waits for others.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A page as a function.
type Render = fn(&PageRequest<'_>) -> Result<ResponseContent, PageError>;

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct WebServer {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// Options of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// Returns what a person can do about an error, for pages that report it.
    pub hint: Option<Hint>,
    /// A connection is closed when no complete head of a request arrived on it for so long, and a form is refused.
    pub head_timeout: Duration,
    /// A download is abandoned when its client did not read more of it for so long.
    pub read_timeout: Duration,
    /// Whether pages can change tags, labels and notes. There are no passwords, so the server must listen at a local
    /// address.
    pub allow_write: bool,
    /// The prices by which the costs of runs that state none are computed.
    pub prices: Vec<ModelPrice>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            hint: None,
            head_timeout: HEAD_TIMEOUT,
            read_timeout: READ_TIMEOUT,
            allow_write: false,
            prices: Vec::new(),
        }
    }
}

/// The state that all requests share.
struct WebServerState {
    vault: Vault,
    address: SocketAddr,
    options: ServerOptions,
    /// What forms contain, if the vault can be changed.
    form_token: Option<FormToken>,
    /// Limits the pages that are made at once.
    work: Arc<Semaphore>,
    /// Limits the downloads that are made or sent at once.
    downloads: Arc<Semaphore>,
    /// Permits one download at a time to be made: it has all bytes in memory, because they are hashed before they are sent.
    making: Arc<Semaphore>,
}

type App = Arc<WebServerState>;

impl WebServer {
    /// Listens at `address`. The system chooses the port if it is 0.
    ///
    /// # Errors
    /// Returns an error if the address is not one of this machine, or is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `is_stopped` returns true. Requests that are being answered then are completed, for up to
    /// five seconds.
    ///
    /// # Errors
    /// Returns an error if the system does not permit threads or connections, or has no random numbers, and one of the kind
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if pages can change the vault and the address is not a local one.
    pub fn run(self, vault: Vault, options: ServerOptions, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        if options.allow_write && !self.address.ip().is_loopback() {
            let message = "pages that change the vault are served at a local address only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let limits = ConnectionLimits::new(options.head_timeout);
        let app = router(Arc::new(WebServerState {
            vault,
            address: self.address,
            form_token: options.allow_write.then(FormToken::generate).transpose()?,
            options,
            work: Arc::new(Semaphore::new(MAX_WORK)),
            downloads: Arc::new(Semaphore::new(MAX_DOWNLOADS)),
            making: Arc::new(Semaphore::new(1)),
        }));
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            connections::serve(&listener, &app, limits, is_stopped).await;
            Ok(())
        });
        runtime.shutdown_timeout(GRACE);
        served
    }
}

fn router(app: App) -> Router {
    Router::new()
        .route("/", page(pages::runs::page))
        .route("/artifacts", page(pages::artifacts::page))
        .route("/artifact/{name}", page(pages::artifact::page))
        .route("/artifact/{name}/bytes", download(pages::download::bytes))
        .route("/artifact/{name}/core", download(pages::download::core))
        .route("/artifact/{name}/graph", page(pages::graph::page))
        .route("/prompt/{name}", page(pages::prompt::page))
        .route("/search", page(pages::search::page))
        .route("/diff", page(pages::diff::page))
        .route("/go", page(pages::search::go))
        .route("/recordings", page(pages::recordings::page))
        .route("/stats", page(pages::stats::page))
        .route("/journal", page(pages::journal::page))
        .route(address::ANNOTATE, annotate())
        .route("/assets/{name}", page(pages::download::asset))
        .fallback_service(page(|_| Err(PageError::NoPage)).with_state(Arc::clone(&app)))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guarded))
        .with_state(app)
}

/// Returns the handler of a page.
fn page(render: Render) -> MethodRouter<App> {
    handler(render, false)
}

/// Returns the handler of a download.
fn download(render: Render) -> MethodRouter<App> {
    handler(render, true)
}

/// Returns the handler of the page of annotations, and of the forms that change them.
fn annotate() -> MethodRouter<App> {
    let submitted = async |State(app): State<App>, uri: Uri, request: Request| {
        let fields = match timeout(app.options.head_timeout, visit::fields(request)).await {
            Ok(Ok(fields)) => fields,
            Ok(Err((status, why))) => return plain(status, why),
            Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the form did not arrive in time"),
        };
        let Some(work) = permit(&app.work).await else { return busy() };
        blocking(move || {
            let _work = work;
            app.answer(|visit| pages::annotate::submit(visit, fields), "", &uri, None)
        })
        .await
    };
    page(pages::annotate::page).post(submitted).layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

/// Makes a response on a thread that may block. A page that panics must not end the server.
async fn blocking(answer: impl FnOnce() -> Response<Body> + Send + 'static) -> Response<Body> {
    let answered = task::spawn_blocking(answer).await;
    answered.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made"))
}

/// Returns the handler of a page or a download. The vault blocks, so it is read on a thread of its own. While a request
/// waits for others, it takes neither a thread nor memory, and if its client leaves, nothing is done for it.
fn handler(render: Render, is_download: bool) -> MethodRouter<App> {
    get(
        move |State(app): State<App>, path: Result<RawPathParams, RawPathParamsRejection>, uri: Uri| async move {
            let (render, name) = match path {
                Ok(path) => (render, path.iter().next().map(|(_, name)| name.to_owned()).unwrap_or_default()),
                Err(RawPathParamsRejection::InvalidUtf8InPathParam(_)) => (not_text as Render, String::new()),
                // No route matches, so there are no parameters.
                Err(_) => (render, String::new()),
            };
            let permit_if_download = async |of: &Arc<Semaphore>| {
                if is_download { permit(of).await.map(Some) } else { Some(None) }
            };
            let download = permit_if_download(&app.downloads).await;
            let making = permit_if_download(&app.making).await;
            let (Some(download), Some(making), Some(work)) = (download, making, permit(&app.work).await)
            else {
                return busy();
            };
            blocking(move || {
                let _work = (making, work);
                app.answer(render, &name, &uri, download)
            })
            .await
        },
    )
}

/// Waits for others, but not for ever.
async fn permit(of: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    timeout(MAX_WAIT, Arc::clone(of).acquire_owned()).await.ok()?.ok()
}

fn busy() -> Response<Body> {
    let mut response = plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "the server is answering as many requests as it can; try again",
    );
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    response
}

fn not_text(_: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    Err(PageError::BadRequest("the address is not UTF-8".to_owned()))
}

/// Refuses requests that are not for this server, and adds the headers of every response.
async fn guarded(State(app): State<App>, request: Request, next: Next) -> Response<Body> {
    let takes_form = app.form_token.is_some() && request.uri().path() == address::ANNOTATE;
    let mut response = match refusal(app.address, takes_form, request.method(), request.headers()) {
        Some((status, why)) => plain(status, why),
        None => next.run(request).await,
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = if takes_form { "GET, HEAD, POST" } else { "GET, HEAD" };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    }
    add_headers(response.headers_mut());
    if app.form_token.is_some() {
        // Without it, browsers do not say that a form is from a page of this server. Other servers learn nothing still.
        response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    }
    response
}

impl WebServerState {
    /// Makes a page or a download, which has the permit `download` until it was sent.
    fn answer(
        &self,
        render: impl FnOnce(&PageRequest<'_>) -> Result<ResponseContent, PageError>,
        name: &str,
        uri: &Uri,
        download: Option<OwnedSemaphorePermit>,
    ) -> Response<Body> {
        let form_token = self.form_token.as_ref();
        let visit = PageRequest {
            vault: &self.vault,
            name,
            uri,
            medium: Medium::Response,
            prices: &self.options.prices,
            form_token,
        };
        let frame = PageLayout { vault: self.vault.path(), allows_write: form_token.is_some() };
        match render(&visit) {
            Ok(ResponseContent::Page(page)) => html(StatusCode::OK, frame.document(&page)),
            Ok(ResponseContent::Invalid(page)) => html(StatusCode::BAD_REQUEST, frame.document(&page)),
            Ok(ResponseContent::Unchanged(status, page)) => html(status, frame.document(&page)),
            Ok(ResponseContent::Redirect(address)) => redirect(StatusCode::FOUND, &address),
            Ok(ResponseContent::Changed(address)) => redirect(StatusCode::SEE_OTHER, &address),
            Ok(ResponseContent::Asset(asset)) => {
                let mut response = Response::new(Body::from(asset.text));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
                response
            }
            Ok(ResponseContent::Download(Download { bytes, file_name })) => {
                attachment(DownloadBody::new(bytes, download, self.options.read_timeout), &file_name)
            }
            Err(error) => {
                let hint = self.options.hint.and_then(|hint| hint(error.cause()));
                html(error.status(), frame.document(&frame::failure(&error, hint)))
            }
        }
    }
}

fn html(status: StatusCode, document: String) -> Response<Body> {
    let mut response = Response::new(Body::from(document));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{text}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn redirect(status: StatusCode, address: &str) -> Response<Body> {
    let Ok(address) = HeaderValue::from_str(address) else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the page has no valid address");
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(LOCATION, address);
    response
}

/// Returns bytes that a browser saves and never displays.
fn attachment(body: DownloadBody, file_name: &str) -> Response<Body> {
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // File names consist of letters, digits, dots, hyphens and underscores.
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{file_name}\"")) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    response
}

/// Pages load only the style sheet and the script of this server, and the script loads only further pages of it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
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
fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns why a request is refused, or `None` if it is not.
fn refusal(
    listening: SocketAddr,
    takes_form: bool,
    method: &Method,
    headers: &HeaderMap,
) -> Option<(StatusCode, &'static str)> {
    let is_form = takes_form && *method == Method::POST;
    if *method != Method::GET && *method != Method::HEAD && !is_form {
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
    (is_form && visit::is_from_elsewhere(headers))
        .then_some((StatusCode::FORBIDDEN, "the form is not of a page of this server"))
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
