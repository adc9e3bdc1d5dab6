//! Environment variables.

use std::ffi::OsString;

/// Returns the value of a variable. An empty variable counts as unset.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|text| !text.is_empty())
}
