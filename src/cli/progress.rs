//! A progress bar on standard error, if that is a terminal.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far a command is.
pub(crate) struct Progress {
    bar: ProgressBar,
    bytes: u64,
}

impl Progress {
    pub(crate) fn new(doing: &'static str) -> Self {
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{spinner} {prefix} {pos} files, {msg}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style).with_prefix(doing);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, bytes: 0 }
    }

    /// One more file was dealt with.
    pub(crate) fn file(&mut self, bytes: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.bytes += bytes;
        self.bar.inc(1);
        self.bar.set_message(HumanBytes(self.bytes).to_string());
    }

    /// Runs `print` while the bar is out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
