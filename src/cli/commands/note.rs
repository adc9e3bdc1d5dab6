//! `runvault note`

use std::io::{self, Read, Write};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::storage::{ArtifactRecord, MAX_NOTE_BYTES, Note, is_note};
use serde::Serialize;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout;
use crate::cli::output::time;

/// Set, print or remove an artifact's note.
///
/// An artifact has at most one note; a new text replaces it. Hashes do not change. "show" prints the note, "find --note
/// TEXT" searches notes, and the journal keeps every text, including those of removed notes.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a prefix of one, @tag, or latest
    hash: Named,

    /// The text; - reads it from standard input; if omitted, the note is printed
    text: Option<String>,

    /// Remove the note
    #[arg(long, conflicts_with = "text")]
    remove: bool,

    /// Print the note as one JSON document
    #[arg(long, conflicts_with_all = ["text", "remove"])]
    json: bool,
}

#[derive(Serialize)]
struct JsonNote<'n> {
    core_hash: CoreHash,
    note: &'n str,
    noted_at: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let text = self.text.as_deref().map(text).transpose()?;
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        match text {
            Some(text) => {
                let new = vault.note(&artifact, &text)?;
                stdout::note(if new { "note set" } else { "note unchanged" });
            }
            None if self.remove => {
                if !vault.remove_note(&artifact)? {
                    return Err(has_none(&artifact));
                }
                stdout::note("note removed");
            }
            None => self.print(&vault, &artifact)?,
        }
        Ok(Status::Done)
    }

    fn print(&self, vault: &Vault, artifact: &ArtifactRecord) -> Result<(), Failure> {
        let Some(Note { text, at }) = vault.annotations(artifact)?.note else {
            return Err(has_none(artifact));
        };
        if self.json {
            let note = JsonNote { core_hash: artifact.core, note: &text, noted_at: time::exact(at) };
            return Ok(json::line(&mut stdout::raw(), &note)?);
        }
        let mut out = stdout::text();
        for line in text.lines() {
            // A note is short enough to be printed in full.
            writeln!(out, "{}", escaped(line).up_to(MAX_NOTE_BYTES))?;
        }
        Ok(())
    }
}

fn has_none(artifact: &ArtifactRecord) -> Failure {
    let core = artifact.core;
    Failure::No(format!("{core} has no note; \"runvault note {core:.12} TEXT\" writes one"))
}

/// Returns the note from the argument or from standard input.
fn text(given: &str) -> Result<String, Failure> {
    let text = if given == "-" { read()? } else { given.to_owned() };
    if is_note(&text) {
        return Ok(text);
    }
    Err(Failure::Usage(if text.trim().is_empty() {
        "the note is empty; --remove removes a note".to_owned()
    } else {
        format!("the text is too long; a note has at most {MAX_NOTE_BYTES} bytes")
    }))
}

/// Reads standard input without its final line end, and not much more than the maximum size of a note.
fn read() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let failed = |error: &dyn std::fmt::Display| {
        Failure::CouldNotRun(format!("cannot read the note from standard input: {error}"))
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
