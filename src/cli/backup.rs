//! `runvault backup`

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use runvault::digest::Digest;
use runvault::store::{Backup, BackupError, BackupOptions, BackupProgress};
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::json;
use super::output::{self, HASH, counted};
use super::progress::Progress;
use super::vault::VaultArgs;

/// Copy the whole vault to another file, and check the copy.
///
/// Others may read and write meanwhile; the copy has the state of the moment at which it was begun. It gets its name only
/// when it is complete, on the disk, and found to be sound: SQLite's own checks, every payload against its hash, the head
/// of the journal. It is a vault like any other, which --vault takes.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The file to make; only its owner can read it
    file: PathBuf,

    /// Replace FILE if it is there already
    #[arg(long)]
    force: bool,

    /// Read back only about so many percent of the payloads; with every change of the vault others
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = percent)]
    sample: f64,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 100".to_owned())
}

#[derive(Serialize)]
struct Line<'b> {
    path: &'b str,
    bytes: u64,
    artifacts: u64,
    captures: u64,
    blobs: u64,
    blobs_checked: u64,
    journal_entries: u64,
    journal_head: Digest,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let mut progress = Progress::new("backing up");
        let options = BackupOptions { force: self.force, sample: self.sample };
        let backup = vault.backup(&self.file, &options, &mut |step| match step {
            BackupProgress::Copied { pages, of } => progress.part("copied", pages, of),
            BackupProgress::Checked { blobs, of } => progress.part("checked", blobs, of),
        })?;
        drop(progress);
        self.print(&backup)?;
        Ok(Status::Done)
    }

    fn print(&self, backup: &Backup) -> Result<(), Failure> {
        let path = backup.path.to_string_lossy();
        let Backup { bytes, artifacts, captures, blobs, checked, journal, .. } = backup;
        if self.json {
            let line = Line {
                path: &path,
                bytes: *bytes,
                artifacts: *artifacts,
                captures: *captures,
                blobs: *blobs,
                blobs_checked: *checked,
                journal_entries: journal.seq,
                journal_head: journal.chain,
            };
            return Ok(json::line(&mut output::raw(), &line)?);
        }
        let mut out = output::text();
        let what = [counted(*artifacts, "artifact"), counted(*captures, "capture"), counted(*blobs, "blob")];
        let checked = if checked == blobs { "all".to_owned() } else { format!("{checked} of the") };
        let (path, size) = (escaped(&path), output::size(*bytes));
        writeln!(out, "{path}: {}, {size}; {checked} blobs read back and sound", what.join(", "))?;
        writeln!(out, "journal head {HASH}{}{HASH:#} (entry {})", journal.chain, journal.seq)?;
        Ok(())
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        Self::CouldNotRun(error.to_string())
    }
}
