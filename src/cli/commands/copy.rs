//! `runvault copy`

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::display::escaped;
use runvault::vault::copy::{
    CopiedAnnotations, CopyAnswer, CopyError, CopyMode, CopyOptions, CopyProgress, CopyWatch, RejectedCapture,
};

use crate::cli::args::settings;
use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, HASH, counted};
use crate::cli::output::terminal::Stop;
use crate::cli::output::{json, time};

/// Copy everything in a vault into another one
///
/// FROM and TO are paths of vaults or postgres:// URLs of vaults in databases, in any combination. TO is created if
/// it does not exist. Every artifact is read, hashed and validated again; stored bytes are never copied unchecked.
///
/// If TO is empty, it becomes the same vault: it adopts the journal of FROM, entry by entry, with the same times and
/// hashes, so that "log --verify-from" still proves the entries up to a head saved earlier. At the end, both catalogs
/// are compared. Until then, TO is marked as an incomplete copy, which every other command refuses. Running the
/// command again continues after the last entry that was copied.
///
/// If TO is not empty, what it does not have is added to it, and its journal records that. Tags, notes, labels, pins
/// and manual links are set unless TO has other values. Source paths are copied unless the setting source-path is
/// off; the journal that an empty TO adopts has them in any case. Running the command again copies what is new.
///
/// FROM can be read and written meanwhile; the copy is of the moment at which the command was started.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The vault to copy
    from: PathBuf,

    /// The vault to copy into
    to: PathBuf,

    /// Store artifacts that were removed from TO before; its journal records that
    #[arg(long)]
    allow_removed: bool,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let from = Vault::open(&self.from)?;
        if is_same(&self.from, &self.to) {
            return Err(CommandError::Usage("FROM and TO are the same vault".to_owned()));
        }
        let to = Vault::open_for_copy(&self.to)?.acting_as(vault.actor()?);
        let stop = Stop::on_signals()?;
        let mut progress = CommandProgress::new("copying");
        let mut show = |step| match step {
            CopyProgress::Copied { entries, of } => progress.part("entries", entries, of),
            CopyProgress::Compared { artifacts, of } => progress.part("compared", artifacts, of),
        };
        let watch = CopyWatch { progress: &mut show, is_stopped: &|| stop.is_requested() };
        let without_source_paths = !settings::source_path()?;
        let options = CopyOptions { allow_removed: self.allow_removed, without_source_paths };
        let copied = from.copy_to(&to, options, watch)?;
        drop(progress);
        if self.json {
            json::line(&mut stdout::raw(), &copied)?;
        } else {
            print(&copied)?;
        }
        if !copied.is_complete {
            return Err(CommandError::CouldNotRun(
                "interrupted before the end; the same command continues the copy".to_owned(),
            ));
        }
        if copied.mode == CopyMode::Merged {
            time::warn_of_future(&to)?;
        }
        Ok(if copied.rejected == 0 { Status::Done } else { Status::No })
    }
}

/// Returns whether two paths are those of the same file.
fn is_same(from: &Path, to: &Path) -> bool {
    let file = |address| Vault::file_of(address).and_then(|path| path.canonicalize().ok());
    from == to || file(from).is_some_and(|from| file(to) == Some(from))
}

fn print(copied: &CopyAnswer) -> Result<(), CommandError> {
    for RejectedCapture { name, reason } in &copied.first_rejected {
        stdout::note(&escaped(&format!("not copied: {name}: {reason}")).to_string());
    }
    let CopyAnswer { target, captures, bytes, present, rejected, annotations, .. } = copied;
    let mut out = stdout::text();
    let mut what = vec![format!("{} copied, {}", counted(*captures, "capture"), stdout::size(*bytes))];
    if *present > 0 {
        what.push(format!("{present} already present"));
    }
    if *rejected > 0 {
        what.push(format!("{rejected} rejected"));
    }
    writeln!(out, "{}: {}", escaped(&target.path), what.join(", "))?;
    let CopiedAnnotations { set, present, kept } = annotations;
    if *set + *present + *kept > 0 {
        let set = counted(*set, "annotation");
        writeln!(out, "{set} set, {present} already present, {kept} not set")?;
    }
    let CopyAnswer { mode, is_complete, journal_entries, journal_head, .. } = copied;
    if *mode == CopyMode::Verbatim && *is_complete {
        writeln!(out, "the catalogs of both vaults are equal, as far as they follow from the journal")?;
    }
    writeln!(out, "journal head {HASH}{journal_head}{HASH:#} (entry {journal_entries})")?;
    Ok(())
}

impl From<CopyError> for CommandError {
    fn from(error: CopyError) -> Self {
        Self::CouldNotRun(hints::with_hint(&error))
    }
}
