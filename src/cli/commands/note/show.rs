//! `runvault note show`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::storage::MAX_NOTE_BYTES;
use runvault::vault::annotations::NoteRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{json, stdout};
use runvault::display::escaped;

/// Print an artifact's note
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: ArtifactArg,

    /// Print the note as one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let Some(note) = vault.run(&NoteRequest { artifact: artifact.core })?.note else {
            return Err(super::has_none(&artifact));
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
