//! `runvault pin list`

use clap::Args as ClapArgs;
use runvault::formats;
use runvault::vault::annotations::{PinSummary, PinsAnswer, PinsRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, HASH, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{list, time};

/// List pinned artifacts
///
/// Artifacts are listed in the order in which they were pinned.
#[derive(ClapArgs)]
#[command(alias = "ls")]
pub(crate) struct Args {
    /// Print one line of JSON for each pinned artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
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
        list::print(&pins, self.json, columns, row, &ending)
    }
}
