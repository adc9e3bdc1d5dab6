//! Ending on Ctrl-C, after what has begun was ended or undone.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::Failure;

/// Nobody notices that it takes so long.
const AT_ONCE: Duration = Duration::from_millis(50);

/// What a shell says of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether somebody asked to end.
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Asked by Ctrl-C or SIGTERM. Who asks again does not want to wait: what is stored survives it. SIGHUP is left as it
    /// was, so that `nohup` works.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first time, the flag is not yet set when it is looked at.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .map_err(|error| Failure::CouldNotRun(format!("cannot wait for Ctrl-C: {error}")))?;
        }
        Ok(Self { asked })
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The same for library functions that can be interrupted.
    pub(crate) fn control(&self) -> ControlFlow<()> {
        if self.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Waits for so long, or until somebody asks.
    pub(crate) fn wait(&self, length: Duration) {
        let began = Instant::now();
        while let Some(rest) = length.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero()) {
            if self.is_asked() {
                return;
            }
            thread::sleep(rest.min(AT_ONCE));
        }
    }
}
