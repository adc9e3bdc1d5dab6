//! Run packs of earlier versions and of listeners, and what `TraceMind` writes.

use runvault::digest::Digest;
use serde_json::json;

use crate::sandbox::{Sandbox, run_pack, sealed};

/// A run pack of version 0.9, whose checksum its own program computed.
const LEGACY: &str = r#"{"version": "0.9", "checksum":
    "sha256:bdaefd7ed43fdad56bae50202b6ea9f1bd808541f489cd06f23fadf4976c56e5",
    "metadata": {"run_id": "run-old", "created_at": "2026-02-22T19:00:00Z", "owner": "me"},
    "payload": {"run": {"id": "run-old", "timestamp": "2026-02-22T19:00:00Z",
        "env_fingerprint": {"os": "linux", "USER ": "x"}, "runtime": {"python": "3.11.9"}, "steps": [
            {"id": "step-1", "type": "model.request", "request": {"prompt": "Zw\u00f6lf?", "path": "a\\b"},
             "metadata": {"duration_ms": 3},
             "step_hash": "sha256:0e93e0a914f483669572762fcb775da2ab8afd511c2f2b70c25cd0d82afaadda"},
            {"id": "step-2", "type": "model.response", "response": {"content": "12\r\n"},
             "metadata": {"model": "m"},
             "step_hash": "sha256:0dbe62836b07e2e963bbdcba07a4c1d9203a731dfa44926de47eb37157761189"}]}}}"#;

#[test]
fn a_run_pack_of_an_earlier_version_is_migrated() {
    let sandbox = Sandbox::new();
    sandbox.write("old.rpk", LEGACY);
    let added = sandbox.run(["add", "--json", "old.rpk"]).expect(0).json().remove(0);
    let checksum = "sha256:c4f7cf663969f22b9ea01f8afa3bf257e2fc9178c228928d09f8652d6d6b0614";
    assert_eq!((&added["kind"], &added["core_hash"]), (&json!("rpk"), &json!(checksum)));
    let original = Digest::from_content(LEGACY.as_bytes()).to_string();
    assert_eq!(added["attachments"], json!([original]));
    assert_eq!(sandbox.run(["get", &original]).expect(0).stdout, LEGACY);
    let links = sandbox.run(["links", checksum, "--json"]).expect(0).stdout;
    assert!(links.contains(&original), "{links}");
    let found = sandbox.run(["find", "--prompt", "Zw\u{f6}lf?", "--json"]).expect(0).stdout;
    assert!(found.contains(checksum), "{found}");
    sandbox.write("changed.rpk", LEGACY.replace("\"me\"", "\"you\""));
    let refused = sandbox.run(["add", "--json", "changed.rpk"]).expect(1).json().remove(0);
    assert_eq!(refused["violations"][0]["rule_id"], "RPK3");
    sandbox.run(["fsck"]).expect(0);
}

/// The segments of a run of a listener, with these steps.
fn segments<const N: usize>(session: &str, steps: [&[serde_json::Value]; N]) -> [String; N] {
    let mut numbered = 1..;
    steps.map(|steps| {
        let end = numbered.next().filter(|number| *number > 1);
        let end = end.map_or_else(String::new, |number| format!("-segment-{number:04}"));
        let id = format!("run-listener-{session}{end}");
        let mut pack: serde_json::Value = serde_json::from_str(&run_pack(&id, steps)).unwrap();
        pack["payload"]["run"]["listener_session_id"] = session.into();
        sealed(pack)
    })
}

#[test]
fn the_files_of_a_listener_are_segments_of_one_run() {
    let sandbox = Sandbox::new();
    let step = |text: &str| json!({"type": "output.final", "output": {"text": text}});
    let (first, second, third) = ([step("a"), step("b")], [step("c")], [step("d"), step("e")]);
    let [first, second, third] = segments("s-1", [&first, &second, &third]);
    sandbox.write("capture.part-000001.rpk", first);
    sandbox.write("capture.part-000002.rpk", second);
    sandbox.write("capture.rpk", third);
    // In whichever order they are added.
    let mut cores = sandbox.add(["capture.rpk", "capture.part-000001.rpk", "capture.part-000002.rpk"]);
    cores.rotate_left(1);
    for (later, earlier) in [(1, 0), (2, 1)] {
        let links =
            sandbox.run(["links", &cores[later], "--relation", "continues", "--json"]).expect(0).stdout;
        assert!(links.contains(&cores[earlier]), "{links}");
    }
    let reached = sandbox.run(["links", &cores[0], "--depth", "5", "--json"]).expect(0).stdout;
    assert!(reached.contains(&cores[2]), "{reached}");
    assert_eq!(sandbox.run(["forks"]).expect(0).stdout, "");
    // They are one row, also if only one of them matches.
    for options in [&[][..], &["--attr", "run_id=run-listener-s-1-segment-0003"]] {
        let rows = sandbox.run([&["list", "--json"], options].concat()).expect(0).json();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(
            (&rows[0]["core_hash"], &rows[0]["run_id"]),
            (&json!(cores[0]), &json!("run-listener-s-1"))
        );
        assert_eq!((&rows[0]["steps"], rows[0]["members"].as_array().unwrap().len()), (&json!(5), 3));
    }
    assert_eq!(sandbox.run(["list", "--flat", "--json"]).expect(0).json().len(), 3);
    let stats = sandbox.run(["stats", "--by", "day", "--json"]).expect(0).json().remove(0);
    assert_eq!(stats["total"]["runs"], 1, "{stats}");
    let view = sandbox.run(["view", "run-listener-s-1", "--json"]).expect(0).json().remove(0);
    let numbers: Vec<u64> =
        view["steps"].as_array().unwrap().iter().map(|step| step["index"].as_u64().unwrap()).collect();
    assert_eq!((numbers, &view["parts"]), (vec![0, 1, 2, 3, 4], &json!(cores)));
    let last = sandbox.run(["view", "run-listener-s-1-segment-0003", "--json"]).expect(0).json().remove(0);
    assert_eq!((&last["total"], &last["parts"]), (&json!(2), &json!(null)));
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn segments_are_one_run_only_with_the_segments_that_they_continue() {
    let sandbox = Sandbox::new();
    let step = |text: &str| json!({"type": "output.final", "output": {"text": text}});
    let (one, other, more) = ([step("a")], [step("b")], [step("c")]);
    let [first, second, third] = segments("s-1", [&one, &other, &more]);
    sandbox.write("first.rpk", first);
    sandbox.write("second.rpk", second);
    sandbox.write("third.rpk", third);
    sandbox.add(["first.rpk", "third.rpk"]);
    let rows = || sandbox.run(["list", "--json"]).expect(0).json();
    assert_eq!(rows().len(), 2, "{:?}", rows());
    let unresolved = || sandbox.run(["unresolved", "--json"]).expect(0).json().len();
    assert_eq!(unresolved(), 1);
    sandbox.add(["second.rpk"]);
    assert_eq!(rows().len(), 1, "{:?}", rows());
    assert_eq!(unresolved(), 0);
    // What is not of the same run is not one with it.
    sandbox.write("other.rpk", run_pack("run-listener-s-2-segment-0002", &[step("a")]));
    sandbox.add(["other.rpk"]);
    assert_eq!(rows().len(), 2, "{:?}", rows());
}

#[test]
fn runs_of_many_segments_are_one_run() {
    let sandbox = Sandbox::new();
    let step = [json!({"type": "output.final", "output": {"text": "a"}})];
    for (number, segment) in segments("s-1", [step.as_slice(); 70]).into_iter().enumerate() {
        sandbox.write(&format!("files/{number}.rpk"), segment);
    }
    sandbox.run(["add", "files"]).expect(0);
    let rows = sandbox.run(["list", "--json"]).expect(0).json();
    assert_eq!((rows.len(), &rows[0]["steps"]), (1, &json!(70)), "{rows:?}");
    let view = sandbox.run(["view", "run-listener-s-1", "--json"]).expect(0).json().remove(0);
    assert_eq!((&view["total"], view["parts"].as_array().unwrap().len()), (&json!(70), 70));
}

#[test]
fn all_segments_of_runs_are_compared() {
    let sandbox = Sandbox::new();
    let step = |text: &str, latency: u64| json!({"type": "output.final", "output": {"text": text}, "metadata": {"latency_ms": latency}});
    let (first, second) = ([step("a", 10), step("b", 10)], [step("c", 10)]);
    for (session, end) in [("s-1", step("d", 10)), ("s-2", step("e", 80)), ("s-3", step("d", 10))] {
        for (number, segment) in segments(session, [&first, &second, &[end]]).into_iter().enumerate() {
            sandbox.write(&format!("{session}-{number}.rpk"), segment);
        }
        sandbox.add([0, 1, 2].map(|number| format!("{session}-{number}.rpk")));
    }
    let equal = sandbox.run(["diff", "run-listener-s-1", "run-listener-s-3"]).expect(0).stdout;
    assert!(equal.contains("no divergence"), "{equal}");
    let diff =
        sandbox.run(["diff", "run-listener-s-1", "run-listener-s-2", "--json"]).expect(1).json().remove(0);
    assert_eq!(diff["first_divergence"]["one"], "step 0 of part 3", "{diff}");
    assert_eq!(diff["one"]["parts"].as_array().unwrap().len(), 3, "{diff}");
    let slower =
        sandbox.run(["diff", "run-listener-s-1", "run-listener-s-2", "--fail-on-slowdown", "50"]).expect(1);
    assert!(slower.stderr.contains("latency: 40 ms, then 110 ms"), "{}", slower.stderr);
    // A capture is compared by itself.
    let captures = ["run-listener-s-1", "run-listener-s-2"].map(|run| {
        let answer = sandbox.run(["view", run, "--json"]).expect(0).json().remove(0);
        answer["capture_hash"].as_str().unwrap().to_owned()
    });
    let alone = sandbox.run(["diff", &captures[0], &captures[1], "--json"]).expect(0).json().remove(0);
    assert_eq!((&alone["first_divergence"], &alone["one"]["parts"]), (&json!(null), &json!(null)));
}

#[test]
fn a_conversation_goes_on_in_the_next_segment() {
    let sandbox = Sandbox::new();
    let request = |text: &str| {
        json!({"type": "model.request", "input": {"model": "m",
            "payload": {"model": "m", "messages": [{"role": "user", "content": text}]}}})
    };
    let answer = |text: &str| json!({"type": "model.response", "output": {"content": text}});
    let segments = segments(
        "s-1",
        [
            &[request("first?"), answer("one"), request("second?")],
            &[answer("two")],
            &[request("third?"), answer("three")],
        ],
    );
    for (number, segment) in segments.into_iter().enumerate() {
        sandbox.write(&format!("part-{number}.rpk"), segment);
    }
    sandbox.add(["part-0.rpk", "part-1.rpk", "part-2.rpk"]);
    let shown = sandbox.run(["view", "run-listener-s-1"]).expect(0).stdout;
    let said = ["first?", "one", "second?", "two", "third?", "three"];
    let mut at = 0;
    for text in said {
        at += shown[at..].find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    }
    let view = sandbox.run(["view", "run-listener-s-1", "--json"]).expect(0).json().remove(0);
    let calls = view["conversation"]["calls"].as_array().unwrap();
    let steps: Vec<u64> = calls.iter().map(|call| call["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [0, 2, 4]);
}

/// What `yaml.safe_dump` writes, with hashes that the program computed.
const SNAPSHOT: &str = "\
body:
  constraints: &id001
  - rule: r
  data_hash: 5901a2fbf211e5bfff80a2931ce549d2dadcf25e2451aeb51aa22e95edcf0a88
  environment:
    state:
      phase: \" mock \\r\\n\"
  snapshot_id: env-mock
envelope:
  artifact_type: environment_snapshot
  body_hash: d9a75a3330fe7a82a9256b076e6cb866ccc0cc21ac33f7865a81942fae9d7abd
  envelope_hash: ''
  meta:
    seen: *id001
";

const BUNDLE: &str = "\
envelope:
  artifact_type: agent_bundle
  body_hash: ''
body:
  agents:
  - agent_id: a
    contract:
      inputs:
      - {ref: 'state:x', kind: resource, schema: {type: object}, required: true, mode: read}
      outputs:
      - {ref: 'state:x', kind: resource, schema: {type: object}, required: false, mode: write}
      effects:
      - {name: e, kind: resource, target: 'state:x', idempotency: {type: reentrant}, evidence: {type: status, path: /s}}
";

#[test]
fn an_artifact_in_an_envelope_is_found_by_its_hashes() {
    let sandbox = Sandbox::new();
    sandbox.write("out/env_snapshot.yaml", SNAPSHOT);
    let core = sandbox.add(["out"]).remove(0);
    assert_eq!(core, Digest::from_content(SNAPSHOT.as_bytes()).to_string());
    for hash in [
        "d9a75a3330fe7a82a9256b076e6cb866ccc0cc21ac33f7865a81942fae9d7abd",
        "5901a2fbf211e5bfff80a2931ce549d2dadcf25e2451aeb51aa22e95edcf0a88",
    ] {
        let form = sandbox.run(["get", hash]).expect(0).stdout;
        assert!(form.contains("\"phase\":\"mock\""), "{form}");
    }
    sandbox.write("changed.yaml", SNAPSHOT.replace("rule: r", "rule: q"));
    let refused = sandbox.run(["add", "--json", "changed.yaml"]).expect(1).json().remove(0);
    assert_eq!(refused["violations"][0]["rule_id"], "AT2", "{refused}");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn the_contracts_of_a_bundle_are_stored_with_it() {
    let sandbox = Sandbox::new();
    sandbox.write("bundle.yaml", BUNDLE);
    let bundle = sandbox.add(["bundle.yaml"]).remove(0);
    let contracts = sandbox.run(["find", "contracts", "--json"]).expect(0).json();
    assert_eq!(contracts.len(), 1);
    let core = contracts[0]["core_hash"].as_str().unwrap();
    let links = sandbox.run(["links", core, "--json"]).expect(0).stdout;
    assert!(links.contains(&bundle), "{links}");
    let undeclared = BUNDLE.replace("target: 'state:x'", "target: 'state:z'");
    sandbox.write("undeclared.yaml", undeclared);
    let refused = sandbox.run(["add", "--json", "undeclared.yaml"]).expect(1).json().remove(0);
    let first = &refused["violations"][0];
    assert_eq!((&first["rule_id"], &first["path"]), (&json!("IC1"), &json!("contract 1 /effects/0/target")));
    sandbox.run(["add", "--as", "attachment", "undeclared.yaml"]).expect(0);
    // By itself, the form is not that of the specification.
    let mut alone = String::new();
    for line in BUNDLE.lines().skip_while(|line| !line.contains("inputs")) {
        alone.push_str(&line[6..]);
        alone.push('\n');
    }
    sandbox.write("contract.yaml", alone);
    let refused = sandbox.run(["add", "--json", "contract.yaml"]).expect(1).json().remove(0);
    assert_eq!(refused["violations"][0]["path"], "/io_refs");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_run_that_became_slower_fails_the_comparison() {
    let sandbox = Sandbox::new();
    let pack = |latency: serde_json::Value| {
        run_pack(
            "r",
            &[json!({"type": "output.final", "output": {"text": "a"}, "metadata": {"latency_ms": latency}})],
        )
    };
    for (name, latency) in [("a", json!(100)), ("b", json!(125)), ("c", json!(126)), ("d", json!(null))] {
        sandbox.write(&format!("{name}.rpk"), pack(latency));
    }
    let diff = |other: &str| sandbox.run(["diff", "a.rpk", other, "--fail-on-slowdown", "25"]);
    diff("b.rpk").expect(0);
    let slower = diff("c.rpk").expect(1).stderr;
    assert!(slower.contains("100 ms, then 126 ms; more than 25 % slower"), "{slower}");
    let unknown = diff("d.rpk").expect(2).stderr;
    assert!(unknown.contains("d.rpk states no latency"), "{unknown}");
    sandbox.run(["diff", "c.rpk", "--expect", "a.rpk", "--fail-on-slowdown", "30"]).expect(0);
    let assert = |other: &str| sandbox.run(["assert", "a.rpk", "-c", other, "--fail-on-slowdown", "25"]);
    assert("b.rpk").expect(0);
    assert("c.rpk").expect(1);
}

#[test]
fn assert_compares_steps_and_with_strict_the_circumstances() {
    let sandbox = Sandbox::new();
    let step = |text: &str| json!({"type": "output.final", "output": {"text": text}});
    let pack = |name: &str, text: &str, member: &str, value: serde_json::Value| {
        let mut document: serde_json::Value = serde_json::from_str(&run_pack("r", &[step(text)])).unwrap();
        document["payload"]["run"][member] = value;
        sandbox.write(name, sealed(document));
    };
    pack("a.rpk", "a", "agent", json!("one"));
    pack("agent.rpk", "a", "agent", json!("two"));
    pack("os.rpk", "a", "environment_fingerprint", json!({"os": "plan9"}));
    pack("python.rpk", "a", "runtime_versions", json!({"python": "2.7"}));
    pack("b.rpk", "b", "agent", json!("one"));
    let assert = |more: &[&str]| sandbox.run([&["assert", "a.rpk", "--candidate"], more].concat());
    for (candidate, part) in
        [("agent", "run"), ("os", "environment fingerprint"), ("python", "runtime versions")]
    {
        let candidate = format!("{candidate}.rpk");
        let passed = assert(&[&candidate, "--json"]).expect(0).json().remove(0);
        assert_eq!((&passed["different"], &passed["counts"]["same"]), (&json!(false), &json!(1)));
        let failed = assert(&[&candidate, "--strict"]).expect(1).stdout;
        assert!(failed.starts_with("not as expected: "), "{failed}");
        let answer = assert(&[&candidate, "--strict", "--json"]).expect(1).json().remove(0);
        let parts: Vec<_> =
            answer["changes"].as_array().unwrap().iter().map(|change| &change["one"]).collect();
        assert!(parts.contains(&&json!(part)), "{parts:?}");
    }
    let failed = assert(&["b.rpk"]).expect(1).stdout;
    assert!(failed.starts_with("not as expected: step 0: output final differs (output)"), "{failed}");
    assert(&["no.rpk"]).expect(2);
    sandbox.run(["assert", "a.rpk"]).expect(3);
}
