use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::artifact::{Admitted, Kind};
use crate::digest::Digest;
use crate::json::reader::{Limits, MemberNames};
use crate::validation::Report;

mod notations;

fn admit(document: impl Into<Vec<u8>>) -> Result<Admitted, Report> {
    Kind::new(&Contract).admit(document.into(), &AdmitOptions::default())
}

/// Returns the rule and the path of each violation.
fn found(report: &Report) -> Vec<String> {
    let violations = report.violations().iter();
    violations.map(|violation| format!("{} {}", violation.rule_id, violation.path)).collect()
}

fn refused(document: &str) -> Vec<String> {
    found(&admit(document).unwrap_err())
}

/// Returns a contract with these refs and effects; every omitted member has a valid value.
fn contract(io_refs: &serde_json::Value, effects: &serde_json::Value) -> String {
    let filled = |given: &serde_json::Value, base: serde_json::Value| -> Vec<serde_json::Value> {
        let given = given.as_array().unwrap().iter();
        given
            .map(|members| {
                let mut all = base.clone();
                for (name, value) in members.as_object().unwrap() {
                    match value.as_str() {
                        Some("absent") => all.as_object_mut().unwrap().remove(name),
                        _ => all.as_object_mut().unwrap().insert(name.clone(), value.clone()),
                    };
                }
                all
            })
            .collect()
    };
    let io_ref = json!({"kind": "artifact", "schema": "s.json", "required": true, "mode": "read"});
    let effect =
        json!({"name": "e", "kind": "resource", "target": "r", "evidence": {"type": "hash", "path": "/h"}});
    json!({"io_refs": filled(io_refs, io_ref), "effects": filled(effects, effect)}).to_string()
}

#[test]
fn the_core_is_pinned() {
    let digest = Digest::from_content(b"x");
    let text = format!(
        "seen: {digest}\nio_refs:\n- {{ref: r, kind: service, schema: {{maximum: 1e21, x: 0x10}}, required: false, mode: write}}\n\
         effects:\n- name: e\n  kind: resource\n  target: r\n  idempotency: {{type: reentrant}}\n  # no evidence\n"
    );
    let expected = concat!(
        r#"{"effects":[{"idempotency":{"type":"reentrant"},"kind":"resource","name":"e","target":"r"}],"#,
        r#""io_refs":[{"kind":"service","mode":"write","ref":"r","required":false,"schema":{"maximum":1e+21,"x":16}}]}"#
    );
    let mut core = Vec::new();
    Contract.write_core(&[MemberBytes { name: "", bytes: text.as_bytes() }], &mut core).unwrap();
    assert_eq!(String::from_utf8(core).unwrap(), expected);
    let admitted = admit(text).unwrap();
    assert_eq!(admitted.core(), CoreHash(Digest::from_content(expected.as_bytes())));
    assert_eq!(found(admitted.report()), ["IC5 /effects/0/evidence"]);
    let draft = admitted.draft();
    let attributes = draft.attributes.iter();
    let attributes: Vec<String> =
        attributes.map(|attribute| format!("{}={}", attribute.name, attribute.value)).collect();
    assert_eq!(
        attributes,
        [
            "effect=e",
            "effects=1",
            "io_ref=r",
            "io_ref_kind=r service",
            "io_ref_mode=r write",
            "io_refs=1",
            "target=r"
        ]
    );
    let mentions = draft.mentions.iter();
    let mentions: Vec<String> = mentions
        .map(|mention| format!("{} {} {}", mention.role.name, mention.place, mention.digest))
        .collect();
    assert_eq!(mentions, [format!("reference /seen {digest}")]);
}

#[test]
fn what_cannot_be_read_breaks_the_schema_and_our_limits_are_named() {
    let message = |document: &[u8]| {
        let report = admit(document).unwrap_err();
        let [violation] = report.violations() else { panic!("{report:?}") };
        format!("{} {:?} {}", violation.rule_id, violation.path, violation.message)
    };
    for (document, expected) in [
        (&b"io_refs: \xff"[..], "SCHEMA \"\" line 1 column 10: byte 0xff is not valid UTF-8 here (DOC1)"),
        (b"", "SCHEMA \"\" line 1 column 1: there is no document (DOC2)"),
        (
            b"io_refs:\n- ref: a\n  ref: b",
            "SCHEMA \"\" line 3 column 3: the mapping already has a key \"ref\" (DOC3)",
        ),
        (
            b"{\"io_refs\": \"\\ud83d\"}",
            "SCHEMA \"\" line 1 column 14: \\ud83d is an unpaired surrogate, not a character (DOC7)",
        ),
        (b"- a", "SCHEMA \"\" a contract must be an object with io_refs and effects, not an array"),
        (b"{\"io_refs\": [}", "SCHEMA \"\" line 1 column 14: expected a value, found '}' (DOC2)"),
    ] {
        assert_eq!(message(document), expected);
    }
    let deep = format!("{{\"io_refs\": {}", "[".repeat(200));
    assert_eq!(refused(&deep), ["DOC4 line 1 column 140"]);
    assert_eq!(
        refused(&format!("io_refs: {}", "[".repeat(200) + &"]".repeat(200))),
        ["DOC4 line 1 column 137"]
    );
    let limits = Limits { bytes: 3, ..Limits::default() };
    let options = AdmitOptions { limits, ..AdmitOptions::default() };
    let report = Kind::new(&Contract).admit(b"a: b".to_vec(), &options).unwrap_err();
    assert_eq!(found(&report), ["DOC5 line 1 column 1"]);
}

#[test]
fn all_that_is_wrong_with_the_shape_is_reported() {
    let refs = json!([
        {"ref": "absent", "kind": "absent", "schema": "absent", "required": "absent", "mode": "absent"},
        {"ref": "", "kind": "x", "schema": "", "required": 1, "mode": ["read"]},
        {"ref": "r", "schema": null},
        {"ref": "r", "schema": []},
    ]);
    let effects = json!([
        {"name": "", "kind": "service", "target": "absent", "rollback": null, "idempotency": [], "evidence": 0},
        {"idempotency": {"type": "x", "key_fields": "y"}, "evidence": {}},
        {"idempotency": {"type": null, "key_fields": ["a", 1, null]}, "evidence": {"type": null, "path": null, "metric": 1}},
        {"idempotency": null, "evidence": null, "rollback": ""},
    ]);
    let expected = "/effects/0/evidence /effects/0/idempotency /effects/0/kind /effects/0/name /effects/0/rollback \
                  /effects/0/target /effects/1/evidence/type /effects/1/idempotency/key_fields /effects/1/idempotency/type \
                  /effects/2/evidence/metric /effects/2/evidence/path /effects/2/evidence/type \
                  /effects/2/idempotency/key_fields/1 /effects/2/idempotency/key_fields/2 /io_refs/0/kind /io_refs/0/mode \
                  /io_refs/0/ref /io_refs/0/required /io_refs/0/schema /io_refs/1/kind /io_refs/1/mode /io_refs/1/ref \
                  /io_refs/1/required /io_refs/1/schema /io_refs/2/schema /io_refs/3/ref /io_refs/3/schema";
    let expected: Vec<String> = expected.split(' ').map(|path| format!("SCHEMA {path}")).collect();
    assert_eq!(refused(&contract(&refs, &effects)), expected);
    assert_eq!(refused("{}"), ["SCHEMA /effects", "SCHEMA /io_refs"]);
    assert_eq!(
        refused("{\"io_refs\": [1], \"effects\": [null, \"x\"]}"),
        ["SCHEMA /effects/0", "SCHEMA /effects/1", "SCHEMA /io_refs/0"]
    );
}

#[test]
fn numbers_without_a_canonical_form_are_found_where_they_stand() {
    let text = "io_refs:\n- {ref: r, kind: artifact, required: true, mode: read, schema: {a/b: [.nan, 9007199254740991, \
                -9007199254740992, 0x20000000000000, 1e400, 9007199254740993.0, !!float 9007199254740993]}}\n\
                effects: []\nother: [-.inf, 9007199254740992, 1e-400]\nbig: 1";
    let big = "0".repeat(400);
    let expected = [
        "SCHEMA /big",
        "SCHEMA /io_refs/0/schema/a~1b/0",
        "SCHEMA /io_refs/0/schema/a~1b/2",
        "SCHEMA /io_refs/0/schema/a~1b/3",
        "SCHEMA /io_refs/0/schema/a~1b/4",
        "SCHEMA /other/0",
    ];
    assert_eq!(refused(&format!("{text}{big}")), expected);
    assert_eq!(refused("{\"io_refs\": [], \"effects\": [], \"x\": -1e999}"), ["SCHEMA /x"]);
}

#[test]
fn rollbacks_name_another_effect_or_a_ref() {
    let refs = json!([{"ref": "r", "mode": "mutate"}, {"ref": "self"}]);
    let idempotency = json!({"type": "reentrant"});
    for (names, rollback, good) in [
        (["a", "b"], "b", true),
        (["a", "b"], "r", true),
        (["a", "b"], "a", false),
        (["a", "a"], "a", true),
        (["self", "b"], "self", true),
        (["a", "b"], "B", false),
        (["a", "b"], "", false),
    ] {
        let [first, second] = names;
        let effects = json!([{"name": first, "rollback": rollback, "idempotency": idempotency},
            {"name": second, "idempotency": idempotency}]);
        let outcome = admit(contract(&refs, &effects));
        let violations = outcome.as_ref().map_or_else(found, |admitted| found(admitted.report()));
        let expected: &[&str] = if good { &[] } else { &["IC1 /effects/0/rollback"] };
        assert_eq!(violations, expected, "{names:?} {rollback}");
    }
}

/// Returns the violations of a contract with this inline schema, and whether it is accepted.
fn admit_with_schema(schema: &serde_json::Value) -> (Vec<String>, bool) {
    match admit(contract(&json!([{"ref": "r", "schema": schema}]), &json!([]))) {
        Ok(admitted) => (found(admitted.report()), true),
        Err(report) => (found(&report), false),
    }
}

#[test]
fn inline_schemas_are_checked_at_the_top() {
    for (schema, expected) in [
        (json!({}), &[][..]),
        (
            json!({"type": ["string", "null"], "properties": {"a": {"type": "string"}}, "required": [], "enum": []}),
            &[],
        ),
        (json!({"type": []}), &["IC2 /io_refs/0/schema/type"]),
        (json!({"type": null}), &["IC2 /io_refs/0/schema/type"]),
        (json!({"type": ["string", 1]}), &["IC2 /io_refs/0/schema/type"]),
        (
            json!({"properties": [], "required": ["a", 1], "enum": {}}),
            &[
                "IC2 /io_refs/0/schema/enum",
                "IC2 /io_refs/0/schema/properties",
                "IC2 /io_refs/0/schema/required",
            ],
        ),
    ] {
        assert_eq!(
            admit_with_schema(&schema),
            (expected.iter().map(ToString::to_string).collect(), expected.is_empty()),
            "{schema}"
        );
    }
}

#[test]
fn nested_schemas_are_checked_as_schemas() {
    let bad = json!({"type": "strng"});
    for (schema, path) in [
        (json!({"properties": {"a/b": bad}}), "properties/a~1b/type"),
        (json!({"properties": {"type": {"properties": {"x": bad}}}}), "properties/type/properties/x/type"),
        (json!({"items": bad}), "items/type"),
        (json!({"items": [true, bad]}), "items/1/type"),
        (json!({"allOf": [{"not": bad}]}), "allOf/0/not/type"),
        (json!({"$defs": {"d": bad}}), "$defs/d/type"),
        (json!({"patternProperties": {"^x": {"required": true}}}), "patternProperties/^x/required"),
        (json!({"additionalProperties": {"enum": "a"}}), "additionalProperties/enum"),
    ] {
        assert_eq!(
            admit_with_schema(&schema),
            (vec![format!("IC2 /io_refs/0/schema/{path}")], false),
            "{schema}"
        );
    }
    // Some drafts accept everything for a value that is not a schema, so it is only a warning.
    let plain = json!({"properties": {"a": "string", "b": 1}, "anyOf": [null]});
    let paths =
        ["anyOf/0", "properties/a", "properties/b"].map(|path| format!("IC2 /io_refs/0/schema/{path}"));
    assert_eq!(admit_with_schema(&plain), (paths.to_vec(), true));
    for good in [
        json!({"properties": {"type": {"type": "string"}, "enum": true, "required": false}}),
        json!({"default": bad, "examples": [bad], "const": bad, "enum": [bad], "x-other": bad}),
        json!({"additionalProperties": false, "items": {"$ref": "#/$defs/x"}}),
    ] {
        assert_eq!(admit_with_schema(&good), (Vec::new(), true), "{good}");
    }
}

#[test]
fn effects_that_are_not_idempotent_are_warned_of_without_a_nonce() {
    for (idempotency, more, warned) in [
        (json!({"type": "non-idempotent"}), json!({}), true),
        (json!({"type": "non-idempotent", "nonce": ""}), json!({}), true),
        (json!({"type": "non-idempotent", "nonce": "n-1"}), json!({}), false),
        (json!({"type": "non-idempotent", "reason": "the bank refuses"}), json!({}), false),
        (json!({"type": "non-idempotent"}), json!({"nonce": "n-1"}), false),
        (json!({"type": "reentrant"}), json!({}), false),
        (json!("absent"), json!({}), false),
    ] {
        let mut effect = json!({"idempotency": idempotency});
        effect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let admitted = admit(contract(&json!([{"ref": "r"}]), &json!([effect]))).unwrap();
        let is_found = found(admitted.report()).contains(&"IC6 /effects/0/idempotency".to_owned());
        assert_eq!(is_found, warned, "{effect}");
    }
}

#[test]
fn statements_about_evidence_that_cannot_be_used_are_warned_of() {
    let warned = |evidence: serde_json::Value, more: serde_json::Value| {
        let mut effect = json!({"evidence": evidence});
        effect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        found(admit(contract(&json!([{"ref": "r"}]), &json!([effect]))).unwrap().report())
    };
    let status = |more: serde_json::Value| {
        let mut evidence = json!({"type": "status", "metric": "m"});
        evidence.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        warned(evidence, json!({}))
    };
    assert_eq!(status(json!({"success": []})), ["IC7 /effects/0/evidence/success"]);
    assert_eq!(status(json!({"failure": {"a": 1}})), ["IC7 /effects/0/evidence/failure"]);
    assert_eq!(status(json!({"minimum": "1"})), ["IC7 /effects/0/evidence"]);
    assert_eq!(status(json!({"max": 1, "maximum": 2})), ["IC7 /effects/0/evidence"]);
    assert_eq!(status(json!({"path": "state.hash"})), ["IC7 /effects/0/evidence/path"]);
    let plain = json!({"type": "status", "metric": "m"});
    assert_eq!(warned(plain, json!({"success": [[]]})), ["IC7 /effects/0/success"]);
    let good = json!({"success": ["set", true, 1], "failure": "no", "min": 1, "exclusiveMaximum": 2.5, "path": "/a", "of": ""});
    assert_eq!(status(good), Vec::<String>::new());
}

#[test]
fn idempotency_depends_on_mode_and_type() {
    let schema = json!({"properties": {"id": {}}});
    for (mode, idempotency, expected) in [
        ("write", json!("absent"), &["IC4 /effects/0/idempotency"][..]),
        ("mutate", json!(null), &["IC4 /effects/0/idempotency"]),
        ("write", json!({}), &["IC4 /effects/0/idempotency/type"]),
        ("write", json!({"type": null}), &["IC4 /effects/0/idempotency/type"]),
        ("write", json!({"type": "reentrant"}), &[]),
        ("read", json!("absent"), &[]),
        ("read", json!({}), &[]),
        ("read", json!({"type": "keyed"}), &["IC4 /effects/0/idempotency/key_fields"]),
        ("read", json!({"type": "keyed", "key_fields": null}), &["IC4 /effects/0/idempotency/key_fields"]),
        ("write", json!({"type": "keyed", "key_fields": []}), &["IC4 /effects/0/idempotency/key_fields"]),
        (
            "write",
            json!({"type": "keyed", "key_fields": ["id", "no"]}),
            &["IC4 /effects/0/idempotency/key_fields/1"],
        ),
        ("write", json!({"type": "reentrant", "key_fields": ["no"]}), &[]),
    ] {
        let refs = json!([{"ref": "r", "mode": mode, "schema": schema}]);
        let outcome = admit(contract(&refs, &json!([{"idempotency": idempotency}])));
        let violations = outcome.as_ref().map_or_else(found, |admitted| found(admitted.report()));
        assert_eq!(violations, expected, "{mode} {idempotency}");
    }
}

#[test]
fn being_a_rollback_does_not_explain_a_write() {
    let refs = json!([{"ref": "r"}, {"ref": "w", "mode": "write"}]);
    let effects = json!([{"rollback": "w"}]);
    assert_eq!(refused(&contract(&refs, &effects)), ["IC3 /io_refs/1", "IC8 /effects/0/target"]);
}

proptest! {
    #[test]
    fn recognizing_never_panics(text in "[-a-z{}\\[\\]\"':#%,\n\\\\ é\u{feff}]{0,40}") {
        let _ = Contract.recognizes(&text, &mut MemberNames::new(&text));
    }
}

/// Returns the warnings of an accepted contract with this schema and this keyed effect.
fn warnings_of_key_fields(schema: &serde_json::Value, key_fields: &[&str]) -> Vec<String> {
    let io_refs = json!([{"ref": "r", "mode": "mutate", "schema": schema}]);
    let evidence = json!({"type": "hash", "path": "/h"});
    let keyed = json!({"type": "keyed", "key_fields": key_fields});
    let document = contract(&io_refs, &json!([{"idempotency": keyed, "evidence": evidence}]));
    let admitted = admit(document).unwrap();
    let violations = admitted.report().violations().iter();
    violations.map(|it| format!("{} {}: {}", it.rule_id, it.path, it.message)).collect()
}

#[test]
fn key_fields_that_cannot_be_decided_are_said_to_be_unchecked() {
    let at = "IC4 /effects/0/idempotency/key_fields/0: \"id\" was not checked: the schema of the target";
    for (schema, why) in [
        (json!("s.json"), "is a path"),
        (json!({"type": "object"}), "does not decide whether it exists"),
        (json!({"$ref": "other.json"}), "does not decide whether it exists"),
    ] {
        assert_eq!(warnings_of_key_fields(&schema, &["id"]), [format!("{at} {why}")], "{schema}");
    }
    let composed = json!({"allOf": [{"$ref": "#/$defs/t"}], "$defs": {"t": {"properties": {"id": {}}}}});
    assert_eq!(warnings_of_key_fields(&composed, &["id", "/id", "$.id"]), [""; 0]);
    let io_refs = json!([{"ref": "r", "mode": "mutate", "schema": composed}]);
    let keyed = json!({"type": "keyed", "key_fields": ["/other"]});
    let document = contract(&io_refs, &json!([{"idempotency": keyed}]));
    assert!(refused(&document).contains(&"IC4 /effects/0/idempotency/key_fields/0".to_owned()));
}

#[test]
fn schemas_in_other_languages_are_accepted_and_said_to_be_unchecked() {
    for (schema, language) in [
        (json!({"type": "record", "name": "T", "fields": []}), "an Avro schema"),
        (json!({"properties": {"id": {"type": "int32"}}}), "a JSON Type Definition"),
        (json!({"name": "T", "field": [{"name": "id", "number": 1}]}), "a protobuf descriptor"),
    ] {
        let expected = [
            format!("IC2 /io_refs/0/schema: not checked: the schema is {language}"),
            format!(
                "IC4 /effects/0/idempotency/key_fields/0: \"id\" was not checked: the schema of the target is {language}"
            ),
        ];
        assert_eq!(warnings_of_key_fields(&schema, &["id"]), expected, "{schema}");
    }
}

#[test]
fn effects_that_do_more_than_their_target_allows_are_warned_of() {
    let evidence = json!({"type": "hash", "path": "/h"});
    for (effect, expected) in [
        (json!({"idempotency": {"type": "non-idempotent", "nonce": "n"}}), &["IC8 /effects/0/target"][..]),
        (json!({"rollback": "r"}), &["IC8 /effects/0/target"]),
        (json!({"mode": "write"}), &["IC8 /effects/0/mode"]),
        (json!({"mode": "read"}), &[]),
        (json!({}), &[]),
    ] {
        let mut effect = effect;
        effect["evidence"] = evidence.clone();
        let document = contract(&json!([{"ref": "r"}]), &json!([effect]));
        assert_eq!(found(admit(document).unwrap().report()), expected, "{effect}");
    }
}

#[test]
fn evidence_without_a_path_and_a_metric_is_warned_of() {
    for (evidence, expected) in [
        (json!({"type": "status"}), &["IC7 /effects/0/evidence"][..]),
        (json!({"type": "status", "metric": "m"}), &[]),
        (json!({"type": "hash", "path": "/h"}), &[]),
    ] {
        let document = contract(&json!([{"ref": "r"}]), &json!([{"evidence": evidence}]));
        assert_eq!(found(admit(document).unwrap().report()), expected, "{evidence}");
    }
}
