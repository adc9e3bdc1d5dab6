//! What artifacts state about themselves: versions of their formats, times and hashes.

use runvault::artifact::{AdmitOptions, Admitted, Directory, DirectoryEntry, EntryContent};
use runvault::digest::Digest;
use runvault::formats;
use runvault::json::canonical::c14n_v1;
use runvault::json::reader::{Limits, read};
use runvault::validation::{Report, Severity};
use serde_json::{Value, json};

use crate::packs::run;
use crate::sandbox::{repository, session};

/// What a report says: severity, rule, place and message.
fn told(report: &Report) -> Vec<String> {
    let line = |one: &runvault::validation::Violation| {
        format!("{} {} {}: {}", one.severity, one.rule_id, one.path, one.message)
    };
    report.violations().iter().map(line).collect()
}

fn admit(kind: &str, document: &str) -> Result<Admitted, Vec<String>> {
    let kind = formats::named(kind).unwrap();
    kind.admit(document.as_bytes().to_vec(), &AdmitOptions::default()).map_err(|report| told(&report))
}

/// A trace of a header and a step with the hashes of its records, after `change`.
fn trace(change: impl FnOnce(&mut Value, &mut Value)) -> String {
    let state = Digest::from_content(b"state").hex();
    let mut header = json!({
        "type": "header", "version": "1.0.0", "engine_version": "0.1.0", "trace_id": "t",
        "created_at": "2026-04-17T01:02:03Z", "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1",
        "problem_spec_hash": Digest::from_content(b"problem").hex(), "initial_state_hash": state,
    });
    let mut step = json!({
        "type": "step", "index": 1, "step_index": 0, "state_before_hash": state,
        "state_after_hash": Digest::from_content(b"after").hex(),
        "result": {"version": "1.0.0", "step": "s", "input_hash": "in", "output_hash": "out", "status": "success",
            "started_at": "2026-04-17T01:02:03Z", "finished_at": "2026-04-17T01:02:03Z", "output": {}},
    });
    change(&mut header, &mut step);
    seal(&mut header);
    step["prev_hash"] = header["record_hash"].clone();
    seal(&mut step);
    format!("{header}\n{step}\n")
}

fn seal(record: &mut Value) {
    let text = record.to_string();
    let canonical = c14n_v1::to_vec(&read(text.as_bytes(), &Limits::default()).unwrap()).unwrap();
    record["record_hash"] = Digest::from_content(&canonical).hex().into();
}

fn trace_with(name: &str, value: &str) -> Result<Admitted, Vec<String>> {
    admit(
        "trace",
        &trace(|header, step| {
            let record = if header.get(name).is_some() { header } else { step };
            record[name] = value.into();
        }),
    )
}

#[test]
fn a_trace_states_a_semantic_version_whose_major_is_known() {
    for version in ["1.0.0", "1.20.3", "1.0.0-rc.1", "1.0.0+build"] {
        trace_with("version", version).unwrap();
    }
    assert_eq!(
        trace_with("version", "2.1.0").unwrap_err(),
        ["error TR2 line 1 /version: unknown major version 2; known: 1.x"]
    );
    for version in ["1", "1.0", "v1.0.0", "01.0.0", "one"] {
        let found = trace_with("version", version).unwrap_err();
        assert_eq!(
            found,
            [format!("error TR2 line 1 /version: {version:?} is not a semantic version, like 1.0.0")]
        );
    }
}

#[test]
fn a_trace_was_created_at_a_time_in_utc_in_any_iso_form() {
    for time in [
        "2026-04-17T01:02:03Z",
        "2026-04-17T01:02:03.250Z",
        "2026-04-17T01:02:03+00:00",
        "20260417T010203Z",
        "2026-W16-5T01:02:03Z",
        "2026-107T01:02Z",
    ] {
        let admitted = trace_with("created_at", time).unwrap();
        assert!(!told(admitted.report()).iter().any(|one| one.contains("created_at")), "{time}");
    }
    for time in ["yesterday", "2026-04-17", "2026-04-17T01:02:03", "2026-04-17T01:02:03+02:00", "1776387723"]
    {
        let found = trace_with("created_at", time).unwrap_err();
        assert!(found[0].starts_with("error TR2 line 1 /created_at: "), "{found:?}");
    }
}

/// The original tools accept these, so they do not keep a trace out.
#[test]
fn a_time_that_does_not_exist_is_a_warning() {
    for time in ["2026-99-99T99:99:99Z", "2026-02-30T00:00:00Z"] {
        let found = told(trace_with("created_at", time).unwrap().report());
        assert!(
            found
                .contains(&format!("warning TR11 line 1 /created_at: {time:?} is not a valid date and time")),
            "{found:?}"
        );
    }
}

#[test]
fn hashes_that_a_trace_states_are_hashes() {
    for name in ["problem_spec_hash", "state_after_hash"] {
        let found = trace_with(name, "abc").unwrap_err();
        let line = if name == "problem_spec_hash" { 1 } else { 2 };
        assert_eq!(
            found,
            [format!("error TR2 line {line} /{name}: \"abc\" is not a hash (64 lowercase hex digits)")]
        );
        trace_with(
            name,
            &Digest::from_content(b"x").hex().to_uppercase().replace(|c: char| c.is_ascii_digit(), "A"),
        )
        .unwrap_err();
    }
    let both = admit(
        "trace",
        &trace(|header, step| {
            header["initial_state_hash"] = "start".into();
            step["state_before_hash"] = "start".into();
        }),
    );
    assert_eq!(both.unwrap_err().len(), 2);
    // What a result states is free text in the traces of the original engine.
    admit("trace", &trace(|_, step| step["result"]["input_hash"] = "in".into())).unwrap();
}

#[test]
fn a_part_of_a_trace_says_what_it_follows() {
    let whole = trace(|_, _| {});
    let (header, rest) = whole.split_once('\n').unwrap();
    let hash = serde_json::from_str::<Value>(header).unwrap()["record_hash"].clone();
    let expected = format!(
        "error TR10 line 1: the trace's beginning is missing: record 1 follows a record with the hash {}, which is \
         missing",
        hash.as_str().unwrap()
    );
    let found = admit("trace", rest).unwrap_err();
    assert!(found.contains(&expected), "{found:#?}");
    // What is left of a line that was cut does not hide it.
    let cut = whole.get(header.len() - 30..).unwrap();
    let found = admit("trace", cut).unwrap_err();
    assert!(found.contains(&expected.replace("line 1:", "line 2:")), "{found:?}");
    assert!(!admit("trace", &format!("x\n{whole}")).unwrap_err().iter().any(|one| one.contains("TR10")));
}

#[test]
fn a_session_of_an_unknown_major_version_is_a_warning() {
    let text = session("a", &[("p", "r")]);
    assert!(admit("model_io", &text.replace("1.0.0", "1.7.0")).unwrap().report().violations().is_empty());
    let found = told(admit("model_io", &text.replace("1.0.0", "2.10.0")).unwrap().report());
    assert_eq!(
        found,
        [
            "warning MI1 $.model_io_schema_version: unknown major version 2; known: 1.x; checked against the rules \
          of the known versions"
        ]
    );
}

#[test]
fn a_run_of_an_unknown_major_version_is_refused() {
    let run = std::fs::read_to_string(repository("examples/run.rpk")).unwrap();
    let mut value: Value = serde_json::from_str(&run).unwrap();
    value["version"] = "2.0".into();
    let found = admit("rpk", &value.to_string()).unwrap_err();
    assert!(
        found.contains(&"error RPK2 /version: unknown major version 2; known: 1.x".to_owned()),
        "{found:?}"
    );
}

fn pack(members: &[(&str, Value)]) -> Vec<String> {
    let entries = members.iter().map(|(name, value)| DirectoryEntry {
        name: (*name).to_owned(),
        content: EntryContent::File(value.to_string().into_bytes()),
    });
    let directory = Directory { entries: entries.collect() };
    match formats::named("pack").unwrap().admit_directory(directory, &AdmitOptions::default()) {
        Ok(admitted) => told(admitted.report()),
        Err(report) => told(&report),
    }
}

fn patch() -> Value {
    json!({"patch_schema_version": "1.0.0", "source_proposal_id": "p", "operations": [], "total_bytes": 0,
        "source_proposal_hash": Digest::from_content(b"p").to_string()})
}

#[test]
fn members_of_a_pack_of_an_unknown_major_version_are_refused() {
    let with = |mut value: Value, name: &str, version: &str| {
        value[name] = version.into();
        value
    };
    let bundle: Value =
        serde_json::from_slice(&std::fs::read(repository("examples/pack/bundle.json")).unwrap()).unwrap();
    assert_eq!(
        pack(&[("run.json", run()), ("bundle.json", bundle.clone()), ("patch.json", patch())]),
        [""; 0]
    );
    assert_eq!(
        pack(&[("run.json", with(run(), "run_schema_version", "2.0.0"))]),
        ["error PK3 run.json: run_schema_version: unknown major version 2; known: 1.x"]
    );
    // The format allows any value; only one that states a major version is looked at.
    assert_eq!(pack(&[("run.json", with(run(), "run_schema_version", "first"))]), [""; 0]);
    assert_eq!(
        pack(&[("run.json", run()), ("bundle.json", with(bundle, "schema_version", "1.0.0"))]),
        ["error PK4 bundle.json: BS1: schema_version: unknown major version 1; known: 0.x"]
    );
    assert_eq!(
        pack(&[("run.json", run()), ("patch.json", with(patch(), "patch_schema_version", "3.1"))]),
        ["error PK8 patch.json: PS1: patch_schema_version: unknown major version 3; known: 1.x"]
    );
    let runner = json!({"runner_schema_version": "2.0.0"});
    let found = pack(&[("run.json", run()), ("runner.json", runner)]);
    let expected = "error PK8 runner.json: RN1: unknown runner_schema_version \"2.0.0\"; known: \"1.0.0\"";
    assert!(found.contains(&expected.to_owned()), "{found:?}");
}

#[test]
fn a_pack_that_states_no_hash_where_one_belongs_is_warned_of() {
    let mut run = run();
    run["intent"]["sha256"] = "abc".into();
    run["model_io_hash"] = 7.into();
    let mut patch = patch();
    patch["source_proposal_hash"] = Digest::from_content(b"p").hex().to_uppercase().into();
    let ledger = json!({"run_id": "", "timestamp": "", "intent_sha256": "none", "bundle_sha256": null,
        "result_kind": "", "accepted": true, "mode": "", "policy": ""});
    let found = pack(&[("run.json", run), ("patch.json", patch), ("ledger.jsonl", ledger)]);
    assert_eq!(found.len(), 4);
    let severity = Severity::Warning.to_string();
    assert!(found.iter().all(|one| one.starts_with(&format!("{severity} PK16 "))), "{found:?}");
    assert_eq!(
        found[0],
        "warning PK16 ledger.jsonl: line 1: intent_sha256 is \"none\", not a hash: sha256: and 64 lowercase hex digits"
    );
}
