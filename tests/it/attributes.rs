//! What artifacts state of themselves: what is derived from them, and how they are sorted and compared by it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository, run_pack, sealed};

/// The attributes of the artifact that was added last, with the values of each.
fn attributes(sandbox: &Sandbox, artifact: &str) -> BTreeMap<String, Vec<String>> {
    let shown = sandbox.run(["show", artifact, "--json"]).expect(0).json().remove(0);
    let mut attributes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for attribute in shown["attributes"].as_array().unwrap() {
        let text = |name: &str| attribute[name].as_str().unwrap().to_owned();
        attributes.entry(text("name")).or_default().push(text("value"));
    }
    attributes
}

fn expect(attributes: &BTreeMap<String, Vec<String>>, expected: &[(&str, &[&str])]) {
    for (name, values) in expected {
        let found: Vec<&str> = attributes.get(*name).into_iter().flatten().map(String::as_str).collect();
        assert_eq!(found, *values, "{name}");
    }
}

/// The core hashes that a command lists, one in each line.
fn cores(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let ran = sandbox.run([&["find"], arguments, &["--format", "{{core}}"]].concat());
    assert!([0, 1].contains(&ran.status), "{}", ran.stderr);
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_run_states_its_environment_steps_and_requests() {
    let sandbox = Sandbox::new();
    let step = |time: &str, given: Value| {
        let mut step = given;
        step["timestamp"] = time.into();
        step
    };
    let steps = [
        step(
            "2026-11-18T09:00:01Z",
            json!({"type": "model.request", "input": {"model": "m", "prompt": "p"}}),
        ),
        step(
            "2026-11-18T10:00:03.5+01:00",
            json!({"type": "model.response", "metadata": {"latency_ms": 2500},
                "output": {"content": "r", "usage": {"input_tokens": 30, "output_tokens": 12}}}),
        ),
        step(
            "2026-11-18T09:00:04Z",
            json!({"type": "tool.request", "input": {"tool": "http", "method": "post",
                "url": "https://api.example.com:8443/v1"}}),
        ),
        step(
            "2026-11-18T09:00:05Z",
            json!({"type": "tool.response", "input": {"tool": "http"}, "output": {"status_code": 502}}),
        ),
        json!({"type": "error.event", "output": {"message": "gave up"}, "metadata": {"cost_usd": 0.25}}),
    ];
    let mut pack: Value = serde_json::from_str(&run_pack("run-1", &steps)).unwrap();
    pack["payload"]["run"]["environment_fingerprint"] = json!({"os": "Linux", "platform": "x", "cwd": "/"});
    pack["payload"]["run"]["runtime_versions"] = json!({"python": "3.13.1", "recorder": "0.1", "n": 3});
    pack["metadata"]["redaction_profile"] = "default".into();
    pack["metadata"]["redaction_policy_version"] = "1.0".into();
    sandbox.add([sandbox.write("run.rpk", sealed(pack))]);
    expect(
        &attributes(&sandbox, "latest"),
        &[
            ("created_at", &["2026-11-18T09:00:00.000Z"]),
            ("first_step_at", &["2026-11-18T09:00:01.000Z"]),
            ("last_step_at", &["2026-11-18T09:00:05.000Z"]),
            ("duration_ms", &["4000"]),
            ("finished_at", &[]),
            ("latency_ms", &["2500"]),
            ("tokens_input", &["30"]),
            ("tokens_output", &["12"]),
            ("tokens", &["42"]),
            ("cost_usd", &["0.25"]),
            ("errors", &["2"]),
            ("tool_calls", &["1"]),
            ("http_host", &["api.example.com"]),
            ("http_method", &["POST"]),
            ("os", &["Linux"]),
            ("platform", &["x"]),
            ("runtime", &["python 3.13.1", "recorder 0.1"]),
            ("redaction_profile", &["default"]),
            ("redaction_policy", &["1.0"]),
        ],
    );
    let columns = ["find", "--columns", "duration,latency,last_step,cost,tokens,errors"];
    let line = "4.0 s 2.5 s 2026-11-18 09:00:05 UTC 0.25 42 2\n";
    assert_eq!(sandbox.run(columns).expect(0).stdout, line);
    for conditions in [
        &["--host", "API.example.com"][..],
        &["--method", "post"],
        &["--has-error"],
        &["--tool", "http", "--has-error", "--host", "api.example.com"],
        &["--attr", "tokens>=42"],
        &["--attr", "duration<=4s", "--attr", "duration>=4000"],
        &["--attr", "last_step>=2026-11-18T09:00:05Z"],
        &["--attr", "cost<=0.250"],
    ] {
        assert_eq!(cores(&sandbox, conditions).len(), 1, "{conditions:?}");
    }
    for conditions in [
        &["--host", "example.com"][..],
        &["--method", "GET"],
        &["--attr", "tokens>=43"],
        &["--attr", "finished>=2020-01-01"],
    ] {
        assert_eq!(cores(&sandbox, conditions).len(), 0, "{conditions:?}");
    }
    let steps =
        "SELECT group_concat(coalesce(http_host, '-') || is_error || coalesce(duration_ms, ''), ' ') AS s,
                        max(timestamp) AS t FROM steps";
    let row = sandbox.run(["sql", steps, "--json"]).expect(0).json().remove(0);
    assert_eq!(row["s"], "-0 -02500 api.example.com0 -1 -1");
    assert_eq!(row["t"], "2026-11-18T09:00:05.000Z");
}

#[test]
fn sessions_traces_and_packs_state_their_ends() {
    let sandbox = Sandbox::new();
    let mut session: Value = serde_json::from_str(&crate::sandbox::session("a", &[("p", "r")])).unwrap();
    session["created_at_utc"] = "2026-11-18T09:00:00Z".into();
    session["ended_at_utc"] = "2026-11-18T09:01:30Z".into();
    session["stats"] = json!({"total_tokens_input": 7, "total_tokens_output": 5, "total_latency_ms": 900});
    sandbox.add([sandbox.write("session.json", session.to_string())]);
    let of_session: &[(&str, &[&str])] = &[
        ("finished_at", &["2026-11-18T09:01:30.000Z"]),
        ("duration_ms", &["90000"]),
        ("tokens", &["12"]),
        ("latency_ms", &["900"]),
    ];
    expect(&attributes(&sandbox, "latest"), of_session);
    // The measurements of a session are not part of its identity: another capture adds its own.
    session["stats"]["total_tokens_output"] = 50.into();
    sandbox.add([sandbox.write("session.json", session.to_string())]);
    expect(&attributes(&sandbox, "latest"), &[("tokens", &["12", "57"])]);
    assert_eq!(sandbox.run(["find", "--columns", "tokens,duration"]).expect(0).stdout, "12, 57 1 min 30 s\n");
    assert_eq!(cores(&sandbox, &["--attr", "tokens<=12"]), cores(&sandbox, &["--attr", "tokens>=57"]));

    use crate::traces::{Record, lines};
    sandbox.add([sandbox.write("t.ndjson", lines("run-t", &[Record::Step(0), Record::Failed]).concat())]);
    let trace = attributes(&sandbox, "latest");
    expect(&trace, &[("steps", &["2"]), ("errors", &["1"]), ("records", &["3"])]);
    let [begun, ended] = ["first_step_at", "finished_at"].map(|name| trace[name][0].clone());
    assert!(begun <= ended, "{begun} {ended}");
    assert!(trace.contains_key("duration_ms"));

    let mut run = crate::packs::run();
    run["started_at"] = "2026-11-18T09:00:00+01:00".into();
    run["completed_at"] = "2026-11-18T08:00:05Z".into();
    run["decision"] = json!({"accepted": false});
    sandbox.write("pack/run.json", run.to_string());
    sandbox.add([sandbox.path("pack")]);
    let of_pack: &[(&str, &[&str])] = &[
        ("created_at", &["2026-11-18T08:00:00.000Z"]),
        ("finished_at", &["2026-11-18T08:00:05.000Z"]),
        ("duration_ms", &["5000"]),
        ("accepted", &["false"]),
        ("errors", &[]),
    ];
    expect(&attributes(&sandbox, "latest"), of_pack);
}

#[test]
fn artifacts_are_sorted_by_number() {
    let sandbox = Sandbox::new();
    let added = |name: &str, tokens: Option<u64>| {
        let mut session: Value = serde_json::from_str(&crate::sandbox::session(name, &[("p", "r")])).unwrap();
        if let Some(tokens) = tokens {
            session["stats"] = json!({"total_tokens_input": tokens, "total_tokens_output": 0});
        }
        sandbox.add([sandbox.write("s.json", session.to_string())]).remove(0)
    };
    for (name, tokens) in [("nine", Some(9)), ("none", None), ("hundred", Some(100)), ("ten", Some(10))] {
        added(name, tokens);
    }
    let sorted = |order: &str| {
        let ran = sandbox.run(["find", "--sort", order, "--columns", "adapter_id"]).expect(0).stdout;
        ran.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sorted("tokens"), ["hundred", "ten", "nine", "none"]);
    assert_eq!(sorted("tokens_output"), ["ten", "hundred", "nine", "none"]);
    assert_eq!(sorted("duration"), ["ten", "hundred", "none", "nine"]);
    assert_eq!(sorted("duration_ms"), sorted("duration"));
    let views = "SELECT adapter_id, tokens FROM sessions ORDER BY tokens DESC LIMIT 1";
    let row = sandbox.run(["sql", views, "--json"]).expect(0).json().remove(0);
    assert_eq!((&row["adapter_id"], &row["tokens"]), (&"hundred".into(), &100.into()));
    let refused = sandbox.run(["find", "--sort", "model_id"]).expect(3).stderr;
    assert!(refused.contains("tokens"), "{refused}");
}

#[test]
fn the_examples_state_what_they_do() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    let rows = "SELECT run_id, steps, errors, tool_calls, created_at FROM runs";
    let row = sandbox.run(["sql", rows, "--json"]).expect(0).json().remove(0);
    assert_eq!(row["run_id"], "run-triage-4711");
    assert_eq!((&row["steps"], &row["errors"]), (&8.into(), &0.into()));
    let rows = "SELECT finished_at, duration_ms, accepted FROM packs";
    let row = sandbox.run(["sql", rows, "--json"]).expect(0).json().remove(0);
    assert_eq!((&row["duration_ms"], &row["accepted"]), (&5_000.into(), &"true".into()));
    assert_eq!(row["finished_at"], "2026-11-18T09:00:05.000Z");
}

/// Numbers follow from values, so a check compares both, and rebuilding derives them again.
#[test]
fn a_changed_number_is_found_and_rebuilt() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    let change = crate::fsck::sql(&sandbox);
    let changed = change.execute("UPDATE attribute_value SET number = 77 WHERE name = 'steps'", []).unwrap();
    assert!(changed > 0);
    drop(change);
    let found = sandbox.run(["fsck", "--json"]).expect(1).json();
    for id in ["missing-row", "surplus-row"] {
        let names_it = |finding: &serde_json::Value| {
            let detail = finding["detail"].as_str().unwrap();
            finding["finding"] == id
                && finding["about"] == "artifact"
                && detail.starts_with("attribute steps ")
        };
        assert!(found.iter().any(names_it), "{id}: {found:?}");
    }
    sandbox.run(["index", "rebuild"]).expect(0);
    sandbox.run(["fsck"]).expect(0);
}
