//! Contracts and runs for audits, with their hashes.

use runvault::digest::Digest;
use runvault::json::canonical::replaykit::{VolatilePolicy, object};
use runvault::json::reader::{Limits, read};
use serde_json::{Map, Value, json};

use crate::packs::{part, run, tar_of};
use crate::sandbox::Sandbox;

/// `given` with the members of `base` that it does not have.
fn filled(given: &Value, base: &Value) -> Value {
    let mut all = base.clone();
    all.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    all
}

/// A contract with these effects, on `service:tracker` unless they say otherwise, and these refs beside it.
pub(crate) fn contract(effects: &[Value], refs: &[Value]) -> Value {
    let effect =
        json!({"kind": "resource", "target": "service:tracker", "idempotency": {"type": "reentrant"}});
    let io_ref = json!({"kind": "service", "schema": {}, "required": false, "mode": "mutate"});
    let mut io_refs: Vec<Value> = refs.iter().map(|io_ref_given| filled(io_ref_given, &io_ref)).collect();
    if !io_refs.iter().any(|io_ref| io_ref["ref"] == "service:tracker") && !effects.is_empty() {
        io_refs.insert(0, filled(&json!({"ref": "service:tracker"}), &io_ref));
    }
    let named = effects.iter().enumerate().map(|(index, given)| {
        let name = json!({"name": format!("effect {index}")});
        filled(given, &filled(&name, &effect))
    });
    json!({"io_refs": io_refs, "effects": named.collect::<Vec<_>>()})
}

fn hash(value: &Value, volatile: VolatilePolicy) -> String {
    let text = value.to_string();
    let value = read(text.as_bytes(), &Limits::default()).unwrap();
    let members: Vec<_> = value.as_object().unwrap().iter().collect();
    Digest::from_content(&object(&members, volatile).unwrap()).to_string()
}

/// A run pack with these steps, of which only the type must be given, and more members in its metadata.
pub(crate) fn run_pack(steps: &[Value], metadata: &Value) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            let mut step = filled(step, &json!({"input": {}, "output": {}, "metadata": {}}));
            step["hash"] = hash(&step, VolatilePolicy::Omit).into();
            step["id"] = "step".into();
            step
        })
        .collect();
    let metadata = filled(metadata, &json!({"run_id": "run-1", "created_at": "2026-01-01T00:00:00Z"}));
    let mut run = json!({"version": "1.0", "metadata": metadata, "payload": {"run": {"id": "run-1",
        "timestamp": "2026-01-01T00:00:00Z", "environment_fingerprint": {}, "runtime_versions": {}, "steps": steps}}});
    run["checksum"] = hash(&run, VolatilePolicy::Include).into();
    run
}

/// A trace with steps of these results, of which nothing must be given.
pub(crate) fn trace(results: &[Value]) -> String {
    let sealed = |mut record: Value| {
        let text = record.to_string();
        let value = read(text.as_bytes(), &Limits::default()).unwrap();
        let canonical = runvault::json::canonical::c14n_v1::to_vec(&value).unwrap();
        record["record_hash"] = Digest::from_content(&canonical).hex().into();
        record
    };
    let state = Digest::from_content(b"state").hex();
    let mut records = vec![sealed(json!({"type": "header", "version": "1.0.0", "engine_version": "1.0.0",
        "trace_id": "t", "created_at": "2026-02-21T14:00:00Z", "hash_algorithm": "sha256",
        "canonicalization": "json-c14n-v1", "problem_spec_hash": state, "initial_state_hash": state}))];
    for (index, result) in results.iter().enumerate() {
        let result = filled(
            result,
            &json!({"step": "Step", "version": "1.0.0", "input_hash": state, "output_hash": state,
                "started_at": "2026-02-21T14:00:00Z", "finished_at": "2026-02-21T14:00:00Z", "status": "success",
                "output": {}, "errors": []}),
        );
        records
            .push(sealed(json!({"type": "step", "index": index + 1, "step_index": index, "result": result,
            "state_before_hash": state, "state_after_hash": state, "prev_hash": records[index]["record_hash"]})));
    }
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

/// An archive of a pack with these files beside `run.json`.
pub(crate) fn pack(files: &[(&str, Value)]) -> Vec<u8> {
    let mut parts = vec![part("run.json", run().to_string())];
    parts.extend(files.iter().map(|(name, value)| part(name, value.to_string())));
    tar_of(&parts)
}

/// What an audit said.
pub(crate) struct Audited {
    pub(crate) status: i32,
    /// The effects, each as its verdict and the reason.
    pub(crate) effects: Vec<(String, String)>,
    /// The findings, each as its rule, its place and its message.
    pub(crate) findings: Vec<(String, String, String)>,
}

impl Audited {
    /// The verdicts, in the order of the contract.
    pub(crate) fn verdicts(&self) -> Vec<&str> {
        self.effects.iter().map(|(verdict, _)| verdict.as_str()).collect()
    }

    /// The only verdict, and why.
    pub(crate) fn only(&self) -> (&str, &str) {
        let [(verdict, because)] = self.effects.as_slice() else { panic!("{:?}", self.effects) };
        (verdict, because)
    }

    /// The rules that were broken.
    pub(crate) fn rules(&self) -> Vec<&str> {
        self.findings.iter().map(|(rule, ..)| rule.as_str()).collect()
    }
}

/// Adds a contract and a run to a vault, and audits the one against the other.
pub(crate) fn audited_in(sandbox: &Sandbox, contract: &Value, run: impl AsRef<[u8]>) -> Audited {
    let contract = sandbox.add([sandbox.write("contract.json", contract.to_string())]).remove(0);
    let run = sandbox.add([sandbox.write("run", run)]).remove(0);
    let ran = sandbox.run(["audit", "--json", &contract, &run]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (mut effects, mut findings) = (Vec::new(), Vec::new());
    for line in ran.json() {
        let line: Map<String, Value> = line.as_object().unwrap().clone();
        match line.get("effect") {
            Some(_) => effects.push((text(&line["verdict"]), text(&line["because"]))),
            None => findings.push((text(&line["rule_id"]), text(&line["path"]), text(&line["message"]))),
        }
    }
    // What people are told is the same.
    let told = sandbox.run(["audit", &contract, &run]).expect(ran.status);
    let count = |verdict: &str| effects.iter().filter(|(one, _)| one == verdict).count();
    let counts = ["verified", "inconclusive", "pending", "failed"]
        .map(|verdict| format!("{} {verdict}", count(verdict)));
    assert!(told.stderr.starts_with(&counts.join(", ")), "{}", told.stderr);
    Audited { status: ran.status, effects, findings }
}

/// The same in a vault that has nothing else.
pub(crate) fn audited(contract: &Value, run: impl AsRef<[u8]>) -> Audited {
    audited_in(&Sandbox::new(), contract, run)
}
