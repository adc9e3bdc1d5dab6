//! `runvault verify`

mod printer;
mod stored;

use std::io;

use clap::Args as ClapArgs;
use runvault::vault::add::{self, Summary};

use crate::cli::args::inputs::InputArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::report;
use crate::cli::output::stdout::{self, counted};

use printer::VerifyPrinter;

/// Validate artifacts without storing them
///
/// The checks are those of "add" with an empty vault: what it would reject is invalid, what it would skip is skipped. A part
/// of a trace is invalid unless its beginning is among the files.
///
/// An argument that names an existing file is that file. Otherwise, a hash, a hash prefix, a tag, a run id or latest names an
/// artifact in the vault: each of its captures is read, hashed and checked again, with the given keys. The hash of a
/// capture names that capture only.
#[derive(ClapArgs)]
#[command(mut_arg("paths", |paths| paths.value_name("PATH|HASH").help(
    "Files, directories (recursively), packs as directories or archives, or - for standard input; or \
     artifacts in the vault: hashes, prefixes of them, tags, run ids, or latest",
)))]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let (stored, inputs) = self.input.split(vault)?;
        let options = self.input.options()?;
        let listed = self.input.checks.listed()?;
        let stored = stored::VaultVerification::locate(&stored, &options, vault)?;
        let mut progress = CommandProgress::new("verifying");
        progress.count_files(self.input.files().filter(|_| stored.is_none()));
        let mut printer = VerifyPrinter { json: self.json, listed, progress, output_error: None };
        let mut summary = match inputs {
            Some(inputs) => add::verify(inputs, &options, &mut printer),
            None => Summary::default(),
        };
        if let Some(stored) = stored {
            stored.verify(&mut printer, &mut summary)?;
        }
        // A closed pipe must not make invalid artifacts count as valid: the exit status reflects the verification.
        match printer.output_error.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => drop(printer),
        }
        let skipped = match summary.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", counted(skipped, "other file")),
        };
        stdout::note(&format!("{} good, {} bad{skipped}", summary.verified, summary.rejected));
        report::hint(summary.rejected, 0);
        Ok(Status::from_summary(&summary))
    }
}
