//! A progress bar on standard error, if that is a terminal and the command takes long enough.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::output::stdout;

/// The delay before the bar is shown.
const A_WHILE: Duration = Duration::from_millis(500);

/// The progress of a command.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Whether there is a terminal to show it on.
    is_shown: bool,
    started: Instant,
    things: &'static str,
    files: u64,
    bytes: u64,
}

impl Progress {
    pub(crate) fn new(doing: &'static str) -> Self {
        Self::with_unit("files", doing)
    }

    /// Creates a progress that is never shown, for commands that run indefinitely.
    pub(crate) fn none() -> Self {
        let mut none = Self::new("");
        none.is_shown = false;
        none
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Like `new`, for items other than `files`.
    pub(crate) fn with_unit(things: &'static str, doing: &'static str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {prefix} {msg}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self {
            bar: bar.with_style(style).with_prefix(doing),
            is_shown: stderr().is_terminal(),
            started: Instant::now(),
            things,
            files: 0,
            bytes: 0,
        }
    }

    /// Counts a processed file.
    pub(crate) fn file(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
        let things = self.things;
        self.show(|files, bytes| format!("{files} {things}, {}", HumanBytes(bytes)));
    }

    /// Shows the completed and the total number of parts.
    pub(crate) fn part(&mut self, what: &str, done: u64, of: u64) {
        self.show(|_, _| format!("{what}, {done} of {of}"));
    }

    fn show(&mut self, text: impl FnOnce(u64, u64) -> String) {
        if !self.is_shown || self.started.elapsed() < A_WHILE {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
        self.bar.set_message(text(self.files, self.bytes));
    }

    /// Runs `print`, which writes to standard error, with the bar suspended.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Runs `print`, which writes to standard output, with the bar suspended on a terminal.
    pub(crate) fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        if stdout::is_terminal() { self.aside(print) } else { print() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
