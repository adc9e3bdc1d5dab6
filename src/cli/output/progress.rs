//! A progress bar on standard error, if that is a terminal and the command takes long enough.

mod estimate;

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runvault::Vault;
use runvault::vault::find::ArtifactFilter;

use crate::cli::output::terminal;
use estimate::{Amount, FileCounter};

/// The delay before the bar is shown.
const A_WHILE: Duration = Duration::from_millis(500);

/// The progress of a command.
pub(crate) struct CommandProgress {
    bar: ProgressBar,
    /// Whether there is a terminal to show it on.
    is_shown: bool,
    started: Instant,
    things: &'static str,
    done: Amount,
    total: ProgressTotal,
}

/// What is to be done.
enum ProgressTotal {
    Unknown,
    Things(u64),
    /// Files that are being counted meanwhile.
    Files(Arc<FileCounter>),
}

impl CommandProgress {
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
            is_shown: stderr().is_terminal() && !terminal::is_quiet(),
            started: Instant::now(),
            things,
            done: Amount::default(),
            total: ProgressTotal::Unknown,
        }
    }

    /// Sets the number of things to be done to the number of artifacts in the vault, if it is readable.
    pub(crate) fn count_artifacts(&mut self, vault: &Vault) {
        if self.is_shown
            && let Ok(total) = vault.count(&ArtifactFilter::default())
        {
            self.total = ProgressTotal::Things(total);
        }
    }

    /// Counts the files at these paths in another thread, if there is a progress to show: the work does not wait for it,
    /// and shows the total and the remaining time once it is known.
    pub(crate) fn count_files(&mut self, paths: Option<Vec<PathBuf>>) {
        if let Some(paths) = paths.filter(|_| self.is_shown) {
            self.total = ProgressTotal::Files(FileCounter::start(paths));
        }
    }

    /// Counts a processed file.
    pub(crate) fn file(&mut self, bytes: u64) {
        self.done.add(bytes);
        self.show(|this, elapsed| {
            let total = match &this.total {
                ProgressTotal::Unknown => None,
                ProgressTotal::Things(count) => Some(Amount { count: *count, bytes: 0 }),
                ProgressTotal::Files(counting) => counting.total(),
            };
            estimate::text(this.things, this.done, total, elapsed)
        });
    }

    /// Shows the completed and the total number of parts.
    pub(crate) fn part(&mut self, what: &str, done: u64, of: u64) {
        self.show(|_, elapsed| estimate::text_of_parts(what, done, of, elapsed));
    }

    fn show(&self, text: impl FnOnce(&Self, Duration) -> String) {
        let elapsed = self.started.elapsed();
        if !self.is_shown || elapsed < A_WHILE {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
        self.bar.set_message(text(self, elapsed));
    }

    /// Runs `print`, which writes to standard error, with the bar suspended.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Runs `print`, which writes to standard output, with the bar suspended on a terminal.
    pub(crate) fn suspend_on_terminal<T>(&self, print: impl FnOnce() -> T) -> T {
        if terminal::is_terminal() { self.aside(print) } else { print() }
    }
}

impl Drop for CommandProgress {
    fn drop(&mut self) {
        self.end();
    }
}
