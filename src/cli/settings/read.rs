//! The configuration file as it was when it was first asked for.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::output;
use super::file::{self, File, FileError};
use super::{ALL, Failure};

/// What the configuration file says. It is read when a setting is first asked for, and once.
pub(super) fn configured() -> Result<&'static File, Failure> {
    static FILE: LazyLock<Result<File, FileError>> = LazyLock::new(|| {
        // Who has no home, as a service in a container, has no file there.
        let Ok(path) = file::path() else { return Ok(File::default()) };
        let file = File::read(&path)?;
        warn_of_strangers(&file);
        Ok(file)
    });
    FILE.as_ref().map_err(|error| error.clone().into())
}

/// Completions are asked for while somebody types: nothing may be written between the letters.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Says nothing of what is strange in the file.
pub(crate) fn be_silent() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// A newer runvault may know more settings. One that is spelled wrong would do nothing, and nobody would know why.
fn warn_of_strangers(file: &File) {
    if IS_SILENT.load(Ordering::Relaxed) {
        return;
    }
    for (name, place) in file.strangers() {
        let names: Vec<&str> = ALL.into_iter().map(|known| known.entry().name).collect();
        output::warning(&format!(
            "{place}: this runvault has no setting {name} and passes it over; it has {}",
            names.join(", ")
        ));
    }
}
