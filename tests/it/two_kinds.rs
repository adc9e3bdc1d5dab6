//! One document that two kinds recognize: two artifacts with the same bytes, each with a capture of its own.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, run_pack, session};

/// A valid session that is a valid contract as well.
fn document() -> String {
    both(&session("two", &[("which color", "an unusual turquoise")]))
}

/// A session or run pack with what a contract has.
fn both(document: &str) -> String {
    let mut document: Value = serde_json::from_str(document).unwrap();
    document["io_refs"] = json!([]);
    document["effects"] = json!([]);
    document.to_string()
}

fn capture_of(document: &str) -> String {
    runvault::digest::Digest::from_content(document.as_bytes()).to_string()
}

/// A vault with `document` as an artifact of both kinds, the time of the second an hour later, and their core hashes.
fn vault_with_both(document: &str, first: &str) -> (Sandbox, String, String) {
    let mut sandbox = Sandbox::at("2026-11-01T10:00:00Z");
    sandbox.write("d.json", document);
    let one = add_as(&sandbox, first);
    sandbox.set_clock("2026-11-01T11:00:00Z");
    let other = add_as(&sandbox, "contract");
    (sandbox, one, other)
}

fn add_as(sandbox: &Sandbox, kind: &str) -> String {
    let line = sandbox.run(["add", "--json", "--kind", kind, "d.json"]).expect(0).json().remove(0);
    assert_eq!(line["outcome"], "added", "{line}");
    line["core_hash"].as_str().unwrap().to_owned()
}

fn clean(sandbox: &Sandbox) {
    let checked = sandbox.run(["fsck"]).expect(0);
    assert!(checked.stderr.contains(" 0 findings"), "{}", checked.stderr);
    let head = sandbox.run(["log", "--head"]).expect(0).stdout;
    sandbox.run(["log", "--verify-from", head.trim(), "--full"]).expect(0);
}

fn shown(sandbox: &Sandbox, hash: &str) -> Value {
    sandbox.run(["show", "--json", hash]).expect(0).json().remove(0)
}

#[test]
fn a_document_that_two_kinds_recognize_needs_a_kind() {
    let sandbox = Sandbox::new();
    sandbox.write("in/d.json", document());
    let expect_refusal = |ran: Ran| {
        let line = ran.json().remove(0);
        assert_eq!(line["violations"][0]["rule_id"], "AMBIGUOUS");
        let message = line["violations"][0]["message"].as_str().unwrap();
        assert!(message.contains("model_io, contract"), "{message}");
    };
    for arguments in [
        &["add", "--json", "in/d.json"][..],
        &["add", "--json", "--move", "in"],
        &["add", "--json", "in/d.json", "--dry-run"],
        &["verify", "--json", "in/d.json"],
        &["verify", "--json", "in"],
    ] {
        expect_refusal(sandbox.run(arguments).expect(1));
    }
    expect_refusal(sandbox.run_on(document().as_bytes(), &["add", "--json", "-"]).expect(1));
    assert!(sandbox.path("in/d.json").exists());
    assert_eq!(sandbox.run(["find"]).expect(1).stdout, "");
    for kind in ["model_io", "contract"] {
        let line = sandbox.run(["add", "--json", "--kind", kind, "in"]).expect(0).json().remove(0);
        assert_eq!((&line["outcome"], &line["kind"]), (&"added".into(), &kind.into()));
    }
    clean(&sandbox);
}

#[test]
fn the_same_bytes_of_another_kind_are_another_artifact() {
    let document = document();
    let sandbox = Sandbox::new();
    sandbox.write("d.json", &document);
    let one = add_as(&sandbox, "model_io");
    let previewed =
        sandbox.run(["add", "--json", "--dry-run", "--kind", "contract", "d.json"]).expect(0).json();
    assert_eq!(previewed[0]["outcome"], "added");
    // The adversary's case: "seen again" of an artifact that was not there, and the file was gone.
    let moved = sandbox.run(["add", "--move", "--kind", "contract", "d.json"]).expect(0);
    assert!(moved.stderr.starts_with("1 added, 0 seen again, "), "{}", moved.stderr);
    assert!(!sandbox.path("d.json").exists());
    let found = sandbox.run(["find", "--json"]).expect(0).json();
    assert_eq!(found.len(), 2);
    for artifact in &found {
        let core = artifact["core_hash"].as_str().unwrap();
        assert_eq!(sandbox.run(["get", core]).expect(0).stdout, document);
        sandbox.run(["verify", core]).expect(0);
    }
    // Once more, each is seen again and no other.
    sandbox.write("d.json", &document);
    for kind in ["contract", "model_io"] {
        let line = sandbox.run(["add", "--json", "--kind", kind, "d.json"]).expect(0).json().remove(0);
        assert_eq!((&line["outcome"], &line["kind"]), (&"present".into(), &kind.into()));
    }
    assert_eq!(shown(&sandbox, "latest")["core_hash"], one.as_str());
    clean(&sandbox);
}

#[test]
fn seeing_one_kind_again_does_not_touch_the_other() {
    let (mut sandbox, session, contract) = vault_with_both(&document(), "model_io");
    sandbox.set_clock("2026-11-02T10:00:00Z");
    sandbox.run(["add", "--kind", "model_io", "d.json"]).expect(0);
    let seen_at = |hash: &str| shown(&sandbox, hash)["seen_at"].clone();
    assert_eq!(seen_at(&session), "2026-11-02T10:00:00.000Z");
    assert_eq!(seen_at(&contract), "2026-11-01T11:00:00.000Z");
    let entry = sandbox.run(["log", "--json", "--action", "seen"]).expect(0).json().remove(0);
    assert_eq!(entry["entry"]["cores"], json!([session]));
    clean(&sandbox);
}

#[test]
fn a_capture_hash_of_two_artifacts_is_ambiguous_and_its_bytes_are_not() {
    let document = document();
    let (sandbox, session, contract) = vault_with_both(&document, "model_io");
    let capture = capture_of(&document);
    for hash in [&*capture, &capture["sha256:".len()..][..12]] {
        let refused = sandbox.run(["show", hash]).expect(1);
        assert!(refused.stderr.contains("give the core hash"), "{}", refused.stderr);
        assert!(
            refused.stderr.contains(&session) && refused.stderr.contains(&contract),
            "{}",
            refused.stderr
        );
        assert_eq!(sandbox.run(["get", hash]).expect(0).stdout, document);
        sandbox.run(["get", "--core", hash]).expect(1);
    }
    for core in [&session, &contract] {
        assert_eq!(sandbox.run(["get", core, "--capture", &capture]).expect(0).stdout, document);
    }
}

#[test]
fn removing_one_of_two_kinds_names_the_other_and_both_stay_removed() {
    let document = document();
    for named in [0, 1] {
        let (sandbox, session, contract) = vault_with_both(&document, "model_io");
        let cores = [&session, &contract];
        let refused = sandbox.run(["rm", cores[named]]).expect(1);
        assert!(refused.stderr.contains(&cores[1 - named]["sha256:".len()..][..12]), "{}", refused.stderr);
        sandbox.run(["rm", "--with-containers", cores[named]]).expect(0);
        assert_eq!(sandbox.run(["tombstones", "--json"]).expect(0).json().len(), 2);
        clean(&sandbox);
        for kind in ["model_io", "contract"] {
            let line = sandbox.run(["add", "--json", "--kind", kind, "d.json"]).expect(1).json().remove(0);
            assert_eq!(line["violations"][0]["rule_id"], "REMOVED");
        }
        // The bytes are back, so nothing says of either that they are gone.
        sandbox.run(["add", "--allow-removed", "--kind", "contract", "d.json"]).expect(0);
        assert_eq!(sandbox.run(["tombstones"]).expect(0).stdout, "");
        clean(&sandbox);
        sandbox.run(["add", "--kind", "model_io", "d.json"]).expect(0);
        clean(&sandbox);
    }
}

#[test]
fn a_bundle_has_both() {
    let document = document();
    let (sandbox, session, contract) = vault_with_both(&document, "model_io");
    sandbox.run(["tag", "set", &session, "the-session"]).expect(0);
    sandbox.run(["tag", "set", &contract, "the-contract"]).expect(0);
    sandbox.run(["export", "--all", "-o", "both.rvz"]).expect(0);
    let other = ["--vault", "other.vault"];
    let imported = sandbox.run([&["import", "both.rvz", "--create"][..], &other].concat()).expect(0);
    assert!(imported.stderr.starts_with("2 added, 0 seen again, "), "{}", imported.stderr);
    for (tag, core) in [("@the-session", session), ("@the-contract", contract)] {
        let shown = sandbox.run([&["show", "--json", tag][..], &other].concat()).expect(0).json().remove(0);
        assert_eq!(shown["core_hash"], core.as_str());
    }
    sandbox.run([&["fsck"][..], &other].concat()).expect(0);
}

#[test]
fn search_and_reindex_keep_them_apart() {
    let (sandbox, session, contract) = vault_with_both(&document(), "model_io");
    let before = [&session, &contract].map(|core| shown(&sandbox, core));
    sandbox.run(["index", "build"]).expect(0);
    let found = sandbox.run(["search", "--json", "turquoise"]).expect(0).json();
    let in_both: BTreeSet<&str> = found.iter().map(|hit| hit["core_hash"].as_str().unwrap()).collect();
    assert_eq!(in_both, BTreeSet::from([&*session, &contract]));
    sandbox.run(["index", "rebuild"]).expect(0);
    assert_eq!([&session, &contract].map(|core| shown(&sandbox, core)), before);
    let counted = sandbox.run([
        "sql",
        "SELECT count(*) AS n, count(DISTINCT capture_hash) AS h FROM captures",
        "--json",
    ]);
    assert_eq!(counted.expect(0).json()[0], json!({"n": 2, "h": 1}));
    clean(&sandbox);
}

#[test]
fn repair_gives_back_the_capture_that_was_lost_and_no_other() {
    let document = document();
    for lost in [0, 1] {
        let (sandbox, session, contract) = vault_with_both(&document, "model_io");
        let cores = [session, contract];
        fs::rename(sandbox.path("d.json"), sandbox.path("copy.json")).unwrap();
        let connection = crate::journal::sql(&sandbox);
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let id = [1, 2][lost];
        for sql in ["DELETE FROM mention_list WHERE capture = ?1", "DELETE FROM capture WHERE id = ?1"] {
            connection.execute(sql, [id]).unwrap();
        }
        drop(connection);
        let found = sandbox.run(["fsck", "--json"]).expect(1).json();
        let names_it = |finding: &Value| {
            let detail = finding["detail"].as_str().unwrap();
            finding["finding"] == "missing-row"
                && finding["about"] == "capture"
                && detail.starts_with(&format!("capture: the journal records it (artifact {}, ", cores[lost]))
        };
        assert!(found.iter().any(names_it), "{found:?}");
        sandbox.run(["fsck", "--repair"]).expect(0);
        clean(&sandbox);
        for core in &cores {
            assert_eq!(sandbox.run(["get", core]).expect(0).stdout, document);
        }
    }
}

#[test]
fn bytes_that_both_lost_come_back_from_a_file() {
    let document = document();
    let (sandbox, session, contract) = vault_with_both(&document, "model_io");
    fs::create_dir(sandbox.path("files")).unwrap();
    fs::rename(sandbox.path("d.json"), sandbox.path("files/d.json")).unwrap();
    let connection = crate::journal::sql(&sandbox);
    connection
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DELETE FROM payload; DELETE FROM mention_list; DELETE FROM capture;
             DELETE FROM blob; DELETE FROM artifact;",
        )
        .unwrap();
    drop(connection);
    sandbox.run(["fsck"]).expect(1);
    sandbox.run(["fsck", "--repair", "--from", "files"]).expect(0);
    clean(&sandbox);
    for core in [&session, &contract] {
        assert_eq!(sandbox.run(["get", core]).expect(0).stdout, document);
    }
}

#[test]
fn a_run_pack_can_be_a_contract_as_well() {
    let document = both(&run_pack("r", &[json!({"type": "agent.command"})]));
    let (sandbox, run, contract) = vault_with_both(&document, "rpk");
    assert_ne!(run, contract);
    assert_eq!(sandbox.run(["find", "runs"]).expect(0).stdout.lines().count(), 1);
    clean(&sandbox);
}
