//! Which vault is meant.

use std::path::PathBuf;

use clap::Args;
use etcetera::BaseStrategy;
use runvault::Vault;

use super::exit::Failure;
use super::{actor, settings};

/// Which vault to use.
#[derive(Args)]
pub(crate) struct VaultArgs {
    /// The vault to use; "add" creates it. Default: the setting vault, else runvault/default.vault in the user's data
    /// directory
    #[arg(long, global = true, value_name = "PATH", help_heading = "Vault")]
    vault: Option<PathBuf>,

    /// Who the journal says did it. Default: the setting actor, else the user and the machine
    #[arg(long, global = true, value_name = "NAME", help_heading = "Vault")]
    actor: Option<String>,
}

impl VaultArgs {
    /// Where the vault is or will be.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        match &self.vault {
            Some(path) => Ok(path.clone()),
            None => settings::VAULT.get_path()?.map_or_else(default, Ok),
        }
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

/// The vault of those who name none.
pub(super) fn default() -> Result<PathBuf, Failure> {
    let directories = etcetera::choose_base_strategy().map_err(|error| {
        Failure::CouldNotRun(format!("cannot tell the user's data directory ({error}); use --vault PATH"))
    })?;
    Ok(directories.data_dir().join("runvault").join("default.vault"))
}
