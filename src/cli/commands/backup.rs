//! `runvault backup`

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use runvault::display::escaped;
use runvault::storage::{BackupError, BackupProgress};
use runvault::vault::api::FindingSummary;
use runvault::vault::backup::{BackupAnswer, BackupRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, HASH, counted};
use crate::cli::output::{disk, json};

/// Copy the vault to another file and check the copy
///
/// The vault can be read and written meanwhile; the copy is a snapshot of the moment at which it was started. It is
/// renamed into place only after it is complete, synced and checked: SQLite's integrity check, every blob against its
/// hash, and the head of the journal. The copy is a vault that can be used with --vault.
///
/// Finally, the chain of the journal is recomputed and the catalog is compared with it. A finding there is a finding in
/// the vault too: the copy is kept, and the exit status is 1. "fsck" also checks every artifact against its rules and
/// the indexes.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The file to create, readable only by its owner
    file: PathBuf,

    /// Replace FILE if it exists
    #[arg(long, hide_short_help = true)]
    force: bool,

    /// Check only about this percentage of the blobs; the selection depends on the state of the vault
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = percent)]
    sample: f64,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        disk::expect_file(&self.file)?;
        let vault = vault.open()?;
        let mut progress = CommandProgress::new("backing up");
        let request = BackupRequest { path: self.file.clone(), force: self.force, sample: self.sample };
        let backup = request.run_watched(&vault, &mut |step| match step {
            BackupProgress::Copied { pages, of } => progress.part("copied", pages, of),
            BackupProgress::Checked { blobs, of } => progress.part("checked", blobs, of),
        })?;
        drop(progress);
        if self.json {
            json::line(&mut stdout::raw(), &backup)?;
        } else {
            print(&backup)?;
        }
        if backup.findings == 0 {
            return Ok(Status::Done);
        }
        for FindingSummary { finding, about, subject, detail, .. } in &backup.first_findings {
            stdout::note(&escaped(&format!("{finding} {about} {subject}: {detail}")).to_string());
        }
        let found = counted(backup.findings, "finding");
        Err(CommandError::No(format!(
            "the copy is exact, but the vault does not match its journal: {found}; fsck explains what to do"
        )))
    }
}

fn print(backup: &BackupAnswer) -> Result<(), CommandError> {
    let BackupAnswer { file, bytes, artifacts, captures, blobs, blobs_checked, findings, .. } = backup;
    let mut out = stdout::text();
    let what = [counted(*artifacts, "artifact"), counted(*captures, "capture"), counted(*blobs, "blob")];
    let is_sound = *findings == 0 && blobs_checked == blobs;
    let read =
        if blobs_checked == blobs { "all blobs" } else { &format!("{blobs_checked} of {blobs} blobs") };
    let (path, size) = (escaped(&file.path), stdout::size(*bytes));
    writeln!(out, "{path}: {}, {size}", what.join(", "))?;
    let checked = format!("SQLite's integrity check, {read} read back and hashed");
    let of_the_journal = if *findings == 0 { ", journal chain, catalog matches the journal" } else { "" };
    writeln!(out, "{}: {checked}{of_the_journal}", if is_sound { "sound" } else { "passed" })?;
    let BackupAnswer { journal_entries, journal_head, .. } = backup;
    writeln!(out, "journal head {HASH}{journal_head}{HASH:#} (entry {journal_entries})")?;
    Ok(())
}

impl From<BackupError> for CommandError {
    fn from(error: BackupError) -> Self {
        Self::CouldNotRun(hints::with_hint(&error))
    }
}
