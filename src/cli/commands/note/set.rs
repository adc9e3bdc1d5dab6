//! `runvault note set`

use std::io::{self, Read};

use clap::Args as ClapArgs;
use runvault::storage::{MAX_NOTE_BYTES, is_note};
use runvault::vault::annotate::SetNoteRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Set an artifact's note
///
/// The text replaces an existing note.
#[derive(ClapArgs)]
#[command(alias = "add")]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: ArtifactArg,

    /// The text; - reads it from standard input
    text: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let text = text(&self.text)?;
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let answer = vault.run(&SetNoteRequest { core_hash, text })?;
        change::print(self.json, &answer, if answer.changed { "note set" } else { "note unchanged" })
    }
}

/// Returns the note from the argument or from standard input.
fn text(given: &str) -> Result<String, CommandError> {
    let text = if given == "-" { read()? } else { given.to_owned() };
    if is_note(&text) {
        return Ok(text);
    }
    Err(CommandError::Usage(if text.trim().is_empty() {
        "the note is empty; \"runvault note remove\" removes a note".to_owned()
    } else {
        format!("the text is too long; a note has at most {MAX_NOTE_BYTES} bytes")
    }))
}

/// Reads standard input without its final line end, and not much more than the maximum size of a note.
fn read() -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::CouldNotRun(format!("cannot read the note from standard input: {error}"))
    };
    io::stdin()
        .lock()
        .take(2 * MAX_NOTE_BYTES as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    // Truncation may leave a partial character at the end; such a text is too long in any case.
    let text = match String::from_utf8(bytes) {
        Err(error) if error.as_bytes().len() <= MAX_NOTE_BYTES => return Err(failed(&"it is not UTF-8")),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Ok(text) => text,
    };
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}
