//! What `find` and `show` can be asked to tell of artifacts.

use std::collections::BTreeSet;

use runvault::artifact::Kind;
use runvault::formats;

use serde_json::{Value, json};

use crate::agent_sessions::forms;
use crate::conformance::corpus;
use crate::sandbox::{Sandbox, repository, run_pack, sealed, session};

fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox
}

#[test]
fn kinds_have_the_attributes_that_they_declare() {
    let sandbox = examples();
    sandbox.run(["add".into(), corpus()]).expect(1);
    sandbox.write("schema.json", "{}");
    sandbox.run(["add", "--as", "attachment", "schema.json"]).expect(0);
    // What recorders may state, and neither the examples nor the corpus do.
    let response = json!({"type": "model.response", "timestamp": "2026-11-18T09:00:00Z",
        "output": {"usage": {"input_tokens": 1, "output_tokens": 1}}, "metadata": {"cost_usd": 1, "latency_ms": 1}});
    let request = json!({"type": "tool.request", "timestamp": "2026-11-18T09:00:01Z",
        "input": {"tool": "http", "method": "GET", "url": "https://example.com/"}});
    let failure = json!({"type": "error.event", "timestamp": "2026-11-18T09:00:02Z", "input": {"source": "agent"},
        "output": {"message": "out of memory"}, "metadata": {}});
    let answer = json!({"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": "one moment",
        "tool_calls": [{"id": "call-1", "type": "function", "function": {"name": "http", "arguments": "{}"}}]}}]});
    let asked = json!({"type": "model.request", "timestamp": "2026-11-18T09:00:03Z", "input": {"prompt": "asked"}, "metadata": {}});
    let answered = json!({"type": "model.response", "timestamp": "2026-11-18T09:00:04Z", "output": {"output": answer, "usage": {"input_tokens": 1, "output_tokens": 1}}, "metadata": {}});
    let steps = [response, request, failure, asked, answered];
    let mut recorded: Value =
        serde_json::from_str(&session("gateway", &[("asked", &answer.to_string())])).unwrap();
    recorded["run_id"] = json!("stating");
    sandbox.add([sandbox.write("answering.json", recorded.to_string())]);
    let mut run: Value = serde_json::from_str(&run_pack("stating", &steps)).unwrap();
    run["payload"]["run"]["environment_fingerprint"] = json!({"os": "Linux", "platform": "Linux-6"});
    run["payload"]["run"]["runtime_versions"] = json!({"python": "3.13"});
    for (name, value) in [("redaction_profile", "default"), ("redaction_policy_version", "1.0")] {
        run["metadata"][name] = value.into();
    }
    sandbox.add([sandbox.write("stating.rpk", sealed(run))]);
    for (name, document) in forms::documents().into_iter().chain([("failing.jsonl", forms::failing())]) {
        sandbox.add([sandbox.write(name, document)]);
    }
    let policy = json!({"name": "strict", "allow_network": false, "timeout_ms": 1000, "max_output_files": 1,
        "allowed_commands": []});
    sandbox.add([sandbox.write("policy.json", policy.to_string())]);
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let snapshot = vault.snapshot().unwrap();
    for kind in formats::ALL {
        let mut seen = BTreeSet::new();
        for artifact in snapshot.all_artifacts(Some(kind.name())).unwrap() {
            let attributes = snapshot.attributes_of(artifact.core).unwrap();
            seen.extend(attributes.into_iter().map(|attribute| attribute.name));
        }
        let declared: Vec<&str> = kind.attributes().iter().map(|attribute| attribute.name).collect();
        assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), declared, "{kind:?}");
    }
}

#[test]
fn a_name_that_is_none_lists_those_that_there_are() {
    // Before there is a vault.
    let sandbox = Sandbox::new();
    for arguments in [
        &["find", "--columns", "core,modle_id"][..],
        &["find", "--format", "{{core}} {{modle_id}}"],
        &["show", "latest", "--format", "{{modle_id}}"],
    ] {
        let told = sandbox.run(arguments).expect(3).stderr;
        assert!(told.contains("unknown name modle_id; known names: core, hash, kind,"), "{told}");
        for attribute in formats::ALL.into_iter().flat_map(Kind::attributes) {
            assert!(told.contains(attribute.name), "{attribute:?}: {told}");
        }
    }
    for arguments in
        [&["find", "--columns", ""][..], &["find", "--columns", "core,,kind"], &["find", "--format", "{{ }}"]]
    {
        let told = sandbox.run(arguments).expect(3).stderr;
        assert!(told.contains("empty name; known names: core, hash, kind,"), "{told}");
    }
    for command in [&["find"][..], &["replay", "any", "--prompt", "p"], &["export", "-o", "some.rvz"]] {
        let told = sandbox.run([command, &["--attr", "modle_id=m"]].concat()).expect(3).stderr;
        assert!(
            told.contains("unknown attribute modle_id; known attributes: accepted, adapter_id, agent,"),
            "{told}"
        );
    }
    for arguments in [
        &["find", "--columns", "core", "--format", "{{core}}"][..],
        &["find", "--columns", "core", "--json"],
        &["find", "--format", "{{core}}", "--json"],
        &["find", "--format", "{{core"],
        &["find", "--format", "\\x"],
    ] {
        sandbox.run(arguments).expect(3);
    }
}

#[test]
fn columns_and_formats_tell_the_same() {
    let sandbox = examples();
    sandbox.run(["tag", "set", "3941d389b337", "b"]).expect(0);
    sandbox.run(["tag", "set", "3941d389b337", "a"]).expect(0);
    sandbox.run(["note", "set", "3941d389b337", "a note"]).expect(0);
    let json = sandbox.run(["find", "runs", "--tool", "tracker.label", "--json"]).expect(0).json().remove(0);
    let bytes = std::fs::metadata(repository("examples/run.rpk")).unwrap().len().to_string();
    let names = [
        ("core", json["core_hash"].as_str().unwrap()),
        ("hash", "3941d389b337"),
        ("kind", "rpk"),
        ("size", "4.13 KiB"),
        ("bytes", bytes.as_str()),
        ("captures", "1"),
        ("label", "run-triage-4711 triage-large-2"),
        ("tags", "@a @b"),
        ("note", "a note"),
        ("matches", "tool tracker.label"),
        ("run_id", "run-triage-4711"),
        (
            "step_type",
            "model.request, model.response, output.final, prompt.render, tool.request, tool.response",
        ),
        ("trace_id", ""),
    ];
    for (name, expected) in names {
        let find = |how: &str, what: &str| {
            sandbox.run(["find", "runs", "--tool", "tracker.label", how, what]).expect(0).stdout
        };
        assert_eq!(find("--format", &format!("<{{{{{name}}}}}>")), format!("<{expected}>\n"));
        // Columns are for people, who know kinds by their nouns.
        let column = if name == "kind" { "run pack" } else { expected };
        assert_eq!(find("--columns", name), format!("{column}\n"));
        assert_eq!(find("--columns", &format!(" {name} ")), format!("{column}\n"));
    }
    let added = sandbox.run(["find", "runs", "--format", "{{added}}"]).expect(0).stdout;
    assert_eq!(crate::output::steady(&added), "0000-00-00 00:00:00 UTC\n");
    let lines =
        sandbox.run(["show", "@a", "--format", r"{{run_id}}\t{{tool}}\n\\{{steps}}"]).expect(0).stdout;
    assert_eq!(lines, "run-triage-4711\ttracker.label\n\\8\n");
}

#[test]
fn values_stay_on_their_line_and_control_nothing() {
    let sandbox = Sandbox::new();
    let long = format!("evil\u{1b}[2J\n\u{202e}{}", "x".repeat(5000));
    sandbox.write("one.json", session(&long, &[]));
    sandbox.add([sandbox.path("one.json")]);
    let whole = format!("evil\\u{{1b}}[2J\\n\\u{{202e}}{}\n", "x".repeat(5000));
    assert_eq!(sandbox.run(["find", "--format", "{{adapter_id}}"]).expect(0).stdout, whole);
    assert_eq!(sandbox.run(["find", "--columns", "adapter_id"]).expect(0).stdout, whole);
    assert_eq!(sandbox.run(["show", "latest", "--format", "{{adapter_id}}"]).expect(0).stdout, whole);
}
