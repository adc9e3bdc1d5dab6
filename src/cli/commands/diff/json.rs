//! JSON output of `diff --json`; `docs/json.md` describes it.

use std::io::{self, Write};

use runvault::digest::{CaptureHash, CoreHash};
use runvault::vault::diff::{Change, ValueChange};
use serde::ser::{Serialize, Serializer};

use super::side::Side;
use super::value::Json;
use super::{Extent, Outcome, word};
use crate::cli::output::json;

#[derive(serde::Serialize)]
struct Document<'d> {
    kind: &'static str,
    different: bool,
    same_core: bool,
    one: JsonSide<'d>,
    other: JsonSide<'d>,
    first_divergence: Option<JsonChange<'d>>,
    counts: JsonCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes<'d>>,
}

#[derive(serde::Serialize)]
struct JsonSide<'d> {
    name: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<String>,
    core_hash: CoreHash,
    capture_hash: Option<CaptureHash>,
}

#[derive(serde::Serialize)]
struct JsonCounts {
    same: usize,
    changed: usize,
    moved: usize,
    removed: usize,
    inserted: usize,
}

#[derive(serde::Serialize)]
struct JsonChange<'c> {
    change: &'static str,
    one: Option<&'c str>,
    other: Option<&'c str>,
    says: String,
    values: Vec<JsonValueChange>,
}

struct JsonValueChange(ValueChange);

/// The changes, computed one at a time during output, because there may be very many.
struct Changes<'d>(&'d Outcome<'d>);

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let most = if self.0.extent == Extent::First { 1 } else { usize::MAX };
        serializer.collect_seq(self.0.diff.changes(self.0.all).take(most).map(JsonChange::new))
    }
}

impl Serialize for JsonValueChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Members<'v> {
            pointer: &'v str,
            ephemeral: bool,
            spelling: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            old: Option<Json<'v>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            new: Option<Json<'v>>,
        }
        let ValueChange { pointer, old, new, is_ephemeral, is_spelling, .. } = &self.0;
        let (old, new) = (old.as_ref().map(Json), new.as_ref().map(Json));
        Members { pointer, ephemeral: *is_ephemeral, spelling: *is_spelling, old, new }.serialize(serializer)
    }
}

impl<'d> JsonSide<'d> {
    fn new(side: &'d Side) -> Self {
        let name_bytes = side.path.as_deref().and_then(json::bytes_of);
        Self { name: &side.name, name_bytes, core_hash: side.core, capture_hash: side.capture }
    }
}

impl<'c> JsonChange<'c> {
    fn new(change: Change<'c>) -> Self {
        let values = change.values.into_iter().map(JsonValueChange).collect();
        let Change { sort, one, other, says, .. } = change;
        Self { change: word(sort), one, other, says, values }
    }
}

/// Writes the document, or the requested part of it.
pub(super) fn print(out: &mut dyn Write, outcome: &Outcome<'_>) -> io::Result<()> {
    let side = |side: &'_ Side| side.core;
    let counts = outcome.diff.counts();
    let document = Document {
        kind: outcome.kind().name(),
        different: outcome.is_different(),
        same_core: side(outcome.one) == side(outcome.other),
        one: JsonSide::new(outcome.one),
        other: JsonSide::new(outcome.other),
        first_divergence: outcome.diff.changes(false).next().map(JsonChange::new),
        counts: JsonCounts {
            same: counts.same,
            changed: counts.changed,
            moved: counts.moved,
            removed: counts.removed,
            inserted: counts.inserted,
        },
        changes: (outcome.extent != Extent::Counts).then_some(Changes(outcome)),
    };
    json::line(out, &document)
}
