//! `runvault watch`

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use parking_lot::Mutex;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::display::escaped;
use runvault::files::VaultIdentity;
use runvault::intake::{ArtifactSource, ExamineOptions, PollingWatcher, Scan, SourceError};
use runvault::storage::StorageError;
use runvault::vault::add::{AddMonitor, CommonAnnotations, ExaminedDocument, Summary};
use runvault::vault::agents::AgentFiles;

use super::index;
use crate::cli::args::bounds::length;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::{AgentArgs, CheckArgs, RecordedArgs, databases_and_others, kind};
use crate::cli::args::settings;
use crate::cli::args::vault::{CreateArgs, VaultArgs};
use crate::cli::commands::add::{AddOutputOptions, AddPrinter};
use crate::cli::commands::mover::{MoveArgs, Mover};
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::report::ForkNotes;
use crate::cli::output::terminal::Stop;
use crate::cli::output::{stdout, time};

/// The minimum ratio of pause to scan time.
const SHARE: u32 = 10;

/// Minimum pause, also if the given interval is shorter.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Watch directories and add new artifacts until interrupted
///
/// Existing files are added too. A file is added once it has not changed for the --settle time, a pack once none of its
/// files has; a file that changes later is added again. A rejected file is reported once and tried again when it
/// changes. Ctrl-C or SIGTERM stops after the files being processed are stored; the exit status is 0.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// Directories to watch, recursively
    #[arg(required_unless_present = "agents", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directories: Vec<PathBuf>,

    #[command(flatten)]
    agents: AgentArgs,

    /// How often to scan
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = length, hide_short_help = true)]
    interval: Duration,

    /// Add files that have not changed for this long
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = length)]
    settle: Duration,

    /// Ignore existing files unless they change
    #[arg(long, hide_short_help = true)]
    new_only: bool,

    /// Add what has settled and exit, with the exit status of "add"
    #[arg(long, conflicts_with = "new_only")]
    once: bool,

    #[command(flatten)]
    create: CreateArgs,

    #[command(flatten)]
    moving: MoveArgs,

    #[command(flatten)]
    recorded: RecordedArgs,

    /// Store artifacts that were removed before; the journal records that
    #[arg(long, hide_short_help = true)]
    allow_removed: bool,

    /// Require this kind instead of recognizing it by content
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Reject every file that is not an artifact, instead of skipping it
    #[arg(long, hide_short_help = true)]
    strict: bool,

    #[command(flatten)]
    checks: CheckArgs,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let kind = self.kind.or(self.agents.kind());
        let checked = self.checks.options(kind)?;
        let (allow_removed, strict) = (self.allow_removed, self.strict);
        let options = ExamineOptions { allow_removed, strict, ..self.recorded.options(checked)? };
        let annotations = self.recorded.annotations(None)?;
        let search = settings::search()?;
        self.expect_directories()?;
        let stop = Stop::on_signals()?;
        let mut waiting = WatchRetry::default();
        let Some(vault) = self.open(vault, &stop, &mut waiting)? else { return Ok(Status::Done) };
        time::warn_of_future(&vault)?;
        let identity = VaultIdentity::new(vault.path());
        let watcher = PollingWatcher::new(self.directories.clone(), self.settle).with_kind(kind);
        let (databases, others) = databases_and_others(self.agents.directories());
        let watcher = watcher.with_optional(others).with_files_of(databases);
        let watcher = watcher.without(self.files_of(vault.path()));
        let mut watcher = watcher.recovering(self.moving.moves);
        if self.new_only {
            watcher.scan();
            watcher.all_done();
        }
        let mover = self.moving.mover(&options)?.map(Mover::retrying);
        let mut printer = AddPrinter::silent(self.shown()?, vault.path()).moving(mover);
        printer.forks = Some(ForkNotes::default());
        let adder = Adder::new(watcher, printer, annotations, self.agents.files());
        let mut watch = WatchSession { vault, identity, options, stop, adder, waiting, search };
        let unsettled = watch.run(self)?;
        let status = watch.adder.finish(started)?;
        if self.once && unsettled > 0 {
            let verb = if unsettled == 1 { "has" } else { "have" };
            stdout::note(&format!("{unsettled} {verb} not settled yet"));
        }
        Ok(if self.once { status } else { Status::Done })
    }

    /// Opens or creates the vault as soon as possible; returns `None` if a stop is requested first.
    fn open(
        &self,
        vault: &VaultArgs,
        stop: &Stop,
        waiting: &mut WatchRetry,
    ) -> Result<Option<Vault>, CommandError> {
        loop {
            match vault.try_open_to_watch(self.create)? {
                Ok(vault) => {
                    waiting.goes_on();
                    return Ok(Some(vault));
                }
                Err(error) if self.once || !error.is_transient() => return Err(error.into()),
                Err(error) => stop.wait(waiting.waits(&error)),
            }
            if stop.is_requested() {
                return Ok(None);
            }
        }
    }

    fn shown(&self) -> Result<AddOutputOptions, CommandError> {
        let listed = self.checks.listed()?;
        Ok(AddOutputOptions { dry_run: false, json: self.json, listed })
    }

    fn shown_directories(&self) -> String {
        let directories = self.all_directories();
        let names = directories.iter().map(|path| escaped(&path.to_string_lossy()).to_string());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the directories, with those of agents. A program makes its own when it is used for the first time.
    fn all_directories(&self) -> Vec<PathBuf> {
        let of_agents = self.agents.directories().into_iter().map(|directory| directory.path);
        self.directories.iter().cloned().chain(of_agents).collect()
    }

    /// Returns an error unless the named paths are directories: a mistyped name would otherwise be watched forever.
    fn expect_directories(&self) -> Result<(), CommandError> {
        for path in &self.directories {
            let failed =
                |why: String| CommandError::CouldNotRun(format!("cannot watch {}: {why}", path.display()));
            let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
            if !metadata.is_dir() {
                return Err(failed("it is not a directory; \"runvault add\" adds a file".to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the files of the vault itself, by the paths under which a scan would find them. They change at each
    /// addition.
    fn files_of(&self, vault: &Path) -> Vec<PathBuf> {
        let Ok(vault) = std::fs::canonicalize(vault) else { return Vec::new() };
        let mut files = Vec::new();
        for directory in &self.all_directories() {
            let Ok(whole) = std::fs::canonicalize(directory) else { continue };
            let Ok(within) = vault.strip_prefix(&whole) else { continue };
            for ending in ["", "-wal", "-shm", "-journal", "-queue"] {
                let mut name = OsString::from(directory.join(within));
                name.push(ending);
                files.push(name.into());
            }
        }
        files
    }
}

/// The state of watching.
struct WatchSession {
    vault: Vault,
    identity: VaultIdentity,
    options: ExamineOptions,
    stop: Stop,
    adder: Adder,
    waiting: WatchRetry,
    /// Whether to keep the search index in sync.
    search: bool,
}

impl WatchSession {
    /// Runs until termination is requested, and returns the number of files that have not settled.
    fn run(&mut self, args: &Args) -> Result<usize, CommandError> {
        let mut is_first = true;
        loop {
            let began = Instant::now();
            self.retry_moving()?;
            let scan = self.scan(args);
            // From here on, new files are detected.
            if std::mem::take(&mut is_first) && !args.once {
                stdout::note(&format!("watching {}; press Ctrl-C to stop", args.shown_directories()));
            }
            let (scanning, unsettled, is_empty) = (began.elapsed(), scan.unsettled, scan.settled.is_empty());
            if !is_empty {
                self.check_vault()?;
            }
            let pause = match self.adder.add(&self.vault, scan, &self.options, &self.stop, args.once) {
                Ok(()) => {
                    self.waiting.goes_on();
                    if !is_empty {
                        self.report_forks();
                        self.update_search_index();
                    }
                    args.interval
                }
                Err(error) if !args.once && error.is_transient() => self.waiting.waits(&error),
                Err(error) => return Err(error.into()),
            };
            if args.once || self.stop.is_requested() {
                return Ok(unsettled);
            }
            self.stop.wait(pause.max(scanning * SHARE).max(SHORTEST_PAUSE));
        }
    }

    /// Scans the directories. With `--once` there is no second scan to determine whether files with future times have
    /// settled, so this function waits and scans again.
    fn scan(&mut self, args: &Args) -> Scan {
        let scan = self.adder.scan(args.once);
        if !args.once || scan.timeless == 0 {
            return scan;
        }
        self.stop.wait(args.settle);
        self.adder.scan(args.once)
    }

    /// Returns an error if another file, or none, is now at the path of the vault.
    fn check_vault(&self) -> Result<(), CommandError> {
        if self.identity.is_unchanged() {
            return Ok(());
        }
        Err(CommandError::CouldNotRun(format!(
            "{} was removed or replaced, so added artifacts would be lost; stopped, run \"runvault \
             watch\" again",
            self.identity.path().display()
        )))
    }

    /// Removes files that were kept for now, if the vault that contains their documents is still at its path.
    fn retry_moving(&mut self) -> Result<(), CommandError> {
        if self.adder.is_waiting_to_move() {
            self.check_vault()?;
            self.adder.retry_moving(&self.vault);
        }
        Ok(())
    }

    /// Reports which of the newly stored runs fork from others. The runs are stored even if this fails.
    fn report_forks(&mut self) {
        if let Err(error) = self.adder.forks().report(&self.vault) {
            stdout::error(&error.to_string());
        }
    }

    /// Updates the search index. What cannot be indexed now is indexed at the next search.
    fn update_search_index(&self) {
        if let Err(error) = index::after_adding(&self.vault, self.search) {
            stdout::error(&error.to_string());
        }
    }
}

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
                paths.lock().push(path);
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
        if let Some(path) = self.paths.lock().get(input) {
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
