//! The formats of other programs.

use clap::ValueEnum;
use runvault::recorders::ExportFormat;

/// A format of another program.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum FormatName {
    /// A cassette of VCR.py, as YAML
    Vcr,
    /// A line of JSON for each call
    Jsonl,
}

impl From<FormatName> for ExportFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Vcr => Self::Vcr,
            FormatName::Jsonl => Self::Jsonl,
        }
    }
}
