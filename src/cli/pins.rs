//! `runvault pins`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::output::{self, FAINT, HASH, counted};
use super::vault::VaultArgs;
use super::{json, time};

/// List the artifacts that must not be removed.
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
        let mut out = output::text();
        for pin in &pins {
            let note = pin.note.as_deref();
            if self.json {
                let (kind, pinned_at) = (&pin.kind, time::exact(pin.at));
                json::line(&mut out, &Line { core_hash: pin.core, kind, note, pinned_at })?;
                continue;
            }
            let (kind, at) = (escaped(&pin.kind).to_string(), time::display(pin.at));
            let note = escaped(note.unwrap_or_default());
            writeln!(out, "{HASH}{:.12}{HASH:#} {kind:<8} {FAINT}{at}{FAINT:#} {note}", pin.core)?;
        }
        if !self.json {
            output::note(&format!("{} pinned", counted(pins.len() as u64, "artifact")));
        }
        Ok(Status::Done)
    }
}
