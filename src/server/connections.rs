//! Accepts connections and answers the requests on them, until the server is to stop.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Cursor, Read, Seek, Write};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::digest::{Digest, Hasher};

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
    /// Returns since when no request is being answered.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.0.lock();
        (state.open_requests == 0).then_some(state.idle_since)
    }
}

/// A request that is being answered.
struct OpenRequest(Arc<Activity>);

impl OpenRequest {
    fn new(activity: Arc<Activity>) -> Self {
        activity.0.lock().open_requests += 1;
        Self(activity)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
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
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_timeout);
    let connection =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).with_upgrades();
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

/// The default of [`ServerOptions::read_timeout`](super::ServerOptions::read_timeout).
pub(super) const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Number of bytes that are sent at once. Clients that read less in the time that they have are as good as gone.
const FRAME: usize = 16 << 10;

/// Downloads with more bytes wait in a file for their clients, which may be slow.
const MAX_IN_MEMORY: usize = 1 << 20;

/// Bytes that are sent to a client. They were hashed before the first of them is sent, and are hashed again on their way if
/// they wait in a file. They are forgotten once they were sent, and if the client left or stopped reading.
pub(super) struct DownloadBody {
    unsent: Arc<Mutex<Option<UnsentBytes>>>,
    /// Number of bytes that are not sent yet.
    left: usize,
    /// How long a client is waited for, until the waiting begins.
    timeout: Option<Duration>,
}

struct UnsentBytes {
    source: Box<dyn Read + Send>,
    /// The digest of all bytes, and of those that were read from a file so far.
    check: Option<(Digest, Hasher)>,
    /// When the client was ready to read more.
    read_at: Instant,
    _permit: Option<OwnedSemaphorePermit>,
}

impl DownloadBody {
    /// Creates the body of a response. `permit` is returned when the bytes are forgotten. A client is given `timeout` to
    /// read each part.
    pub(super) fn new(bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit>, timeout: Duration) -> Self {
        let left = bytes.len();
        let (source, check): (Box<dyn Read + Send>, _) = match in_file(&bytes) {
            Some(file) => (Box::new(file), Some((Digest::from_content(&bytes), Hasher::new()))),
            None => (Box::new(Cursor::new(bytes)), None),
        };
        let unsent = UnsentBytes { source, check, read_at: Instant::now(), _permit: permit };
        Self { unsent: Arc::new(Mutex::new(Some(unsent))), left, timeout: Some(timeout) }
    }
}

/// Writes large bytes to a temporary file without a name; `None` if they are few or that is not possible.
fn in_file(bytes: &[u8]) -> Option<File> {
    if bytes.len() <= MAX_IN_MEMORY {
        return None;
    }
    let mut file = tempfile::tempfile().ok()?;
    file.write_all(bytes).and_then(|()| file.rewind()).ok()?;
    Some(file)
}

impl UnsentBytes {
    /// Returns the next bytes, of which `left` are left.
    fn next(&mut self, left: usize) -> io::Result<Bytes> {
        let mut frame = vec![0; FRAME.min(left)];
        self.source.read_exact(&mut frame)?;
        self.read_at = Instant::now();
        if let Some((_, hasher)) = &mut self.check {
            hasher.update(&frame);
        }
        if frame.len() == left
            && let Some((expected, hasher)) = self.check.take()
            && hasher.finish() != expected
        {
            return Err(io::Error::other("the temporary file was damaged"));
        }
        Ok(frame.into())
    }
}

/// Forgets the bytes if the client read none of them for the time of `timeout`.
async fn abandon_when_due(unsent: Weak<Mutex<Option<UnsentBytes>>>, timeout: Duration) {
    while let Some(due) = unsent.upgrade().and_then(|unsent| due_time(&unsent, timeout)) {
        sleep_until(due).await;
    }
}

/// Returns when the bytes are to be forgotten; `None` if they are.
fn due_time(unsent: &Mutex<Option<UnsentBytes>>, timeout: Duration) -> Option<Instant> {
    let mut unsent = unsent.lock();
    let due = unsent.as_ref()?.read_at + timeout;
    if due <= Instant::now() {
        *unsent = None;
        return None;
    }
    Some(due)
}

impl HttpBody for DownloadBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let timeout = self.timeout.take();
        let mut held = self.unsent.lock();
        let Some(unsent) = held.as_mut() else {
            return Poll::Ready(Some(Err(io::Error::other("the client stopped reading"))));
        };
        let frame = unsent.next(self.left);
        let is_last = frame.as_ref().map_or(true, |frame| frame.len() == self.left);
        if is_last {
            *held = None;
        }
        drop(held);
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        self.left -= frame.len();
        if let Some(timeout) = timeout.filter(|_| !is_last) {
            tokio::spawn(abandon_when_due(Arc::downgrade(&self.unsent), timeout));
        }
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
