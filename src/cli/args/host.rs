//! The user and the machine.

use runvault::storage::Actor;

use crate::cli::args::variable;

/// Returns the user and host name of the system.
pub(crate) fn user_and_machine() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(variable);
    let name = format!("{}@{}", named.unwrap_or_else(user), machine());
    // An overlong name from the system must not make a command fail.
    if name.len() > Actor::MAX_BYTES { name.chars().take(Actor::MAX_BYTES / 4).collect() } else { name }
}

fn variable(name: &str) -> Option<String> {
    variable::variable(name)?.into_string().ok()
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
    variable("COMPUTERNAME").unwrap_or_else(|| "unknown".to_owned())
}
