//! The terminal on the output streams: whether there is one, its width and its colors.

use std::io::{self, IsTerminal};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};

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
pub(crate) fn set(quiet: bool, verbose: bool) {
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
