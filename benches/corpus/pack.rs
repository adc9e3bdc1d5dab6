//! Artifacts of the kind `pack`: directories of several files.

use runvault::digest::Digest;
use serde_json::{Value, json};

use super::clock::Clock;
use super::random::Random;
use super::session::Session;
use super::text;

/// The files of the pack of the run `id`, by name.
pub fn files(random: &mut Random, id: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut clock = Clock::new(random);
    let started_at = clock.text();
    clock.advance(random.between(500, 90_000));
    let bundle = bundle(random, id);
    let policy = json!({"name": random.usual(&["triage", "review", "release"]), "version": "2"});
    let intent = Digest::from_content(text::prompt(random).as_bytes());
    let run = json!({"run_schema_version": "1.0.0", "run_id": id, "started_at": started_at,
        "completed_at": clock.text(), "kernel_version": "0.3.10", "policy": policy,
        "intent": {"path": "intents/intent.json", "sha256": intent}, "kernel_result_kind": "BUNDLE",
        "bundle": {"bundle_id": bundle["id"], "sha256": of_member(&bundle)}, "decision": {"accepted": true},
        "model_mode": "record"});
    let evidence = json!({"proposal_id": format!("proposal-{id}"), "proposal_hash": intent.hex(),
        "action_results": [{"action": "reply", "ok": true}], "test_results": [], "status": "completed"});
    let ledger = json!({"run_id": id, "timestamp": clock.text(), "intent_sha256": intent, "result_kind": "BUNDLE",
        "accepted": true, "mode": "record", "policy": "triage"});
    let session = Session::new(random, 6, 400).document();
    let pretty = |value: &Value| format!("{value:#}\n").into_bytes();
    vec![
        ("run.json", pretty(&run)),
        ("bundle.json", pretty(&bundle)),
        ("evidence.json", pretty(&evidence)),
        ("policy.json", pretty(&policy)),
        ("ledger.jsonl", format!("{ledger}\n").into_bytes()),
        ("model_io.json", session),
    ]
}

fn bundle(random: &mut Random, id: &str) -> Value {
    let outputs: Vec<Value> = (0..random.between(1, 4))
        .map(|index| {
            json!({"id": format!("output-{index}"), "path": format!("replies/{index}.md"),
                "content": text::passage(random, 800), "source_constraints": ["one label"]})
        })
        .collect();
    json!({"id": format!("bundle-{id}"), "schema_version": "0.1.0", "kernel_version": "0.3.10", "status": "complete",
        "root_node": {"id": "root", "goal": text::prompt(random), "constraints": []},
        "terminal_nodes": [{"id": "label", "goal": "label the ticket", "constraints": ["one label"],
            "unresolved_questions": []}],
        "outputs": outputs, "unresolved_questions": [], "stats": {"nodes": 2}})
}

/// What a pack states as the digest of a JSON member: that of its canonical form and a line feed.
fn of_member(value: &Value) -> Digest {
    Digest::from_content(format!("{value}\n").as_bytes())
}
