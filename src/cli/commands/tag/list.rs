//! `runvault tag list`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::vault::tags::{TagSummary, TagsAnswer, TagsRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, HASH, NAME, counted};
use crate::cli::output::table::{Cell, Column, Table};
use crate::cli::output::time;

/// List tags.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let TagsAnswer { tags } = vault.open()?.run(&TagsRequest {})?;
        let mut out = io::BufWriter::new(stdout::text());
        if self.json {
            tags.iter().try_for_each(|tag| json::line(&mut out, tag))?;
            return Ok(out.flush().map(|()| Status::Done)?);
        }
        let whole = |title| Column::new(title).whole();
        let mut table = Table::new(vec![whole("hash"), whole("since").minor(), Column::new("name")]);
        for TagSummary { name, core_hash, tagged_at } in &tags {
            table.push(vec![
                Cell::new(&format!("{core_hash:.12}"), HASH),
                Cell::new(&time::shown(tagged_at.0), FAINT),
                Cell::new(&format!("@{name}"), NAME),
            ]);
        }
        table.write(&mut out)?;
        out.flush()?;
        stdout::note(&counted(tags.len() as u64, "tag"));
        Ok(Status::Done)
    }
}
