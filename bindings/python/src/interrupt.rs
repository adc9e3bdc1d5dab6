//! Work without the interpreter, which Ctrl-C interrupts.
//!
//! Python runs handlers of signals on the main thread, between its own instructions. So work for the main thread is done
//! by another one, while the main thread asks for signals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// How often signals are asked for, too short to notice.
const POLL: Duration = Duration::from_millis(50);

/// What happens to work that is interrupted.
pub(crate) enum OnInterrupt {
    /// It is left to end by itself: it only reads.
    Leave,
    /// It is completed, because it changes something. The flag asks it to end early.
    Complete(Arc<AtomicBool>),
}

impl OnInterrupt {
    /// Work that is completed, because it cannot end early.
    pub(crate) fn complete() -> Self {
        Self::Complete(Arc::default())
    }
}

/// Runs `work` without the interpreter.
///
/// # Errors
/// Returns the exception of a handler of a signal, such as `KeyboardInterrupt`.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    on_interrupt: &OnInterrupt,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if !is_main_thread(py)? {
        return Ok(py.detach(work));
    }
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("runvault".to_owned());
    // If the receiver has left, the result is not wanted.
    let _thread = thread.spawn(move || drop(sender.send(work())))?;
    let mut interrupted = None;
    loop {
        match receive(py, &mut receiver) {
            Ok(Some(result)) => return interrupted.map_or(Ok(result), Err),
            Ok(None) => return Err(io::Error::other("a thread of runvault has ended").into()),
            Err(exception) => match on_interrupt {
                OnInterrupt::Leave => return Err(exception),
                OnInterrupt::Complete(stop) => {
                    stop.store(true, Ordering::Relaxed);
                    interrupted.get_or_insert(exception);
                }
            },
        }
    }
}

/// Waits for the next value without the interpreter. Returns `None` if there will not be any.
///
/// # Errors
/// Returns the exception of a handler of a signal.
pub(crate) fn receive<T: Send>(py: Python<'_>, receiver: &mut Receiver<T>) -> PyResult<Option<T>> {
    loop {
        // A mutable reference may be used by the closure, which could run on another thread; a shared one may not.
        let waiting = &mut *receiver;
        match py.detach(move || waiting.recv_timeout(POLL)) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}

/// Returns whether this is the thread on which Python runs handlers of signals.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static THREADING: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let threading = THREADING.get_or_try_init(py, || py.import("threading").map(Bound::unbind))?.bind(py);
    let (current, main) = (threading.call_method0("current_thread")?, threading.call_method0("main_thread")?);
    Ok(current.is(&main))
}
