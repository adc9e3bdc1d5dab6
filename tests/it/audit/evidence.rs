//! Where evidence counts: where something happened.

use serde_json::{Value, json};

use super::{Audited, audited, contract, pack, run_pack, trace};

fn status() -> Value {
    contract(&[json!({"evidence": {"type": "status", "metric": "m"}})], &[])
}

fn of_steps(steps: &[Value]) -> Audited {
    audited(&status(), run_pack(steps, &json!({})).to_string())
}

#[test]
fn what_models_say_and_what_is_asked_for_proves_nothing() {
    let ok = json!({"m": "ok"});
    for step in [
        json!({"type": "model.response", "output": ok}),
        json!({"type": "model.response", "output": {"content": "x", "m": "ok"}}),
        json!({"type": "output.final", "output": ok}),
        json!({"type": "model.request", "output": ok}),
        json!({"type": "tool.request", "input": {"tool": "tracker.label", "m": "ok"}, "output": ok}),
        json!({"type": "prompt.render", "output": ok}),
        json!({"type": "agent.command", "output": ok}),
        json!({"type": "error.event", "output": ok}),
        json!({"type": "tool.response", "input": {"tool": "tracker.label", "m": "ok"}, "output": {}}),
        json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "metadata": {"m": "ok"}, "output": {}}),
    ] {
        assert_eq!(of_steps(std::slice::from_ref(&step)).verdicts(), ["pending"], "{step}");
    }
    let happened = json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": ok});
    assert_eq!(of_steps(&[happened]).verdicts(), ["verified"]);
    // Nor does a model take back what a tool gave.
    let steps = [
        json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": ok}),
        json!({"type": "model.response", "output": {"m": "failed"}}),
    ];
    assert_eq!(of_steps(&steps).verdicts(), ["verified"]);
}

#[test]
fn a_step_that_an_error_follows_does_not_count() {
    let call = |tool: &str| {
        [
            json!({"type": "tool.request", "input": {"tool": tool}}),
            json!({"type": "tool.response", "input": {"tool": tool}, "output": {"m": "ok"}}),
        ]
    };
    let error = |input: Value| json!({"type": "error.event", "input": input});
    let [request, response] = call("tracker.label");
    let audit = of_steps(&[request.clone(), response.clone(), error(json!({}))]);
    let because = "\"m\" is \"ok\" at step 1 does not count: an error follows at step 2";
    assert_eq!(audit.only(), ("pending", because));
    let audit = of_steps(&[request.clone(), error(json!({"boundary": "tool", "target": "tracker.label"}))]);
    assert_eq!(
        audit.only(),
        ("pending", "\"service:tracker\" is called at step 0, and an error follows at step 1")
    );
    // The error is about another call, or the call was made again.
    let other = json!({"type": "tool.request", "input": {"tool": "other"}});
    let steps = [request.clone(), response.clone(), other, error(json!({"target": "other"}))];
    assert_eq!(of_steps(&steps).verdicts(), ["verified"]);
    let steps = [request.clone(), error(json!({"target": "tracker.label"})), request, response];
    assert_eq!(of_steps(&steps).verdicts(), ["verified"]);
}

#[test]
fn what_was_played_back_did_not_happen() {
    let stub = json!({"type": "tool.response", "input": {"tool": "tracker"}, "output": {"m": "ok"}, "metadata": {"replay_mode": "stub"}});
    let audit = of_steps(&[stub]);
    assert_eq!(audit.only().0, "pending");
    assert!(audit.only().1.ends_with("it was replayed, no call was made"), "{}", audit.only().1);
}

#[test]
fn steps_of_traces_count_if_they_succeeded() {
    let of = |results: &[Value]| audited(&status(), trace(results));
    assert_eq!(of(&[json!({"output": {"m": "ok"}})]).verdicts(), ["verified"]);
    // What was sent to a step is no result of it.
    assert_eq!(of(&[json!({"input": {"m": "ok"}, "metrics": {"m": "ok"}})]).verdicts(), ["pending"]);
    let failed =
        json!({"status": "failed", "output": null, "errors": [{"code": "E", "message": "no", "m": "ok"}]});
    assert_eq!(of(&[failed]).verdicts(), ["pending"]);
    // The last one decides.
    assert_eq!(
        of(&[json!({"output": {"m": "running"}}), json!({"output": {"m": "done"}})]).verdicts(),
        ["verified"]
    );
    assert_eq!(
        of(&[json!({"output": {"m": "done"}}), json!({"output": {"m": "failed"}})]).verdicts(),
        ["failed"]
    );
}

#[test]
fn of_packs_runner_and_evidence_count_and_nothing_that_was_configured_or_proposed() {
    let evidence = |more: &Value| {
        let mut evidence = json!({"proposal_id": "p", "proposal_hash": "ab".repeat(32), "action_results": [], "test_results": [],
            "status": "completed"});
        evidence.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pack(&[("evidence.json", evidence)])
    };
    let of = |evidence_of_effect: Value, files: Vec<u8>| {
        audited(&contract(&[json!({"evidence": evidence_of_effect})], &[]), files).only().0.to_owned()
    };
    let metric = |sort: &str, metric: &str| json!({"type": sort, "metric": metric});
    assert_eq!(of(metric("status", "status"), evidence(&json!({}))), "verified");
    assert_eq!(of(metric("hash", "proposal_hash"), evidence(&json!({}))), "pending");
    assert_eq!(of(metric("status", "model_mode"), evidence(&json!({}))), "pending");
    let actions = json!({"action_results": [{"m": "ok"}, {"m": "failed"}]});
    assert_eq!(of(metric("status", "m"), evidence(&actions)), "failed");
    assert_eq!(of(json!({"type": "status", "path": "/action_results/0/m"}), evidence(&actions)), "verified");
}
