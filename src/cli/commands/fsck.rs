//! `runvault fsck`

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::display::escaped;
use runvault::files::{self, WriteOptions};
use runvault::storage::check::Repair;
use runvault::vault::fsck::{
    Depth, Finding, FsckMonitor, FsckOptions, FsckReport, RepairSummary, Sample, finding,
};
use serde::{Deserialize, Serialize};

use super::index as reindex;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::kind;
use crate::cli::args::keys::KeyArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, counted};
use crate::cli::output::{json, report};

/// Check the vault and optionally repair it
///
/// Checks the file, every stored byte, every artifact against its rules and the indexes, and the journal. Exit status:
/// 0 no findings, 1 findings, 2 the check could not run.
///
/// With keys, signatures are checked again; without, the recorded signature states are compared with the journal and
/// the bytes.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    /// Check the file, its tables and the journal, but no stored bytes
    #[arg(long, group = "depth")]
    quick: bool,

    /// Check only this percentage of the artifacts, completely
    #[arg(long, group = "depth", value_name = "N%", value_parser = percent)]
    sample: Option<f64>,

    /// Check everything (the default)
    #[arg(long, group = "depth", hide_short_help = true)]
    full: bool,

    /// Seed that selects the artifacts of a sample
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "sample", hide_short_help = true)]
    seed: u64,

    /// Check only artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Record progress in this file, and continue from it if it exists
    #[arg(long, value_name = "FILE", conflicts_with = "repair", hide_short_help = true)]
    resume: Option<PathBuf>,

    /// Repair what can be repaired without guessing, then check again
    #[arg(long)]
    repair: bool,

    /// Restore lost and damaged bytes from another vault, or from files and archives in a directory
    #[arg(long, value_name = "PATH", requires = "repair")]
    from: Vec<PathBuf>,

    #[command(flatten)]
    keys: KeyArgs,

    /// Print one line of JSON for each finding
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let vault = vault.open_to_check()?;
        let mut options =
            FsckOptions { depth: self.depth(), kind: self.kind, after: None, keys: self.keys.ring()? };
        let resume =
            self.resume.as_deref().map(|path| FsckResumeFile::open(path, &scope(&options), vault.path()));
        let resume = resume.transpose()?;
        options.after = resume.as_ref().and_then(|resume| resume.position.after);
        let mut progress = CommandProgress::with_unit("artifacts", "checking");
        if options.depth == Depth::Full && options.kind.is_none() && options.after.is_none() {
            progress.count_artifacts(&vault);
        }
        let mut printer = FsckPrinter { as_json: self.json, progress, resume, output_error: None };
        let report = if self.repair {
            self.repair(&vault, &options, &mut printer)?
        } else {
            vault.fsck(&options, &mut printer)?
        };
        let FsckPrinter { output_error, resume, progress, .. } = printer;
        drop(progress);
        let explained = if self.json { Ok(()) } else { explain(&report) };
        // A closed pipe does not affect the exit status, which is the answer.
        let output_error = output_error.or(explained.err());
        if let Some(error) = output_error.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            return Err(error.into());
        }
        let earlier = resume.as_ref().map(|resume| resume.position.clone()).unwrap_or_default();
        let findings = match &resume {
            Some(_) => earlier.findings,
            None => report.findings.len() as u64 + report.omitted,
        };
        let artifacts = if resume.is_some() { earlier.artifacts } else { report.artifacts };
        if let Some(resume) = resume {
            resume.done();
        }
        let (size, seconds) = (stdout::size(report.bytes), started.elapsed().as_secs_f64());
        let (artifacts, found) = (counted(artifacts, "artifact"), counted(findings, "finding"));
        let unchecked = match report.unchecked.len() {
            0 => String::new(),
            count => format!(", {} not possible", counted(count as u64, "check")),
        };
        stdout::note(&format!("{artifacts} checked, {found}{unchecked}; {size} in {seconds:.2} s"));
        report.signatures.iter().for_each(|counts| reindex::note_signatures(*counts));
        Ok(if findings == 0 { Status::Done } else { Status::No })
    }

    /// Checks and repairs until a check finds nothing new, as a repair can uncover more: the remaining findings could not
    /// be repaired.
    fn repair(
        &self,
        vault: &Vault,
        options: &FsckOptions,
        printer: &mut FsckPrinter,
    ) -> Result<FsckReport, CommandError> {
        vault.expect_repairs()?;
        // A source that does not exist is a mistake, also if the vault needs none.
        for source in &self.from {
            // Opening a source in a database reports whether it exists.
            let Some(file) = Vault::file_of(source) else {
                Vault::open(source)?;
                continue;
            };
            if let Err(error) = file.metadata() {
                return Err(CommandError::CouldNotRun(format!(
                    "{}: {error}",
                    escaped(&file.to_string_lossy())
                )));
            }
        }
        let mut report = vault.fsck(options, &mut SilentMonitor(&mut printer.progress))?;
        let mut earlier = FsckReport::default();
        for _ in 0..REPAIRS {
            if !report.has_others_than(&earlier) {
                break;
            }
            let monitor = &mut SilentMonitor(&mut printer.progress);
            let done = vault.repair(&report, &self.from, &options.keys, monitor)?;
            for repaired in &done.repaired {
                printer.print(|as_json| print_repair(repaired, as_json));
            }
            for failure in &done.failures {
                stdout::note(&format!("a step of the repair failed: {failure}"));
            }
            earlier = report;
            report = vault.fsck(options, &mut SilentMonitor(&mut printer.progress))?;
            if done.leaves_out_entries() {
                break;
            }
        }
        if report.omitted > 0 {
            return Ok(vault.fsck(options, printer)?);
        }
        report.findings.iter().for_each(|finding| printer.found(finding));
        report.unchecked.iter().for_each(|what| printer.unchecked(what));
        Ok(report)
    }

    fn depth(&self) -> Depth {
        match self.sample {
            Some(percent) => Depth::Sample(Sample { percent, seed: self.seed }),
            None if self.quick => Depth::Quick,
            None => Depth::Full,
        }
    }
}

/// The maximum number of repairs one after the other.
const REPAIRS: usize = 4;

/// Returns a key of the checked scope: a check of another scope cannot be resumed.
fn scope(options: &FsckOptions) -> String {
    let FsckOptions { depth, kind, after, keys } = options;
    let keys = if keys.is_empty() { String::new() } else { format!(", keys: {keys:?}") };
    format!("Options {{ depth: {depth:?}, kind: {kind:?}, after: {after:?}{keys} }}")
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let percent = number.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "expected a percentage from 0 to 100, such as 5%".to_owned())
}

/// A monitor without output: the first findings may be repaired.
struct SilentMonitor<'p>(&'p mut CommandProgress);

impl FsckMonitor for SilentMonitor<'_> {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, bytes: u64) {
        self.0.file(bytes);
    }

    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        self.0.part(what, done, of);
    }
}

struct FsckPrinter {
    as_json: bool,
    progress: CommandProgress,
    resume: Option<FsckResumeFile>,
    /// The first output error. The check continues without output.
    output_error: Option<io::Error>,
}

impl FsckPrinter {
    fn print(&mut self, print: impl FnOnce(bool) -> io::Result<()>) {
        if self.output_error.is_none() {
            self.output_error = self.progress.suspend_on_terminal(|| print(self.as_json)).err();
        }
    }
}

impl FsckMonitor for FsckPrinter {
    fn found(&mut self, finding: &Finding) {
        if let Some(resume) = &mut self.resume {
            resume.position.findings += 1;
        }
        self.print(|as_json| {
            if as_json { report::print_json(finding) } else { report::print_text(&finding.into(), BAD) }
        });
    }

    fn unchecked(&mut self, what: &str) {
        self.progress.aside(|| stdout::note(&format!("not checked: {}", escaped(what))));
    }

    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        self.progress.part(what, done, of);
    }

    fn checked(&mut self, core: CoreHash, bytes: u64) {
        self.progress.file(bytes);
        if let Some(resume) = &mut self.resume
            && let Err(error) = resume.checked(core)
        {
            self.output_error.get_or_insert(error);
        }
    }
}

fn print_repair(repaired: &Repair, as_json: bool) -> io::Result<()> {
    if as_json {
        let mut out = stdout::raw();
        json::line(&mut out, &RepairSummary::from(repaired))?;
        return out.flush();
    }
    let Repair { subject, did } = repaired;
    let subject = subject.to_string();
    let mut out = stdout::text();
    let subject = escaped(&subject);
    writeln!(out, "{GOOD}repaired{GOOD:#} {subject}: {did}")?;
    out.flush()
}

/// Explains each type of finding that occurred, and what to do about it.
fn explain(report: &FsckReport) -> io::Result<()> {
    let found: BTreeSet<&str> = report.findings.iter().map(|finding| finding.info.id).collect();
    let mut out = stdout::text();
    for info in finding::ALL.iter().filter(|info| found.contains(info.id)) {
        writeln!(out, "\n{BAD}{}{BAD:#}: {}", info.id, info.summary)?;
        writeln!(out, "  {}\n  {FAINT}What to do:{FAINT:#} {}", info.meaning, hints::for_finding(info.id))?;
    }
    out.flush()
}

/// Minimum time between writes of the file.
const EVERY: Duration = Duration::from_secs(1);

/// The progress of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FsckPosition {
    /// The scope of the check; a check of another scope cannot resume it.
    #[serde(rename = "asked")]
    pub(crate) scope: String,
    /// The last checked artifact.
    pub(crate) after: Option<CoreHash>,
    /// Number of checked artifacts, and below of reported findings.
    pub(crate) artifacts: u64,
    pub(crate) findings: u64,
}

/// The file, and its next contents.
pub(crate) struct FsckResumeFile {
    path: PathBuf,
    /// The vault, whose files must not be overwritten.
    vault: PathBuf,
    pub(crate) position: FsckPosition,
    written: Instant,
}

impl FsckResumeFile {
    /// Opens the progress of a check with the scope `scope` in the file `path`; starts at the beginning if there is no
    /// such file.
    pub(crate) fn open(path: &Path, scope: &str, vault: &Path) -> Result<Self, CommandError> {
        let failed = |error: &dyn std::fmt::Display| {
            CommandError::CouldNotRun(format!("cannot resume from {}: {error}", path.display()))
        };
        if files::is_of_vault(path, vault) {
            return Err(failed(&"this is the vault itself, or one of its files"));
        }
        let position = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                failed(&format!("it is not a progress file ({error}); remove it to start over"))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                FsckPosition { scope: scope.to_owned(), ..FsckPosition::default() }
            }
            Err(error) => return Err(failed(&error)),
        };
        if position.scope != scope {
            let message = format!(
                "it belongs to a check with other options ({}); remove it to start over",
                position.scope
            );
            return Err(failed(&message));
        }
        Ok(Self { path: path.to_owned(), vault: vault.to_owned(), position, written: Instant::now() })
    }

    /// Records that everything up to this artifact was checked and reported.
    pub(crate) fn checked(&mut self, core: CoreHash) -> io::Result<()> {
        self.position.after = Some(core);
        self.position.artifacts += 1;
        if self.written.elapsed() < EVERY {
            return Ok(());
        }
        self.written = Instant::now();
        self.write()
    }

    /// Writes the file atomically.
    pub(crate) fn write(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&self.position)?;
        let options = WriteOptions { replace: true, vault: Some(&self.vault), ..WriteOptions::default() };
        files::write(&self.path, &options, &bytes).map_err(io::Error::other)
    }

    /// Removes the file after a complete check.
    pub(crate) fn done(self) {
        // The file may never have been written.
        let _ = std::fs::remove_file(&self.path);
    }
}
