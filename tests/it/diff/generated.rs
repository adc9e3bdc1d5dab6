//! Documents of every kind in which one place can be changed, with the hashes that go with it.

use runvault::digest::Digest;
use runvault::json::Value as Read;
use runvault::json::canonical::c14n_v1;
use runvault::json::canonical::replaykit::{self, VolatilePolicy};
use runvault::json::reader::{self, Limits};
use serde_json::{Value, json};

fn hash_of_members(value: &Value, names: &[&'static str], volatile: VolatilePolicy) -> String {
    let text = value.to_string();
    let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
    let members: Vec<(&str, &Read<'_>)> =
        names.iter().map(|name| (*name, value.get(name).unwrap())).collect();
    Digest::from_content(&replaykit::object(&members, volatile).unwrap()).to_string()
}

/// A session with these prompts and responses.
pub(super) fn session(exchanges: &[(String, String)]) -> Vec<u8> {
    let pairs: Vec<(&str, &str)> =
        exchanges.iter().map(|(one, other)| (one.as_str(), other.as_str())).collect();
    crate::sandbox::session("a", &pairs).into_bytes()
}

/// A run of tool calls, each with its arguments and its answer, at a time of day.
pub(super) fn run(steps: &[(String, String)], hour: usize) -> Vec<u8> {
    let steps = steps.iter().enumerate().map(|(index, (input, output))| {
        let mut step = json!({
            "id": format!("step-{hour}-{index}"), "type": "tool.response",
            "input": {"tool": "t", "argument": input}, "output": {"answer": output},
            "metadata": {"latency_ms": hour + index}, "timestamp": format!("2026-11-18T{hour:02}:00:00Z"),
        });
        let hash = hash_of_members(&step, &["type", "input", "output", "metadata"], VolatilePolicy::Omit);
        step["hash"] = hash.into();
        step
    });
    let steps: Vec<Value> = steps.collect();
    let time = format!("2026-11-18T{hour:02}:00:00Z");
    let mut root = json!({
        "version": "1.0", "metadata": {"run_id": format!("run-{hour}"), "created_at": time},
        "payload": {"run": {
            "id": format!("run-{hour}"), "timestamp": time, "environment_fingerprint": {"os": "linux"},
            "runtime_versions": {"python": "3.12"}, "steps": steps,
        }},
    });
    root["checksum"] =
        hash_of_members(&root, &["version", "metadata", "payload"], VolatilePolicy::Include).into();
    root.to_string().into_bytes()
}

/// A trace of steps with these outputs, at a time of day.
pub(super) fn trace(steps: &[(String, String)], hour: usize) -> Vec<u8> {
    let time = format!("2026-11-18T{hour:02}:00:00Z");
    let state = "0".repeat(64);
    let mut records = vec![json!({
        "type": "header", "version": "1.0.0", "engine_version": "1.0.0", "trace_id": format!("run-{hour}"),
        "created_at": time, "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1",
        "problem_spec_hash": state, "initial_state_hash": state,
    })];
    records.extend(steps.iter().enumerate().map(|(index, (step, output))| {
        json!({
            "type": "step", "index": index + 1, "step_index": index, "state_before_hash": state,
            "state_after_hash": state,
            "result": {
                "version": "1.0.0", "step": step, "input_hash": "in", "output_hash": "out",
                "status": "success", "started_at": time, "finished_at": time, "output": {"is": output},
            },
        })
    }));
    let mut before: Option<String> = None;
    let mut text = String::new();
    for mut record in records {
        if let Some(before) = before.take() {
            record["prev_hash"] = before.into();
        }
        let line = record.to_string();
        let read = reader::read(line.as_bytes(), &Limits::default()).unwrap();
        let hash = Digest::from_content(&c14n_v1::to_vec(&read).unwrap()).hex();
        record["record_hash"] = hash.clone().into();
        before = Some(hash);
        text += &format!("{record}\n");
    }
    text.into_bytes()
}

/// A contract with an effect for each name, whose evidence is a metric.
pub(super) fn contract(effects: &[(String, String)]) -> Vec<u8> {
    let effects: Vec<Value> = effects
        .iter()
        .map(|(name, metric)| {
            json!({
                "name": name, "kind": "resource", "target": "service:x",
                "idempotency": {"type": "reentrant"}, "evidence": {"type": "status", "metric": metric},
            })
        })
        .collect();
    let io_ref = json!({
        "ref": "service:x", "kind": "service", "schema": "x.json", "required": true, "mode": "mutate",
    });
    json!({"io_refs": [io_ref], "effects": effects}).to_string().into_bytes()
}
