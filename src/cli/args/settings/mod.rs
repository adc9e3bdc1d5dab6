//! Settings: the list of all settings, and the sources of their values.
//!
//! An argument takes precedence over a variable, a variable over the configuration file, and the file over the default.

mod entry;
mod file;
mod gateway;
mod list;
mod read;
mod value;

pub(crate) use entry::{AnySetting, Setting, SettingInfo, SettingType};
pub(crate) use file::{at_home, edit, path};
#[cfg(feature = "gateway")]
pub(crate) use list::GATEWAY_UPSTREAM;
pub(crate) use list::{
    ACTOR, ALL, GATEWAY_IGNORE, GATEWAY_NORMALIZE, GATEWAY_REDACT, MAX_DEPTH, MAX_ENTRIES, MAX_SIZE,
    MAX_VALUES, MAX_VIOLATIONS, SETTLE_TRACES, SIGNING_KEY_FILE, VAULT, named,
};
pub(crate) use read::be_silent;
pub(crate) use value::{SettingOrigin, path_list, refuse_secrets, search, source_path, vault_address};
