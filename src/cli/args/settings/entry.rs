//! Settings.

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
