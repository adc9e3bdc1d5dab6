//! The SQL table of the records of a trace.

use super::lines::records;
use crate::artifact::ColumnType::{Hash, Json, Number, Text};
use crate::artifact::{Cell, Column, MemberBytes, Table, TableRow};
use crate::json::Value;
use crate::json::reader::{self, Limits, ReadError};

pub(super) const RECORDS: Table = Table {
    name: "records",
    about: "a record of a trace",
    columns: &[
        Column::new("i", Number, "index in the trace; 0 is the header"),
        Column::new("type", Text, "its type: `header`, `step` and others").facet(),
        Column::new("record_hash", Hash, "its hash"),
        Column::new("prev_hash", Hash, "the hash of the preceding record"),
        Column::new("state_before", Hash, "the state before a step; for the header, the initial state"),
        Column::new("state_after", Hash, "the state after it"),
        Column::new("step", Text, "the name of the step").facet(),
        Column::new("status", Text, "how the step ended: `success`, `failed` or `skipped`").facet(),
        Column::new("input_hash", Hash, "the hash of the step's input"),
        Column::new("output_hash", Hash, "the hash of its output"),
        Column::new("started_at", Text, "when the step began"),
        Column::new("finished_at", Text, "when it ended"),
        Column::new("record", Json, "the whole record, as in its line").searched(),
    ],
    rows,
};

fn rows(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        for (index, record) in records(member.bytes, limits).enumerate() {
            let (line, record) = record?;
            rows.push(row(index, &record, line));
        }
    }
    Ok(rows)
}

fn row(index: usize, record: &Value<'_>, line: &[u8]) -> TableRow {
    let result = record.get("result").unwrap_or(&Value::Null);
    let (before, after) = match record.get("type").and_then(Value::as_str) {
        Some("header") => ("initial_state_hash", "initial_state_hash"),
        Some("step") => ("state_before_hash", "state_after_hash"),
        // Control records state the current state, which they do not change.
        _ => ("state_hash", "state_hash"),
    };
    vec![
        Cell::index(index),
        Cell::text_of(record, "type"),
        Cell::hash_of(record, "record_hash"),
        Cell::hash_of(record, "prev_hash"),
        Cell::hash_of(record, before),
        Cell::hash_of(record, after),
        Cell::text_of(result, "step"),
        Cell::text_of(result, "status"),
        Cell::hash_of(result, "input_hash"),
        Cell::hash_of(result, "output_hash"),
        Cell::text_of(result, "started_at"),
        Cell::text_of(result, "finished_at"),
        Cell::Text(reader::lossy(line).into_owned()),
    ]
}
