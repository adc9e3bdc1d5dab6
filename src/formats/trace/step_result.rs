//! TR7 and TR9: the results of steps.

use super::record::{TraceRecord, digest_of, is_version};
use super::time::has_usual_form;
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::c14n_v1;
use crate::validation::Finder;

fn result_of<'v>(record: &TraceRecord<'v>) -> Option<&'v Value<'v>> {
    let result = record.value.get("result").filter(|result| result.as_object().is_some());
    result.filter(|_| record.record_type() == Some("step"))
}

/// Checks TR7. A missing result is reported by TR2.
pub(super) fn check(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let Some(result) = result_of(record) else { return };
    let mut add = |name: &str, message: &str| found.add(record.path(&format!("/result/{name}")), message);
    for name in ["step", "input_hash", "output_hash"] {
        if result.get(name).and_then(Value::as_non_empty_str).is_none() {
            add(name, "must be a non-empty string");
        }
    }
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    if !text("version").is_some_and(is_version) {
        add("version", "must be digits.digits.digits");
    }
    let [started, finished] = ["started_at", "finished_at"].map(|name| {
        let timestamp = text(name).filter(|text| has_usual_form(text));
        if timestamp.is_none() {
            add(name, "must have the form YYYY-MM-DDTHH:MM:SSZ");
        }
        timestamp
    });
    if let (Some(started), Some(finished)) = (started, finished)
        && finished < started
    {
        add("finished_at", "is before started_at");
    }
    outcome(result, &mut add);
    errors(result, &mut add);
}

/// Checks that status, output and errors are consistent.
fn outcome(result: &Value<'_>, add: &mut impl FnMut(&str, &str)) {
    let output = result.get("output").filter(|output| !output.is_null());
    if output.is_some_and(|output| output.as_object().is_none()) {
        add("output", "must be null or an object");
    }
    let has_errors = result.get("errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
    let status = result.get("status").and_then(Value::as_str);
    match status {
        Some("success") if output.is_none() => add("output", "a successful step must have an output"),
        Some("failed" | "skipped") if output.is_some() => {
            add("output", "a step that did not succeed must not have an output");
        }
        Some("success" | "failed" | "skipped") => {}
        _ => add("status", "must be success, failed or skipped"),
    }
    match status {
        Some("failed") if !has_errors => add("errors", "a failed step must have errors"),
        Some("success" | "skipped") if has_errors => {
            add("errors", "a step that did not fail must not have errors");
        }
        _ => {}
    }
}

fn errors(result: &Value<'_>, add: &mut impl FnMut(&str, &str)) {
    match result.get("errors") {
        None | Some(Value::Null) => {}
        Some(Value::Array(errors)) => {
            for (index, error) in errors.iter().enumerate() {
                for name in ["code", "message"] {
                    if error.get(name).and_then(Value::as_non_empty_str).is_none() {
                        add(&format!("errors/{index}/{name}"), "must be a non-empty string");
                    }
                }
            }
        }
        Some(_) => add("errors", "must be null or a list"),
    }
}

/// Checks TR9.
pub(super) fn output_hash(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let Some(result) = result_of(record) else { return };
    let declared = result.get("output_hash").and_then(Value::as_str).and_then(digest_of);
    let output = result.get("output").filter(|output| output.as_object().is_some());
    if let (Some(declared), Some(Ok(text))) = (declared, output.map(c14n_v1::to_vec)) {
        let actual = Digest::from_content(&text);
        if declared != actual {
            let message = format!("is not the hash of the output, which is {}", actual.hex());
            found.add(record.path("/result/output_hash"), message);
        }
    }
}
