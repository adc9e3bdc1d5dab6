//! Upgrades of vaults to the current schema.

use std::path::PathBuf;

/// The result of upgrading a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The former schema version.
    pub from: i64,
    /// The current schema version.
    pub to: i64,
    /// The copy of the vault before the upgrade, if its schema was changed and its engine keeps copies.
    pub copy: Option<PathBuf>,
    /// Whether the data derived from the artifacts has to be derived again.
    pub is_outdated: bool,
}
