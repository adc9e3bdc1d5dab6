//! Artifacts that have much in common.

use runvault::Vault;
use runvault::digest::Digest;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::json::canonical::c14n_v1;
use runvault::json::reader::{self, Limits};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::annotate::SetTagRequest;
use runvault::vault::resolve::ResolveRequest;
use serde_json::{Value, json};

use super::Place;

/// The prompt that all sessions have.
pub const PROMPT: &str = "What is the state of the case now?";

const TIME: &str = "2026-11-18T09:00:00Z";

struct Expecting;

impl AddMonitor for Expecting {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert!(
            matches!(examined.outcome, DocumentOutcome::Added | DocumentOutcome::NewCapture),
            "{:?}",
            examined.violations
        );
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

/// Adds documents to the vault of a place.
fn fill(place: &Place, documents: impl IntoIterator<Item = String>) -> Vault {
    let vault = Vault::open_or_create(&place.vault()).expect("a vault");
    let input = |text: String| Input::Document { name: String::new(), bytes: text.into_bytes() };
    let mut inputs = documents.into_iter().map(input).peekable();
    while inputs.peek().is_some() {
        let some = inputs.by_ref().take(5_000).collect();
        vault.add(Inputs::new(some), &ExamineOptions::default(), &mut Expecting).expect("stored");
    }
    vault
}

fn tag(vault: &Vault, back: u64, name: &str) {
    let core_hash = ResolveRequest::new(format!("latest~{back}")).locate(vault).expect("there").artifact.core;
    vault.run(&SetTagRequest { core_hash, name: name.to_owned() }).expect("tagged");
}

fn digest(text: &str) -> String {
    Digest::from_content(text.as_bytes()).to_string()
}

fn session(number: usize, exchanges: &[(String, String)], more: Value) -> String {
    let interactions: Vec<Value> = (0..)
        .zip(exchanges)
        .map(|(index, (prompt, response)): (usize, _)| {
            json!({"i": index, "prompt_hash": digest(prompt), "response_hash": digest(response),
                "response_content": response})
        })
        .collect();
    let mut session = json!({"model_io_schema_version": "1.0.0", "adapter_id": format!("adapter-{number}"), "model_id": "m",
        "mode": "record", "interactions": interactions});
    if let (Some(session), Value::Object(more)) = (session.as_object_mut(), more) {
        session.extend(more);
    }
    session.to_string()
}

/// Values here have no canonical form other than the one that `serde_json` prints.
fn run(id: &str, steps: &[(&str, Value, Value)], more: Value) -> String {
    let steps: Vec<Value> = (0..)
        .zip(steps)
        .map(|(index, (kind, input, output)): (usize, _)| {
            let hashed = json!({"type": kind, "input": input, "output": output, "metadata": {}});
            json!({"id": format!("step-{index}"), "type": kind, "input": input, "output": output, "metadata": {},
                "hash": digest(&hashed.to_string())})
        })
        .collect();
    let mut metadata = json!({"run_id": id, "created_at": "2026-11-18T09:00:00.000000Z"});
    if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
        metadata.extend(more);
    }
    let mut document = json!({"version": "1.0", "metadata": metadata, "payload": {"run": {"id": id,
        "timestamp": "2026-11-18T09:00:00.000000Z", "environment_fingerprint": {}, "runtime_versions": {}, "steps": steps}}});
    document["checksum"] = json!(digest(&document.to_string()));
    document.to_string()
}

/// The lines of a trace with these outputs of steps.
fn trace(id: &str, outputs: impl Iterator<Item = usize>) -> Vec<String> {
    let state = Digest::from_content(b"state").hex();
    let header = json!({"type": "header", "version": "1.0.0", "engine_version": "1.0.0", "trace_id": id, "created_at": TIME,
        "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1", "problem_spec_hash": state,
        "initial_state_hash": state});
    let step = |(output, index): (usize, usize)| {
        json!({"type": "step", "index": index, "step_index": index - 1, "state_before_hash": state,
            "state_after_hash": state, "result": {"version": "1.0.0", "step": "Work", "input_hash": "in",
                "output_hash": "out", "status": "success", "started_at": TIME, "finished_at": TIME,
                "output": {"is": output}, "errors": []}})
    };
    let mut before: Option<String> = None;
    let records = std::iter::once(header).chain(outputs.zip(1..).map(step));
    records
        .map(|mut record| {
            if let Some(before) = before.take() {
                record["prev_hash"] = before.into();
            }
            let text = record.to_string();
            let read = reader::read(text.as_bytes(), &Limits::default()).expect("JSON");
            let hash = Digest::from_content(&c14n_v1::to_vec(&read).expect("canonical")).hex();
            record["record_hash"] = hash.clone().into();
            before = Some(hash);
            format!("{record}\n")
        })
        .collect()
}

pub fn forking_traces(place: &Place, count: usize) {
    fill(place, (0..count).map(|number| trace("run-1", [number, 0].into_iter()).concat()));
}

/// Runs of one name, and a session that nothing is linked to.
pub fn runs_of_one_name(place: &Place, count: usize) {
    let answer =
        |number: usize| [("model.response", Value::Null, json!({"content": format!("answer {number}")}))];
    let vault = fill(place, (0..count).map(|number| run("run-1", &answer(number), Value::Null)));
    tag(&vault, 0, "one");
    let vault = fill(place, [session(0, &[], Value::Null)]);
    tag(&vault, 0, "other");
}

/// `count` sessions and as many runs that all have the same exchanges.
pub fn shared_exchanges(place: &Place, count: usize) {
    let exchanges: Vec<_> =
        (0..200).map(|index| (format!("prompt {index}"), format!("response {index}"))).collect();
    let sessions = (0..count).map(|number| session(number, &exchanges, Value::Null));
    let runs = (0..count).map(|number| {
        let steps = exchanges.iter().flat_map(|(prompt, response)| {
            [
                ("model.request", json!({"prompt": prompt, "number": number}), Value::Null),
                ("model.response", json!({}), json!({"content": response})),
            ]
        });
        run(&format!("run-{number}"), &steps.collect::<Vec<_>>(), Value::Null)
    });
    fill(place, sessions.chain(runs));
}

/// A run that refers to `count` missing artifacts.
pub fn references(place: &Place, count: usize) {
    let hashes: Vec<String> = (0..count).map(|number| digest(&number.to_string())).collect();
    fill(place, [run("run-1", &[], json!({"model_io_hashes": hashes, "references": hashes}))]);
}

/// Several byte forms of one session, which differ in members outside its core.
pub fn captures(place: &Place, count: usize) {
    let exchanges: Vec<_> =
        (0..10).map(|index| (format!("prompt {index}"), format!("response {index}"))).collect();
    let capture = |number: usize| {
        // Spaces are no part of the core.
        let text = session(0, &exchanges, Value::Null);
        text.replacen(',', &format!(",{}", " \n".repeat(number % 100) + &" ".repeat(number / 100)), 1)
    };
    fill(place, (0..count).map(capture));
    place.write("one-more.json", format!("{}\n", capture(0)).as_bytes());
}

pub fn sessions_of_one_prompt(place: &Place, count: usize) {
    let exchanges = |number: usize| {
        [(PROMPT.to_owned(), "it is open".to_owned()), (format!("prompt {number}"), "answer".to_owned())]
    };
    fill(place, (0..count).map(|number| session(number, &exchanges(number), Value::Null)));
}

/// A contract with several effects, and a run with a step for each.
pub fn effects(place: &Place, count: usize) {
    let refs = json!([{"ref": "service:tracker", "kind": "service", "mode": "mutate", "required": true,
        "schema": "schemas/tracker.json"}]);
    let effect = |number: usize| {
        json!({"name": format!("effect-{number}"), "kind": "resource", "target": "service:tracker",
            "idempotency": {"type": "reentrant"}, "evidence": {"type": "status", "metric": "status"}})
    };
    let effects: Vec<Value> = (0..count).map(effect).collect();
    let vault = fill(place, [json!({"io_refs": refs, "effects": effects}).to_string()]);
    tag(&vault, 0, "contract");
    let step = |number: usize| {
        [
            ("tool.request", json!({"tool": "tracker.label", "arguments": {"n": number}}), Value::Null),
            ("tool.response", json!({"tool": "tracker.label"}), json!({"status": "ok"})),
        ]
    };
    let steps: Vec<_> = (0..count).flat_map(step).collect();
    let vault = fill(place, [run("run-1", &steps, Value::Null)]);
    tag(&vault, 0, "run");
}

/// A session, and others that are stored as differences to it.
pub fn differences(place: &Place, count: usize) {
    let exchanges = |number: usize| {
        let shared = (0..20).map(|index| {
            (
                format!("prompt {index}"),
                format!("response {index} of some length, so that a difference is worth it"),
            )
        });
        shared.chain([(format!("own {number}"), "own".to_owned())]).collect::<Vec<_>>()
    };
    let vault = fill(place, [session(0, &exchanges(0), Value::Null)]);
    tag(&vault, 0, "base");
    fill(place, (1..=count).map(|number| session(number, &exchanges(number), Value::Null)));
}

/// Traces of 20 records in parts of one record each. Their last parts come first.
pub fn parts_of_many(place: &Place, count: usize) {
    for run in 0..count / 20 {
        for (number, line) in trace(&format!("run-{run}"), 0..19).iter().rev().enumerate() {
            place.write(&format!("parts/{number:02}-{run:06}.ndjson"), line.as_bytes());
        }
    }
}

/// A trace in parts of one record each.
pub fn parts(place: &Place, count: usize) {
    for (number, line) in trace("run-1", 0..count).iter().enumerate() {
        place.write(&format!("parts/{number:06}.ndjson"), line.as_bytes());
    }
}

/// A file with many beginnings of keys, without a space between them.
pub fn beginnings_of_keys(place: &Place, number: usize) {
    place.write("keys.txt", "sk-proj-".repeat(number).as_bytes());
}

/// A call with many members, messages, parts of arguments and matches.
pub fn call_to_redact(place: &Place, number: usize) {
    let members: serde_json::Map<String, Value> =
        (0..number).map(|member| (format!("member-{member}"), json!(member))).collect();
    let messages: Vec<Value> =
        (0..number).map(|message| json!({"role": "user", "content": format!("zk-ABCD{message}")})).collect();
    let request = json!({"model": "m", "messages": messages, "members": members});
    let event = |part: usize| {
        format!("data: {}\n\n", json!({"choices": [{"delta": {"content": format!("EFGH zk-{part}")}}]}))
    };
    let stream: String = (0..number).map(event).collect();
    let line = json!({
        "request": {"url": "/v1/chat/completions", "body": request},
        "response": {"status_code": 200, "headers": {"content-type": "text/event-stream"}, "body": stream},
    });
    place.write("calls.jsonl", format!("{line}\n").as_bytes());
}

/// A run with an object of `count` members that are digests.
pub fn members(place: &Place, count: usize) {
    let members: serde_json::Map<String, Value> = (0..count)
        .map(|number| (format!("member-{number:08}"), digest(&number.to_string()).into()))
        .collect();
    place.write("members.rpk", run("run-1", &[], json!({"members": members})).as_bytes());
}

/// Traces that each extend the one before it by a record, with about `count` records together.
pub fn chain(place: &Place, count: usize) {
    let traces = (count * 2).isqrt();
    let lines = trace("run-1", 0..traces);
    fill(
        place,
        (1..=traces).map(|length| lines.iter().take(length + 1).map(String::as_str).collect::<String>()),
    );
}
