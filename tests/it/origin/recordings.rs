//! Recordings of context-engine-kernel, which `add` and `import` make sessions of.

use runvault::digest::Digest;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, session};

fn hex(text: &str) -> String {
    Digest::from_content(text.as_bytes()).hex()
}

/// What the recorder writes: `JSON.stringify(session, null, 2)`.
pub(super) fn recording(exchanges: &[(&str, &str)]) -> Value {
    let interactions = exchanges.iter().enumerate().map(|(sequence, (prompt, response))| {
        json!({
            "sequence": sequence, "prompt_hash": hex(prompt), "prompt": prompt,
            "context": {"intent_id": "i-1", "run_id": "run-7", "mode": "execute", "constraints": [], "metadata": {}},
            "result": {"content": response, "tokens_input": 7, "tokens_output": 2, "latency_ms": 31,
                "model_version": "m-2026", "from_cache": false},
            "recorded_at": "2026-11-20T10:00:01.000Z",
        })
    });
    json!({
        "format_version": "1.0", "started_at": "2026-11-20T10:00:00.000Z", "ended_at": "2026-11-20T10:00:05.000Z",
        "model_id": "m", "interactions": interactions.collect::<Vec<_>>(),
        "stats": {"total_interactions": exchanges.len(), "total_tokens_input": 14, "total_tokens_output": 4,
            "total_latency_ms": 62},
    })
}

/// A line of the log of the harness.
fn line(sequence: usize, model: &str, request: &str, response: &str) -> String {
    let entry = json!({
        "sequence": sequence, "timestamp": "2026-11-20T10:00:00.000Z", "request_sha256": hex(request), "model_id": model,
        "parameters": {"prompt_length": request.len(), "context_intent_id": "i-1", "context_mode": "execute"},
        "raw_response": response, "response_sha256": hex(response), "tokens": {"input": 7, "output": 2},
        "latency_ms": 31,
    });
    format!("{entry}\n")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

const EXCHANGES: [(&str, &str); 2] = [("first?", "one"), ("second?", "zw\u{f6}lf\n")];

#[test]
fn a_recording_becomes_a_session_that_is_linked_to_its_original() {
    let sandbox = Sandbox::new();
    let file = pretty(&recording(&EXCHANGES));
    sandbox.write("rec.json", &file);
    let added = sandbox.run(["add", "--json", "rec.json"]).expect(0).json().remove(0);
    assert_eq!((&added["kind"], &added["outcome"]), (&json!("model_io"), &json!("added")));
    let original = Digest::from_content(file.as_bytes()).to_string();
    assert_eq!(added["attachments"], json!([original]));
    let core = added["core_hash"].as_str().unwrap();
    // It is the session that the specification makes of these exchanges.
    sandbox.write("own.json", session("runvault-import/1", &EXCHANGES));
    assert_eq!(sandbox.add(["own.json"]), [core]);

    let document: Value =
        sandbox.run(["get", added["capture_hash"].as_str().unwrap_or(core)]).json().remove(0);
    assert_eq!(document["run_id"], "run-7");
    let links = sandbox.run(["links", core, "--json"]).expect(0).stdout;
    assert!(links.contains("references") && links.contains(&original), "{links}");
    assert_eq!(sandbox.run(["get", &original]).expect(0).stdout, file);
    let shown = sandbox.run(["show", core]).expect(0).stdout;
    assert!(shown.contains("2026-11-20") && shown.contains("run-7"), "{shown}");
    let found = sandbox.run(["find", "--prompt", "second?"]).expect(0).stdout;
    assert!(found.contains(&core[..12].trim_start_matches("sha256:")[..5]), "{found}");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn adding_and_importing_make_the_same_session() {
    let added = Sandbox::new();
    added.write("rec.json", pretty(&recording(&EXCHANGES)));
    added.write("log.jsonl", line(0, "m", "a", "b") + &line(1, "n", "c", "d"));
    let imported = Sandbox::new();
    for name in ["rec.json", "log.jsonl"] {
        let lines = added.run(["add", "--json", name]).expect(0).json();
        let path = added.path(name).into_os_string();
        let report = imported.run(["import".into(), "--json".into(), path]).expect(0).json();
        let kinds: Vec<&str> = report.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["attachment", "model_io"], "{name}");
        assert_eq!(lines[0]["core_hash"], report[1]["core_hash"], "{name}");
        let core = report[1]["core_hash"].as_str().unwrap();
        assert_eq!(added.run(["get", core]).stdout, imported.run(["get", core]).stdout, "{name}");
        let again = added.run(["add", "--json", name]).expect(0).json();
        assert_eq!(again[0]["outcome"], "present", "{name}");
    }
    let path = added.path("rec.json").into_os_string();
    let alone = Sandbox::new();
    let options = ["import", "--json", "--no-original", "--redact", "one"].map(Into::into);
    let report = alone.run(options.into_iter().chain([path])).expect(0).json();
    assert_eq!((report.len(), &report[0]["kind"]), (1, &json!("model_io")));
    let document = alone.run(["get", report[0]["core_hash"].as_str().unwrap()]).expect(0).stdout;
    assert!(document.contains("[REDACTED]") && !document.contains("\"one\""), "{document}");
}

#[test]
fn a_log_of_the_harness_becomes_a_session() {
    let sandbox = Sandbox::new();
    sandbox.write("run-7/model_io.jsonl", line(0, "m", "a", "b") + "\n" + &line(1, "l", "c", "d"));
    let core = sandbox.add(["run-7/model_io.jsonl"]).remove(0);
    let document: Value = sandbox.run(["get", &core]).expect(0).json().remove(0);
    assert_eq!(document["model_id"], "l,m");
    assert_eq!(document["interactions"][1]["prompt_hash"], format!("sha256:{}", hex("c")));
    assert_eq!(document["interactions"][1]["tokens_output"], 2);
    // It is also found in its directory.
    assert_eq!(sandbox.add(["run-7"]), [core]);
}

#[test]
fn of_a_prompt_that_was_left_out_the_hash_is_kept() {
    let sandbox = Sandbox::new();
    let mut redacted = recording(&EXCHANGES);
    redacted["interactions"][0]["prompt"] = "[REDACTED]".into();
    sandbox.write("redacted.json", pretty(&redacted));
    sandbox.write("whole.json", pretty(&recording(&EXCHANGES)));
    let [redacted, whole] = ["redacted.json", "whole.json"].map(|name| sandbox.add([name]).remove(0));
    assert_eq!(redacted, whole);
    // Interactions of two runs are of no run.
    let mut several = recording(&EXCHANGES);
    several["interactions"][1]["context"]["run_id"] = "run-8".into();
    let other = Sandbox::new();
    other.write("several.json", pretty(&several));
    let core = other.add(["several.json"]).remove(0);
    assert!(!other.run(["get", &core]).expect(0).stdout.contains("run_id"));
}

#[test]
fn a_recording_that_does_not_fit_its_hashes_is_rejected() {
    let changed = |pointer: &str, value: Value| {
        let mut recording = recording(&EXCHANGES);
        *recording.pointer_mut(pointer).unwrap() = value;
        pretty(&recording)
    };
    let log = line(0, "m", "a", "b");
    let cases = [
        (changed("/interactions/1/prompt", "other?".into()), "KR3", "$.interactions[1].prompt_hash"),
        (changed("/interactions/1/sequence", 2.into()), "KR2", "$.interactions[1].sequence"),
        (changed("/interactions/0/result/content", Value::Null), "KR1", "$.interactions[0].result.content"),
        (changed("/interactions/0/prompt_hash", "ab".into()), "KR1", "$.interactions[0].prompt_hash"),
        (changed("/format_version", "2.0".into()), "KR1", "$.format_version"),
        (changed("/model_id", "".into()), "MI2", "$.model_id"),
        (log.clone() + &line(1, "m", "a", "b").replace("\"b\"", "\"c\""), "KR4", "line 2 $.response_sha256"),
        (log.clone() + &log, "KR2", "line 2 $.sequence"),
        (log.clone() + &log[..40], "DOC2", "line 2 column"),
    ];
    let sandbox = Sandbox::new();
    for (text, rule, place) in cases {
        sandbox.write("in.json", &text);
        let added = sandbox.run(["add", "--json", "in.json"]).expect(1).json().remove(0);
        let violation = &added["violations"][0];
        assert_eq!((&added["outcome"], &violation["rule_id"]), (&json!("rejected"), &json!(rule)), "{added}");
        assert!(violation["path"].as_str().unwrap().starts_with(place), "{added}");
        if rule != "MI2" {
            let refused = sandbox.run(["import", "in.json"]).expect(1).stderr;
            let named =
                ["in.json: ", place, &format!("(rule {rule})")].iter().all(|part| refused.contains(part));
            assert!(named, "{refused}");
        }
    }
    assert_eq!(sandbox.run(["list", "--json"]).stdout, "");
}

#[test]
fn the_file_of_a_recording_is_moved_once_it_is_stored() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("rec.json", pretty(&recording(&EXCHANGES)));
    sandbox.run(["add", "--move", "rec.json"]).expect(0);
    assert!(!path.exists());
}
