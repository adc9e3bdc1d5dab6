//! The body of a download, which is abandoned if its client stops reading.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use crate::digest::{Digest, Hasher};

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
