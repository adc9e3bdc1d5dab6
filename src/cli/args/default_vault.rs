//! The default location of the vault.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::cli::output::exit::CommandError;

/// Returns the path of the default vault.
pub(crate) fn default() -> Result<PathBuf, CommandError> {
    let directories = etcetera::choose_base_strategy().map_err(|error| {
        CommandError::CouldNotRun(format!(
            "cannot determine the user's data directory ({error}); use --vault PATH"
        ))
    })?;
    Ok(directories.data_dir().join("runvault").join("default.vault"))
}
