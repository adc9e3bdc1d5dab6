//! `runvault index build`

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::vault::find::ArtifactFilter;
use runvault::vault::search::{
    BuildSearchIndexAnswer, BuildSearchIndexRequest, IndexingProgress as Step, SearchIndexRequest,
};
use runvault::{SearchIndexUpdate, Vault};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, counted};

/// The delay after which a long operation is announced.
const A_WHILE: Duration = Duration::from_secs(2);

/// Build the search index, or rebuild it
///
/// The vault can be used meanwhile. If it is interrupted, the next search completes the index.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
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
    change::print(as_json, &indexed, &note)?;
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
