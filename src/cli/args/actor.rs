//! Name recorded in the journal.

use runvault::storage::{Actor, ActorError};

use crate::cli::args::settings;
use crate::cli::output::exit::Failure;

/// Returns the actor from the argument, otherwise from the settings, otherwise the user and the machine.
pub(crate) fn actor(given: Option<&str>) -> Result<Actor, Failure> {
    let refused = |error: ActorError| Failure::Usage(format!("--actor: {error}"));
    if let Some(name) = given {
        return Actor::new(name).map_err(refused);
    }
    let set = settings::ACTOR.get()?;
    set.map_or_else(|| Actor::new(user_and_machine()).map_err(refused), Ok)
}

fn variable(name: &str) -> Option<String> {
    settings::variable(name)?.into_string().ok()
}

/// Returns the user and host name of the system.
pub(crate) fn user_and_machine() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(variable);
    let name = format!("{}@{}", named.unwrap_or_else(user), machine());
    // An overlong name from the system must not make a command fail.
    if name.len() > Actor::MAX_BYTES { name.chars().take(Actor::MAX_BYTES / 4).collect() } else { name }
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
