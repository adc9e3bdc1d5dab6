//! Nonces of calls that are not idempotent, and key fields of keyed ones.

use serde_json::{Value, json};

use super::{Audited, audited, contract, pack, run_pack, trace};

fn effect(idempotency: &Value) -> Value {
    json!({"idempotency": idempotency, "evidence": {"type": "status", "metric": "m"}})
}

/// The audit of a call of the tracker with this input and metadata.
fn of_call(idempotency: &Value, input: &Value, metadata: &Value) -> Audited {
    let mut input = input.clone();
    input["tool"] = "tracker.label".into();
    let steps = [
        json!({"type": "tool.request", "input": input, "metadata": metadata}),
        json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": {"m": "ok"}}),
    ];
    let audit = audited(&contract(&[effect(idempotency)], &[]), run_pack(&steps, &json!({})).to_string());
    assert_eq!(audit.verdicts(), ["verified"]);
    audit
}

fn messages(audit: &Audited) -> Vec<String> {
    audit.findings.iter().map(|(rule, path, message)| format!("{rule} {path}: {message}")).collect()
}

#[test]
fn calls_that_are_not_idempotent_have_a_nonce() {
    let plain = json!({"type": "non-idempotent"});
    let named = json!({"type": "non-idempotent", "nonce": "/request/token"});
    let missing = of_call(&plain, &json!({"arguments": {"n": 1}}), &json!({"request_id": "r"}));
    assert_eq!(
        messages(&missing),
        ["AU14 step 0: call of \"effect 0\", which is not idempotent, has no nonce"]
    );
    assert_eq!(missing.status, 1);
    for (input, metadata) in [
        (json!({"arguments": {"nonce": "x"}}), json!({})),
        (json!({"arguments": {"n": 1, "idempotencyKey": "x"}}), json!({})),
        (json!({"arguments": {"n": 1, "client_token": 7}}), json!({})),
        (json!({"arguments": {"n": 1}, "headers": {"Idempotency-Key": "x"}}), json!({})),
        (json!({"arguments": {"n": 1}, "headers": [["X-Idempotency-Key", "x"]]}), json!({})),
        (json!({"arguments": {"n": 1}}), json!({"nonce": "x"})),
    ] {
        let audit = of_call(&plain, &input, &metadata);
        assert!(audit.findings.is_empty(), "{input} {metadata} {:?}", audit.findings);
    }
    for input in [json!({"nonce": ""}), json!({"nonce": null}), json!({"a": {"nonce": "x"}})] {
        let audit = of_call(&plain, &json!({"arguments": input}), &json!({}));
        assert_eq!(audit.rules(), ["AU14"], "{input}");
    }
    // The contract names another member.
    let token = json!({"arguments": {"request": {"token": "x"}}});
    assert!(of_call(&named, &token, &json!({})).findings.is_empty());
    assert_eq!(of_call(&plain, &token, &json!({})).rules(), ["AU14"]);
    let audit = of_call(&named, &json!({"arguments": {"n": 1}}), &json!({}));
    assert!(messages(&audit)[0].ends_with("has no nonce \"/request/token\""), "{:?}", audit.findings);
    // A reason suffices, and what is not recorded is not checked.
    let reason = json!({"type": "non-idempotent", "reason": "the ledger rejects repeats"});
    assert!(of_call(&reason, &json!({"arguments": {"n": 1}}), &json!({})).findings.is_empty());
    let unknown = of_call(&plain, &json!({}), &json!({}));
    assert_eq!(unknown.status, 0, "{:?}", unknown.findings);
    assert!(messages(&unknown)[0].contains("not checked"), "{:?}", unknown.findings);
}

#[test]
fn calls_of_keyed_effects_have_their_key_fields() {
    let keyed = |fields: &[&str]| json!({"type": "keyed", "key_fields": fields});
    let arguments = json!({"arguments": {"ticket": {"id": 1}, "items": [{"sku": "a"}], "none": null}});
    for fields in [&["ticket.id"][..], &["/ticket/id", "$.items[0].sku"], &["items[*].sku"]] {
        assert!(of_call(&keyed(fields), &arguments, &json!({})).findings.is_empty(), "{fields:?}");
    }
    for (field, other) in
        [("ticket.number", "ticket.id"), ("/items/1/sku", "ticket.id"), ("none", "ticket.id")]
    {
        let audit = of_call(&keyed(&[other, field]), &arguments, &json!({}));
        let expected = format!("AU15 step 0: call of \"effect 0\" has no key field \"{field}\"");
        assert_eq!((messages(&audit), audit.status), (vec![expected], 1));
    }
    let unknown = of_call(&keyed(&["id"]), &json!({"args": [1, 2]}), &json!({}));
    assert!(messages(&unknown)[0].contains("not checked"), "{:?}", unknown.findings);
}

#[test]
fn calls_that_may_be_of_different_effects_are_not_judged() {
    let effects = [effect(&json!({"type": "non-idempotent"})), effect(&json!({"type": "reentrant"}))];
    let steps = [json!({"type": "tool.request", "input": {"tool": "tracker.x", "arguments": {"n": 1}}})];
    let run = run_pack(&steps, &json!({})).to_string();
    assert!(audited(&contract(&effects, &[]), &run).findings.is_empty());
    let tools = ["tracker.x", "tracker.y"];
    let own = effects.iter().zip(tools).map(|(effect, tool)| {
        let mut effect = effect.clone();
        effect["tool"] = tool.into();
        effect
    });
    assert_eq!(audited(&contract(&own.collect::<Vec<_>>(), &[]), &run).rules(), ["AU14"]);
}

#[test]
fn calls_in_traces_and_packs_are_checked_as_well() {
    let contract = contract(&[effect(&json!({"type": "non-idempotent"}))], &[]);
    let step = |more: &Value| {
        let mut step = json!({"tool": "tracker.label", "arguments": {"n": 1}, "output": {"m": "ok"}});
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    };
    assert_eq!(audited(&contract, trace(&[step(&json!({}))])).rules(), ["AU14"]);
    assert!(audited(&contract, trace(&[step(&json!({"nonce": "x"}))])).findings.is_empty());
    let evidence = |more: &Value| {
        let mut action = json!({"tool": "tracker.label", "m": "ok", "arguments": {"n": 1}});
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let evidence = json!({"proposal_id": "p", "proposal_hash": "h", "action_results": [action], "test_results": [],
            "status": "x"});
        pack(&[("evidence.json", evidence)])
    };
    assert!(audited(&contract, evidence(&json!({}))).rules().contains(&"AU14"));
    assert!(!audited(&contract, evidence(&json!({"idempotency_key": "x"}))).rules().contains(&"AU14"));
}
