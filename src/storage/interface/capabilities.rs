//! Capabilities of engines beyond reading and changing a vault.

use std::fmt;

/// Something that not every engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// SQL queries of the documented views.
    Sql,
    /// Copying the vault to a file.
    FileBackup,
    /// A full-text index.
    FullText,
    /// A check that does not trust the content.
    Check,
    /// Repairs of what a check finds, and rebuilding the indexes.
    Repair,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sql, Self::FileBackup, Self::FullText, Self::Check, Self::Repair];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sql => "SQL queries",
            Self::FileBackup => "backups of files",
            Self::FullText => "full-text search",
            Self::Check => "checks of stored data",
            Self::Repair => "repairs",
        })
    }
}
