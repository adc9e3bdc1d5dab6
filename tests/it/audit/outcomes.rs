//! The four outcomes, for each type of evidence.

use runvault::digest::Digest;
use serde_json::{Value, json};

use super::making::audited_in;
use super::{Audited, audited, contract, pack, run_pack};
use crate::sandbox::{Sandbox, session};

/// The audit of a run in which `tracker.label` gave `{"m": value}`, for an effect with this evidence.
fn of_value(evidence: &Value, value: &Value) -> Audited {
    let call = json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": {"result": {"m": value}}});
    audited(&contract(&[json!({"evidence": evidence})], &[]), run_pack(&[call], &json!({})).to_string())
}

#[test]
fn statuses_prove_disprove_or_do_neither() {
    let status = json!({"type": "status", "metric": "m"});
    for (value, expected) in [
        (json!("OK"), "verified"),
        (json!("Succeeded"), "verified"),
        (json!(true), "verified"),
        (json!("FAILED"), "failed"),
        (json!("Error"), "failed"),
        (json!("rejected"), "failed"),
        (json!(false), "failed"),
        (json!("running"), "inconclusive"),
        (json!("set"), "inconclusive"),
        (json!(0), "inconclusive"),
        (json!(null), "inconclusive"),
        (json!({"a": 1}), "inconclusive"),
    ] {
        let audit = of_value(&status, &value);
        assert_eq!(audit.verdicts(), [expected], "{value}");
        assert_eq!(audit.status, i32::from(expected != "verified"), "{value}");
    }
    let (verdict, because) =
        (json!("inconclusive"), "\"m\" is \"set\" at step 0, which means neither success nor failure");
    assert_eq!(of_value(&status, &json!("set")).only(), (verdict.as_str().unwrap(), because));
}

#[test]
fn values_that_the_contract_states_count_before_the_lists() {
    for at_effect in [false, true] {
        let mut effect = json!({"evidence": {"type": "status", "metric": "m"}});
        let place = if at_effect { &mut effect } else { &mut effect["evidence"] };
        place["success"] = json!(["set", "kept"]);
        let of = |value: &str| {
            let call = json!({"type": "tool.response", "input": {"tool": "tracker"}, "output": {"m": value}});
            let audit = audited(&contract(&[effect.clone()], &[]), run_pack(&[call], &json!({})).to_string());
            audit.only().0.to_owned()
        };
        assert_eq!(["SET", "kept", "ok", "running"].map(of), ["verified", "verified", "failed", "failed"]);
    }
}

#[test]
fn numbers_are_held_to_the_bounds_of_the_contract() {
    let bounds = json!({"type": "range", "metric": "m", "minimum": 0, "maximum": 0.3});
    for (value, expected) in
        [(json!(0.3), "verified"), (json!(0.31), "failed"), (json!(-1), "failed"), (json!("0"), "failed")]
    {
        assert_eq!(of_value(&bounds, &value).verdicts(), [expected], "{value}");
    }
    let audit = of_value(&bounds, &json!(7));
    assert_eq!(audit.only().1, "\"m\" is 7 at step 0, which is outside the bounds (at least 0, at most 0.3)");
    let audit = of_value(&json!({"type": "range", "metric": "m"}), &json!(7));
    assert_eq!(audit.only(), ("inconclusive", "\"m\" is 7 at step 0, the contract states no bounds"));
}

#[test]
fn digests_prove_what_they_are_the_digest_of() {
    let hash = json!({"type": "hash", "metric": "m"});
    let sandbox = Sandbox::new();
    let document = session("s", &[("p", "r")]) + "\n";
    let core = sandbox.add([sandbox.write("s.json", &document)]).remove(0);
    let capture = Digest::from_content(document.as_bytes()).to_string();
    let packed = session("packed", &[("p", "r")]);
    sandbox.add([sandbox.write(
        "p.tar",
        pack(&[("model_io.json", packed.parse().unwrap()), ("meta.json", json!("in a pack"))]),
    )]);
    let in_pack = Digest::from_content(json!("in a pack").to_string().as_bytes()).to_string();
    let in_run = Digest::from_content("what was sent".as_bytes()).to_string();
    for (value, because) in [
        (core.clone(), format!("the digest of the core of session {}", &core[7..19])),
        (capture.replace("sha256:", ""), format!("the digest of a capture of session {}", &core[7..19])),
        (in_pack, "the digest of the file meta.json of export pack ".to_owned()),
        (
            in_run,
            "the digest of the text at /payload/run/steps/0/input/arguments/content of the run".to_owned(),
        ),
    ] {
        let steps = [
            json!({"type": "tool.request", "input": {"tool": "tracker.put", "arguments": {"content": "what was sent"}}}),
            json!({"type": "tool.response", "input": {"tool": "tracker.put"}, "output": {"result": {"m": value}}}),
        ];
        let audit = audited_in(
            &sandbox,
            &contract(&[json!({"evidence": hash})], &[]),
            run_pack(&steps, &json!({})).to_string(),
        );
        let (verdict, told) = audit.only();
        assert_eq!(verdict, "verified", "{told}");
        assert!(told.contains(&because), "{told}");
    }
}

#[test]
fn digests_of_unknown_bytes_prove_nothing_and_what_is_no_digest_fails() {
    let hash = json!({"type": "hash", "metric": "m"});
    let unknown = of_value(&hash, &json!("ab".repeat(32)));
    assert_eq!(unknown.only().0, "inconclusive");
    assert!(
        unknown.only().1.ends_with("which is not the digest of anything in the run or the vault"),
        "{}",
        unknown.only().1
    );
    let empty = of_value(&hash, &json!(Digest::from_content(b"").hex()));
    assert_eq!(empty.only().0, "inconclusive");
    assert_eq!(of_value(&hash, &json!("set")).only().0, "failed");
    assert_eq!(of_value(&hash, &json!(5)).only().0, "failed");
}

#[test]
fn a_digest_that_differs_from_what_it_has_to_be_of_fails() {
    let sent = |content: &str, digest: &str| {
        let steps = [
            json!({"type": "tool.request", "input": {"tool": "tracker.put", "arguments": {"content": content}}}),
            json!({"type": "tool.response", "input": {"tool": "tracker.put"}, "output": {"m": digest}}),
        ];
        run_pack(&steps, &json!({})).to_string()
    };
    let digest = Digest::from_content(b"text").to_string();
    let of = json!({"type": "hash", "metric": "m", "of": "/arguments/content"});
    let stated = json!({"type": "hash", "metric": "m", "success": digest});
    for (evidence, content, expected) in
        [(&of, "text", "verified"), (&of, "another", "failed"), (&stated, "text", "verified")]
    {
        let audit = audited(&contract(&[json!({"evidence": evidence})], &[]), sent(content, &digest));
        assert_eq!(audit.only().0, expected, "{}", audit.only().1);
    }
    // What it has to be of is not recorded, whatever else has this digest.
    let nowhere = json!({"type": "hash", "metric": "m", "of": "/arguments/text"});
    let audit = audited(&contract(&[json!({"evidence": nowhere})], &[]), sent("text", &digest));
    assert_eq!(audit.only().0, "inconclusive");
    let other = Digest::from_content(b"other").to_string();
    let audit = audited(&contract(&[json!({"evidence": stated})], &[]), sent("text", &other));
    assert_eq!(audit.only().0, "failed");
    // A pack's evidence names the file that a digest is of.
    let policy = json!({"name": "triage"});
    let named = |digest: &str| {
        let mut evidence = json!({"proposal_id": "p", "proposal_hash": "h", "action_results": [], "test_results": [], "status": "x"});
        evidence["outputs"] = json!([{"file": "meta.json", "sha256": digest}]);
        pack(&[("evidence.json", evidence), ("meta.json", policy.clone())])
    };
    let evidence = json!({"type": "hash", "metric": "sha256"});
    let right = Digest::from_content(policy.to_string().as_bytes()).to_string();
    for (digest, expected) in [(&right, "verified"), (&other, "failed")] {
        let audit = audited(&contract(&[json!({"evidence": evidence})], &[]), named(digest));
        assert_eq!(audit.only().0, expected, "{}", audit.only().1);
    }
}

#[test]
fn paths_and_metrics_serve_every_type() {
    let digest = Digest::from_content(b"4711").to_string();
    for (sort, value, more) in [
        ("status", json!("ok"), json!({})),
        ("range", json!(5), json!({"min": 1})),
        ("hash", json!(digest), json!({})),
    ] {
        for place in [
            json!({"path": "/result/m"}),
            json!({"metric": "m"}),
            json!({"path": "/result", "metric": "m"}),
            json!({"path": "/result/m", "metric": "any"}),
        ] {
            let mut evidence = json!({"type": sort});
            for members in [&place, &more] {
                evidence.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            }
            let steps = [
                json!({"type": "tool.request", "input": {"tool": "tracker", "arguments": {"id": "4711"}}}),
                json!({"type": "tool.response", "input": {"tool": "tracker"}, "output": {"result": {"m": value}}}),
            ];
            let audit = audited(
                &contract(&[json!({"evidence": evidence})], &[]),
                run_pack(&steps, &json!({})).to_string(),
            );
            assert_eq!(audit.only().0, "verified", "{evidence} {}", audit.only().1);
        }
    }
}

#[test]
fn evidence_that_leads_nowhere_is_pending() {
    for (evidence, because) in [
        (json!({"type": "status"}), "its evidence has neither a path nor a metric"),
        (
            json!({"type": "status", "path": "result.m"}),
            "the path of its evidence, \"result.m\", is not a JSON Pointer",
        ),
        (json!({"type": "status", "metric": "x"}), "no result of \"service:tracker\" has \"x\""),
        (json!({"type": "hash", "path": "/result/x"}), "no result of \"service:tracker\" has \"/result/x\""),
        (
            json!({"type": "range", "path": "/result", "metric": "x"}),
            "no result of \"service:tracker\" has \"x\" at \"/result\"",
        ),
        (json!(null), "the contract states no evidence"),
    ] {
        assert_eq!(of_value(&evidence, &json!("ok")).only(), ("pending", because));
    }
}
