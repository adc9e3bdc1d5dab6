//! The SQL table of the steps of a run.

use super::attributes::STEP_ATTRIBUTES;
use super::members::{at, steps};
use super::provider_shapes::StepTextRole;
use super::{metrics, requests, texts};
use crate::artifact::ColumnType::{Hash, Json, Number, Text, Time};
use crate::artifact::{Cell, Column, MemberBytes, Table, TableRow, timestamp_text};
use crate::json::Value;
use crate::json::reader::{Limits, ReadError};

pub(super) const STEPS: Table = Table {
    name: "steps",
    about: "a step of a run",
    columns: &[
        Column::new("i", Number, "index in the run, from 0"),
        Column::new("id", Text, "its id"),
        Column::new("type", Text, "its type, such as `model.response`").facet(),
        Column::new("hash", Hash, "its hash"),
        Column::new("tool", Text, "the tool that the step concerns").facet(),
        Column::new("model_id", Text, "the model that the step concerns").facet(),
        Column::new("provider", Text, "the provider of the model").facet(),
        Column::new("prompts", Json, "the list of the prompts that it contains; NULL if there are none"),
        Column::new("prompt_text", Text, "its prompts as text, with an empty line between two").searched(),
        Column::new("responses", Json, "the list of the responses that it contains; NULL if there are none"),
        Column::new("response_text", Text, "its responses as text, with an empty line between two")
            .searched(),
        Column::new("timestamp", Time, "its time, in UTC"),
        Column::new("duration_ms", Number, "the stated duration in milliseconds"),
        Column::new("http_method", Text, "the method of its HTTP request").facet(),
        Column::new("http_host", Text, "the host of its HTTP request").facet(),
        Column::new("is_error", Number, "1 if it is an error or a response that states one, else 0").facet(),
        Column::new("input", Json, "its input").searched(),
        Column::new("output", Json, "its output").searched(),
        Column::new("metadata", Json, "its metadata"),
    ],
    rows,
};

fn rows(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        let root = requests::read(member.bytes, limits)?;
        rows.extend(steps(&root).iter().enumerate().map(|(index, step)| row(index, step)));
    }
    Ok(rows)
}

fn row(index: usize, step: &Value<'_>) -> TableRow {
    let (method, host) = metrics::http_requests(step).next().unzip();
    let method = method.flatten();
    let [prompts, responses] =
        [StepTextRole::Prompts, StepTextRole::Responses].map(|what| texts::carried(step, what));
    vec![
        Cell::index(index),
        Cell::text_of(step, "id"),
        Cell::text_of(step, "type"),
        Cell::hash_of(step, "hash"),
        attribute(step, "tool"),
        attribute(step, "model_id"),
        attribute(step, "provider"),
        list(&prompts),
        joined(&prompts),
        list(&responses),
        joined(&responses),
        metrics::time(step).map_or(Cell::Null, |time| Cell::Text(timestamp_text(time))),
        metrics::duration(step).map_or(Cell::Null, Cell::Integer),
        method.as_deref().into(),
        host.as_deref().into(),
        Cell::Integer(metrics::is_error(step).into()),
        Cell::json_of(step, "input"),
        Cell::json_of(step, "output"),
        Cell::json_of(step, "metadata"),
    ]
}

/// Returns the first value of the attribute `name` in a step.
fn attribute(step: &Value<'_>, name: &str) -> Cell {
    let is_of_tool = step.get("type").and_then(Value::as_str).is_some_and(|text| text.starts_with("tool."));
    let places = STEP_ATTRIBUTES.iter().filter(|(attribute, _)| *attribute == name);
    let places = places.filter(|_| name != "tool" || is_of_tool).flat_map(|(_, places)| *places);
    let mut values = places.filter_map(|names| at(step, names).and_then(Value::as_non_empty_str));
    values.next().into()
}

fn list(texts: &[&str]) -> Cell {
    let texts: Vec<_> = texts.iter().map(|text| Value::String((*text).into())).collect();
    if texts.is_empty() { Cell::Null } else { Cell::json(&Value::Array(texts)) }
}

fn joined(texts: &[&str]) -> Cell {
    if texts.is_empty() { Cell::Null } else { Cell::Text(texts.join("\n\n")) }
}
