//! Output of commands that change one thing.

use runvault::vault::annotate::AnnotateAnswer;
use serde::Serialize;

use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{json, stdout};

/// Prints `answer` as JSON, or `note` as text.
pub(crate) fn print(as_json: bool, answer: &impl Serialize, note: &str) -> Result<Status, CommandError> {
    if as_json {
        json::line(&mut stdout::raw(), answer)?;
    } else {
        stdout::note(note);
    }
    Ok(Status::Done)
}

/// Prints the answer of a removal, as [`print`] does. Returns `missing` if there was nothing to remove.
pub(crate) fn print_removal(
    as_json: bool,
    answer: AnnotateAnswer,
    note: &str,
    missing: impl FnOnce() -> CommandError,
) -> Result<Status, CommandError> {
    if answer.changed {
        return print(as_json, &answer, note);
    }
    if as_json {
        json::line(&mut stdout::raw(), &answer)?;
    }
    Err(missing())
}
