//! The settings: the list, and what is known of each.

use std::path::PathBuf;
use std::time::Duration;

use runvault::calls::MatchingRules;
use runvault::display::brief;
#[cfg(feature = "gateway")]
use runvault::gateway::Upstream;
use runvault::storage::Actor;
use runvault::vault::prices::ModelPrice;

use crate::cli::args::bounds::{self, length};
use crate::cli::args::environment;

/// A description of a setting.
pub(crate) struct SettingInfo {
    /// The name in the file and of `config`, and of the argument that takes precedence over it.
    pub(crate) name: &'static str,
    pub(super) argument: Argument,
    /// One sentence, in Markdown with code marks.
    pub(crate) about: &'static str,
    pub(super) default: DefaultValue,
    pub(crate) values: SettingType,
}

/// The argument of a setting.
pub(super) enum Argument {
    /// It has the name of the setting and takes precedence over it.
    SameName,
    /// It has another name, and adds to the setting.
    Adds(&'static str),
    /// There is none.
    None,
}

/// The default of a setting.
pub(super) enum DefaultValue {
    Value(&'static str),
    /// A description of a value that depends on the system, and the value.
    Computed(&'static str, fn() -> Option<String>),
    /// A description of what applies without a value.
    Without(&'static str),
}

/// What the values of a setting are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingType {
    Text,
    /// The address of a vault: a path, which must be resolved against a directory and may follow `sqlite:`, or a URL.
    VaultAddress,
    /// Paths, separated as in `PATH`.
    Paths,
    /// Texts, one on each line; in the file, an array of strings.
    List,
}

/// A setting with the type of its values.
pub(crate) struct Setting<T: 'static> {
    pub(crate) entry: SettingInfo,
    pub(super) parse: fn(&str) -> Result<T, String>,
}

/// A setting of any type.
pub(crate) trait AnySetting: Sync {
    fn entry(&self) -> &SettingInfo;

    /// Returns an error if `text` is not a valid value.
    fn check(&self, text: &str) -> Result<(), String>;
}

impl<T> AnySetting for Setting<T> {
    fn entry(&self) -> &SettingInfo {
        &self.entry
    }

    fn check(&self, text: &str) -> Result<(), String> {
        (self.parse)(text).map(drop)
    }
}

impl<T> Setting<T> {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        default: DefaultValue,
        parse: fn(&str) -> Result<T, String>,
    ) -> Self {
        Self {
            entry: SettingInfo {
                name,
                argument: Argument::SameName,
                about,
                default,
                values: SettingType::Text,
            },
            parse,
        }
    }

    pub(super) const fn of(mut self, values: SettingType) -> Self {
        self.entry.values = values;
        self
    }

    pub(super) const fn without_argument(mut self) -> Self {
        self.entry.argument = Argument::None;
        self
    }

    pub(super) const fn added_to_by(mut self, argument: &'static str) -> Self {
        self.entry.argument = Argument::Adds(argument);
        self
    }
}

impl SettingInfo {
    /// Returns the name of the variable.
    pub(crate) fn variable(&self) -> String {
        format!("RUNVAULT_{}", self.name.replace('-', "_").to_uppercase())
    }

    /// Returns the argument that takes precedence over it or adds to it, if there is one.
    pub(crate) fn argument(&self) -> Option<String> {
        match self.argument {
            Argument::SameName => Some(format!("--{}", self.name)),
            Argument::Adds(argument) => Some(argument.to_owned()),
            Argument::None => None,
        }
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
}

/// Every setting, in listing order.
pub(crate) static ALL: [&dyn AnySetting; 18] = [
    &VAULT,
    &ACTOR,
    &SEARCH,
    &SOURCE_PATH,
    &REFUSE_SECRETS,
    &SIGNING_KEY_FILE,
    &SETTLE_TRACES,
    &PRICES,
    &DIFF_IGNORE,
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
        environment::default_path().ok().map(|path| path.to_string_lossy().into_owned())
    }),
    some_path,
)
.of(SettingType::VaultAddress);

pub(crate) static ACTOR: Setting<Actor> = Setting::new(
    "actor",
    "Name recorded in the journal.",
    DefaultValue::Computed("USER@HOST", || Some(environment::user_and_machine())),
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

pub(crate) static PRICES: Setting<Vec<ModelPrice>> = Setting::new(
    "prices",
    "Prices from which `list` and `stats` compute the costs of runs that state none: `MODEL=INPUT/OUTPUT`, in US dollars \
     for a million input and output tokens, one on each line; in the file, an array of strings. `*` at the end of MODEL \
     stands for any text.",
    DefaultValue::Without("only stated costs are shown"),
    prices,
)
.of(SettingType::List)
.without_argument();

pub(crate) static DIFF_IGNORE: Setting<Vec<String>> = Setting::new(
    "diff-ignore",
    "Values that a comparison leaves out: JSON Pointers into steps and other parts, one on each line or separated by commas; \
     in the file, an array of strings. The command-line option adds to it.",
    DefaultValue::Without("none"),
    ignored,
)
.of(SettingType::List)
.added_to_by("--ignore");

pub(crate) static GATEWAY_UPSTREAM: Setting<Vec<String>> = Setting::new(
    "gateway-upstream",
    "Servers to which a gateway forwards calls: `NAME=URL`, one on each line; in the file, an array of strings. The \
     command-line option replaces those of the same name.",
    DefaultValue::Without("those of the providers"),
    upstreams,
)
.of(SettingType::List)
.added_to_by("--upstream");

pub(crate) static GATEWAY_IGNORE: Setting<Vec<String>> = Setting::new(
    "gateway-ignore",
    "Members of requests that a gateway leaves out of comparisons: names or JSON Pointers, one on each line or \
     separated by commas; in the file, an array of strings. The command-line option adds to it.",
    DefaultValue::Without("none"),
    ignored,
)
.of(SettingType::List)
.added_to_by("--ignore");

pub(crate) static GATEWAY_NORMALIZE: Setting<Vec<String>> = Setting::new(
    "gateway-normalize",
    "Rules by which a gateway replaces text before it compares requests, one on each line; in the file, an array of \
     strings. The command-line option adds to it.",
    DefaultValue::Without("none"),
    normalized,
)
.of(SettingType::List)
.added_to_by("--normalize");

pub(crate) static GATEWAY_REDACT: Setting<Vec<String>> = Setting::new(
    "gateway-redact",
    "Regular expressions of text that a gateway does not store, one on each line; in the file, an array of strings. The \
     command-line option adds to it.",
    DefaultValue::Without("none"),
    redacted,
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

fn prices(text: &str) -> Result<Vec<ModelPrice>, String> {
    lines(text).iter().map(|line| price(line)).collect()
}

/// Parses `MODEL=INPUT/OUTPUT`.
fn price(line: &str) -> Result<ModelPrice, String> {
    let parts = line.rsplit_once('=').and_then(|(model, price)| Some((model.trim(), price.split_once('/')?)));
    let (model, (input, output)) = parts.filter(|(model, _)| !model.is_empty()).ok_or_else(|| {
        format!("expected MODEL=INPUT/OUTPUT, such as gpt-4o*=2.50/10, instead of {}", brief(line))
    })?;
    let amount = |text: &str| text.trim().parse().map_err(|error| format!("{}: {error}", brief(text)));
    Ok(ModelPrice { model: model.to_owned(), input: amount(input)?, output: amount(output)? })
}

/// Returns servers. In a build without gateway, they are not checked: nothing uses them.
#[cfg_attr(not(feature = "gateway"), expect(clippy::unnecessary_wraps, reason = "gateways check it"))]
pub(super) fn upstreams(text: &str) -> Result<Vec<String>, String> {
    #[cfg(feature = "gateway")]
    check(text, |line| Upstream::parse(line).map(drop))?;
    Ok(lines(text))
}

/// Returns members. As in the argument, commas can be between them.
pub(super) fn ignored(text: &str) -> Result<Vec<String>, String> {
    let text = text.replace(',', "\n");
    check(&text, |line| MatchingRules::default().ignore(line))?;
    Ok(lines(&text))
}

pub(super) fn normalized(text: &str) -> Result<Vec<String>, String> {
    check(text, |line| MatchingRules::default().normalize(line))?;
    Ok(lines(text))
}

pub(super) fn redacted(text: &str) -> Result<Vec<String>, String> {
    check(text, |line| MatchingRules::default().redact(line))?;
    Ok(lines(text))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn check<E: ToString>(text: &str, check: impl Fn(&str) -> Result<(), E>) -> Result<(), String> {
    lines(text).iter().try_for_each(|line| check(line).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runvault::json::reader::Limits;

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

    #[test]
    fn prices_are_of_input_and_output() {
        let parsed = prices("gpt-4o* = 2.50 / 10\nollama/llama=3=0/0.5").unwrap();
        let shown: Vec<String> =
            parsed.iter().map(|price| format!("{} {} {}", price.model, price.input, price.output)).collect();
        assert_eq!(shown, ["gpt-4o* 2.5 10", "ollama/llama=3 0 0.5"]);
        for wrong in ["gpt-4o", "gpt-4o=2.5", "=1/2", "gpt-4o=a/b", "gpt-4o=1/2/3", "gpt-4o=-1/2"] {
            assert!(prices(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ignored_members_are_separated_by_commas_or_lines() {
        assert_eq!(ignored("seed,/messages/*/name\nuser").unwrap(), ["seed", "/messages/*/name", "user"]);
        assert!(ignored("seed,a/b").is_err());
    }
}
