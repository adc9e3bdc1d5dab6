//! Accepts connections and answers the requests on them, until the server is to stop.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// How often the server checks whether it is to stop, and whether a connection can be accepted again.
const POLL: Duration = Duration::from_millis(50);

/// How long requests that are being answered may take once the server stops.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The default of [`ConnectionLimits::head_timeout`].
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of connections where the system does not limit descriptors.
const MAX_CONNECTIONS: usize = 4_096;

/// The share of the descriptors of the process that connections may take: a request can need another one for the server
/// that it is forwarded to, and the vault needs some.
const SHARE: usize = 3;

/// What keeps clients that send nothing from taking all descriptors: each connection takes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// A connection is closed when no complete head of a request arrived on it for so long.
    pub(crate) head_timeout: Duration,
    /// The number of connections. For a further one, the one without a request for the longest time is closed.
    pub(crate) connections: usize,
}

impl ConnectionLimits {
    /// Returns the limits for the descriptors that this process may have.
    pub(crate) fn new(head_timeout: Duration) -> Self {
        let connections = descriptors().map_or(MAX_CONNECTIONS, |count| count / SHARE);
        Self { head_timeout, connections: connections.clamp(1, MAX_CONNECTIONS) }
    }
}

#[cfg(unix)]
fn descriptors() -> Option<usize> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.and_then(|count| usize::try_from(count).ok())
}

#[cfg(not(unix))]
fn descriptors() -> Option<usize> {
    None
}

/// Answers requests until `is_stopped` returns true, and then those that are being answered, for up to five seconds.
pub(crate) async fn serve(
    listener: &TcpListener,
    app: &Router,
    limits: ConnectionLimits,
    is_stopped: impl Fn() -> bool,
) {
    let (mut connections, stop) = (OpenConnections::default(), watch::Sender::new(false));
    while !is_stopped() {
        match timeout(POLL, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                while connections.count() >= limits.connections
                    && !connections.close_idle().await
                    && !is_stopped()
                {
                    // All of them have requests that are being answered.
                    sleep(POLL).await;
                }
                // The parts of an answer are not to wait until earlier ones are acknowledged.
                let _ = stream.set_nodelay(true);
                connections.open(stream, app, limits.head_timeout, stop.subscribe());
            }
            // The client left, or the process has no descriptor.
            Ok(Err(_)) => {
                connections.close_idle().await;
                sleep(POLL).await;
            }
            Err(_) => {}
        }
    }
    stop.send_replace(true);
    // Whatever is still being answered then is abandoned.
    let _ = timeout(GRACE, async { while connections.tasks.join_next().await.is_some() {} }).await;
}

/// The connections that are open.
#[derive(Default)]
struct OpenConnections {
    tasks: JoinSet<()>,
    open: Vec<(Arc<Activity>, AbortHandle)>,
}

impl OpenConnections {
    fn open(&mut self, stream: TcpStream, app: &Router, head_timeout: Duration, stop: watch::Receiver<bool>) {
        let activity = Arc::new(Activity::default());
        let app = app.clone().layer(from_fn_with_state(Arc::clone(&activity), counted));
        let task = self.tasks.spawn(connection(stream, app, head_timeout, stop));
        self.open.push((activity, task));
    }

    fn count(&mut self) -> usize {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|(_, task)| !task.is_finished());
        self.open.len()
    }

    /// Closes the connection that had no request for the longest time. Returns false if all have requests that are being
    /// answered.
    async fn close_idle(&mut self) -> bool {
        let idle = self.open.iter().filter_map(|(activity, task)| Some((activity.idle_since()?, task)));
        let Some((_, task)) = idle.min_by_key(|(since, _)| *since) else { return false };
        task.abort();
        // Its descriptor is free once the task has ended.
        self.tasks.join_next().await;
        true
    }
}

/// The requests of a connection.
struct Activity(Mutex<ActivityState>);

struct ActivityState {
    open_requests: usize,
    idle_since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(ActivityState { open_requests: 0, idle_since: Instant::now() }))
    }
}

impl Activity {
    /// A panic of another thread leaves nothing half changed.
    fn lock(&self) -> std::sync::MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns since when no request is being answered.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.open_requests == 0).then_some(state.idle_since)
    }
}

/// A request that is being answered.
struct OpenRequest(Arc<Activity>);

impl OpenRequest {
    fn new(activity: Arc<Activity>) -> Self {
        activity.lock().open_requests += 1;
        Self(activity)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open_requests -= 1;
        state.idle_since = Instant::now();
    }
}

/// Counts a request until all of its answer was sent.
async fn counted(
    axum::extract::State(activity): axum::extract::State<Arc<Activity>>,
    request: Request,
    next: Next,
) -> Response {
    let open = OpenRequest::new(activity);
    next.run(request).await.map(|body| Body::new(CountedBody { body, _open: open }))
}

/// The body of an answer, with the request that it answers.
struct CountedBody {
    body: Body,
    _open: OpenRequest,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// Answers the requests on a connection until it is closed; once `stop` is true, only the one that is being answered.
async fn connection(stream: TcpStream, app: Router, head_timeout: Duration, mut stop: watch::Receiver<bool>) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    // An error means that the server does not exist any more.
    let stop = async move { drop(stop.wait_for(|stop| *stop).await) };
    let (mut connection, mut stop) = (pin!(connection), pin!(stop));
    let mut is_stopping = false;
    poll_fn(|context| {
        if !is_stopping && stop.as_mut().poll(context).is_ready() {
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
        }
        // An error is one of the client, which gets no response then.
        connection.as_mut().poll(context).map(drop)
    })
    .await;
}
