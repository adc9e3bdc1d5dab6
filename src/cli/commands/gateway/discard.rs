//! `runvault gateway discard`

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use runvault::display::{counted, escaped};
use runvault::gateway::{UnstoredRun, unstored_runs};

use super::spool::SpoolArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{json, stdout};

/// Remove calls that a gateway could not store
///
/// Without arguments, lists the files that were set aside: their calls could not be stored, or they are damaged. Removes
/// the files that are named, or all with --all.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The files to remove, of those that are listed
    #[arg(value_name = "FILE", conflicts_with = "all")]
    files: Vec<PathBuf>,

    /// Remove all of them
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    spool: SpoolArgs,

    /// Print one line of JSON for each file
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let mut runs = unstored_runs(&self.spool.directory(args)?)?;
        let is_named = |run: &UnstoredRun| {
            self.files.iter().any(|file| *file == run.path || run.path.file_name() == Some(file.as_os_str()))
        };
        let is_listed = |file: &&PathBuf| {
            runs.iter().any(|run| **file == run.path || run.path.file_name() == Some(file.as_os_str()))
        };
        if let Some(file) = self.files.iter().find(|file| !is_listed(file)) {
            let file = escaped(&file.to_string_lossy()).to_string();
            return Err(CommandError::No(format!(
                "{file} is not a file that was set aside; nothing was removed"
            )));
        }
        let removes = self.all || !self.files.is_empty();
        if removes && !self.all {
            runs.retain(is_named);
        }
        let mut out = stdout::raw();
        for run in &runs {
            if removes {
                fs::remove_file(&run.path)?;
            }
            if self.json {
                json::line(&mut out, run)?;
                continue;
            }
            let UnstoredRun { path, run_id, calls, bytes, .. } = run;
            let id = run_id.as_ref().map(|id| format!(" of the run {}", escaped(id))).unwrap_or_default();
            let verb = if removes { "removed " } else { "" };
            let path = path.to_string_lossy();
            writeln!(out, "{verb}{}: {}{id}, {bytes} bytes", escaped(&path), counted(*calls, "call"))?;
        }
        let files = counted(runs.len() as u64, "file");
        stdout::note(&if removes { format!("removed {files}") } else { format!("{files} set aside") });
        Ok(Status::Done)
    }
}
