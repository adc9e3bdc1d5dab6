//! The results for the labels of a bundle.

use std::io::Write;

use runvault::display::escaped;
use runvault::vault::bundle::{ImportedLabel, ImportedLabelSummary, LabelOutcome};

use crate::cli::output::exit::CommandError;
use crate::cli::output::json;
use crate::cli::output::stdout::{self, CAUTION, HASH, counted};

/// Prints the results. `done` is what was done to the labels that are set, or would be.
pub(super) fn print(
    out: &mut dyn Write,
    labels: &[ImportedLabel],
    as_json: bool,
    done: &str,
) -> Result<(), CommandError> {
    for label in labels {
        if as_json {
            json::line(out, &ImportedLabelSummary::from(label))?;
        } else {
            report(label);
        }
    }
    if !labels.is_empty() {
        let set = labels.iter().filter(|label| label.outcome == LabelOutcome::Set).count();
        stdout::note(&format!("{} {done}", counted(set as u64, "label")));
    }
    Ok(())
}

/// Reports why a label was not set.
fn report(label: &ImportedLabel) {
    let why = match label.outcome {
        LabelOutcome::Set | LabelOutcome::Present => return,
        LabelOutcome::Other => "it has another value here",
        LabelOutcome::TooMany => "it has too many labels",
        LabelOutcome::Missing => "it is not in the vault",
    };
    let ImportedLabel { core, key, value, .. } = label;
    stdout::message(&format!(
        "{CAUTION}not labeled{CAUTION:#} {HASH}{core:.12}{HASH:#} {}={}: {why}",
        escaped(key),
        escaped(value)
    ));
}
