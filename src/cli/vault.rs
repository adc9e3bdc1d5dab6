//! Which vault is meant.

use std::path::PathBuf;

use clap::Args;
use etcetera::BaseStrategy;
use runvault::Vault;

use super::actor;
use super::exit::Failure;

/// Which vault to use.
#[derive(Args)]
pub(crate) struct VaultArgs {
    /// The vault to use; "add" creates it. Default: `RUNVAULT_VAULT`, else runvault/default.vault in the user's data
    /// directory
    #[arg(long, global = true, value_name = "PATH", help_heading = "Vault")]
    vault: Option<PathBuf>,

    /// Who the journal says did it. Default: `RUNVAULT_ACTOR`, else the user and the machine
    #[arg(long, global = true, value_name = "NAME", help_heading = "Vault")]
    actor: Option<String>,
}

impl VaultArgs {
    /// Where the vault is or will be.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        // A variable that is set to nothing counts as not set.
        let from_environment =
            || std::env::var_os("RUNVAULT_VAULT").filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(path) = self.vault.clone().or_else(from_environment) {
            return Ok(path);
        }
        let directories = etcetera::choose_base_strategy().map_err(|error| {
            Failure::CouldNotRun(format!("cannot tell the user's data directory ({error}); use --vault PATH"))
        })?;
        Ok(directories.data_dir().join("runvault").join("default.vault"))
    }

    /// The vault, which must exist.
    pub(crate) fn open(&self) -> Result<Vault, Failure> {
        let actor = actor::actor(self.actor.as_deref())?;
        Ok(Vault::open(&self.path()?)?.acting_as(actor))
    }

    /// The vault, which is created if it does not exist.
    pub(crate) fn open_or_create(&self) -> Result<Vault, Failure> {
        let actor = actor::actor(self.actor.as_deref())?;
        Ok(Vault::open_or_create(&self.path()?)?.acting_as(actor))
    }
}
