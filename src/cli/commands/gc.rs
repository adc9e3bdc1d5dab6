//! `runvault gc`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::storage::{Reclaimable, Reclaimed};
use serde::Serialize;

use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::rm;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, counted};

/// Reclaim disk space.
///
/// Removes unreferenced data, compresses blobs that were stored before a dictionary was available, and rewrites the
/// file without free pages, which temporarily needs as much disk space again. Afterwards, no removed bytes are left in
/// the file. The vault can be read and written meanwhile.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print what would be done without doing it
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        if self.dry_run {
            return self.report(&vault.reclaimable()?);
        }
        let reclaimed = vault.reclaim()?;
        if self.json {
            json::line(&mut stdout::raw(), &Done::new(reclaimed.unwrap_or_default()))?;
        } else if let Some(done) = &reclaimed {
            print(done)?;
        } else {
            writeln!(stdout::text(), "nothing to reclaim")?;
        }
        if reclaimed.is_some_and(|done| !done.is_complete) {
            rm::warn_of_log(vault.path());
        }
        Ok(Status::Done)
    }

    fn report(&self, found: &Reclaimable) -> Result<Status, Failure> {
        let Reclaimable { blobs, blob_bytes, dictionaries, free_bytes, has_removals } = *found;
        if self.json {
            let bytes = blob_bytes + free_bytes;
            json::line(&mut stdout::raw(), &Would { blobs, dictionaries, bytes, has_removals })?;
            return Ok(Status::Done);
        }
        let (blobs, dictionaries) = (counted(blobs, "unused blob"), dictionaries_text(dictionaries));
        let (stored, free) = (stdout::size(blob_bytes), stdout::size(free_bytes));
        writeln!(stdout::text(), "{blobs} ({stored}), {dictionaries} to remove, {free} free in the file")?;
        Ok(Status::Done)
    }
}

fn dictionaries_text(count: u64) -> String {
    if count == 1 { "1 dictionary".to_owned() } else { format!("{count} dictionaries") }
}

fn print(done: &Reclaimed) -> Result<(), Failure> {
    let (before, after) = (done.bytes_before, done.bytes_after);
    let change = if after <= before {
        format!("{} reclaimed", stdout::size(before - after))
    } else {
        format!("{} more than before", stdout::size(after - before))
    };
    let (blobs, recompressed) = (counted(done.blobs, "unused blob"), counted(done.recompressed, "payload"));
    let dictionaries = dictionaries_text(done.dictionaries);
    let (before, after) = (stdout::size(before), stdout::size(after));
    writeln!(stdout::text(), "{change}: {before} before, {after} after")?;
    writeln!(stdout::text(), "{blobs} and {dictionaries} removed, {recompressed} recompressed")?;
    Ok(())
}

#[derive(Serialize)]
struct Would {
    blobs: u64,
    dictionaries: u64,
    bytes: u64,
    has_removals: bool,
}

#[derive(Serialize)]
struct Done {
    blobs: u64,
    dictionaries: u64,
    recompressed: u64,
    bytes_before: u64,
    bytes_after: u64,
}

impl Done {
    fn new(done: Reclaimed) -> Self {
        let Reclaimed { blobs, dictionaries, recompressed, bytes_before, bytes_after, .. } = done;
        Self { blobs, dictionaries, recompressed, bytes_before, bytes_after }
    }
}
