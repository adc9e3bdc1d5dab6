//! Storing of settled files, and tracking of what was reported.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use runvault::Vault;
use runvault::intake::{ArtifactSource, ExamineOptions, PollingWatcher, Scan, SourceError};
use runvault::storage::StorageError;
use runvault::vault::add::{AddMonitor, CommonAnnotations, ExaminedDocument, Summary};
use runvault::vault::agents::AgentFiles;

use super::{AddPrinter, CommandError, Status};
use crate::cli::hints;
use crate::cli::output::report::ForkNotes;
use crate::cli::output::stdout;
use crate::cli::output::terminal::Stop;

/// The watcher, and the results so far.
pub(super) struct Adder {
    watcher: PollingWatcher,
    printer: AddPrinter,
    summary: Summary,
    annotations: CommonAnnotations,
    agents: AgentFiles,
    /// The errors of the last scan, so that each is reported once.
    unseen: HashSet<String>,
}

impl Adder {
    pub(super) fn new(
        watcher: PollingWatcher,
        printer: AddPrinter,
        annotations: CommonAnnotations,
        agents: AgentFiles,
    ) -> Self {
        Self { watcher, printer, summary: Summary::default(), annotations, agents, unseen: HashSet::new() }
    }

    /// Scans the directories and reports errors. If there is no further scan, they count as unreadable inputs.
    pub(super) fn scan(&mut self, is_last: bool) -> Scan {
        let scan = self.watcher.scan();
        let unseen: HashSet<String> = scan.errors.iter().map(ToString::to_string).collect();
        for message in unseen.difference(&self.unseen) {
            if is_last {
                self.summary.unreadable += 1;
                stdout::error(&format!("cannot scan {message}"));
            } else {
                stdout::error(&format!("cannot scan {message}; retrying at every scan"));
            }
        }
        self.unseen = unseen;
        scan
    }

    /// Stores settled files. On failure, those not yet reported are found again.
    pub(super) fn add(
        &mut self,
        vault: &Vault,
        scan: Scan,
        options: &ExamineOptions,
        stop: &Stop,
        is_last: bool,
    ) -> Result<(), StorageError> {
        if scan.settled.is_empty() {
            return Ok(());
        }
        let Self { watcher, printer, summary, annotations, agents, .. } = self;
        // Items are read in another thread than the results are reported in.
        let paths = Mutex::new(Vec::new());
        let mut reporter = WatchMonitor { paths: &paths, watcher, printer, summary, is_last };
        let items = scan.settled.into_iter().map(|(path, item)| (path, Ok(item)));
        let items =
            agents.read_items(items, options).take_while(|_| !stop.is_requested()).map(|(path, item)| {
                paths.lock().unwrap_or_else(PoisonError::into_inner).push(path);
                item
            });
        let added = vault.add_annotated(items, options, annotations, &mut reporter).map(drop);
        if added.is_err() {
            agents.read_again();
        }
        added
    }

    /// Returns whether there are files to be removed later.
    pub(super) fn is_waiting_to_move(&self) -> bool {
        self.printer.is_waiting_to_move()
    }

    /// Retries removing them.
    pub(super) fn retry_moving(&mut self, vault: &Vault) {
        self.printer.retry_moving(vault);
    }

    /// Takes the notes about forks of the runs stored since the last call.
    pub(super) fn forks(&mut self) -> ForkNotes {
        self.printer.forks.replace(ForkNotes::default()).unwrap_or_default()
    }

    /// Prints the summary.
    pub(super) fn finish(self, started: Instant) -> Result<Status, CommandError> {
        self.printer.finish(&self.summary, started)
    }
}

/// A monitor that forwards the results for files, and marks the files as processed.
struct WatchMonitor<'t> {
    /// The path that each input was found at.
    paths: &'t Mutex<Vec<PathBuf>>,
    watcher: &'t mut PollingWatcher,
    printer: &'t mut AddPrinter,
    summary: &'t mut Summary,
    /// Whether this is the last attempt, so that nothing is retried.
    is_last: bool,
}

impl AddMonitor for WatchMonitor<'_> {
    fn removes_originals(&self) -> bool {
        self.printer.removes_originals()
    }

    fn stored(&mut self, originals: &[&ArtifactSource]) {
        self.printer.stored(originals);
    }

    fn done(&mut self, input: usize) {
        if let Some(path) = self.paths.lock().unwrap_or_else(PoisonError::into_inner).get(input) {
            self.watcher.done(path);
        }
    }

    /// Returns whether artifacts may remain unrecorded: only at the last attempt, since what cannot be recorded is
    /// otherwise retried.
    fn accepts_unrecorded(&self) -> bool {
        self.is_last
    }

    fn examined(&mut self, examined: &ExaminedDocument) {
        self.summary.count(examined);
        self.printer.examined(examined);
    }

    fn unreadable(&mut self, error: &SourceError) {
        // It was removed or renamed between two scans, as is common in directories in use.
        if !is_gone(error) {
            self.summary.unreadable += 1;
            self.printer.unreadable(error);
        }
    }
}

/// Returns whether something cannot be read because it no longer exists.
fn is_gone(error: &SourceError) -> bool {
    error.source.kind() == ErrorKind::NotFound
}

/// The initial and maximum delay between attempts after a full disk or a lock of another process; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The error that currently prevents storing, if any.
#[derive(Default)]
pub(super) struct WatchRetry(Option<StorageOutage>);

struct StorageOutage {
    message: String,
    pause: Duration,
}

impl WatchRetry {
    /// Reports the error, once, and returns how long to wait before the next attempt.
    pub(super) fn waits(&mut self, error: &StorageError) -> Duration {
        let message = hints::with_hint(error);
        let before = self.0.take().filter(|outage| outage.message == message);
        let pause = before.as_ref().map_or(FIRST_PAUSE, |outage| (outage.pause * 2).min(LONGEST_PAUSE));
        if before.is_none() {
            stdout::error(&message);
            stdout::note("retrying until everything is stored; press Ctrl-C to stop");
        }
        self.0 = Some(StorageOutage { message, pause });
        pause
    }

    /// Records that an attempt succeeded.
    pub(super) fn goes_on(&mut self) {
        if self.0.take().is_some() {
            stdout::note("continuing");
        }
    }
}
