//! The results for the labels of a bundle.

use std::io::Write;

use runvault::digest::CoreHash;
use runvault::vault::bundle::{ImportedLabel, LabelOutcome};
use serde::Serialize;

use crate::cli::output::escape::escaped;
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
            json::line(out, &LabelLine::new(label))?;
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

#[derive(Serialize)]
struct LabelLine<'l> {
    outcome: &'static str,
    key: &'l str,
    value: &'l str,
    core_hash: CoreHash,
}

impl<'l> LabelLine<'l> {
    fn new(ImportedLabel { core, key, value, outcome }: &'l ImportedLabel) -> Self {
        let outcome = match outcome {
            LabelOutcome::Set => "labeled",
            LabelOutcome::Present => "present",
            LabelOutcome::Other | LabelOutcome::TooMany | LabelOutcome::Missing => "not_labeled",
        };
        Self { outcome, key, value, core_hash: *core }
    }
}
