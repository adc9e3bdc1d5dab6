//! Notices about long waits: for a server that does not answer, or for another writer.

use std::sync::OnceLock;
#[cfg(feature = "postgres")]
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
#[cfg(feature = "postgres")]
use std::time::Duration;

/// How long a wait takes before it is reported.
#[cfg(feature = "postgres")]
const NOTICE_AFTER: Duration = Duration::from_secs(5);

/// A function that is called with what a wait is for.
type WaitObserver = Box<dyn Fn(&str) + Send + Sync>;

static OBSERVER: OnceLock<WaitObserver> = OnceLock::new();

/// Sets the function that is called when a wait is long: [`Vault::set_wait_observer`](crate::Vault::set_wait_observer).
pub(crate) fn set_wait_observer(observer: impl Fn(&str) + Send + Sync + 'static) {
    // Whoever was first stays.
    let _ = OBSERVER.set(Box::new(observer));
}

/// A wait, which ends when this is dropped.
#[cfg(feature = "postgres")]
pub(in crate::storage) struct Wait {
    /// Nothing is sent: the thread that reports the wait sees that this is gone.
    _end: Option<Sender<()>>,
}

#[cfg(feature = "postgres")]
impl Wait {
    /// Begins a wait for `what`.
    pub(in crate::storage) fn begin(what: impl FnOnce() -> String) -> Self {
        let Some(observer) = OBSERVER.get() else { return Self { _end: None } };
        let (end, ended) = mpsc::channel::<()>();
        let what = what();
        let report = move || {
            if ended.recv_timeout(NOTICE_AFTER) == Err(RecvTimeoutError::Timeout) {
                observer(&what);
            }
        };
        // Without another thread, the wait is not reported.
        let started = std::thread::Builder::new().name("wait".to_owned()).spawn(report);
        Self { _end: started.is_ok().then_some(end) }
    }
}
