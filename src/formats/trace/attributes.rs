//! The attributes of traces, the roles of their digests, the contents that these identify, their SQL view, the table of
//! their records, and the part that follows from their inputs: the specification demands that equal inputs have equal
//! traces.

use std::borrow::Cow;

use super::record::records;
use crate::artifact::ColumnType::{Hash, Json, Number, Text};
use crate::artifact::{
    ArtifactView, AttributeInfo, Cell, Column, MemberBytes, MentionedContent, REFERS_TO, Relation,
    ReproducibleRecord, ReproducibleRun, Role, Table, TableRow, group,
};
use crate::digest::Digest;
use crate::json::canonical::c14n_v1;
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value};

const ENGINE_VERSION: AttributeInfo = AttributeInfo::text("engine_version", "the version of the engine");
pub(super) const RECORDS: AttributeInfo =
    AttributeInfo::count("records", "the number of records, including the header");
const STEP: AttributeInfo = AttributeInfo::text("step", "the name of a step");
pub(super) const STEPS: AttributeInfo = AttributeInfo::count("steps", "the number of steps");
const TRACE_ID: AttributeInfo = AttributeInfo::text("trace_id", "its id, which is the id of the run");

pub(super) const ATTRIBUTES: [AttributeInfo; 10] = [
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    ENGINE_VERSION,
    AttributeInfo::ERRORS,
    AttributeInfo::FINISHED_AT,
    AttributeInfo::FIRST_STEP_AT,
    RECORDS,
    STEP,
    STEPS,
    TRACE_ID,
];

pub(super) const RECORD: Role =
    Role { name: "record", group: group::RECORD, unit: "record", relation: Some(EXTENDS) };

/// A trace extends another one whose last record is also one of its own. Most records are not the last record of any
/// trace.
pub(super) const EXTENDS: Relation = Relation { name: "extends", dangles: false };

const fn role(name: &'static str, group: &'static str) -> Role {
    Role { name, group, unit: "record", relation: None }
}

/// The role of a content that is not in the trace, and that the vault can have as an artifact of its own.
const fn role_of_content(name: &'static str, group: &'static str) -> Role {
    Role { relation: Some(REFERS_TO), ..role(name, group) }
}

/// The group of the states between steps.
const STATES: &str = "state";

/// The group of the problem specification of a run.
const PROBLEM_SPEC: &str = group::INPUTS;

/// Members of records and results that may be digests, with the roles they are indexed under.
pub(super) const HEADER_ROLES: [(&str, Role); 2] = [
    ("initial_state_hash", role_of_content("initial_state", STATES)),
    ("problem_spec_hash", role_of_content("problem_spec", PROBLEM_SPEC)),
];
pub(super) const STEP_ROLES: [(&str, Role); 2] = [
    ("state_before_hash", role_of_content("state_before", STATES)),
    ("state_after_hash", role_of_content("state_after", STATES)),
];
pub(super) const CONTROL_ROLES: [(&str, Role); 1] = [("state_hash", role_of_content("state", STATES))];
pub(super) const RESULT_ROLES: [(&str, Role); 2] =
    [("input_hash", role_of_content("input", "input")), ("output_hash", role_of_content("output", "output"))];

/// Members of records that contain state hashes.
pub(super) const OF_STATES: [&str; 4] =
    ["initial_state_hash", "state_before_hash", "state_after_hash", "state_hash"];

/// The locations of digests that are indexed under these roles if they are written with the prefix `sha256:`.
pub(super) const INDEXED: [&str; 7] = [
    "/initial_state_hash",
    "/problem_spec_hash",
    "/state_before_hash",
    "/state_after_hash",
    "/state_hash",
    "/result/input_hash",
    "/result/output_hash",
];

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a trace log",
    named_by: Some(TRACE_ID.name),
    columns: &[
        TRACE_ID.column(),
        ENGINE_VERSION.column().facet(),
        RECORDS.column(),
        AttributeInfo::CREATED_AT.column(),
        STEPS.column(),
        AttributeInfo::FIRST_STEP_AT.column(),
        AttributeInfo::FINISHED_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::ERRORS.column().facet(),
    ],
};

pub(super) const CONTENTS: [MentionedContent; 2] = [
    MentionedContent { group: PROBLEM_SPEC, noun: "problem specification", defect },
    MentionedContent { group: STATES, noun: "reasoning state", defect },
];

fn defect(bytes: &[u8]) -> Option<String> {
    let value = match reader::read(bytes, &Limits::most()) {
        Ok(value) => value,
        Err(error) => return Some(format!("is not JSON: {error}")),
    };
    if value.as_object().is_none() {
        return Some(format!("is {}, not an object", value.type_name()));
    }
    match c14n_v1::to_vec(&value) {
        Ok(canonical) if canonical == bytes => None,
        _ => Some("is not in the canonical form json-c14n-v1, of which the hash must be".to_owned()),
    }
}

pub(super) const RECORDS_TABLE: Table = Table {
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

fn rows(members: &[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        for (index, record) in records(member.bytes).enumerate() {
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

/// The members of a header that are inputs.
const INPUTS: [&str; 4] = ["version", "engine_version", "created_at", "problem_spec_hash"];

/// The members of records that depend on the name of the trace. States contain it.
const OF_NAME: [&str; 3] = ["trace_id", "prev_hash", "record_hash"];

/// Returns the inputs and the records of a trace; `None` if it is not an admitted one.
pub(super) fn read(document: &[u8]) -> Option<ReproducibleRun> {
    let (mut inputs, mut all) = (None, Vec::new());
    for record in records(document) {
        let (_, record) = record.ok()?;
        let members = record.as_object()?;
        if inputs.is_none() {
            inputs = Some(digest(members, |name| INPUTS.contains(&name))?);
        }
        let record = record.get("record_hash").and_then(Value::as_str).and_then(Digest::parse_hex)?;
        let content = digest(members, |name| !OF_NAME.contains(&name) && !OF_STATES.contains(&name))?;
        all.push(ReproducibleRecord { record, content });
    }
    Some(ReproducibleRun { inputs: inputs?, records: all })
}

/// Returns the digest of some members of an object.
fn digest(members: &Object<'_>, is_hashed: impl Fn(&str) -> bool) -> Option<Digest> {
    let hashed = members.iter().filter(|(name, _)| is_hashed(name));
    let hashed = hashed.map(|(name, value)| (Cow::Borrowed(name), value.clone())).collect();
    let form = c14n_v1::to_vec(&Value::Object(Object::from_members(hashed))).ok()?;
    Some(Digest::from_content(&form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_objects_are_contents() {
        let defect = |text: &str| defect(text.as_bytes());
        assert_eq!(defect(r#"{"a":1.0,"b":[]}"#), None);
        for text in [r#"{"a": 1}"#, r#"{"b":1,"a":2}"#, "{\"a\":1}\n", "[]", "state", "", r#"{"a":1,"a":1}"#]
        {
            assert!(defect(text).is_some(), "{text}");
        }
    }
}
