//! A progress bar on standard error, if that is a terminal and the command takes long enough.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use runvault::Vault;
use runvault::vault::find::ArtifactFilter;

use crate::cli::output::terminal;

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
            text(this.things, this.done, total, elapsed)
        });
    }

    /// Shows the completed and the total number of parts.
    pub(crate) fn part(&mut self, what: &str, done: u64, of: u64) {
        self.show(|_, elapsed| text_of_parts(what, done, of, elapsed));
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

/// A number of things and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    count: u64,
    /// 0 if unknown.
    bytes: u64,
}

impl Amount {
    /// Adds one thing.
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// The number of files below some paths, which a thread is counting.
#[derive(Debug, Default)]
struct FileCounter {
    files: AtomicU64,
    bytes: AtomicU64,
    is_complete: AtomicBool,
}

impl FileCounter {
    /// Starts to count. Counting only reads directories, so it is soon far ahead of the work. If there is no thread for
    /// it, the total remains unknown.
    fn start(paths: Vec<PathBuf>) -> Arc<Self> {
        let counting = Arc::new(Self::default());
        let counted = Arc::clone(&counting);
        let _ = thread::Builder::new().spawn(move || counted.run(paths));
        counting
    }

    fn run(&self, paths: Vec<PathBuf>) {
        let mut waiting = Vec::new();
        // Links are followed only if they are named.
        for path in paths {
            self.see(fs::metadata(&path), path, &mut waiting);
        }
        while let Some(directory) = waiting.pop() {
            // What cannot be read is reported by the work itself.
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                self.see(entry.metadata(), entry.path(), &mut waiting);
            }
        }
        self.is_complete.store(true, Ordering::Release);
    }

    fn see(&self, metadata: std::io::Result<fs::Metadata>, path: PathBuf, directories: &mut Vec<PathBuf>) {
        match metadata {
            Ok(metadata) if metadata.is_dir() => directories.push(path),
            Ok(metadata) if metadata.is_file() => {
                self.files.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(metadata.len(), Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Returns the total, once everything is counted.
    fn total(&self) -> Option<Amount> {
        let amount = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let complete = self.is_complete.load(Ordering::Acquire);
        complete.then(|| Amount { count: amount(&self.files), bytes: amount(&self.bytes) })
    }
}

/// Describes what is done, of what total, and the time left.
fn text(things: &str, done: Amount, total: Option<Amount>, elapsed: Duration) -> String {
    let bytes = HumanBytes(done.bytes);
    // An archive is one file with many documents, so there may be more of them than files.
    let Some(total) = total.filter(|total| total.count >= done.count) else {
        return format!("{} {things}, {bytes}", done.count);
    };
    let counted = format!("{} of {} {things}", done.count, total.count);
    let (sized, done, of) = match total.bytes {
        0 => (bytes.to_string(), done.count, total.count),
        of => (format!("{bytes} of {}", HumanBytes(of)), done.bytes.min(of), of),
    };
    format!("{counted}, {sized}{}", left(done, of, elapsed))
}

/// Describes how many parts are done, and the time left.
fn text_of_parts(what: &str, done: u64, of: u64, elapsed: Duration) -> String {
    format!("{what}, {done} of {of}{}", left(done, of, elapsed))
}

/// Returns the time left if the rest takes as long for each part; nothing while too little is done to tell.
fn left(done: u64, of: u64, elapsed: Duration) -> String {
    const LEAST: u64 = 100;
    if done == 0 || done >= of || done < of / LEAST {
        return String::new();
    }
    let seconds = u128::from(of - done) * u128::from(elapsed.as_secs()) / u128::from(done);
    let left = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    format!(", {} left", HumanDuration(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn progress_has_a_total_and_the_time_left() {
        let done = Amount { count: 3, bytes: 2048 };
        assert_eq!(text("files", done, None, MINUTE), "3 files, 2.00 KiB");
        let total = Amount { count: 12, bytes: 8192 };
        assert_eq!(
            text("files", done, Some(total), MINUTE),
            "3 of 12 files, 2.00 KiB of 8.00 KiB, 3 minutes left"
        );
        let total = Amount { count: 12, bytes: 0 };
        assert_eq!(
            text("artifacts", done, Some(total), MINUTE),
            "3 of 12 artifacts, 2.00 KiB, 3 minutes left"
        );
        // More documents than files: they come from archives.
        assert_eq!(text("files", done, Some(Amount { count: 1, bytes: 9 }), MINUTE), "3 files, 2.00 KiB");
    }

    #[test]
    fn the_time_left_is_told_only_if_it_is_known() {
        assert_eq!(text_of_parts("copied", 0, 10, MINUTE), "copied, 0 of 10");
        assert_eq!(text_of_parts("copied", 1, 1_000, MINUTE), "copied, 1 of 1000");
        assert_eq!(text_of_parts("copied", 5, 10, MINUTE), "copied, 5 of 10, 60 seconds left");
        assert_eq!(text_of_parts("copied", 10, 10, MINUTE), "copied, 10 of 10");
    }

    #[test]
    fn files_are_counted_in_directories_and_without_links() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        for (name, bytes) in [("a", 3), ("inner/b", 4), ("inner/c", 0)] {
            fs::write(directory.path().join(name), vec![0; bytes]).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(".", directory.path().join("loop")).unwrap();
        let counting = FileCounter::default();
        assert_eq!(counting.total(), None);
        counting.run(vec![
            directory.path().to_owned(),
            directory.path().join("a"),
            directory.path().join("none"),
        ]);
        assert_eq!(counting.total(), Some(Amount { count: 4, bytes: 10 }));
    }
}
