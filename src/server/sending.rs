//! The body of a download, which is abandoned if its client stops reading.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

/// The default of [`ServerOptions::read_timeout`](super::ServerOptions::read_timeout).
pub(super) const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Number of bytes that are sent at once. Clients that read less in the time that they have are as good as gone.
const FRAME: usize = 16 << 10;

/// Bytes that are sent to a client, from memory: they were hashed before the first of them is sent. They are forgotten once
/// they were sent, and if the client left or stopped reading.
pub(super) struct DownloadBody {
    unsent: Arc<Mutex<Option<UnsentBytes>>>,
    /// Number of bytes that are not sent yet.
    left: usize,
    /// How long a client is waited for, until the waiting begins.
    timeout: Option<Duration>,
}

struct UnsentBytes {
    bytes: Vec<u8>,
    sent: usize,
    /// When the client was ready to read more.
    read_at: Instant,
    _permit: Option<OwnedSemaphorePermit>,
}

impl DownloadBody {
    /// Creates the body of a response. `permit` is returned when the bytes are forgotten. A client is given `timeout` to
    /// read each part.
    pub(super) fn new(bytes: Vec<u8>, permit: Option<OwnedSemaphorePermit>, timeout: Duration) -> Self {
        let left = bytes.len();
        let unsent = UnsentBytes { bytes, sent: 0, read_at: Instant::now(), _permit: permit };
        Self { unsent: Arc::new(Mutex::new(Some(unsent))), left, timeout: Some(timeout) }
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
    let mut unsent = lock(unsent);
    let due = unsent.as_ref()?.read_at + timeout;
    if due <= Instant::now() {
        *unsent = None;
        return None;
    }
    Some(due)
}

/// A panic of another thread leaves nothing half changed.
fn lock(unsent: &Mutex<Option<UnsentBytes>>) -> MutexGuard<'_, Option<UnsentBytes>> {
    unsent.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut held = lock(&self.unsent);
        let Some(unsent) = held.as_mut() else {
            return Poll::Ready(Some(Err(io::Error::other("the client stopped reading"))));
        };
        let rest = unsent.bytes.get(unsent.sent..).unwrap_or_default();
        // A copy, so that what waits to be written does not keep all bytes in memory.
        let frame = Bytes::copy_from_slice(rest.get(..FRAME).unwrap_or(rest));
        unsent.sent += frame.len();
        unsent.read_at = Instant::now();
        let is_last = frame.len() == rest.len();
        if is_last {
            *held = None;
        }
        drop(held);
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
