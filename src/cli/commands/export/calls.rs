//! Export of the calls of run packs to the formats of other programs.

use std::path::Path;

use runvault::Vault;
use runvault::recorders::{self, NotExported};

use super::Args;
use super::format::FormatName;
use crate::cli::output::disk;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout::{self, counted};

impl Args {
    /// Writes the calls of the selected run packs.
    pub(super) fn write_calls(&self, vault: &Vault, format: FormatName) -> Result<Status, Failure> {
        let Some(output) = &self.output else { return Err(Failure::Usage("give -o FILE".to_owned())) };
        let snapshot = vault.snapshot()?;
        let mut artifacts = self.selection(vault, &*snapshot)?;
        if self.hashes.is_empty() {
            // They are in the order in which they were seen, like their calls.
            artifacts.reverse();
        }
        let mut packs = Vec::new();
        for artifact in &artifacts {
            let pack = vault.get(&artifact.core.0.into())?;
            if recorders::write(format.into(), std::slice::from_ref(&pack), &mut std::io::sink()).is_err() {
                let core = artifact.core;
                let reason = NotExported::NoCalls;
                return Err(Failure::No(format!(
                    "{core:.12}: {reason}; \"runvault links {core:.12}\" shows that of a session"
                )));
            }
            packs.push(pack);
        }
        let write = |out: &mut dyn std::io::Write| match recorders::write(format.into(), &packs, out) {
            Ok(calls) => Ok(calls),
            Err(NotExported::Io(error)) => Err(Failure::from(error)),
            Err(error) => Err(Failure::No(error.to_string())),
        };
        let calls = if output == Path::new("-") {
            write(&mut stdout::raw())?
        } else {
            disk::write_with(output, &self.mode.options(self.force, vault.path()), write)?
        };
        let runs = counted(packs.len() as u64, "run");
        stdout::note(&format!("exported {} of {runs}", counted(calls, "call")));
        Ok(Status::Done)
    }
}
