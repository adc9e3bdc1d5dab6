//! Traces, record by record, as a program writes them.

use runvault::digest::Digest;
use runvault::json::canonical::c14n_v1;
use runvault::json::reader::{self, Limits};
use serde_json::{Value, json};

/// A record after the header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record<'o> {
    /// A step that succeeded, with this output.
    Step(usize),
    /// A step that succeeded, with this output.
    Output(&'o Value),
    /// A step that failed.
    Failed,
    /// A control with this action.
    Control(&'static str),
}

/// The lines of the trace of a run, each with its line feed: the header first.
pub(crate) fn lines(id: &str, records: &[Record<'_>]) -> Vec<String> {
    let mut before = None;
    std::iter::once(header(id))
        .chain(records.iter().zip(1..).map(|(record, index)| value(*record, index)))
        .map(|mut record| {
            if let Some(before) = before.take() {
                record["prev_hash"] = Value::String(before);
            }
            let text = record.to_string();
            let read = reader::read(text.as_bytes(), &Limits::default()).unwrap();
            let hash = Digest::from_content(&c14n_v1::to_vec(&read).unwrap()).hex();
            record["record_hash"] = hash.clone().into();
            before = Some(hash);
            format!("{record}\n")
        })
        .collect()
}

/// The lines of a run with this number of successful steps.
pub(crate) fn steps(id: &str, count: usize) -> Vec<String> {
    lines(id, &(0..count).map(Record::Step).collect::<Vec<_>>())
}

/// The core hash of the trace that ends with `line`.
pub(crate) fn core(line: &str) -> String {
    let record: Value = serde_json::from_str(line).unwrap();
    format!("sha256:{}", record["record_hash"].as_str().unwrap())
}

fn state() -> String {
    Digest::from_content(b"state").hex()
}

fn header(id: &str) -> Value {
    json!({
        "type": "header", "version": "1.0.0", "engine_version": "1.0.0", "trace_id": id,
        "created_at": "2026-11-18T09:00:00Z", "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1",
        "problem_spec_hash": state(), "initial_state_hash": state(),
    })
}

fn value(record: Record<'_>, index: usize) -> Value {
    let time = "2026-11-18T09:00:00Z";
    let result = |status: &str, output: Value, errors: Value| {
        json!({
            "version": "1.0.0", "step": "Work", "input_hash": "in", "output_hash": "out", "status": status,
            "started_at": time, "finished_at": time, "output": output, "errors": errors,
        })
    };
    let step = |result: Value| {
        json!({
            "type": "step", "index": index, "step_index": index - 1, "result": result,
            "state_before_hash": state(), "state_after_hash": state(),
        })
    };
    match record {
        Record::Step(output) => step(result("success", json!({"is": output}), json!([]))),
        Record::Output(output) => step(result("success", json!({"is": output}), json!([]))),
        Record::Failed => step(result("failed", Value::Null, json!([{"code": "E", "message": "failed"}]))),
        Record::Control(action) => json!({
            "type": "control", "index": index, "control_type": "loop", "action": action, "loop_iteration": 1,
            "start_step": "Work", "end_step": "Work", "state_hash": state(),
            "stop_condition": {"path": "/done", "operator": "equals", "value": true},
        }),
    }
}
