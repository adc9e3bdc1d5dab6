//! Payloads held to the schemas of their refs.

#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

use runvault::digest::Digest;
use serde_json::{Map, Value, json};

use super::making::audited_in;
use super::{Audited, audited, contract, pack, run_pack};
use crate::sandbox::Sandbox;

fn effect() -> Value {
    json!({"evidence": {"type": "status", "metric": "m"}})
}

fn request(arguments: Value) -> [Value; 2] {
    [
        json!({"type": "tool.request", "input": {"tool": "tracker.label", "arguments": arguments}}),
        json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": {"m": "ok"}}),
    ]
}

/// The audit of a run that sent `arguments` to a ref with this schema.
fn sent(schema: &Value, arguments: Value) -> Audited {
    let contract = contract(&[effect()], &[json!({"ref": "service:tracker", "schema": schema})]);
    audited(&contract, run_pack(&request(arguments), &json!({})).to_string())
}

#[test]
fn payloads_that_break_the_schema_in_the_contract_are_found() {
    let schema = json!({"type": "object", "required": ["id"],
        "properties": {"id": {"type": "string"}, "label": {"enum": ["bug", "question"]}}});
    assert!(sent(&schema, json!({"id": "4711", "label": "bug"})).findings.is_empty());
    // As JSON in a string, as some recorders write it.
    assert!(sent(&schema, json!("{\"id\": \"4711\"}")).findings.is_empty());
    let broken = sent(&schema, json!({"id": "4711", "label": "urgent"}));
    let expected = "payload of \"service:tracker\": /label: \"urgent\" is not one of \"bug\" or \"question\"";
    assert_eq!(broken.findings, [("AU10".to_owned(), "step 0".to_owned(), expected.to_owned())]);
    assert_eq!((broken.status, broken.verdicts()), (1, vec!["verified"]));
    assert_eq!(sent(&schema, json!({"label": "bug"})).rules(), ["AU10"]);
    assert_eq!(sent(&schema, json!("no object")).rules(), ["AU10"]);
}

#[test]
fn what_comes_back_is_the_payload_of_a_ref_that_is_read() {
    let read = json!({"ref": "artifact:config", "mode": "read", "tools": ["config.get"],
        "schema": {"type": "object", "required": ["version"]}});
    let of = |output: Value| {
        let steps = [
            json!({"type": "tool.request", "input": {"tool": "config.get", "arguments": {"path": "x"}}}),
            json!({"type": "tool.response", "input": {"tool": "config.get"}, "output": output}),
        ];
        audited(&contract(&[effect()], std::slice::from_ref(&read)), run_pack(&steps, &json!({})).to_string())
            .findings
    };
    for good in [
        json!({"version": 1}),
        json!({"result": {"version": 1}}),
        json!({"status_code": 200, "body": {"version": 1}}),
    ] {
        assert!(of(good.clone()).is_empty(), "{good}");
    }
    // So it is of a request that reads something which others change.
    let tracker =
        contract(&[effect()], &[json!({"ref": "service:tracker", "schema": {"required": ["label"]}})]);
    let get = |body: Value| {
        let names = json!({"method": "GET", "url": "https://tracker/tickets/1"});
        let steps = [
            json!({"type": "tool.request", "input": names}),
            json!({"type": "tool.response", "input": names, "output": {"body": body}}),
        ];
        audited(&tracker, run_pack(&steps, &json!({})).to_string()).rules().len()
    };
    assert_eq!((get(json!({"label": "bug"})), get(json!({"id": "1"}))), (0, 1));
    let found = of(json!({"result": {"name": "x"}}));
    assert_eq!((found[0].0.as_str(), found[0].1.as_str()), ("AU10", "step 1"));
}

#[test]
fn schemas_that_the_vault_has_are_found_by_their_digest() {
    let sandbox = Sandbox::new();
    let schemas = json!({"label": {"type": "object", "properties": {"label": {"enum": ["bug"]}}}});
    sandbox.add([sandbox.write("p.tar", pack(&[("meta.json", schemas.clone())]))]);
    let digest = Digest::from_content(schemas.to_string().as_bytes());
    let of = |schema: String, label: &str| {
        let contract = contract(&[effect()], &[json!({"ref": "service:tracker", "schema": schema})]);
        audited_in(&sandbox, &contract, run_pack(&request(json!({"label": label})), &json!({})).to_string())
    };
    assert!(of(format!("{digest}#/label"), "bug").findings.is_empty());
    assert_eq!(of(format!("{digest}#/label"), "urgent").rules(), ["AU10"]);
    assert_eq!(of(format!("{digest}#/nowhere"), "urgent").rules(), ["AU11"]);
}

#[test]
fn what_cannot_be_checked_is_said_and_decides_nothing() {
    let unknown = format!("sha256:{}", "ab".repeat(32));
    for (schema, why) in [
        (json!("schemas/ticket.json"), "is a path, but the vault stores schemas only by digest".to_owned()),
        (json!(unknown), format!("the vault does not have {unknown}")),
        (
            json!({"$ref": "https://example.com/x"}),
            "the schema refers to https://example.com/x, which is not in it".to_owned(),
        ),
        (json!({"allOf": [{"$ref": "#"}]}), "the schema refers to itself in an endless loop".to_owned()),
        (json!({"pattern": "(?=x)"}), "it is not a JSON Schema: ".to_owned()),
        (
            json!({"unevaluatedProperties": false}),
            "the schema uses unevaluatedProperties, which is not checked".to_owned(),
        ),
    ] {
        let audit = sent(&schema, json!({"a": 1}));
        let [(rule, path, message)] = audit.findings.as_slice() else { panic!("{:?}", audit.findings) };
        assert_eq!((rule.as_str(), path.as_str()), ("AU11", "step 0"));
        assert!(
            message.starts_with("1 payload of \"service:tracker\" not checked against the schema: "),
            "{message}"
        );
        assert!(message.contains(&why), "{message}");
        assert_eq!(audit.status, 0, "{schema}");
    }
}

#[test]
fn what_was_redacted_breaks_no_schema() {
    let schema =
        json!({"type": "object", "properties": {"id": {"type": "integer"}, "label": {"enum": ["bug"]}}});
    let redacted = sent(&schema, json!({"id": "[REDACTED]", "label": "bug"}));
    assert_eq!((redacted.status, redacted.rules()), (0, vec!["AU11"]));
    assert_eq!(sent(&schema, json!({"id": "[REDACTED]", "label": "urgent"})).rules(), ["AU10"]);
    assert_eq!(sent(&schema, json!("<omitted by policy>")).rules(), ["AU11"]);
}

#[test]
fn hostile_schemas_end_soon() {
    let doubling = (0..200).fold(Map::new(), |mut links, index| {
        let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
        links.insert(format!("a{index}"), json!({"allOf": [next.clone(), next]}));
        links
    });
    let mut doubling = json!({"$ref": "#/$defs/a0", "$defs": doubling});
    doubling["$defs"]["a200"] = json!({"type": "object"});
    assert_eq!(sent(&doubling, json!({"a": 1})).rules(), ["AU11"]);
    let branch = json!({"properties": {"x": {"$ref": "#"}}, "required": ["y"]});
    let branching = json!({"anyOf": [branch.clone(), branch.clone(), branch]});
    let deep = (0..90).fold(json!({}), |inner, _| json!({"x": inner}));
    assert_eq!(sent(&branching, deep).rules(), ["AU11"]);
    let backtracking = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    assert_eq!(sent(&backtracking, json!({"a": format!("{}!", "a".repeat(100_000))})).rules(), ["AU10"]);
}
