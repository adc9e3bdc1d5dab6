//! The comparison of traces by record. Values are parsed again on demand.

use super::lines::records;
use crate::artifact::{Part, PartContent, PartKind, differ, same_place};
use crate::json::Value;
use crate::json::canonical::c14n_v1;
use crate::json::pointer::Token;
use crate::json::reader::{Limits, ReadError};

/// Hashes of the chain, numbers that follow from the position, and members that differ between any two runs.
const EPHEMERAL: [&str; 6] = ["created_at", "trace_id", "index", "step_index", "prev_hash", "record_hash"];

static RECORD: PartKind = PartKind {
    is_ephemeral: |at| match at {
        [Token::Name(name)] => EPHEMERAL.contains(name),
        [Token::Name("result"), Token::Name(name)] => ["started_at", "finished_at", "metrics"].contains(name),
        _ => false,
    },
    canonical: |value| c14n_v1::to_vec(value).ok(),
    describe,
};

fn describe(one: &Value<'_>, other: &Value<'_>, names: &[&str]) -> String {
    let previous = |record: &'_ Value<'_>| record.get("prev_hash").and_then(Value::as_str).map(str::to_owned);
    match (previous(one), previous(other)) {
        // Up to this record, the two share one history.
        (Some(one), Some(other)) if one == other => format!("the chain forks: {}", differ(names)),
        _ => differ(names),
    }
}

pub(super) fn parts<'d>(document: &'d [u8], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
    let part = |(index, record): (usize, Result<(&'d [u8], Value<'d>), ReadError>)| {
        let (line, record) = record?;
        let text = |value: &Value<'_>, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (sort, result) = (text(&record, "type"), record.get("result").unwrap_or(&Value::Null));
        let step = text(result, "step");
        let keys = [same_place(&[&sort, &step, &text(result, "input_hash")]), same_place(&[&sort, &step])];
        let part = Part::new(format!("record {index}"), keys, record, &RECORD);
        Ok(Part { content: PartContent::Text(line), ..part })
    };
    records(document, limits).enumerate().map(part).collect()
}
