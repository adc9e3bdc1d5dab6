//! The environment of the process: variables, the user, the machine and the default location of the vault.

use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy;
use runvault::storage::Actor;

use crate::cli::output::exit::CommandError;

/// Returns the value of a variable. An empty variable counts as unset.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|text| !text.is_empty())
}

/// Returns the user and host name of the system.
pub(crate) fn user_and_machine() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(text_variable);
    let name = format!("{}@{}", named.unwrap_or_else(user), machine());
    // An overlong name from the system must not make a command fail.
    if name.len() > Actor::MAX_BYTES { name.chars().take(Actor::MAX_BYTES / 4).collect() } else { name }
}

fn text_variable(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

#[cfg(unix)]
fn user() -> String {
    format!("uid-{}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn user() -> String {
    "unknown".to_owned()
}

#[cfg(unix)]
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn machine() -> String {
    text_variable("COMPUTERNAME").unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the path of the default vault.
pub(crate) fn default_path() -> Result<PathBuf, CommandError> {
    let directories = etcetera::choose_base_strategy().map_err(|error| {
        CommandError::CouldNotRun(format!(
            "cannot determine the user's data directory ({error}); use --vault PATH"
        ))
    })?;
    Ok(directories.data_dir().join("runvault").join("default.vault"))
}
