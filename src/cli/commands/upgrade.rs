//! `runvault upgrade`

use std::path::Path;
use std::time::Instant;

use clap::Args as ClapArgs;
use runvault::storage::{ErrorKind, StorageError, Upgrade};
use runvault::vault::UpgradeAnswer;
use runvault::{Vault, VaultUpgrade};

use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::index::rebuild::{RebuildMonitor, print_report};
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{json, stdout};

/// Upgrade a vault to the current schema version
///
/// A copy of the old vault is kept beside its file; a database is not copied. An interrupted upgrade can be repeated. A
/// current vault is left unchanged. Older versions of runvault cannot open the upgraded vault.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one JSON document, and one line of JSON for each finding
    #[arg(long)]
    json: bool,
}

/// Adds what to do about a damaged vault that is still of an older schema: no other command of this program opens it.
fn with_hint(path: &Path, error: StorageError) -> CommandError {
    let is_older = || Vault::open(path).is_err_and(|error| error.kind() == ErrorKind::Older);
    if error.kind() == ErrorKind::VaultDamaged && is_older() {
        return CommandError::CouldNotRun(format!(
            "{error}; restore it from a backup, or check and repair it with the version of runvault that wrote it"
        ));
    }
    error.into()
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let path = vault.path()?;
        let mut printer = RebuildMonitor::new();
        let VaultUpgrade { upgrade, report } =
            Vault::upgrade(&path, &mut printer).map_err(|error| with_hint(&path, error))?;
        drop(printer);
        let answer = UpgradeAnswer::from(&upgrade);
        let Upgrade { from, to, copy, .. } = upgrade;
        let name = escaped(&Vault::shown_address(&path).to_string_lossy()).to_string();
        if self.json {
            json::line(&mut stdout::raw(), &answer)?;
        } else if from < to {
            let kept = copy.map_or_else(String::new, |copy| {
                format!("; a copy of the old vault is kept as {}", escaped(&copy.to_string_lossy()))
            });
            stdout::note(&format!("{name}: schema version {from} to {to}{kept}"));
        }
        if let Some(report) = report {
            return print_report(&report, started, self.json);
        }
        if !self.json {
            stdout::note(&format!("{name} is current: schema version {to}"));
        }
        Ok(Status::Done)
    }
}
