//! Name recorded in the journal.

use runvault::storage::{Actor, ActorError};

use crate::cli::args::host::user_and_machine;
use crate::cli::args::settings;
use crate::cli::output::exit::CommandError;

/// Returns the actor from the argument, otherwise from the settings, otherwise the user and the machine.
pub(crate) fn actor(given: Option<&str>) -> Result<Actor, CommandError> {
    let refused = |error: ActorError| CommandError::Usage(format!("--actor: {error}"));
    if let Some(name) = given {
        return Actor::new(name).map_err(refused);
    }
    let set = settings::ACTOR.get()?;
    set.map_or_else(|| Actor::new(user_and_machine()).map_err(refused), Ok)
}
