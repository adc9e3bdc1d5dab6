//! `runvault pin`

use clap::Args as ClapArgs;
use runvault::formats;
use runvault::vault::annotate::{PinRequest, UnpinRequest};
use runvault::vault::annotations::{PinSummary, PinsAnswer, PinsRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, HASH, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{json, time};

super::verbs! {
    /// Protect artifacts from removal
    ///
    /// Neither rm (even with --force) nor forget removes a pinned artifact.
    Add(AddPinArgs), Remove(RemovePinArgs), List(ListPinsArgs)
}

/// Protect an artifact from removal
///
/// Neither rm (even with --force) nor forget removes a pinned artifact. "runvault pin list" lists pinned artifacts.
#[derive(ClapArgs)]
#[command(alias = "set")]
struct AddPinArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// The reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl AddPinArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let answer = vault.run(&PinRequest { core_hash, note: self.note.clone() })?;
        json::print_change(self.json, &answer, if answer.changed { "pinned" } else { "already pinned" })
    }
}

/// Unpin an artifact
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
struct RemovePinArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RemovePinArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core_hash = self.hash.locate_artifact(&vault)?.artifact.core;
        let answer = vault.run(&UnpinRequest { core_hash })?;
        json::print_removal(self.json, answer, "unpinned", || {
            CommandError::No(format!(
                "{core_hash:.12} is not pinned; \"runvault pin list\" lists pinned artifacts"
            ))
        })
    }
}

/// List pinned artifacts
///
/// Artifacts are listed in the order in which they were pinned.
#[derive(ClapArgs)]
#[command(alias = "ls")]
struct ListPinsArgs {
    /// Print one line of JSON for each pinned artifact
    #[arg(long)]
    json: bool,
}

impl ListPinsArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let PinsAnswer { pins } = vault.open()?.run(&PinsRequest {})?;
        let whole = |title| TextColumn::new(title).whole();
        let columns = vec![
            whole("hash"),
            whole("kind").padded(KIND_WIDTH),
            whole("since").minor(),
            TextColumn::new("note"),
        ];
        let row = |PinSummary { core_hash, kind, note, pinned_at }: &PinSummary| {
            vec![
                TextCell::new(&format!("{core_hash:.12}"), HASH),
                TextCell::plain(formats::bare_noun(kind)),
                TextCell::new(&time::shown(pinned_at.0), FAINT),
                TextCell::plain(note.as_deref().unwrap_or_default()),
            ]
        };
        let ending = format!("{} pinned", counted(pins.len() as u64, "artifact"));
        json::print_list(&pins, self.json, columns, row, &ending)
    }
}
