//! `runvault index`

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::vault::find::ArtifactFilter;
use runvault::vault::fsck::{Finding, FsckMonitor, FsckReport, SignatureCounts};
use runvault::vault::search::{
    BuildSearchIndexAnswer, BuildSearchIndexRequest, DropSearchIndexRequest, IndexingProgress as Step,
    SearchIndexAnswer, SearchIndexRequest,
};
use runvault::{SearchIndexUpdate, Vault};

use crate::cli::args::keys::KeyArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::report::Fields;
use crate::cli::output::stdout::{self, CAUTION, counted};
use crate::cli::output::{json, report};

super::verbs! {
    /// Build, check or rebuild indexes
    ///
    /// The search index is optional: "search" needs it, and keeps it up to date. The other indexes always exist and are
    /// rebuilt only if "fsck" finds them damaged.
    Build(BuildIndexArgs), Status(IndexStatusArgs), Rebuild(RebuildIndexArgs), Drop(DropIndexArgs)
}

/// The delay after which a long operation is announced.
const A_WHILE: Duration = Duration::from_secs(2);

/// Build the search index, or rebuild it
///
/// The vault can be used meanwhile. If it is interrupted, the next search completes the index.
#[derive(ClapArgs)]
struct BuildIndexArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl BuildIndexArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        build(&vault.open()?, self.json)
    }
}

fn build(vault: &Vault, as_json: bool) -> Result<Status, CommandError> {
    let started = Instant::now();
    let indexed = make(vault)?;
    let (mut captures, seconds) = (counted(indexed.captures, "capture"), started.elapsed().as_secs_f64());
    if indexed.damaged_captures > 0 {
        captures = format!("{} of {captures}", indexed.captures.saturating_sub(indexed.damaged_captures));
    }
    let note = format!("{captures} indexed, index size {}; {seconds:.2} s", stdout::size(indexed.bytes));
    json::print_change(as_json, &indexed, &note)?;
    Ok(if indexed.damaged_captures == 0 { Status::Done } else { Status::Incomplete })
}

/// Builds the index, and reports progress and damage.
fn make(vault: &Vault) -> Result<BuildSearchIndexAnswer, CommandError> {
    let mut progress = CommandProgress::with_unit("captures", "building the search index:");
    let indexed = BuildSearchIndexRequest {}.run_watched(vault, &mut |step| show(&mut progress, step))?;
    drop(progress);
    note_damage(&indexed.damaged);
    Ok(indexed)
}

/// Updates the search index, or builds it if there is none, which is announced.
pub(crate) fn ensure_index(vault: &Vault) -> Result<(), CommandError> {
    let is_new = vault.search_index()?.is_none();
    if is_new {
        let artifacts = counted(vault.count(&ArtifactFilter::default())?, "artifact");
        stdout::note(&format!("the vault has no search index yet; building it from {artifacts}"));
    }
    sync_index(vault)?;
    if is_new {
        let size = stdout::size(vault.run(&SearchIndexRequest {})?.bytes);
        stdout::note(&format!("index size {size}; \"runvault index drop\" removes the index"));
    }
    Ok(())
}

/// Updates the search index as far as other writers permit, and reports it if it takes long.
pub(crate) fn sync_index(vault: &Vault) -> Result<(), CommandError> {
    let started = Instant::now();
    let mut progress = CommandProgress::with_unit("captures", "updating the search index:");
    let SearchIndexUpdate { indexed, hindrance } =
        vault.catch_up_search(&mut |step| show(&mut progress, step))?;
    drop(progress);
    // An artifact is listed once for each damaged capture.
    note_damage(&BTreeSet::from_iter(indexed.damaged));
    if let Some(hindrance) = hindrance {
        let waiting = vault.search_index()?.map_or(0, |index| index.waiting);
        let waiting = counted(waiting, "capture");
        stdout::warning(&format!("the search index lacks {waiting} that cannot be added now: {hindrance}"));
    }
    if started.elapsed() >= A_WHILE {
        let (captures, seconds) = (counted(indexed.captures, "capture"), started.elapsed().as_secs_f64());
        stdout::note(&format!("{captures} added to the search index in {seconds:.2} s"));
    }
    Ok(())
}

fn show(progress: &mut CommandProgress, step: Step) {
    progress.part("captures", step.done, step.of);
}

fn note_damage(damaged: &BTreeSet<CoreHash>) {
    for core in damaged {
        stdout::warning(&format!(
            "the bytes of {core} are damaged and cannot be searched; \"runvault fsck\" shows details"
        ));
    }
}

/// Updates the index after an addition, and builds it if there is none, if this is enabled.
pub(crate) fn after_adding(vault: &Vault, is_enabled: bool) -> Result<(), CommandError> {
    if !is_enabled {
        return Ok(());
    }
    sync_index(vault)
}

/// Show the state of the search index
///
/// The exit status is 1 if there is none.
#[derive(ClapArgs)]
struct IndexStatusArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl IndexStatusArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let index = vault.open()?.run(&SearchIndexRequest {})?;
        let status = if index.current.is_some() { Status::Done } else { Status::No };
        if self.json {
            json::line(&mut stdout::raw(), &index)?;
            return Ok(status);
        }
        let SearchIndexAnswer { current: Some(is_current), waiting: Some(waiting), bytes } = index else {
            stdout::note("there is no search index; \"runvault index build\" builds one");
            return Ok(status);
        };
        let mut fields = Fields::new(0);
        let state = match waiting {
            _ if !is_current => "of another version of runvault; the next search rebuilds it".to_owned(),
            0 => "up to date".to_owned(),
            waiting => format!("{} not indexed yet; the next search adds them", counted(waiting, "capture")),
        };
        fields.push("search index", state, Style::new());
        fields.push("size", stdout::size(bytes), Style::new());
        fields.write(&mut stdout::text())?;
        Ok(status)
    }
}

/// Rebuild all indexes from the stored artifacts
///
/// The vault can be used meanwhile, and interrupting the rebuild is safe. Artifacts that are no longer valid under
/// the current rules are listed and left unchanged.
///
/// Signatures are checked with the given keys, and the results are recorded. If no key is given for a signature, the
/// result of an earlier check is kept. The exit status is 1 if a signature is wrong.
#[derive(ClapArgs)]
struct RebuildIndexArgs {
    #[command(flatten)]
    keys: KeyArgs,

    /// Print one line of JSON for each finding
    #[arg(long)]
    json: bool,
}

impl RebuildIndexArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let keys = self.keys.ring()?;
        let vault = vault.open()?;
        let mut printer = RebuildMonitor::new();
        printer.0.count_artifacts(&vault);
        let report = vault.reindex(&keys, &mut printer)?;
        drop(printer);
        print_report(&report, started, self.json)
    }
}

/// Prints the report of a rebuild.
pub(crate) fn print_report(
    report: &FsckReport,
    started: Instant,
    as_json: bool,
) -> Result<Status, CommandError> {
    for finding in &report.findings {
        if as_json {
            report::print_json(finding)?;
        } else {
            report::print_text(&finding.into(), CAUTION)?;
        }
    }
    let (size, seconds) = (stdout::size(report.bytes), started.elapsed().as_secs_f64());
    let left = report.findings.len() as u64 + report.omitted;
    let (artifacts, left) = (counted(report.artifacts, "artifact"), counted(left, "finding"));
    stdout::note(&format!("{artifacts} indexed, {left}; {size} in {seconds:.2} s"));
    report.signatures.iter().for_each(|counts| note_signatures(*counts));
    Ok(if report.is_clean() { Status::Done } else { Status::No })
}

/// Reports the results of checking signatures.
pub(crate) fn note_signatures(counts: SignatureCounts) {
    let SignatureCounts { verified, verified_now, unchecked, wrong } = counts;
    let now = match verified_now {
        0 => String::new(),
        now => format!(
            " ({now} recorded as not checked; \"index rebuild\" with the same keys records the result)"
        ),
    };
    stdout::note(&format!("signatures: {verified} verified{now}, {unchecked} not checked, {wrong} wrong"));
}

/// A monitor that shows the progress.
pub(crate) struct RebuildMonitor(CommandProgress);

impl RebuildMonitor {
    pub(crate) fn new() -> Self {
        Self(CommandProgress::with_unit("artifacts", "indexing"))
    }
}

impl FsckMonitor for RebuildMonitor {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, bytes: u64) {
        self.0.file(bytes);
    }
}

/// Remove the search index
#[derive(ClapArgs)]
struct DropIndexArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl DropIndexArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let answer = vault.open()?.run(&DropSearchIndexRequest {})?;
        if answer.changed {
            let note = "removed the search index; \"runvault gc\" reclaims the space";
            return json::print_change(self.json, &answer, note);
        }
        json::print_change(self.json, &answer, "there is no search index")?;
        Ok(Status::No)
    }
}
