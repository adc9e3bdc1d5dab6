//! Orderly termination on Ctrl-C, which completes or undoes unfinished work.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cli::output::exit::CommandError;

/// The polling interval, too short to notice.
const AT_ONCE: Duration = Duration::from_millis(50);

/// The conventional exit status of an interrupted program.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether termination was requested.
pub(crate) struct Stop {
    requested: Arc<AtomicBool>,
    /// Whether inputs were omitted for it.
    ended_inputs: Arc<AtomicBool>,
}

impl Stop {
    /// Handles SIGINT and SIGTERM. A second signal ends the process immediately, which stored data survives. SIGHUP is
    /// not handled, so that `nohup` works.
    pub(crate) fn on_signals() -> Result<Self, CommandError> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: at the first signal, the flag is not yet set when it is checked.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&requested))
                .and_then(|_| flag::register(signal, Arc::clone(&requested)))
                .map_err(|error| CommandError::CouldNotRun(format!("cannot wait for Ctrl-C: {error}")))?;
        }
        Ok(Self { requested, ended_inputs: Arc::default() })
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Returns the inputs up to the moment at which termination is requested.
    pub(crate) fn until_requested<I: Iterator>(&self, inputs: I) -> impl Iterator<Item = I::Item> + use<I> {
        let (requested, ended) = (Arc::clone(&self.requested), Arc::clone(&self.ended_inputs));
        inputs.take_while(move |_| {
            let goes_on = !requested.load(Ordering::Relaxed);
            ended.fetch_or(!goes_on, Ordering::Relaxed);
            goes_on
        })
    }

    /// Returns whether termination was requested before all inputs of [`Stop::until_requested`] were read.
    pub(crate) fn has_ended_inputs(&self) -> bool {
        self.ended_inputs.load(Ordering::Relaxed)
    }

    /// Returns the request for library functions that can be interrupted.
    pub(crate) fn control(&self) -> ControlFlow<()> {
        if self.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Waits for this duration, or until termination is requested.
    pub(crate) fn wait(&self, length: Duration) {
        let began = Instant::now();
        while let Some(rest) = length.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero()) {
            if self.is_requested() {
                return;
            }
            thread::sleep(rest.min(AT_ONCE));
        }
    }
}
