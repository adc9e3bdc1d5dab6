//! `runvault gc`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::vault::maintenance::{
    ReclaimRequest, ReclaimResult, ReclaimableAnswer, ReclaimableRequest, ReclaimableSpace,
};

use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::rm;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, counted};

/// Reclaim disk space
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
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        if self.dry_run {
            return self.report(&vault.run(&ReclaimableRequest {})?);
        }
        let reclaimed = vault.run(&ReclaimRequest {})?;
        if self.json {
            json::line(&mut stdout::raw(), &reclaimed)?;
        } else if reclaimed.changed {
            print(&reclaimed)?;
        } else {
            writeln!(stdout::text(), "nothing to reclaim")?;
        }
        if reclaimed.log_remains {
            rm::warn_of_log(vault.path());
        }
        Ok(Status::Done)
    }

    fn report(&self, found: &ReclaimableAnswer) -> Result<Status, CommandError> {
        if self.json {
            json::line(&mut stdout::raw(), found)?;
            return Ok(Status::Done);
        }
        let ReclaimableSpace { blobs, dictionaries, blob_bytes, free_bytes, .. } = found.space;
        let (blobs, dictionaries) = (counted(blobs, "unused blob"), dictionaries_text(dictionaries));
        let (stored, free) = (stdout::size(blob_bytes), stdout::size(free_bytes));
        writeln!(stdout::text(), "{blobs} ({stored}), {dictionaries} to remove, {free} free in the file")?;
        Ok(Status::Done)
    }
}

fn dictionaries_text(count: u64) -> String {
    if count == 1 { "1 dictionary".to_owned() } else { format!("{count} dictionaries") }
}

fn print(done: &ReclaimResult) -> Result<(), CommandError> {
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
    if done.orphans > 0 {
        let uploads = counted(done.orphans, "interrupted upload");
        writeln!(stdout::text(), "{uploads} deleted from object storage")?;
    }
    Ok(())
}
