//! `runvault note show`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::storage::{MAX_NOTE_BYTES, Note};
use serde::Serialize;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout;
use crate::cli::output::time;

/// Print an artifact's note.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,

    /// Print the note as one JSON document
    #[arg(long)]
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
        let vault = vault.open()?;
        let artifact = self.hash.locate_artifact(&vault)?.artifact;
        let Some(Note { text, at }) = vault.annotations(&artifact)?.note else {
            return Err(super::has_none(&artifact));
        };
        if self.json {
            let note = JsonNote { core_hash: artifact.core, note: &text, noted_at: time::exact(at) };
            json::line(&mut stdout::raw(), &note)?;
            return Ok(Status::Done);
        }
        let mut out = stdout::text();
        for line in text.lines() {
            // A note is short enough to be printed in full.
            writeln!(out, "{}", escaped(line).up_to(MAX_NOTE_BYTES))?;
        }
        Ok(Status::Done)
    }
}
