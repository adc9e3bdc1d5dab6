//! `runvault note`

use std::io::{self, Read, Write};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::store::{ArtifactRow, MAX_NOTE_BYTES, NoteRow, is_note};
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::hash::Named;
use super::vault::VaultArgs;
use super::{json, output, time};

/// Write down what is worth remembering of an artifact, or print it.
///
/// An artifact has one note: another text takes the place of the first. Nothing that is hashed changes. "show" prints the
/// note, "find --note TEXT" looks for it, and the journal has every text that there ever was, also of notes that were
/// removed.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, the first digits of one, @tag, or latest
    hash: Named,

    /// The text; - reads it from standard input; without it, the note is printed
    text: Option<String>,

    /// Take the note away
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
                output::note(if new { "noted" } else { "had this note before" });
            }
            None if self.remove => {
                if !vault.remove_note(&artifact)? {
                    return Err(has_none(&artifact));
                }
                output::note("note removed");
            }
            None => self.print(&vault, &artifact)?,
        }
        Ok(Status::Done)
    }

    fn print(&self, vault: &Vault, artifact: &ArtifactRow) -> Result<(), Failure> {
        let Some(NoteRow { text, at, .. }) = vault.snapshot()?.note_of(artifact.id)? else {
            return Err(has_none(artifact));
        };
        if self.json {
            let note = JsonNote { core_hash: artifact.core, note: &text, noted_at: time::exact(at) };
            return Ok(json::line(&mut output::raw(), &note)?);
        }
        let mut out = output::text();
        for line in text.lines() {
            // A note is short enough to be printed whole.
            writeln!(out, "{}", escaped(line).up_to(MAX_NOTE_BYTES))?;
        }
        Ok(())
    }
}

fn has_none(artifact: &ArtifactRow) -> Failure {
    let core = artifact.core;
    Failure::No(format!("{core} has no note; \"runvault note {core:.12} TEXT\" writes one"))
}

/// The note that was given, or that standard input has.
fn text(given: &str) -> Result<String, Failure> {
    let text = if given == "-" { read()? } else { given.to_owned() };
    if is_note(&text) {
        return Ok(text);
    }
    Err(Failure::Usage(if text.trim().is_empty() {
        "this note has no text; --remove takes a note away".to_owned()
    } else {
        format!("this text is too long for a note, which has at most {MAX_NOTE_BYTES} bytes")
    }))
}

/// Standard input without the line end at its end, and not much more of it than can be a note.
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
    // Where it was cut off, half a character may stand at the end; then it is too long anyway.
    let text = match String::from_utf8(bytes) {
        Err(error) if error.as_bytes().len() <= MAX_NOTE_BYTES => return Err(failed(&"it is not UTF-8")),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Ok(text) => text,
    };
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}
