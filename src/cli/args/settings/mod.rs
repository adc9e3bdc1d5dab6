//! Settings: the list of all settings, and the sources of their values.
//!
//! An argument takes precedence over a variable, a variable over the configuration file, and the file over the default.

mod file;
mod read;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use runvault::storage::Actor;

use crate::cli::args::actor;
use crate::cli::args::length::length;
use crate::cli::args::limits;
use crate::cli::args::vault;
use crate::cli::output::exit::Failure;

pub(crate) use file::{Place, at_home, edit, path};
pub(crate) use read::be_silent;

/// A description of a setting.
pub(crate) struct Entry {
    /// The name in the file and of `config`, and of the argument that takes precedence over it.
    pub(crate) name: &'static str,
    has_argument: bool,
    /// One sentence, in Markdown with code marks.
    pub(crate) about: &'static str,
    default: DefaultValue,
    pub(crate) values: Values,
}

/// The default of a setting.
enum DefaultValue {
    Value(&'static str),
    /// A description of a value that depends on the system, and the value.
    Computed(&'static str, fn() -> Option<String>),
    /// A description of what applies without a value.
    Without(&'static str),
}

/// What the values of a setting are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Text,
    /// A path, which must be resolved against a directory.
    Path,
    /// Paths, separated as in `PATH`.
    Paths,
}

/// A setting with the type of its values.
pub(crate) struct Setting<T: 'static> {
    pub(crate) entry: Entry,
    parse: fn(&str) -> Result<T, String>,
}

/// A setting of any type.
pub(crate) trait AnySetting: Sync {
    fn entry(&self) -> &Entry;

    /// Returns an error if `text` is not a valid value.
    fn check(&self, text: &str) -> Result<(), String>;
}

impl<T> AnySetting for Setting<T> {
    fn entry(&self) -> &Entry {
        &self.entry
    }

    fn check(&self, text: &str) -> Result<(), String> {
        (self.parse)(text).map(drop)
    }
}

/// Every setting, in listing order.
pub(crate) static ALL: [&dyn AnySetting; 10] = [
    &VAULT,
    &ACTOR,
    &SEARCH,
    &SIGNING_KEY_FILE,
    &SETTLE_TRACES,
    &MAX_SIZE,
    &MAX_DEPTH,
    &MAX_VALUES,
    &MAX_ENTRIES,
    &MAX_VIOLATIONS,
];

impl<T> Setting<T> {
    const fn new(
        name: &'static str,
        about: &'static str,
        default: DefaultValue,
        parse: fn(&str) -> Result<T, String>,
    ) -> Self {
        Self { entry: Entry { name, has_argument: true, about, default, values: Values::Text }, parse }
    }

    const fn of(mut self, values: Values) -> Self {
        self.entry.values = values;
        self
    }

    const fn without_argument(mut self) -> Self {
        self.entry.has_argument = false;
        self
    }
}

pub(crate) static VAULT: Setting<PathBuf> = Setting::new(
    "vault",
    "Path of the vault.",
    DefaultValue::Computed("`runvault/default.vault` in the user's data directory", || {
        vault::default().ok().map(|path| path.to_string_lossy().into_owned())
    }),
    some_path,
)
.of(Values::Path);

pub(crate) static ACTOR: Setting<Actor> = Setting::new(
    "actor",
    "Name recorded in the journal.",
    DefaultValue::Computed("USER@HOST", || Some(actor::user_and_machine())),
    |text| Actor::new(text).map_err(|error| error.to_string()),
);

pub(crate) static SEARCH: Setting<bool> = Setting::new(
    "search",
    "Whether added artifacts are indexed for `search` at once: on or off.",
    DefaultValue::Value("off"),
    on_or_off,
)
.without_argument();

pub(crate) static SIGNING_KEY_FILE: Setting<PathBuf> = Setting::new(
    "signing-key-file",
    "Check run pack signatures with the keys in this file or directory, or in several, separated as in `PATH`. A key \
     itself can be given in the variable `RUNVAULT_SIGNING_KEY`, which takes precedence, but not in the configuration \
     file.",
    DefaultValue::Without("signatures are not checked"),
    some_path,
)
.of(Values::Paths);

pub(crate) static SETTLE_TRACES: Setting<Duration> = Setting::new(
    "settle-traces",
    "With `--move`: how long after its last write a trace that may still grow is removed: 90s, 10m, 1h.",
    DefaultValue::Value("10m"),
    length,
);

pub(crate) static MAX_SIZE: Setting<u64> = Setting::new(
    "max-size",
    "Maximum document size in bytes; k, M and G stand for KiB, MiB and GiB.",
    DefaultValue::Value("256M"),
    limits::bytes,
);

pub(crate) static MAX_DEPTH: Setting<usize> =
    Setting::new("max-depth", "Maximum nesting depth.", DefaultValue::Value("128"), limits::depth);

pub(crate) static MAX_VALUES: Setting<usize> = Setting::new(
    "max-values",
    "Maximum number of values in a JSON text.",
    DefaultValue::Value("10000000"),
    limits::values,
);

pub(crate) static MAX_ENTRIES: Setting<usize> = Setting::new(
    "max-entries",
    "Maximum number of entries in a pack, including those that are not read.",
    DefaultValue::Value("10000"),
    limits::entries,
);

pub(crate) static MAX_VIOLATIONS: Setting<usize> = Setting::new(
    "max-violations",
    "Maximum violations reported per document.",
    DefaultValue::Without("20; with `--json` all"),
    limits::violations,
);

/// Returns whether the full-text index is kept in sync with additions.
pub(crate) fn search() -> Result<bool, Failure> {
    Ok(SEARCH.get()?.unwrap_or(false))
}

/// Returns the setting with this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn AnySetting> {
    ALL.into_iter().find(|known| known.entry().name == name)
}

/// Returns the value of a variable. An empty variable counts as unset.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|text| !text.is_empty())
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Variable(String),
    File(Place),
}

impl Origin {
    /// Returns an error for the value of `name` from this source, with how to correct it.
    fn refuses(&self, name: &str, why: &str) -> Failure {
        Failure::Usage(match self {
            Self::Variable(variable) => format!("{variable}: {why}"),
            Self::File(place) => format!(
                "{place}: {name}: {why}; \"runvault config set {name} VALUE\" or \"config unset {name}\" corrects it"
            ),
        })
    }
}

/// A value as written.
pub(crate) struct Value {
    pub(crate) text: OsString,
    pub(crate) origin: Origin,
}

impl Entry {
    /// Returns the name of the variable.
    pub(crate) fn variable(&self) -> String {
        format!("RUNVAULT_{}", self.name.replace('-', "_").to_uppercase())
    }

    /// Returns the argument that takes precedence over it, if there is one.
    pub(crate) fn argument(&self) -> Option<String> {
        self.has_argument.then(|| format!("--{}", self.name))
    }

    /// Returns the default as a value, if it has one.
    pub(crate) fn default(&self) -> Option<String> {
        match self.default {
            DefaultValue::Value(value) => Some(value.to_owned()),
            DefaultValue::Computed(_, value) => value(),
            DefaultValue::Without(_) => None,
        }
    }

    /// Returns the default for display.
    pub(crate) fn default_text(&self) -> &'static str {
        match self.default {
            DefaultValue::Value(text) | DefaultValue::Computed(text, _) | DefaultValue::Without(text) => text,
        }
    }

    /// Returns the value of the variable, otherwise that in the file.
    pub(crate) fn value(&self) -> Result<Option<Value>, Failure> {
        if let Some(text) = self.variable_value() {
            return Ok(Some(Value { text, origin: Origin::Variable(self.variable()) }));
        }
        let Some((text, place)) = read::configured()?.value(self.name) else { return Ok(None) };
        let text = match self.values {
            Values::Paths => path_list(&text, |text| Ok(file::absolute(text, &place.path)))?,
            Values::Path => file::absolute(&text, &place.path),
            Values::Text => text.into(),
        };
        Ok(Some(Value { text, origin: Origin::File(place) }))
    }

    /// Returns the value of the variable.
    pub(crate) fn variable_value(&self) -> Option<OsString> {
        variable(&self.variable())
    }
}

impl<T> Setting<T> {
    /// Returns the value of the variable, otherwise that in the file; `None` if neither is set.
    pub(crate) fn get(&self) -> Result<Option<T>, Failure> {
        let Some(Value { text, origin }) = self.entry.value()? else { return Ok(None) };
        let parsed = (self.parse)(&text.to_string_lossy());
        parsed.map(Some).map_err(|why| origin.refuses(self.entry.name, &why))
    }

    /// Returns the argument, or the value if there is none.
    pub(crate) fn unless(&self, argument: Option<T>) -> Result<Option<T>, Failure> {
        argument.map_or_else(|| self.get(), |argument| Ok(Some(argument)))
    }
}

impl Setting<PathBuf> {
    /// Returns the value as a path, which may not be valid Unicode.
    pub(crate) fn get_path(&self) -> Result<Option<PathBuf>, Failure> {
        Ok(self.entry.value()?.map(|value| value.text.into()))
    }

    /// Returns the paths of a list; none if it is not set.
    pub(crate) fn get_paths(&self) -> Result<Vec<PathBuf>, Failure> {
        let value = self.entry.value()?;
        Ok(value.map_or_else(Vec::new, |value| {
            std::env::split_paths(&value.text).filter(|path| !path.as_os_str().is_empty()).collect()
        }))
    }
}

/// Returns the list of paths `text` with `change` applied to each.
pub(crate) fn path_list(
    text: &str,
    change: impl Fn(&str) -> Result<OsString, Failure>,
) -> Result<OsString, Failure> {
    let paths = std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty());
    let paths: Vec<OsString> =
        paths.map(|path| change(&path.to_string_lossy())).collect::<Result<_, Failure>>()?;
    std::env::join_paths(paths).map_err(|error| Failure::Usage(error.to_string()))
}

fn some_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("a path must not be empty".to_owned()) } else { Ok(text.into()) }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use runvault::json::reader::Limits;

    use super::*;

    #[test]
    fn defaults_are_values_that_could_be_set() {
        for known in ALL {
            if let Some(default) = known.entry().default() {
                assert_eq!(known.check(&default), Ok(()), "{}", known.entry().name);
            }
        }
    }

    #[test]
    fn a_default_that_is_a_number_is_the_one_that_is_told() {
        let limits = Limits::default();
        let default = |known: &dyn AnySetting| known.entry().default().unwrap();
        let settle = runvault::intake::MoveOptions::default().settle_growing;
        assert_eq!(length(&default(&SETTLE_TRACES)), Ok(settle));
        assert_eq!(limits::bytes(&default(&MAX_SIZE)), Ok(limits.bytes));
        assert_eq!(limits::depth(&default(&MAX_DEPTH)), Ok(limits.depth));
        assert_eq!(limits::values(&default(&MAX_VALUES)), Ok(limits.values));
        assert_eq!(limits::entries(&default(&MAX_ENTRIES)), Ok(limits.entries));
    }
}
