//! `runvault tombstones`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::storage::Tombstone;
use serde::Serialize;

use crate::cli::args::inputs::a_kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns::KIND_WIDTH;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, HASH, counted};
use crate::cli::output::table::{Cell, Column, Table};
use crate::cli::output::time;

/// List removed artifacts.
///
/// In the order in which they were removed. Adding them again is refused unless --allow-removed is given; artifacts
/// that were added again are not listed. "runvault log --action remove" lists every removal.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only artifacts of this kind
    #[arg(long, value_parser = a_kind())]
    kind: Option<Kind>,

    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'t> {
    core_hash: CoreHash,
    kind: &'t str,
    removed_at: String,
    actor: Option<&'t str>,
    reason: Option<&'t str>,
    size: u64,
    seq: u64,
}

impl<'t> Line<'t> {
    fn new(tombstone: &'t Tombstone) -> Self {
        let Tombstone { core, kind, at, actor, reason, size, entry, .. } = tombstone;
        Self {
            core_hash: *core,
            kind,
            removed_at: time::exact(*at),
            actor: actor.as_deref(),
            reason: reason.as_deref(),
            size: *size,
            seq: *entry,
        }
    }
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let removed = vault.open()?.snapshot()?.tombstones(self.kind.map(Kind::name))?;
        let mut out = io::BufWriter::new(stdout::text());
        if self.json {
            for tombstone in &removed {
                json::line(&mut out, &Line::new(tombstone))?;
            }
            return Ok(out.flush().map(|()| Status::Done)?);
        }
        let whole = |title| Column::new(title).whole();
        let mut table = Table::new(vec![
            whole("hash"),
            whole("kind").padded(KIND_WIDTH),
            whole("removed").minor(),
            Column::new("by"),
            Column::new("reason"),
        ]);
        for Tombstone { core, kind, at, actor, reason, .. } in &removed {
            table.push(vec![
                Cell::new(&format!("{core:.12}"), HASH),
                Cell::plain(kind),
                Cell::new(&time::shown(*at), FAINT),
                Cell::plain(actor.as_deref().unwrap_or_default()),
                Cell::plain(reason.as_deref().unwrap_or_default()),
            ]);
        }
        table.write(&mut out)?;
        out.flush()?;
        stdout::note(&format!("{} removed", counted(removed.len() as u64, "artifact")));
        Ok(Status::Done)
    }
}
