//! `runvault tag list`

use clap::Args as ClapArgs;
use runvault::vault::annotations::{TagSummary, TagsAnswer, TagsRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, HASH, NAME, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{list, time};

/// List tags
#[derive(ClapArgs)]
#[command(alias = "ls")]
pub(crate) struct Args {
    /// Print one line of JSON for each tag
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let TagsAnswer { tags } = vault.open()?.run(&TagsRequest {})?;
        let whole = |title| TextColumn::new(title).whole();
        let columns = vec![whole("hash"), whole("since").minor(), TextColumn::new("name")];
        let row = |TagSummary { name, core_hash, tagged_at }: &TagSummary| {
            vec![
                TextCell::new(&format!("{core_hash:.12}"), HASH),
                TextCell::new(&time::shown(tagged_at.0), FAINT),
                TextCell::new(&format!("@{name}"), NAME),
            ]
        };
        list::print(&tags, self.json, columns, row, &counted(tags.len() as u64, "tag"))
    }
}
