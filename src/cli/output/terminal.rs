//! The terminal: whether output goes to one, its width, which messages are shown, and the signals that interrupt a command.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::CommandError;

/// Whether standard output has colors. Determining it costs several system calls, and the result does not change.
pub(super) static CHOICE: LazyLock<ColorChoice> = LazyLock::new(|| AutoStream::choice(&io::stdout()));

/// The measured width of the terminal on standard output.
static MEASURED: LazyLock<Option<usize>> =
    LazyLock::new(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)));

/// Determines everything about the terminal on standard output, before standard output is redirected to a pager.
pub(crate) fn remember() {
    let _ = (is_terminal(), *CHOICE, *MEASURED);
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    *IS_TERMINAL
}

/// Returns the width of standard output: that of COLUMNS, otherwise that of the terminal. `None` if unlimited, as in a
/// pipe or a file.
pub(crate) fn width() -> Option<usize> {
    width_from_env().or_else(|| *MEASURED).and_then(sensible)
}

fn width_from_env() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
}

/// Returns the width of standard error; text is not wrapped in files.
pub(super) fn width_of_notes() -> Option<usize> {
    let (measured, _) = terminal_size::terminal_size_of(io::stderr())?;
    sensible(width_from_env().unwrap_or(usize::from(measured.0)))
}

/// Returns the width unless it is invalid: a terminal that does not know its width reports 0.
fn sensible(width: usize) -> Option<usize> {
    const WIDEST: usize = 10_000;
    (width > 0).then_some(width.min(WIDEST))
}

static QUIET: AtomicBool = AtomicBool::new(false);
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Sets the options for this process.
pub(crate) fn set_verbosity(quiet: bool, verbose: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    VERBOSE.store(verbose, Ordering::Relaxed);
}

/// Returns whether summaries, notes and progress are omitted.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Returns whether details are printed.
pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

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
