//! Import of the recordings of other programs.

use runvault::Vault;
use runvault::display::escaped;
use runvault::recorders::{self, Conversion, ConvertOptions};
use runvault::vault::add;
use runvault::vault::rules::{ImportedValue, ValueOutcome};

use super::Args;
use super::{ImportTask, RecordingInputs};
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::add::{AddOutputOptions, AddPrinter};
use crate::cli::commands::index;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, CAUTION, counted};
use crate::cli::output::terminal::Stop;
use crate::cli::output::{json, time};

impl Args {
    /// Converts recordings, adds what they become, and lists what cannot be mapped.
    pub(super) fn import_recordings(
        &self,
        inputs: RecordingInputs,
        vault: &VaultArgs,
        task: ImportTask,
    ) -> Result<Status, CommandError> {
        if self.matching.redacts()? && !self.no_original {
            let message = "--redact does not change the original; use --no-original to leave it out";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let ImportTask { started, options, annotations, search } = task;
        let limits = options.admit.limits;
        let rules = self.matching.rules()?;
        let convert = ConvertOptions { rules, limits, without_originals: self.no_original };
        let RecordingInputs { recordings, mut failures } = inputs;
        let is_only = recordings.len() + failures.len() == 1;
        let mut conversions = Vec::new();
        for converted in recorders::convert(recordings, &convert) {
            match converted {
                Ok(conversion) => conversions.push(conversion),
                Err(error) if is_only => return Err(error.into()),
                Err(error) => failures.push(error.into()),
            }
        }
        let failed = report(failures);
        let unmapped: Vec<ImportedValue> = conversions.iter().flat_map(|one| one.unmapped.clone()).collect();
        let assumed: Vec<ImportedValue> = conversions.iter().flat_map(|one| one.assumed.clone()).collect();
        let notes: Vec<String> = conversions.iter().map(note).collect();
        if conversions.iter().all(|one| one.calls == 0) {
            self.print_values(&unmapped)?;
            let message = "no call of a model can be mapped; nothing was imported".to_owned();
            return Err(match failed {
                Status::Incomplete => CommandError::CouldNotRun(message),
                _ => CommandError::No(message),
            });
        }
        let shown =
            AddOutputOptions { dry_run: self.dry_run, json: self.json, listed: self.checks.listed()? };
        let mut printer = AddPrinter::new("importing", shown, &vault.shown_path()?);
        let items = conversions.into_iter().flat_map(Conversion::into_items);
        let mut added_to = None;
        let mut is_stopped = false;
        let summary = if self.dry_run {
            let vault = vault.open_for_dry_run(self.create)?;
            let snapshot = vault.as_ref().map(Vault::snapshot).transpose()?;
            add::dry_run(snapshot.as_deref(), items, &options, &mut printer)?
        } else {
            let vault = vault.open_to_add(self.create)?;
            let stop = Stop::on_signals()?;
            let items: Vec<_> = items.collect();
            let items = stop.until_requested(items.into_iter());
            let summary = vault.add_annotated(items, &options, &annotations, &mut printer)?;
            printer.look_for(&vault);
            is_stopped = stop.has_ended_inputs();
            added_to = Some(vault);
            summary
        };
        let status = printer.finish(&summary, started)?;
        if is_stopped {
            return Err(CommandError::Stopped);
        }
        self.print_values(&unmapped)?;
        self.print_values(&assumed)?;
        for note in &notes {
            stdout::note(note);
        }
        if let Some(vault) = added_to.filter(Vault::is_created) {
            time::warn_of_future(&vault)?;
            index::after_adding(&vault, search)?;
        }
        Ok(status.or(failed))
    }

    fn print_values(&self, values: &[ImportedValue]) -> Result<(), CommandError> {
        let mut out = stdout::raw();
        for value in values {
            if self.json {
                json::line(&mut out, value)?;
                continue;
            }
            let outcome = match value.outcome {
                ValueOutcome::NotMapped => "not mapped",
                ValueOutcome::Assumed => "assumed",
            };
            let [file, location, reason] =
                [&value.file, &value.location, &value.reason].map(|text| escaped(text).to_string());
            stdout::message(&format!("{CAUTION}{outcome}{CAUTION:#} {file}: {location}: {reason}"));
        }
        Ok(())
    }
}

/// Reports the files that are not imported, and returns the status for them.
fn report(failures: Vec<CommandError>) -> Status {
    failures.into_iter().fold(Status::Done, |status, failure| {
        stdout::error(&failure.to_string());
        let could_not_run = matches!(failure, CommandError::CouldNotRun(_));
        status.or(if could_not_run { Status::Incomplete } else { Status::No })
    })
}

fn note(conversion: &Conversion) -> String {
    let (calls, runs) = (counted(conversion.calls, "call"), counted(conversion.runs, "run"));
    let unmapped = conversion.unmapped.len() as u64;
    let entries = if unmapped == 1 { "entry" } else { "entries" };
    format!("{}: {calls} in {runs}; {unmapped} {entries} not mapped", conversion.format.name())
}
