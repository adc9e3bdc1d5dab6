//! Documents that are identified by the hash of a canonical form.

use runvault::digest::Digest;
use runvault::json::canonical::{c14n_v1, rfc8785};
use runvault::json::reader::{self, Limits};
use serde_json::{Value, json};

use super::recordings::recording;
use crate::sandbox::{Sandbox, repository};

fn digest(bytes: &[u8]) -> String {
    Digest::from_content(bytes).to_string()
}

/// The hash of context-engine-kernel: that of the canonical form and a line feed.
fn kernel_hash(value: &Value) -> String {
    let text = value.to_string();
    let mut form = rfc8785::to_vec(&reader::read(text.as_bytes(), &Limits::default()).unwrap()).unwrap();
    form.push(b'\n');
    digest(&form)
}

/// The hash of deterministic-multi-step-engine.
fn engine_hash(value: &Value) -> String {
    let text = value.to_string();
    digest(&c14n_v1::to_vec(&reader::read(text.as_bytes(), &Limits::default()).unwrap()).unwrap())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn policy() -> Value {
    json!({"name": "strict", "allow_network": false, "timeout_ms": 30000, "max_output_files": 200,
        "max_total_output_bytes": 10_485_760, "allowed_commands": ["node", "npm"], "allowed_write_roots": ["out"]})
}

fn workspace(refs: &Value) -> Value {
    json!({"workspace_schema_version": "1.0.0", "tool_id": "pack-apply", "args": {"dry_run": false}, "refs": refs,
        "env": {"allowlist": ["TZ"], "hashed": []},
        "safety": {"work_root_rel": ".", "denies_absolute": true, "denies_traversal": true}})
}

/// The links of an artifact: relation, hash of the other end, and strength.
fn links(sandbox: &Sandbox, core: &str) -> Vec<(String, String, String)> {
    let links = sandbox.run(["links", core, "--json"]).expect(0).json();
    let text = |link: &Value, name: &str| link[name].as_str().unwrap_or_default().to_owned();
    let link = |link: &Value| {
        let target = link["target"]["core_hash"].as_str().or(link["core_hash"].as_str()).unwrap_or_default();
        (text(link, "relation"), target.to_owned(), text(link, "strength"))
    };
    links.iter().map(link).collect()
}

#[test]
fn the_references_of_a_workspace_become_links() {
    let sandbox = Sandbox::new();
    let pack = sandbox.add([repository("examples/pack")]).remove(0);
    let names =
        json!({"files": ["bundle.json", "evidence.json", "model_io.json", "policy.json", "run.json"]});
    sandbox.write("intent.json", "{\"goal\": \"g\"}\n");
    let intent = sandbox.run(["add", "--json", "--as", "attachment", "intent.json"]).json().remove(0);
    sandbox.write("policy.json", pretty(&policy()));
    sandbox.add(["policy.json"]);
    let recorded = pretty(&recording(&[("?", "!")]));
    sandbox.write("recording.json", &recorded);
    sandbox.add(["recording.json"]);
    let mut snapshot = workspace(&json!({
        "intent": {"rel_path": "intent.json", "sha256": intent["core_hash"]},
        "model_io": {"rel_path": "recording.json", "sha256": digest(recorded.as_bytes())},
        "pack": {"rel_path": "packs/p", "pack_hash": kernel_hash(&names)},
        "policy": {"profile": "strict", "policy_hash": kernel_hash(&policy())},
    }));
    let core = kernel_hash(&snapshot);
    snapshot["ephemeral"] = json!({"generated_at": "2026-11-20T10:00:00Z"});
    let file = pretty(&snapshot);
    sandbox.write("workspace.json", &file);
    let added = sandbox.run(["add", "--json", "workspace.json"]).expect(0).json().remove(0);
    assert_eq!(added["core_hash"], digest(file.as_bytes()));
    assert_eq!(added["attachments"], json!([core]));
    let links = links(&sandbox, &core);
    for (relation, target, strength) in [
        ("references", intent["core_hash"].as_str().unwrap(), "stated"),
        ("references", &kernel_hash(&policy()), "stated"),
        ("references", &digest(recorded.as_bytes()), "stated"),
    ] {
        let expected = (relation.to_owned(), target.to_owned(), strength.to_owned());
        assert!(links.contains(&expected), "{expected:?} {links:?}");
    }
    // The document itself leads to its form.
    let own = sandbox.run(["links", &digest(file.as_bytes()), "--json"]).expect(0).stdout;
    assert!(own.contains(&core), "{own}");
    // Packs with the same names of files are told as what they are.
    let shown = sandbox.run(["show", &kernel_hash(&names)]);
    assert!(shown.status == 1 && shown.stderr.contains("file_names"), "{}{}", shown.stdout, shown.stderr);
    let found = sandbox.run(["find", &kernel_hash(&names), "--json"]).expect(0).stdout;
    assert!(found.contains(&pack), "{found}");
    // A hash of names does not lead to a pack.
    assert!(!links.iter().any(|(_, target, _)| *target == pack), "{links:?}");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_reference_to_the_bytes_of_a_file_leads_to_its_session() {
    let sandbox = Sandbox::new();
    let file = std::fs::read(repository("examples/session.json")).unwrap();
    let snapshot = workspace(&json!({"model_io": {"rel_path": "session.json", "sha256": digest(&file)}}));
    sandbox.write("workspace.json", pretty(&snapshot));
    sandbox.add(["workspace.json"]);
    let missing = sandbox.run(["unresolved", "--json"]).json();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0]["digest"], digest(&file));
    let session = sandbox.add([repository("examples/session.json")]).remove(0);
    assert_ne!(session, digest(&file));
    assert_eq!(sandbox.run(["unresolved", "--json"]).expect(0).json(), Vec::<Value>::new());
    let snapshot = kernel_hash(&snapshot);
    let link = ("references".to_owned(), session.clone(), "stated".to_owned());
    assert!(links(&sandbox, &snapshot).contains(&link));
    let link = ("references".to_owned(), snapshot.clone(), "stated".to_owned());
    assert!(links(&sandbox, &session).contains(&link));
    let shown = sandbox.run(["links", &session]).expect(0).stdout;
    assert!(shown.contains("of the other artifact states this capture hash"), "{shown}");
    sandbox.run(["fsck"]).expect(0);
    // What is referred to by the hash of its file is not removed without being asked for.
    sandbox.run(["rm", &session]).expect(1);
    sandbox.run(["rm", "--force", &session]).expect(0);
    assert_eq!(sandbox.run(["unresolved", "--json"]).json(), missing);
}

#[test]
fn a_document_is_found_by_the_hash_of_its_canonical_form() {
    let sandbox = Sandbox::new();
    let applied = json!({"apply_schema_version": "1.0.0", "outcome": "SUCCESS", "dry_run": false, "target_root": "w",
        "patch_source": {"proposal_id": "p", "proposal_hash": "b".repeat(64)}, "operation_results": [],
        "summary": {"total_operations": 0}});
    let hash = kernel_hash(&applied);
    let committed = json!({"git_apply_schema_version": "1.0.0", "outcome": "SUCCESS", "changed_files": [],
        "apply_result_hash": hash.trim_start_matches("sha256:")});
    sandbox.write("applied.json", pretty(&applied));
    sandbox.write("committed.json", pretty(&committed));
    sandbox.add(["applied.json"]);
    let core = sandbox.add(["committed.json"]).remove(0);
    assert_eq!(
        sandbox.run(["get", &hash]).expect(0).stdout.trim_end(),
        serde_json::to_string(&applied).unwrap()
    );
    assert!(links(&sandbox, &core).iter().any(|(_, target, _)| *target == hash));
    let found = sandbox.run(["find", "--attr", "document=apply result", "--json"]).expect(0).json();
    assert_eq!(found.len(), 2);
    // The canonical form is one artifact, however the document was written.
    sandbox.write("canonical.json", applied.to_string() + "\n");
    let again = sandbox.run(["add", "--json", "canonical.json"]).expect(0).json().remove(0);
    assert_eq!((&again["core_hash"], &again["outcome"]), (&json!(hash), &json!("present")));
    // Without verification, any bytes are kept.
    let broken = pretty(&committed).replace("1.0.0", "7");
    sandbox.write("broken.json", &broken);
    let refused = sandbox.run(["add", "broken.json"]).expect(1);
    assert!(
        refused.stdout.contains("AT1") || refused.stderr.contains("AT1"),
        "{}{}",
        refused.stdout,
        refused.stderr
    );
    sandbox.run(["add", "--as", "attachment", "broken.json"]).expect(0);
    sandbox.run(["fsck"]).expect(0);
}

/// The hashes are those of `createHash` of the canonical texts, as the specifications define them.
#[test]
fn a_pack_is_found_by_the_hashes_of_its_evidence_and_ledger() {
    let sandbox = Sandbox::new();
    let pack = repository("tests/corpus/pack/all-members");
    let core = sandbox.add([&pack]).remove(0);
    let form =
        |text: &str| rfc8785::to_vec(&reader::read(text.as_bytes(), &Limits::default()).unwrap()).unwrap();
    let read = |name: &str| std::fs::read_to_string(pack.join(name)).unwrap();
    let ledger: Vec<_> = read("ledger.jsonl").lines().map(form).collect();
    assert!(ledger.len() > 1);
    let found = |hash: &str| sandbox.run(["find", hash, "--json"]).expect(0).json();
    let by_ledger = found(&digest(&ledger.join(&b'\n')));
    assert_eq!((by_ledger.len(), &by_ledger[0]["core_hash"]), (1, &json!(core)));
    let mut evidence: Value = serde_json::from_str(&read("evidence.json")).unwrap();
    let hash = digest(&form(&evidence.to_string()));
    assert_eq!(found(&hash)[0]["core_hash"], json!(core));
    // Times are not hashed, and longer lists have no defined order.
    let with = |sandbox: &Sandbox, evidence: &Value| {
        for entry in std::fs::read_dir(&pack).unwrap() {
            let path = entry.unwrap().path();
            sandbox.write(
                &format!("p/{}", path.file_name().unwrap().to_str().unwrap()),
                std::fs::read(&path).unwrap(),
            );
        }
        sandbox.write("p/evidence.json", evidence.to_string());
        sandbox.add(["p"]);
        sandbox.run(["find", &hash, "--json"]).expect(0).json().len()
    };
    evidence["started_at"] = json!("2026-06-01T00:00:00Z");
    assert_eq!(with(&sandbox, &evidence), 2);
    evidence["test_results"] = json!([{"test_id": "a"}, {"test_id": "b"}]);
    assert_eq!(with(&sandbox, &evidence), 2);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn the_files_of_a_pack_that_are_given_by_themselves_are_what_the_pack_refers_to() {
    let sandbox = Sandbox::new();
    let pack = sandbox.add([repository("examples/pack")]).remove(0);
    for (file, noun) in
        [("bundle.json", "bundle"), ("evidence.json", "execution evidence"), ("run.json", "run record")]
    {
        let text = std::fs::read_to_string(repository("examples/pack").join(file)).unwrap();
        sandbox.write(file, &text);
        let added = sandbox.run(["add", "--json", file]).expect(0).json().remove(0);
        assert_eq!((&added["kind"], &added["outcome"]), (&json!("attachment"), &json!("added")), "{file}");
        let form = kernel_hash(&serde_json::from_str(&text).unwrap());
        let resolved = sandbox.run(["show", &form, "--json"]).expect(0).stdout;
        assert!(resolved.contains(noun), "{resolved}");
        let expected = ("references".to_owned(), form.clone(), "stated".to_owned());
        let links = links(&sandbox, &pack);
        assert!(links.contains(&expected), "{file} {form} {links:?}");
    }
    // In a directory they are what remains of a pack.
    sandbox.write("d/bundle.json", std::fs::read(repository("examples/pack/bundle.json")).unwrap());
    let rejected = sandbox.run(["add", "--json", "d"]).expect(1).json().remove(0);
    assert_eq!(rejected["violations"][0]["rule_id"], "PK1", "{rejected}");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn the_hashes_of_a_trace_resolve_to_states_that_were_written_with_white_space() {
    let sandbox = Sandbox::new();
    let problem = json!({"version": "1.0.0", "id": "p-1", "created_at": "2026-02-02T00:00:00Z",
        "inputs": {"prompt": "Zw\u{f6}lf?"}});
    let state = json!({"version": "1.0.0", "problem": problem, "step_index": 0, "status": "pending"});
    let output = json!({"answer": 12});
    let result = json!({"version": "1.0.0", "step": "Solve", "status": "success", "input_hash": engine_hash(&state),
        "output_hash": engine_hash(&output), "started_at": "2026-02-02T00:00:00Z",
        "finished_at": "2026-02-02T00:00:01Z", "output": output});
    let hex = |value: &Value| engine_hash(value).trim_start_matches("sha256:").to_owned();
    let mut header = json!({"type": "header", "version": "1.0.0", "trace_id": "t-1",
        "created_at": "2026-02-02T00:00:00Z", "engine_version": "0.1.0", "hash_algorithm": "sha256",
        "canonicalization": "json-c14n-v1", "problem_spec_hash": hex(&problem), "initial_state_hash": hex(&state)});
    header["record_hash"] = hex(&header).into();
    let mut step = json!({"type": "step", "index": 1, "step_index": 0, "result": result,
        "state_before_hash": hex(&state), "state_after_hash": hex(&state), "prev_hash": header["record_hash"]});
    step["record_hash"] = hex(&step).into();
    sandbox.write("trace.ndjson", format!("{header}\n{step}\n"));
    sandbox.write("state.json", pretty(&state));
    sandbox.write("result.json", pretty(&result));
    sandbox.write("problem.json", pretty(&problem));
    let trace = sandbox.add(["trace.ndjson"]).remove(0);
    sandbox.add(["state.json", "result.json", "problem.json"]);
    let targets: Vec<String> = links(&sandbox, &trace).into_iter().map(|(_, target, _)| target).collect();
    for content in [&problem, &state, &output] {
        assert!(targets.contains(&engine_hash(content)), "{content} {targets:?}");
        sandbox.run(["get", &engine_hash(content)]).expect(0);
    }
    let changed = pretty(&result).replace("12", "13");
    sandbox.write("changed.json", &changed);
    let refused = sandbox.run(["add", "--json", "changed.json"]).expect(1).json().remove(0);
    assert_eq!(
        (&refused["violations"][0]["rule_id"], &refused["violations"][0]["path"]),
        (&json!("AT2"), &json!("/output_hash"))
    );
}

/// A trace of one step.
fn trace(id: &str, problem: &Value, answer: u64) -> String {
    let hex = |value: &Value| engine_hash(value).trim_start_matches("sha256:").to_owned();
    let state =
        json!({"problem": problem, "step_index": 0, "status": "pending", "metadata": {"trace_id": id}});
    let mut header = json!({"type": "header", "version": "1.0.0", "trace_id": id, "created_at": "2026-02-02T00:00:00Z",
        "engine_version": "0.1.0", "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1",
        "problem_spec_hash": hex(problem), "initial_state_hash": hex(&state)});
    header["record_hash"] = hex(&header).into();
    let output = json!({"answer": answer});
    let result = json!({"version": "1.0.0", "step": "Solve", "status": "success", "input_hash": hex(problem),
        "output_hash": hex(&output), "started_at": "2026-02-02T00:00:00Z", "finished_at": "2026-02-02T00:00:00Z",
        "output": output});
    let mut step = json!({"type": "step", "index": 1, "step_index": 0, "result": result,
        "state_before_hash": hex(&state), "state_after_hash": hex(&state), "prev_hash": header["record_hash"]});
    step["record_hash"] = hex(&step).into();
    format!("{header}\n{step}\n")
}

#[test]
fn traces_of_equal_inputs_with_different_records_are_forks() {
    let sandbox = Sandbox::new();
    let problem = json!({"version": "1.0.0", "id": "p-1", "created_at": "2026-02-02T00:00:00Z",
        "inputs": {"prompt": "?"}});
    let other = json!({"version": "1.0.0", "id": "p-2", "created_at": "2026-02-02T00:00:00Z",
        "inputs": {"prompt": "?"}});
    for (name, text) in [
        ("a", trace("t-1", &problem, 12)),
        ("b", trace("t-2", &problem, 12)),
        ("of-other-inputs", trace("t-3", &other, 13)),
    ] {
        sandbox.write(&format!("{name}.ndjson"), text);
    }
    let equal = sandbox.add(["a.ndjson", "b.ndjson", "of-other-inputs.ndjson"]);
    sandbox.run(["forks"]).expect(0);
    sandbox.write("c.ndjson", trace("t-4", &problem, 13));
    let different = sandbox.add(["c.ndjson"]).remove(0);
    let forks = sandbox.run(["forks", "--json"]).expect(1).json();
    assert!(!forks.is_empty() && forks.len() <= 2, "{forks:?}");
    for fork in &forks {
        assert_eq!(fork["record"], 1, "{fork}");
        let sides = fork["traces"].as_array().unwrap().iter().map(|side| side["core_hash"].as_str().unwrap());
        let sides: Vec<&str> = sides.collect();
        assert!(sides.contains(&different.as_str()) && !sides.contains(&equal[2].as_str()), "{fork}");
    }
    let shown = sandbox.run(["forks"]).expect(1).stdout;
    assert!(shown.contains("equal inputs") && shown.contains("record 1 differs"), "{shown}");
    let limited = sandbox.run(["forks", "--json", "--limit", "1"]).expect(1).json();
    assert_eq!(limited, forks[..1]);
}
