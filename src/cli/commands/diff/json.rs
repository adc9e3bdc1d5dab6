//! JSON output of `diff --json`: `DiffAnswer` in `docs/api.json`.

use std::io::{self, Write};

use runvault::vault::diff::{ArtifactComparison, DiffAnswer, DiffExtent};
use serde::ser::{Serialize, Serializer};

use super::outcome::DiffOutput;
use crate::cli::output::json;

/// The answer, with its changes computed during output.
#[derive(serde::Serialize)]
struct DiffDocument<'d> {
    #[serde(flatten)]
    answer: &'d DiffAnswer,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes<'d>>,
}

/// The changes, computed one at a time during output, because there may be very many.
struct Changes<'d> {
    comparison: &'d ArtifactComparison<'d>,
    most: usize,
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.comparison.changes().take(self.most))
    }
}

/// Writes the document, or the requested part of it.
pub(super) fn print(out: &mut dyn Write, outcome: &DiffOutput<'_>) -> io::Result<()> {
    let DiffOutput { answer, comparison, .. } = outcome;
    let most = match outcome.extent {
        DiffExtent::All => Some(usize::MAX),
        DiffExtent::First => Some(1),
        DiffExtent::Counts => None,
    };
    json::line(out, &DiffDocument { answer, changes: most.map(|most| Changes { comparison, most }) })
}
