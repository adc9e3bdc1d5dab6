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

/// A description of a setting. The name is that in the file and of `config`.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    /// The argument that takes precedence over it.
    pub(crate) argument: Option<&'static str>,
    /// One sentence, in Markdown with code marks.
    pub(crate) about: &'static str,
    /// A description of the default.
    pub(crate) default_text: &'static str,
    /// The default as a value, if it has one.
    pub(crate) default: fn() -> Option<String>,
    /// Whether values are paths, which must be resolved against a directory.
    pub(crate) is_path: bool,
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

/// The vault to use.
pub(crate) static VAULT: Setting<PathBuf> = Setting {
    entry: Entry {
        name: "vault",
        variable: "RUNVAULT_VAULT",
        argument: Some("--vault"),
        about: "Path of the vault.",
        default_text: "`runvault/default.vault` in the user's data directory",
        default: || vault::default().ok().map(|path| path.to_string_lossy().into_owned()),
        is_path: true,
    },
    parse: some_path,
};

/// Name recorded in the journal.
pub(crate) static ACTOR: Setting<Actor> = Setting {
    entry: Entry {
        name: "actor",
        variable: "RUNVAULT_ACTOR",
        argument: Some("--actor"),
        about: "Name recorded in the journal.",
        default_text: "USER@HOST",
        default: || Some(actor::user_and_machine()),
        is_path: false,
    },
    parse: |text| Actor::new(text).map_err(|error| error.to_string()),
};

/// Whether the full-text index is kept in sync with the vault.
pub(crate) static SEARCH: Setting<bool> = Setting {
    entry: Entry {
        name: "search",
        variable: "RUNVAULT_SEARCH",
        argument: None,
        about: "Whether added artifacts are indexed for `search` at once: on or off.",
        default_text: "off",
        default: || Some("off".to_owned()),
        is_path: false,
    },
    parse: on_or_off,
};

/// The sources of keys for checking signatures: a list of paths.
pub(crate) static SIGNING_KEY_FILE: Setting<PathBuf> = Setting {
    entry: Entry {
        name: "signing-key-file",
        variable: "RUNVAULT_SIGNING_KEY_FILE",
        argument: Some("--signing-key-file"),
        about: "Check run pack signatures with the keys in this file or directory, or in several, separated as in \
                `PATH`. A key itself can be given in the variable `RUNVAULT_SIGNING_KEY`, which takes precedence, but \
                not in the configuration file.",
        default_text: "signatures are not checked",
        default: || None,
        is_path: true,
    },
    parse: some_path,
};

/// Minimum time since the last write of a trace before `--move` removes it.
pub(crate) static SETTLE_TRACES: Setting<Duration> = Setting {
    entry: Entry {
        name: "settle-traces",
        variable: "RUNVAULT_SETTLE_TRACES",
        argument: Some("--settle-traces"),
        about: "With `--move`: how long after its last write a trace that may still grow is removed: 90s, 10m, 1h.",
        default_text: "10m",
        default: || Some("10m".to_owned()),
        is_path: false,
    },
    parse: length,
};

/// Maximum bytes of a document.
pub(crate) static MAX_SIZE: Setting<u64> = Setting {
    entry: Entry {
        name: "max-size",
        variable: "RUNVAULT_MAX_SIZE",
        argument: Some("--max-size"),
        about: "Maximum document size in bytes; k, M and G stand for KiB, MiB and GiB.",
        default_text: "256M",
        default: || Some("256M".to_owned()),
        is_path: false,
    },
    parse: limits::bytes,
};

/// Maximum nesting depth.
pub(crate) static MAX_DEPTH: Setting<usize> = Setting {
    entry: Entry {
        name: "max-depth",
        variable: "RUNVAULT_MAX_DEPTH",
        argument: Some("--max-depth"),
        about: "Maximum nesting depth.",
        default_text: "128",
        default: || Some("128".to_owned()),
        is_path: false,
    },
    parse: limits::depth,
};

/// Maximum number of values of a JSON text.
pub(crate) static MAX_VALUES: Setting<usize> = Setting {
    entry: Entry {
        name: "max-values",
        variable: "RUNVAULT_MAX_VALUES",
        argument: Some("--max-values"),
        about: "Maximum number of values in a JSON text.",
        default_text: "10000000",
        default: || Some("10000000".to_owned()),
        is_path: false,
    },
    parse: limits::values,
};

/// Maximum number of entries of a pack.
pub(crate) static MAX_ENTRIES: Setting<usize> = Setting {
    entry: Entry {
        name: "max-entries",
        variable: "RUNVAULT_MAX_ENTRIES",
        argument: Some("--max-entries"),
        about: "Maximum number of entries in a pack, including those that are not read.",
        default_text: "10000",
        default: || Some("10000".to_owned()),
        is_path: false,
    },
    parse: limits::entries,
};

/// Maximum number of violations reported per document.
pub(crate) static MAX_VIOLATIONS: Setting<usize> = Setting {
    entry: Entry {
        name: "max-violations",
        variable: "RUNVAULT_MAX_VIOLATIONS",
        argument: Some("--max-violations"),
        about: "Maximum violations reported per document.",
        default_text: "20; with `--json` all",
        default: || None,
        is_path: false,
    },
    parse: limits::violations,
};

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
    Variable(&'static str),
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
    /// Returns the value of the variable, otherwise that in the file.
    pub(crate) fn value(&self) -> Result<Option<Value>, Failure> {
        if let Some(text) = self.variable_value() {
            return Ok(Some(Value { text, origin: Origin::Variable(self.variable) }));
        }
        let Some((text, place)) = read::configured()?.value(self.name) else { return Ok(None) };
        let text = if self.is_path_list() {
            path_list(&text, |text| Ok(file::absolute(text, &place.path)))?
        } else if self.is_path {
            file::absolute(&text, &place.path)
        } else {
            text.into()
        };
        Ok(Some(Value { text, origin: Origin::File(place) }))
    }

    /// Returns whether the value is a list of paths, separated as in `PATH`.
    pub(crate) fn is_path_list(&self) -> bool {
        self.name == SIGNING_KEY_FILE.entry.name
    }

    /// Returns the value of the variable.
    pub(crate) fn variable_value(&self) -> Option<OsString> {
        variable(self.variable)
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
            if let Some(default) = (known.entry().default)() {
                assert_eq!(known.check(&default), Ok(()), "{}", known.entry().name);
            }
        }
    }

    #[test]
    fn names_and_variables_belong_together() {
        for known in ALL {
            let entry = known.entry();
            assert_eq!(entry.variable, format!("RUNVAULT_{}", entry.name.replace('-', "_").to_uppercase()));
            assert!(entry.argument.is_none_or(|argument| argument == format!("--{}", entry.name)));
        }
    }

    #[test]
    fn a_default_that_is_a_number_is_the_one_that_is_told() {
        let limits = Limits::default();
        let default = |known: &dyn AnySetting| (known.entry().default)().unwrap();
        for known in [&MAX_DEPTH as &dyn AnySetting, &MAX_VALUES, &MAX_ENTRIES, &MAX_SIZE] {
            assert_eq!(default(known), known.entry().default_text);
        }
        assert_eq!(default(&SETTLE_TRACES), SETTLE_TRACES.entry.default_text);
        let settle = runvault::intake::MoveOptions::default().settle_growing;
        assert_eq!(length(&default(&SETTLE_TRACES)), Ok(settle));
        assert_eq!(limits::bytes(&default(&MAX_SIZE)), Ok(limits.bytes));
        assert_eq!(limits::depth(&default(&MAX_DEPTH)), Ok(limits.depth));
        assert_eq!(limits::values(&default(&MAX_VALUES)), Ok(limits.values));
        assert_eq!(limits::entries(&default(&MAX_ENTRIES)), Ok(limits.entries));
    }
}
