//! Traces as transcripts, the records by which they are compared, and their searchable texts.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::attributes::RECORD;
use super::record::{digest_of, records};
use crate::artifact::{
    BodyContent, BodyRole, Field, MissingOffset, Part, PartContent, PartKind, Passage, PassageCollector,
    StepClass, StepVisitor, TranscriptStep, differ, parse_timestamp, same_place, words_of,
};
use crate::json::Value;
use crate::json::canonical::c14n_v1;
use crate::json::pointer::Token;
use crate::json::reader::ReadError;

/// Calls `visit` with each record.
pub(super) fn visit(document: &[u8], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
    for (index, record) in records(document).enumerate() {
        let (_, record) = record?;
        visit(describe(index, &record));
    }
    Ok(())
}

fn describe<'v>(index: usize, record: &'v Value<'v>) -> TranscriptStep<'v> {
    let record_type = text(record, "type").unwrap_or_default();
    let recorded = BodyContent::Json(record);
    let mut step = TranscriptStep::new(index, record_type, StepClass::Control, recorded);
    step.digest = text(record, "record_hash").and_then(digest_of);
    match record_type {
        "header" => header(record, &mut step),
        "step" => of_engine(record, &mut step),
        _ => control(record, &mut step),
    }
    step
}

fn header<'v>(record: &'v Value<'v>, step: &mut TranscriptStep<'v>) {
    step.title = text(record, "trace_id").map(Cow::Borrowed);
    step.time = time(record, "created_at");
    digest(record, "problem_spec_hash", BodyRole::Details, Some("problem specification"), step);
    digest(record, "initial_state_hash", BodyRole::State, Some("initial"), step);
}

fn of_engine<'v>(record: &'v Value<'v>, step: &mut TranscriptStep<'v>) {
    let result = record.get("result").unwrap_or(&Value::Null);
    let tool = text(result, "tool");
    step.class = if tool.is_some() { StepClass::Tool } else { StepClass::Work };
    step.title = match (text(result, "step"), tool) {
        (Some(name), Some(tool)) => Some(Cow::Owned(format!("{name} ({tool})"))),
        (name, tool) => name.or(tool).map(Cow::Borrowed),
    };
    step.time = time(result, "started_at");
    let finished = time(result, "finished_at");
    let duration = step.time.zip(finished).map(|(started, finished)| finished.signed_duration_since(started));
    step.took(duration.map(|duration| duration.num_milliseconds()));
    step.status = text(result, "status").map(Cow::Borrowed);
    step.failed = text(result, "status") == Some("failed");
    digest(record, "state_before_hash", BodyRole::State, Some("before"), step);
    // Engines record the arguments under one of these names.
    match ["arguments", "input"].into_iter().find_map(|name| non_null_member(result, name)) {
        Some(value) => step.push(BodyRole::Arguments, BodyContent::from_value(value)),
        None => digest(result, "input_hash", BodyRole::Arguments, None, step),
    }
    match non_null_member(result, "output") {
        Some(value) => step.push(BodyRole::Result, BodyContent::from_value(value)),
        // A step without an output states the digest of null.
        None if step.failed => {}
        None => digest(result, "output_hash", BodyRole::Result, None, step),
    }
    let errors = non_null_member(result, "errors").filter(|errors| errors.as_array() != Some(&[]));
    if let Some(errors) = errors {
        step.push(BodyRole::Error, BodyContent::Json(errors));
    }
    digest(record, "state_after_hash", BodyRole::State, Some("after"), step);
}

fn control<'v>(record: &'v Value<'v>, step: &mut TranscriptStep<'v>) {
    step.title = text(record, "action").map(Cow::Borrowed);
    let iteration = record.get("loop_iteration").and_then(Value::as_number);
    step.status = iteration.map(|number| Cow::Owned(format!("iteration {}", number.literal())));
    if let Some(condition) = non_null_member(record, "stop_condition") {
        step.push_named(BodyRole::Details, "stop condition", BodyContent::from_value(condition));
    }
    digest(record, "state_hash", BodyRole::State, Some("current"), step);
}

/// Adds the digest in the member `name`.
fn digest<'v>(
    value: &'v Value<'v>,
    name: &str,
    role: BodyRole,
    called: Option<&'static str>,
    step: &mut TranscriptStep<'v>,
) {
    if let Some(digest) = text(value, name).and_then(digest_of) {
        let content = BodyContent::Digest(digest);
        match called {
            Some(called) => step.push_named(role, called, content),
            None => step.push(role, content),
        }
    }
}

fn non_null_member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    value.get(name).filter(|value| !value.is_null())
}

fn text<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Returns a time; the format defines all times as UTC.
fn time(value: &Value<'_>, name: &str) -> Option<DateTime<Utc>> {
    parse_timestamp(text(value, name)?, MissingOffset::Utc)
}

/// Hashes of the chain, numbers that follow from the position, and members that differ between any two runs.
const EPHEMERAL: [&str; 6] = ["created_at", "trace_id", "index", "step_index", "prev_hash", "record_hash"];

static RECORD_PART: PartKind = PartKind {
    is_ephemeral: |at| match at {
        [Token::Name(name)] => EPHEMERAL.contains(name),
        [Token::Name("result"), Token::Name(name)] => ["started_at", "finished_at", "metrics"].contains(name),
        _ => false,
    },
    canonical: |value| c14n_v1::to_vec(value).ok(),
    describe: describe_difference,
};

fn describe_difference(one: &Value<'_>, other: &Value<'_>, names: &[&str]) -> String {
    let previous = |record: &'_ Value<'_>| record.get("prev_hash").and_then(Value::as_str).map(str::to_owned);
    match (previous(one), previous(other)) {
        // Up to this record, the two share one history.
        (Some(one), Some(other)) if one == other => format!("the chain forks: {}", differ(names)),
        _ => differ(names),
    }
}

pub(super) fn parts<'d>(document: &'d [u8]) -> Result<Vec<Part<'d>>, ReadError> {
    let part = |(index, record): (usize, Result<(&'d [u8], Value<'d>), ReadError>)| {
        let (line, record) = record?;
        let text = |value: &Value<'_>, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (sort, result) = (text(&record, "type"), record.get("result").unwrap_or(&Value::Null));
        let step = text(result, "step");
        let keys = [same_place(&[&sort, &step, &text(result, "input_hash")]), same_place(&[&sort, &step])];
        let part = Part::new(format!("record {index}"), keys, record, &RECORD_PART);
        Ok(Part { content: PartContent::Text(line), ..part })
    };
    records(document).enumerate().map(part).collect()
}

/// Members of results that are searched. The format defines no inputs; engines add them under these names.
const MEMBERS: &[(&str, Field)] = &[
    ("step", Field::STEP),
    ("tool", Field::TOOL),
    ("input", Field::TOOL),
    ("arguments", Field::TOOL),
    ("output", Field::OUTPUT),
    ("errors", Field::OUTPUT),
];

pub(super) fn passages(document: &[u8]) -> Result<Vec<Passage>, ReadError> {
    let mut passages = PassageCollector::default();
    for (index, record) in records(document).enumerate() {
        let (_, record) = record?;
        let Some(result) = record.get("result") else { continue };
        for (member, field) in MEMBERS {
            let text = result.get(member).map(words_of).unwrap_or_default();
            passages.add_at(*field, RECORD.unit, index, text);
        }
    }
    Ok(passages.into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_searched_by_their_results() {
        let trace = concat!(
            r#"{"type": "header", "trace_id": "t"}"#,
            "\n",
            r#"{"type": "step", "result": {"step": "Fetch", "tool": "http", "output": {"body": "hello"}, "errors": []}}"#,
            "\n",
            r#"{"type": "step", "result": {"step": "Fail", "output": null, "errors": [{"code": "E1", "message": "no"}]}}"#,
            "\n"
        );
        let extracted: Vec<String> = passages(trace.as_bytes())
            .unwrap()
            .into_iter()
            .map(|Passage { field, unit, place, text }| format!("{unit} {place} {}: {text}", field.name()))
            .collect();
        assert_eq!(
            extracted,
            [
                "record 1 step: Fetch",
                "record 1 tool: http",
                "record 1 output: body: hello",
                "record 2 step: Fail",
                "record 2 output: code: E1\nmessage: no",
            ]
        );
    }
}
