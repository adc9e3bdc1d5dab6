//! `runvault pins`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::store::PinRow;
use serde::Serialize;

use super::columns::KIND_WIDTH;
use super::exit::{Failure, Status};
use super::output::{self, FAINT, HASH, counted};
use super::table::{Cell, Column, Table};
use super::vault::VaultArgs;
use super::{json, time};

/// List pinned artifacts.
///
/// In the order in which they were pinned.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'p> {
    core_hash: CoreHash,
    kind: &'p str,
    note: Option<&'p str>,
    pinned_at: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let pins = vault.open()?.snapshot()?.pins()?;
        let mut out = io::BufWriter::new(output::text());
        if self.json {
            for PinRow { core, kind, note, at, .. } in &pins {
                let (note, pinned_at) = (note.as_deref(), time::exact(*at));
                json::line(&mut out, &Line { core_hash: *core, kind, note, pinned_at })?;
            }
            return Ok(out.flush().map(|()| Status::Done)?);
        }
        let whole = |title| Column::new(title).whole();
        let mut table = Table::new(vec![
            whole("hash"),
            whole("kind").padded(KIND_WIDTH),
            whole("since").minor(),
            Column::new("note"),
        ]);
        for PinRow { core, kind, note, at, .. } in &pins {
            table.push(vec![
                Cell::new(&format!("{core:.12}"), HASH),
                Cell::plain(kind),
                Cell::new(&time::shown(*at), FAINT),
                Cell::plain(note.as_deref().unwrap_or_default()),
            ]);
        }
        table.write(&mut out)?;
        out.flush()?;
        output::note(&format!("{} pinned", counted(pins.len() as u64, "artifact")));
        Ok(Status::Done)
    }
}
