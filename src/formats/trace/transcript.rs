//! The transcript of a trace: its records with the states between them. Records are read one at a time.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::lines::records;
use super::record::digest_of;
use crate::artifact::{
    BodyContent, BodyRole, MissingOffset, StepClass, StepVisitor, TranscriptStep, parse_timestamp,
};
use crate::json::Value;
use crate::json::reader::{Limits, ReadError};

/// Calls `visit` with each record.
pub(super) fn visit(document: &[u8], limits: &Limits, visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
    for (index, record) in records(document, limits).enumerate() {
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
