//! `runvault note`

use std::io::{self, Read, Write};

use clap::Args as ClapArgs;
use runvault::display::escaped;
use runvault::storage::{ArtifactRecord, MAX_NOTE_BYTES, is_note};
use runvault::vault::annotate::{RemoveNoteRequest, SetNoteRequest};
use runvault::vault::annotations::NoteRequest;

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{json, stdout};

super::verbs! {
    /// Set, show or remove an artifact's note
    ///
    /// An artifact has at most one note. Hashes do not change. "show" prints the note, "find --note TEXT" searches notes,
    /// and the journal keeps every text, including those of removed notes.
    Set(SetNoteArgs), Show(ShowNoteArgs), Remove(RemoveNoteArgs)
}

fn has_none(artifact: &ArtifactRecord) -> CommandError {
    let core = artifact.core;
    CommandError::No(format!("{core} has no note; \"runvault note set {core:.12} TEXT\" writes one"))
}

/// Set an artifact's note
///
/// The text replaces an existing note.
#[derive(ClapArgs)]
#[command(alias = "add")]
struct SetNoteArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// The text; - reads it from standard input
    text: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl SetNoteArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let text = text(&self.text)?;
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let answer = vault.run(&SetNoteRequest { core_hash, text })?;
        json::print_change(self.json, &answer, if answer.changed { "note set" } else { "note unchanged" })
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

/// Print an artifact's note
#[derive(ClapArgs)]
struct ShowNoteArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// Print the note as one JSON document
    #[arg(long)]
    json: bool,
}

impl ShowNoteArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let Some(note) = vault.run(&NoteRequest { artifact: artifact.core })?.note else {
            return Err(has_none(&artifact));
        };
        if self.json {
            json::line(&mut stdout::raw(), &note)?;
            return Ok(Status::Done);
        }
        let mut out = stdout::text();
        for line in note.note.lines() {
            // A note is short enough to be printed in full.
            writeln!(out, "{}", escaped(line).up_to(MAX_NOTE_BYTES))?;
        }
        Ok(Status::Done)
    }
}

/// Remove an artifact's note
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
struct RemoveNoteArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RemoveNoteArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let answer = vault.run(&RemoveNoteRequest { core_hash: artifact.core })?;
        json::print_removal(self.json, answer, "note removed", || has_none(&artifact))
    }
}
