//! The configuration file, cached at its first use.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::file::{self, ConfigFile, ConfigFileError};
use super::list::ALL;
use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout;

/// Returns the contents of the configuration file, which is read once, when a setting is first used.
pub(super) fn configured() -> Result<&'static ConfigFile, CommandError> {
    static FILE: LazyLock<Result<ConfigFile, ConfigFileError>> = LazyLock::new(|| {
        // Without a home directory, as in a container, there is no configuration file.
        let Ok(path) = file::path() else { return Ok(ConfigFile::default()) };
        let file = ConfigFile::read(&path)?;
        warn_of_unknown(&file);
        Ok(file)
    });
    FILE.as_ref().map_err(|error| error.clone().into())
}

/// Whether warnings are suppressed, as for completions, which must not print anything.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Suppresses warnings about the file.
pub(crate) fn be_silent() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// Warns of unknown settings. A newer runvault may have more of them, but a misspelled one would silently have no
/// effect.
fn warn_of_unknown(file: &ConfigFile) {
    if IS_SILENT.load(Ordering::Relaxed) {
        return;
    }
    for (name, place) in file.unknown() {
        let names: Vec<&str> = ALL.into_iter().map(|known| known.entry().name).collect();
        stdout::warning(&format!(
            "{place}: unknown setting {name} ignored; known settings: {}",
            names.join(", ")
        ));
    }
}
