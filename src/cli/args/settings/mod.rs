//! Settings: the list of all settings, and the sources of their values.
//!
//! An argument takes precedence over a variable, a variable over the configuration file, and the file over the default.

mod file;
mod list;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use runvault::Vault;
use runvault::vault::prices::ModelPrice;

use super::environment::variable;
use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout;
use file::{ConfigFile, ConfigFileError, ConfigLocation};
use list::{PRICES, REFUSE_SECRETS, SEARCH, SOURCE_PATH};

pub(crate) use file::{at_home, edit, path};
#[cfg(feature = "gateway")]
pub(crate) use list::GATEWAY_UPSTREAM;
pub(crate) use list::{
    ACTOR, ALL, AnySetting, DIFF_IGNORE, GATEWAY_IGNORE, GATEWAY_NORMALIZE, GATEWAY_REDACT, MAX_DEPTH,
    MAX_ENTRIES, MAX_SIZE, MAX_VALUES, MAX_VIOLATIONS, SETTLE_TRACES, SIGNING_KEY_FILE, Setting, SettingInfo,
    SettingType, VAULT, named,
};

/// Returns the contents of the configuration file, which is read once, when a setting is first used.
fn configured() -> Result<&'static ConfigFile, CommandError> {
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

/// Returns whether the full-text index is kept in sync with additions.
pub(crate) fn search() -> Result<bool, CommandError> {
    Ok(SEARCH.get()?.unwrap_or(false))
}

/// Returns whether new captures are stored with the path that they were read from.
pub(crate) fn source_path() -> Result<bool, CommandError> {
    Ok(SOURCE_PATH.get()?.unwrap_or(true))
}

/// Returns whether what looks like a secret is refused.
pub(crate) fn refuse_secrets() -> Result<bool, CommandError> {
    Ok(REFUSE_SECRETS.get()?.unwrap_or(false))
}

/// Returns the prices of models.
pub(crate) fn prices() -> Result<Vec<ModelPrice>, CommandError> {
    Ok(PRICES.get()?.unwrap_or_default())
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Variable(String),
    File(ConfigLocation),
}

impl SettingOrigin {
    /// Returns an error for the value of `name` from this source, with how to correct it.
    fn refuses(&self, name: &str, why: &str) -> CommandError {
        CommandError::Usage(match self {
            Self::Variable(variable) => format!("{variable}: {why}"),
            Self::File(place) => format!(
                "{place}: {name}: {why}; \"runvault config set {name} VALUE\" or \"config unset {name}\" corrects it"
            ),
        })
    }
}

/// A value as written.
pub(crate) struct SettingValue {
    pub(crate) text: OsString,
    pub(crate) origin: SettingOrigin,
}

impl SettingInfo {
    /// Returns the value of the variable, otherwise that in the file.
    pub(crate) fn value(&self) -> Result<Option<SettingValue>, CommandError> {
        if let Some(text) = self.variable_value() {
            return Ok(Some(SettingValue { text, origin: SettingOrigin::Variable(self.variable()) }));
        }
        let Some((text, place)) = configured()?.value(self.name) else { return Ok(None) };
        let text = match self.values {
            SettingType::Paths => path_list(&text, |text| Ok(file::absolute(text, &place.path)))?,
            SettingType::VaultAddress => vault_address(&text, |text| Ok(file::absolute(text, &place.path)))?,
            SettingType::Text | SettingType::List => text.into(),
        };
        Ok(Some(SettingValue { text, origin: SettingOrigin::File(place) }))
    }

    /// Returns the value of the variable.
    pub(crate) fn variable_value(&self) -> Option<OsString> {
        variable(&self.variable())
    }
}

impl<T> Setting<T> {
    /// Returns the value of the variable, otherwise that in the file; `None` if neither is set.
    pub(crate) fn get(&self) -> Result<Option<T>, CommandError> {
        let Some(SettingValue { text, origin }) = self.entry.value()? else { return Ok(None) };
        let parsed = (self.parse)(&text.to_string_lossy());
        parsed.map(Some).map_err(|why| origin.refuses(self.entry.name, &why))
    }

    /// Returns the argument, or the value if there is none.
    pub(crate) fn unless(&self, argument: Option<T>) -> Result<Option<T>, CommandError> {
        argument.map_or_else(|| self.get(), |argument| Ok(Some(argument)))
    }
}

impl Setting<PathBuf> {
    /// Returns the value as a path, which may not be valid Unicode.
    pub(crate) fn get_path(&self) -> Result<Option<PathBuf>, CommandError> {
        Ok(self.entry.value()?.map(|value| value.text.into()))
    }

    /// Returns the paths of a list; none if it is not set.
    pub(crate) fn get_paths(&self) -> Result<Vec<PathBuf>, CommandError> {
        let value = self.entry.value()?;
        Ok(value.map_or_else(Vec::new, |value| {
            std::env::split_paths(&value.text).filter(|path| !path.as_os_str().is_empty()).collect()
        }))
    }
}

/// Returns the address of a vault `text` with `change` applied to the path that it has. A URL has none.
pub(crate) fn vault_address(
    text: &str,
    change: impl Fn(&str) -> Result<OsString, CommandError>,
) -> Result<OsString, CommandError> {
    const FILE: &str = "sqlite:";
    match text.strip_prefix(FILE) {
        Some(path) => {
            let mut address = OsString::from(FILE);
            address.push(change(path)?);
            Ok(address)
        }
        // What resembles the address of a database is refused when it is used.
        None if Vault::file_of(Path::new(text)).is_none() => Ok(text.into()),
        None => change(text),
    }
}

/// Returns the list of paths `text` with `change` applied to each.
pub(crate) fn path_list(
    text: &str,
    change: impl Fn(&str) -> Result<OsString, CommandError>,
) -> Result<OsString, CommandError> {
    let paths = std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty());
    let paths: Vec<OsString> =
        paths.map(|path| change(&path.to_string_lossy())).collect::<Result<_, CommandError>>()?;
    std::env::join_paths(paths).map_err(|error| CommandError::Usage(error.to_string()))
}
