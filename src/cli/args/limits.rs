//! Limits of "add" and "verify", from arguments or settings.

use clap::Args;
use runvault::json::reader::Limits;

use crate::cli::args::bounds::{bytes, depth, entries, values, violations};
use crate::cli::args::settings;
use crate::cli::output::exit::CommandError;

/// Limits. Each is a setting as well; arguments go before settings.
#[derive(Args)]
pub(crate) struct LimitArgs {
    /// Maximum document size in bytes; k, M and G stand for KiB, MiB and GiB. Default: the setting max-size, else 256M
    #[arg(long = "max-size", value_name = "BYTES", help_heading = "Limits", value_parser = bytes)]
    size: Option<u64>,

    /// Maximum nesting depth. Default: the setting max-depth, else 128
    #[arg(long = "max-depth", value_name = "N", help_heading = "Limits", value_parser = depth)]
    depth: Option<usize>,

    /// Maximum number of values in a JSON text. Default: the setting max-values, else 10000000
    #[arg(long = "max-values", value_name = "N", help_heading = "Limits", value_parser = values)]
    values: Option<usize>,

    /// Maximum number of entries in a pack, including those that are not read. Default: the setting max-entries, else
    /// 10000
    #[arg(long = "max-entries", value_name = "N", help_heading = "Limits", value_parser = entries)]
    entries: Option<usize>,

    /// Maximum violations reported per document. Default: the setting max-violations, else 20, with --json all
    #[arg(long = "max-violations", value_name = "N", help_heading = "Limits", value_parser = violations)]
    violations: Option<usize>,
}

impl LimitArgs {
    /// Returns the limits of documents.
    pub(crate) fn limits(&self) -> Result<Limits, CommandError> {
        let default = Limits::default();
        Ok(Limits {
            bytes: settings::MAX_SIZE.unless(self.size)?.unwrap_or(default.bytes),
            depth: settings::MAX_DEPTH.unless(self.depth)?.unwrap_or(default.depth),
            values: settings::MAX_VALUES.unless(self.values)?.unwrap_or(default.values),
            entries: settings::MAX_ENTRIES.unless(self.entries)?.unwrap_or(default.entries),
        })
    }

    /// Returns the maximum number of violations listed.
    pub(crate) fn violations(&self) -> Result<Option<usize>, CommandError> {
        settings::MAX_VIOLATIONS.unless(self.violations)
    }
}
