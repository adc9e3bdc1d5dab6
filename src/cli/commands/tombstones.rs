//! `runvault tombstones`

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::formats;
use runvault::vault::tombstones::{RemovedArtifact, TombstonesAnswer, TombstonesRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, HASH, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{json, time};

/// List removed artifacts
///
/// Artifacts are listed in the order in which they were removed. Adding them again is refused unless --allow-removed
/// is given; artifacts that were added again are not listed. "runvault log --action remove" lists every removal.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Print one line of JSON for each removed artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let kind = self.kind.map(|kind| kind.name().to_owned());
        let request = TombstonesRequest { kind, ..TombstonesRequest::default() };
        let TombstonesAnswer { removed, .. } = vault.open()?.run(&request)?;
        let whole = |title| TextColumn::new(title).whole();
        let columns = vec![
            whole("hash"),
            whole("kind").padded(KIND_WIDTH),
            whole("removed").minor(),
            TextColumn::new("by"),
            TextColumn::new("reason"),
        ];
        let row = |RemovedArtifact { core_hash, kind, removed_at, actor, reason, .. }: &RemovedArtifact| {
            vec![
                TextCell::new(&format!("{core_hash:.12}"), HASH),
                TextCell::plain(formats::bare_noun(kind)),
                TextCell::new(&time::shown(removed_at.0), FAINT),
                TextCell::plain(actor.as_deref().unwrap_or_default()),
                TextCell::plain(reason.as_deref().unwrap_or_default()),
            ]
        };
        let ending = format!("{} removed", counted(removed.len() as u64, "artifact"));
        json::print_list(&removed, self.json, columns, row, &ending)
    }
}
