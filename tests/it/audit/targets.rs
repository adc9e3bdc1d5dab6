//! Effects are tied to calls of their targets.

#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

use serde_json::{Value, json};

use super::{Audited, audited, contract, pack, run_pack, trace};

fn call(tool: &str, arguments: Value, output: Value) -> [Value; 2] {
    [
        json!({"type": "tool.request", "input": {"tool": tool, "arguments": arguments}}),
        json!({"type": "tool.response", "input": {"tool": tool}, "output": output}),
    ]
}

fn of_calls(contract: &Value, calls: &[[Value; 2]]) -> Audited {
    audited(contract, run_pack(&calls.concat(), &json!({})).to_string())
}

fn effect(more: Value) -> Value {
    let mut effect = json!({"evidence": {"type": "status", "metric": "m"}});
    effect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    effect
}

#[test]
fn a_run_that_never_touched_the_target_leaves_the_effect_pending() {
    let refs = [json!({"ref": "service:mailer", "mode": "read"})];
    let contract = contract(&[effect(json!({}))], &refs);
    let audit = of_calls(&contract, &[call("mailer.send", json!({}), json!({"m": "ok"}))]);
    assert_eq!(audit.only(), ("pending", "the run never calls \"service:tracker\""));
    assert_eq!(audit.status, 1);
    let both = [
        call("tracker.label", json!({}), json!({"m": "ok"})),
        call("mailer.send", json!({}), json!({"m": "failed"})),
    ];
    assert_eq!(of_calls(&contract, &both).verdicts(), ["verified"]);
}

#[test]
fn where_a_run_names_nothing_its_results_count() {
    let contract = contract(&[effect(json!({}))], &[]);
    assert_eq!(audited(&contract, trace(&[json!({"output": {"m": "ok"}})])).verdicts(), ["verified"]);
    // Where it names any call, the others do not count.
    let named = json!({"tool": "other", "output": {}});
    let audit = audited(&contract, trace(&[json!({"output": {"m": "ok"}}), named]));
    assert_eq!(audit.verdicts(), ["pending"]);
    let named = json!({"tool": "tracker.label", "output": {"m": "failed"}});
    let audit = audited(&contract, trace(&[json!({"output": {"m": "ok"}}), named]));
    assert_eq!(audit.verdicts(), ["failed"]);
}

#[test]
fn the_readmes_rollback_is_not_verified_by_the_call_that_it_would_undo() {
    let label = json!({"name": "label-ticket", "rollback": "remove-label"});
    let contract = contract(&[effect(label), effect(json!({"name": "remove-label"}))], &[]);
    let set = [call("tracker.label", json!({}), json!({"result": {"m": "ok"}}))];
    let audit = of_calls(&contract, &set);
    assert_eq!(audit.verdicts(), ["verified", "pending"]);
    let because =
        "\"m\" at step 1 is assigned to \"label-ticket\"; no call is known to belong to this effect";
    assert_eq!(audit.effects[1].1, because);
    let audit = audited(&contract, trace(&[json!({"output": {"m": "ok"}})]));
    assert_eq!(audit.verdicts(), ["verified", "pending"]);
}

#[test]
fn effects_with_one_source_are_told_apart_by_names_tools_and_values() {
    let two = |one: Value, other: Value| contract(&[effect(one), effect(other)], &[]);
    let ok = |tool: &str| call(tool, json!({}), json!({"m": "ok"}));
    // Nothing tells which of the two it was.
    let audit = of_calls(&two(json!({}), json!({})), &[ok("tracker.label")]);
    assert_eq!(audit.verdicts(), ["inconclusive", "inconclusive"]);
    assert!(audit.effects[0].1.contains("could also belong to \"effect 1\""), "{}", audit.effects[0].1);
    // The contract states the tool.
    let by_tool = two(json!({"tool": "tracker.label"}), json!({"tools": ["tracker.close"]}));
    assert_eq!(of_calls(&by_tool, &[ok("tracker.label")]).verdicts(), ["verified", "pending"]);
    assert_eq!(of_calls(&by_tool, &[ok("tracker.close")]).verdicts(), ["pending", "verified"]);
    assert_eq!(of_calls(&by_tool, &[ok("tracker.other")]).verdicts(), ["pending", "pending"]);
    // The run names the effect.
    let mut named = ok("tracker.label");
    named[1]["metadata"] = json!({"effect": "effect 1"});
    assert_eq!(of_calls(&two(json!({}), json!({})), &[named]).verdicts(), ["pending", "verified"]);
    // The tool has the name of an effect.
    let ok_named = [call("effect 1", json!({}), json!({"m": "ok"}))];
    assert_eq!(of_calls(&two(json!({}), json!({})), &ok_named).verdicts(), ["pending", "verified"]);
    // The contract states values that no other effect has.
    let by_value = two(json!({"success": "set"}), json!({"success": "removed"}));
    let of = |value: &str| of_calls(&by_value, &[call("tracker.label", json!({}), json!({"m": value}))]);
    assert_eq!(of("set").verdicts(), ["verified", "pending"]);
    assert_eq!(of("removed").verdicts(), ["pending", "verified"]);
    assert_eq!(of("other").verdicts(), ["inconclusive", "inconclusive"]);
}

/// What a tool is called with may have been chosen by a model.
#[test]
fn a_call_of_something_else_is_no_proof_whatever_it_says() {
    let contract = contract(&[effect(json!({}))], &[json!({"ref": "service:notes", "mode": "read"})]);
    let steps = [
        json!({"type": "tool.response", "input": {"tool": "notes.read", "effect": "effect 0", "target": "service:tracker"},
        "output": {"m": "ok"}}),
    ];
    let audit = audited(&contract, run_pack(&steps, &json!({})).to_string());
    assert_eq!(audit.only(), ("pending", "the run never calls \"service:tracker\""));
}

#[test]
fn every_key_of_a_keyed_effect_needs_its_own_proof() {
    let keyed = effect(json!({"idempotency": {"type": "keyed", "key_fields": ["id"]}}));
    let contract = contract(&[keyed], &[]);
    let of = |calls: &[(&str, &str)]| {
        let calls: Vec<_> =
            calls.iter().map(|(id, m)| call("tracker.label", json!({"id": id}), json!({"m": m}))).collect();
        of_calls(&contract, &calls).only().0.to_owned()
    };
    assert_eq!(of(&[("1", "ok"), ("2", "ok")]), "verified");
    assert_eq!(of(&[("1", "failed"), ("2", "ok")]), "failed");
    assert_eq!(of(&[("1", "running"), ("2", "ok")]), "inconclusive");
    assert_eq!(of(&[("1", "failed"), ("2", "ok"), ("1", "ok")]), "verified", "it was made again");
    assert_eq!(of(&[("1", "ok"), ("1", "failed")]), "failed");
}

#[test]
fn a_failure_is_not_passed_over_because_something_else_succeeded() {
    let contract = contract(&[effect(json!({}))], &[]);
    let of = |calls: &[(&str, &str)]| {
        let calls: Vec<_> =
            calls.iter().map(|(id, m)| call("tracker.label", json!({"id": id}), json!({"m": m}))).collect();
        of_calls(&contract, &calls).only().0.to_owned()
    };
    assert_eq!(of(&[("1", "failed"), ("2", "ok")]), "failed");
    assert_eq!(of(&[("1", "failed"), ("1", "ok")]), "verified");
    assert_eq!(of(&[("start", "running"), ("poll", "done")]), "verified");
}

#[test]
fn packs_name_targets_in_their_actions() {
    let evidence = |actions: Value| {
        pack(&[(
            "evidence.json",
            json!({"proposal_id": "p", "proposal_hash": "h", "action_results": actions, "test_results": [], "status": "x"}),
        )])
    };
    let contract = contract(&[effect(json!({"name": "label"})), effect(json!({"name": "close"}))], &[]);
    let actions = json!([{"action": "label", "m": "ok"}, {"action": "close", "m": "failed"}]);
    assert_eq!(audited(&contract, evidence(actions)).verdicts(), ["verified", "failed"]);
    let actions = json!([{"tool": "other", "m": "ok"}]);
    assert_eq!(audited(&contract, evidence(actions)).verdicts(), ["pending", "pending"]);
}
