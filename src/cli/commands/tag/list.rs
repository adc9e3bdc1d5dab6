//! `runvault tag list`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::storage::ArtifactRecord;
use runvault::vault::TaggedArtifact;
use serde::Serialize;

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

#[derive(Serialize)]
struct Line<'t> {
    name: &'t str,
    core_hash: CoreHash,
    tagged_at: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let tags = vault.open()?.tags()?;
        let mut out = io::BufWriter::new(stdout::text());
        if self.json {
            for TaggedArtifact { name, artifact: ArtifactRecord { core, .. }, at } in &tags {
                let line = Line { name, core_hash: *core, tagged_at: time::exact(*at) };
                json::line(&mut out, &line)?;
            }
            return Ok(out.flush().map(|()| Status::Done)?);
        }
        let whole = |title| Column::new(title).whole();
        let mut table = Table::new(vec![whole("hash"), whole("since").minor(), Column::new("name")]);
        for TaggedArtifact { name, artifact: ArtifactRecord { core, .. }, at } in &tags {
            table.push(vec![
                Cell::new(&format!("{core:.12}"), HASH),
                Cell::new(&time::shown(*at), FAINT),
                Cell::new(&format!("@{name}"), NAME),
            ]);
        }
        table.write(&mut out)?;
        out.flush()?;
        stdout::note(&counted(tags.len() as u64, "tag"));
        Ok(Status::Done)
    }
}
