//! What is found beside the effects: refs that are not attested, calls that are not declared, modes that differ.

use serde_json::{Value, json};

use super::{Audited, audited, contract, run_pack, trace};
use crate::sandbox::Sandbox;

fn effect() -> Value {
    json!({"evidence": {"type": "status", "metric": "m"}})
}

/// A good call of the tracker.
fn label() -> Value {
    json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": {"m": "ok"}})
}

/// A good call of the tracker, and then `steps`.
fn of_steps(refs: &[Value], steps: &[Value], metadata: &Value) -> Audited {
    of_all_steps(refs, &[&[label()], steps].concat(), metadata)
}

fn of_all_steps(refs: &[Value], all: &[Value], metadata: &Value) -> Audited {
    let audit = audited(&contract(&[effect()], refs), run_pack(all, metadata).to_string());
    assert_eq!(audit.verdicts(), ["verified"]);
    assert_eq!(audit.status, i32::from(!audit.findings.is_empty()));
    audit
}

#[test]
fn required_refs_are_attested() {
    let refs = [json!({"ref": "artifact:ticket", "kind": "artifact", "required": true, "mode": "read"})];
    let unattested = of_steps(&refs, &[], &json!({}));
    let [(rule, path, message)] = unattested.findings.as_slice() else { panic!("{:?}", unattested.findings) };
    assert_eq!((rule.as_str(), path.as_str()), ("AU7", "/io_refs/1"));
    assert_eq!(message, "\"artifact:ticket\" is required, but the run never attests it");
    let read = json!({"type": "tool.response", "input": {"tool": "ticket.read"}, "output": {"text": "x"}});
    let rendered = json!({"type": "prompt.render", "input": {"artifact:ticket": {"id": "4711"}}});
    let noted = json!({"type": "model.request", "metadata": {"refs": ["artifact:ticket"]}});
    for step in [read.clone(), rendered, noted] {
        let audit = of_all_steps(&refs, &[step.clone(), label()], &json!({}));
        assert!(audit.findings.is_empty(), "{step} {:?}", audit.findings);
    }
    assert!(of_steps(&refs, &[], &json!({"artifact:ticket": "sha256:…"})).findings.is_empty());
    // A call without a result, what a model says, and a name without a value attest nothing.
    let called = json!({"type": "tool.request", "input": {"tool": "ticket.read"}});
    let failed = json!({"type": "error.event", "input": {"target": "ticket.read"}});
    for steps in [
        vec![called],
        vec![read, failed],
        vec![json!({"type": "model.response", "output": {"artifact:ticket": "x"}})],
        vec![json!({"type": "model.request", "input": {"prompt": "artifact:ticket"}})],
        vec![json!({"type": "prompt.render", "input": {"artifact:ticket": null}})],
    ] {
        assert_eq!(of_steps(&refs, &steps, &json!({})).rules(), ["AU7"], "{steps:?}");
    }
    // In a trace that names nothing, the evidence of an effect attests its target.
    let required = contract(&[effect()], &[json!({"ref": "service:tracker", "required": true})]);
    assert!(audited(&required, trace(&[json!({"output": {"m": "ok"}})])).findings.is_empty());
    assert_eq!(audited(&required, trace(&[json!({"output": {"other": "ok"}})])).rules(), ["AU7"]);
}

#[test]
fn required_refs_are_attested_before_the_effects() {
    let refs = [json!({"ref": "artifact:ticket", "kind": "artifact", "required": true, "mode": "read"})];
    let read = json!({"type": "tool.response", "input": {"tool": "ticket.read"}, "output": {"text": "x"}});
    let late = of_steps(&refs, std::slice::from_ref(&read), &json!({}));
    let [(rule, path, message)] = late.findings.as_slice() else { panic!("{:?}", late.findings) };
    assert_eq!((rule.as_str(), path.as_str()), ("AU7", "step 0"));
    assert_eq!(
        message,
        "\"artifact:ticket\" is required, but the run attests it only after this effect began"
    );
    // The call began before the answer to an earlier request.
    let asked = json!({"type": "tool.request", "input": {"tool": "ticket.read", "call_id": "1"}});
    let answered =
        json!({"type": "tool.response", "input": {"tool": "ticket.read", "call_id": "1"}, "output": 1});
    let audit = |order: [Value; 3]| of_all_steps(&refs, &order, &json!({})).findings.len();
    assert_eq!(audit([asked.clone(), label(), answered.clone()]), 1);
    assert_eq!(audit([asked, answered, label()]), 0);
    // A ref that is written is attested by its own effect, unless that failed.
    let written = [json!({"ref": "service:tracker", "required": true})];
    let noted = json!({"type": "model.request", "metadata": {"refs": ["service:tracker"]}});
    assert!(of_all_steps(&written, &[label(), noted.clone()], &json!({})).findings.is_empty());
    let request = json!({"type": "tool.request", "input": {"tool": "tracker.label", "arguments": {"n": 1}}});
    let error = json!({"type": "error.event", "input": {"target": "tracker.label"}});
    let again = [request.clone(), error.clone(), noted.clone(), request.clone(), label()];
    assert_eq!(of_all_steps(&written, &again, &json!({})).rules(), ["AU7"]);
    let attested = [noted, request.clone(), error, request, label()];
    assert!(of_all_steps(&written, &attested, &json!({})).findings.is_empty());
    // In a trace, the records are in order.
    let effect = json!({"tool": "tracker.label", "output": {"m": "ok"}});
    let ticket = json!({"tool": "ticket.read", "output": {"text": "x"}});
    let contract = contract(&[self::effect()], &refs);
    assert_eq!(audited(&contract, trace(&[effect.clone(), ticket.clone()])).rules(), ["AU7"]);
    assert!(audited(&contract, trace(&[ticket, effect])).findings.is_empty());
}

#[test]
fn calls_of_what_is_not_declared_are_found() {
    let call = |input: Value| json!({"type": "tool.request", "input": input});
    let shell = call(json!({"tool": "shell", "arguments": {"command": "rm"}}));
    let post = call(json!({"method": "POST", "url": "https://evil.example.com/x"}));
    let audit =
        of_steps(&[], &[shell.clone(), shell, post, call(json!({"tool": "tracker.get"}))], &json!({}));
    let expected = [
        ("AU8", "step 1", "\"shell\" is called (2 times), but not declared"),
        ("AU8", "step 3", "\"https://evil.example.com/x\" is called, but not declared"),
    ];
    let found =
        audit.findings.iter().map(|(rule, path, message)| (rule.as_str(), path.as_str(), message.as_str()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    // Refs may list the names that they are called by.
    let refs =
        [json!({"ref": "environment:machine", "kind": "environment", "mode": "read", "tools": ["shell"]})];
    assert!(of_steps(&refs, &[call(json!({"tool": "shell"}))], &json!({})).findings.is_empty());
}

#[test]
fn modes_that_differ_are_found() {
    let read = [json!({"ref": "service:api.example.com", "mode": "read"})];
    let http = |method: &str| json!({"type": "tool.request", "input": {"method": method, "url": "https://api.example.com/x"}});
    assert!(of_steps(&read, &[http("GET"), http("head")], &json!({})).findings.is_empty());
    let audit = of_steps(&read, &[http("POST"), http("POST"), http("DELETE")], &json!({}));
    let messages: Vec<&str> = audit.findings.iter().map(|(.., message)| message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "\"POST\" of \"service:api.example.com\" (2 times), which is declared as read",
            "\"DELETE\" of \"service:api.example.com\", which is declared as read",
        ]
    );
    assert_eq!(audit.rules(), ["AU9", "AU9"]);
    let stated = |mode: &str| json!({"type": "tool.request", "input": {"tool": "config.x"}, "metadata": {"mode": mode}});
    for (declared, mode, differs) in [
        ("read", "read", false),
        ("read", "write", true),
        ("read", "mutate", true),
        ("mutate", "write", false),
        ("mutate", "read", false),
        ("read", "r+", false),
    ] {
        let refs = [json!({"ref": "artifact:config", "mode": declared})];
        let steps = [stated(mode)];
        let effects =
            [effect(), json!({"target": "artifact:config", "evidence": {"type": "status", "metric": "m"}})];
        let effects = if declared == "read" { &effects[..1] } else { &effects[..] };
        let audit = audited(&contract(effects, &refs), run_pack(&steps, &json!({})).to_string());
        assert_eq!(audit.rules().contains(&"AU9"), differs, "{declared} {mode}");
    }
    // An effect that has to be undone, or must not be repeated, does not only read.
    let refs = [json!({"ref": "artifact:config", "mode": "read"})];
    for (more, differs) in [
        (json!({"idempotency": {"type": "non-idempotent", "nonce": "n"}}), true),
        (json!({"rollback": "service:tracker"}), true),
        (json!({"idempotency": {"type": "keyed", "key_fields": ["id"]}}), false),
    ] {
        let mut observed =
            json!({"target": "artifact:config", "evidence": {"type": "status", "metric": "m"}});
        observed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let audit = audited(&contract(&[effect(), observed], &refs), run_pack(&[], &json!({})).to_string());
        assert_eq!(audit.rules() == ["AU9"], differs, "{more}");
    }
}

#[test]
fn a_contract_without_effects_says_so() {
    let sandbox = Sandbox::new();
    let nothing = contract(&[], &[json!({"ref": "artifact:config", "mode": "read"})]);
    let core = sandbox.add([sandbox.write("c.json", nothing.to_string())]).remove(0);
    let ran = sandbox.run(["audit", &core]).expect(1);
    assert!(ran.stderr.contains("states no effects, so there is nothing to verify"), "{}", ran.stderr);
    let audit = audited(&nothing, run_pack(&[], &json!({})).to_string());
    assert_eq!((audit.status, audit.rules()), (1, vec!["AU12"]));
    assert!(audit.effects.is_empty());
}
