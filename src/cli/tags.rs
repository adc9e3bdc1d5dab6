//! `runvault tags`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::store::TagRow;
use serde::Serialize;

use super::exit::{Failure, Status};
use super::output::{self, FAINT, HASH, NAME, counted};
use super::table::{Cell, Column, Table};
use super::vault::VaultArgs;
use super::{json, time};

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
        let tags = vault.open()?.snapshot()?.tags(None)?;
        let mut out = io::BufWriter::new(output::text());
        if self.json {
            for TagRow { name, core, at, .. } in &tags {
                let line = Line { name, core_hash: *core, tagged_at: time::exact(*at) };
                json::line(&mut out, &line)?;
            }
            return Ok(out.flush().map(|()| Status::Done)?);
        }
        let whole = |title| Column::new(title).whole();
        let mut table = Table::new(vec![whole("hash"), whole("since").minor(), Column::new("name")]);
        for TagRow { name, core, at, .. } in &tags {
            table.push(vec![
                Cell::new(&format!("{core:.12}"), HASH),
                Cell::new(&time::shown(*at), FAINT),
                Cell::new(&format!("@{name}"), NAME),
            ]);
        }
        table.write(&mut out)?;
        out.flush()?;
        output::note(&counted(tags.len() as u64, "tag"));
        Ok(Status::Done)
    }
}
