//! The list of all settings.

use std::path::PathBuf;
use std::time::Duration;

use runvault::storage::Actor;

use super::entry::{AnySetting, DefaultValue, Setting, SettingType};
use super::gateway;
use crate::cli::args::length::length;
use crate::cli::args::{bounds, default_vault, host};

/// Every setting, in listing order.
pub(crate) static ALL: [&dyn AnySetting; 16] = [
    &VAULT,
    &ACTOR,
    &SEARCH,
    &SOURCE_PATH,
    &REFUSE_SECRETS,
    &SIGNING_KEY_FILE,
    &SETTLE_TRACES,
    &GATEWAY_UPSTREAM,
    &GATEWAY_IGNORE,
    &GATEWAY_NORMALIZE,
    &GATEWAY_REDACT,
    &MAX_SIZE,
    &MAX_DEPTH,
    &MAX_VALUES,
    &MAX_ENTRIES,
    &MAX_VIOLATIONS,
];

pub(crate) static VAULT: Setting<PathBuf> = Setting::new(
    "vault",
    "Path of the vault, or `postgres://` URL of one in a database.",
    DefaultValue::Computed("`runvault/default.vault` in the user's data directory", || {
        default_vault::default().ok().map(|path| path.to_string_lossy().into_owned())
    }),
    some_path,
)
.of(SettingType::VaultAddress);

pub(crate) static ACTOR: Setting<Actor> = Setting::new(
    "actor",
    "Name recorded in the journal.",
    DefaultValue::Computed("USER@HOST", || Some(host::user_and_machine())),
    |text| Actor::new(text).map_err(|error| error.to_string()),
);

pub(crate) static SEARCH: Setting<bool> = Setting::new(
    "search",
    "Whether added artifacts are indexed for `search` at once: on or off.",
    DefaultValue::Value("off"),
    on_or_off,
)
.without_argument();

pub(crate) static SOURCE_PATH: Setting<bool> = Setting::new(
    "source-path",
    "Whether new captures are stored with the path that they were read from: on or off.",
    DefaultValue::Value("on"),
    on_or_off,
)
.without_argument();

pub(crate) static REFUSE_SECRETS: Setting<bool> = Setting::new(
    "refuse-secrets",
    "Whether `add`, `watch`, `exec` and `gateway` refuse to store what looks like a key or a card number: on or off.",
    DefaultValue::Value("off"),
    on_or_off,
);

pub(crate) static SIGNING_KEY_FILE: Setting<PathBuf> = Setting::new(
    "signing-key-file",
    "Check run pack signatures with the keys in this file or directory, or in several, separated as in `PATH`. A key \
     itself can be given in the variable `RUNVAULT_SIGNING_KEY`, which takes precedence, but not in the configuration \
     file.",
    DefaultValue::Without("signatures are not checked"),
    some_path,
)
.of(SettingType::Paths);

pub(crate) static SETTLE_TRACES: Setting<Duration> = Setting::new(
    "settle-traces",
    "Time after its last write at which `--move` removes a trace that may still grow: 90s, 10m, 1h.",
    DefaultValue::Value("10m"),
    length,
);

pub(crate) static GATEWAY_UPSTREAM: Setting<Vec<String>> = Setting::new(
    "gateway-upstream",
    "Servers to which a gateway forwards calls: `NAME=URL`, one on each line; in the file, an array of strings. The \
     command-line option replaces those of the same name.",
    DefaultValue::Without("those of the providers"),
    gateway::upstreams,
)
.of(SettingType::List)
.added_to_by("--upstream");

pub(crate) static GATEWAY_IGNORE: Setting<Vec<String>> = Setting::new(
    "gateway-ignore",
    "Members of requests that a gateway leaves out of comparisons: names or JSON Pointers, one on each line or \
     separated by commas; in the file, an array of strings. The command-line option adds to it.",
    DefaultValue::Without("none"),
    gateway::ignored,
)
.of(SettingType::List)
.added_to_by("--ignore");

pub(crate) static GATEWAY_NORMALIZE: Setting<Vec<String>> = Setting::new(
    "gateway-normalize",
    "Rules by which a gateway replaces text before it compares requests, one on each line; in the file, an array of \
     strings. The command-line option adds to it.",
    DefaultValue::Without("none"),
    gateway::normalized,
)
.of(SettingType::List)
.added_to_by("--normalize");

pub(crate) static GATEWAY_REDACT: Setting<Vec<String>> = Setting::new(
    "gateway-redact",
    "Regular expressions of text that a gateway does not store, one on each line; in the file, an array of strings. The \
     command-line option adds to it.",
    DefaultValue::Without("none"),
    gateway::redacted,
)
.of(SettingType::List)
.added_to_by("--redact");

pub(crate) static MAX_SIZE: Setting<u64> = Setting::new(
    "max-size",
    "Maximum document size in bytes; k, M and G stand for KiB, MiB and GiB.",
    DefaultValue::Value("256M"),
    bounds::bytes,
);

pub(crate) static MAX_DEPTH: Setting<usize> =
    Setting::new("max-depth", "Maximum nesting depth.", DefaultValue::Value("128"), bounds::depth);

pub(crate) static MAX_VALUES: Setting<usize> = Setting::new(
    "max-values",
    "Maximum number of values in a JSON text.",
    DefaultValue::Value("10000000"),
    bounds::values,
);

pub(crate) static MAX_ENTRIES: Setting<usize> = Setting::new(
    "max-entries",
    "Maximum number of entries in a pack, including those that are not read.",
    DefaultValue::Value("10000"),
    bounds::entries,
);

pub(crate) static MAX_VIOLATIONS: Setting<usize> = Setting::new(
    "max-violations",
    "Maximum violations reported per document.",
    DefaultValue::Without("20; with `--json` all"),
    bounds::violations,
);

/// Returns the setting with this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn AnySetting> {
    ALL.into_iter().find(|known| known.entry().name == name)
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
        assert_eq!(bounds::bytes(&default(&MAX_SIZE)), Ok(limits.bytes));
        assert_eq!(bounds::depth(&default(&MAX_DEPTH)), Ok(limits.depth));
        assert_eq!(bounds::values(&default(&MAX_VALUES)), Ok(limits.values));
        assert_eq!(bounds::entries(&default(&MAX_ENTRIES)), Ok(limits.entries));
    }
}
