//! `runvault pin list`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::vault::pins::{PinSummary, PinsAnswer, PinsRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, HASH, counted};
use crate::cli::output::table::{Cell, Column, Table};
use crate::cli::output::time;

/// List pinned artifacts.
///
/// In the order in which they were pinned.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let PinsAnswer { pins } = vault.open()?.run(&PinsRequest {})?;
        let mut out = io::BufWriter::new(stdout::text());
        if self.json {
            pins.iter().try_for_each(|pin| json::line(&mut out, pin))?;
            return Ok(out.flush().map(|()| Status::Done)?);
        }
        let whole = |title| Column::new(title).whole();
        let mut table = Table::new(vec![
            whole("hash"),
            whole("kind").padded(KIND_WIDTH),
            whole("since").minor(),
            Column::new("note"),
        ]);
        for PinSummary { core_hash, kind, note, pinned_at } in &pins {
            table.push(vec![
                Cell::new(&format!("{core_hash:.12}"), HASH),
                Cell::plain(kind),
                Cell::new(&time::shown(pinned_at.0), FAINT),
                Cell::plain(note.as_deref().unwrap_or_default()),
            ]);
        }
        table.write(&mut out)?;
        out.flush()?;
        stdout::note(&format!("{} pinned", counted(pins.len() as u64, "artifact")));
        Ok(Status::Done)
    }
}
