//! What the journal records of signatures is restored from it.

use super::{capture, journalled, ring, shown, signed, state};
use crate::sandbox::Sandbox;

/// A vault with a run whose signature was verified.
fn verified() -> Sandbox {
    let sandbox = Sandbox::new();
    ring(&sandbox, "keys", &[("ci", "right")]);
    sandbox.write("files/run.rpk", signed("ci", "right"));
    sandbox.run(["add", "files/run.rpk", "--signing-key-file", "keys"]).expect(0);
    assert_eq!(state(&sandbox), "verified");
    sandbox
}

fn change(sandbox: &Sandbox, sql: &str) {
    let connection = crate::journal::sql(sandbox);
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
}

fn clean(sandbox: &Sandbox) {
    let checked = sandbox.run(["fsck"]).expect(0);
    assert!(checked.stderr.contains(" 0 findings"), "{}", checked.stderr);
}

#[test]
fn a_state_that_was_changed_is_restored_without_a_key() {
    for sql in [
        "DELETE FROM signature",
        "UPDATE signature SET state = 'unchecked'",
        "UPDATE signature SET state = 'wrong'",
        "UPDATE signature SET key_id = 'other'",
        "UPDATE signature SET key_id = NULL",
    ] {
        let sandbox = verified();
        let before = (shown(&sandbox), journalled(&sandbox));
        change(&sandbox, sql);
        let found = sandbox.run(["fsck"]).expect(1).stdout;
        let names_it = |line: &str| line.contains("-row capture sha256:") && line.contains(": signature: ");
        assert!(found.lines().any(names_it), "{sql}: {found}");
        let repaired = sandbox.run(["fsck", "--repair"]).expect(0);
        let is_done = |line: &str| line.ends_with(": written from the journal again");
        assert!(repaired.stdout.lines().any(is_done), "{sql}: {}", repaired.stdout);
        assert_eq!((shown(&sandbox), journalled(&sandbox)), before, "{sql}");
        clean(&sandbox);
    }
}

#[test]
fn a_state_that_no_entry_records_goes() {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), crate::sandbox::repository("examples/session.json")]).expect(0);
    change(&sandbox, "INSERT INTO signature VALUES (1, 'verified', 'ci')");
    sandbox.run(["fsck"]).expect(1);
    sandbox.run(["fsck", "--repair"]).expect(0);
    assert!(sandbox.run(["find", "--signed-by", "ci"]).expect(1).stdout.is_empty());
    clean(&sandbox);
}

const LOSE: &str =
    "DELETE FROM signature; DELETE FROM mention_list; DELETE FROM capture; DELETE FROM payload;
    DELETE FROM blob;";

#[test]
fn a_capture_that_was_lost_gets_its_state_back_when_repair_adds_it_again() {
    for sql in [
        LOSE,
        "DELETE FROM signature; DELETE FROM mention_list; DELETE FROM capture",
        "UPDATE payload SET bytes = x'00'",
    ] {
        let sandbox = verified();
        let before = shown(&sandbox);
        change(&sandbox, sql);
        sandbox.run(["fsck"]).expect(1);
        sandbox.run(["fsck", "--repair", "--from", "files"]).expect(0);
        assert_eq!(shown(&sandbox), before, "{sql}");
        clean(&sandbox);
        let head = sandbox.run(["log", "--head"]).expect(0).stdout;
        let checked = sandbox.run(["log", "--verify-from", head.trim(), "--full"]).expect(0).stdout;
        assert!(checked.contains("1 signature\n"), "{checked}");
    }
}

#[test]
fn a_capture_that_was_lost_and_is_added_by_hand_has_the_state_of_that() {
    let sandbox = verified();
    change(&sandbox, &format!("{LOSE} DELETE FROM attribute; DELETE FROM identity; DELETE FROM artifact;"));
    sandbox.run(["add", "files/run.rpk"]).expect(0);
    assert_eq!(state(&sandbox), "unchecked");
    let found = sandbox.run(["fsck"]);
    assert!(!found.stdout.contains("signature"), "{}", found.stdout);
    let hash = capture(&signed("ci", "right"));
    let states: Vec<_> =
        journalled(&sandbox).into_iter().map(|(capture, state, _)| (capture, state)).collect();
    assert_eq!(states, [(hash.clone(), "verified".to_owned()), (hash, "unchecked".to_owned())]);
}

#[test]
fn a_verified_state_is_counted_where_the_catalog_is_compared() {
    let sandbox = verified();
    let head = sandbox.run(["log", "--head"]).expect(0).stdout;
    let checked = sandbox.run(["log", "--verify-from", head.trim(), "--full", "--json"]).expect(0).json();
    assert_eq!(checked[0]["catalog"]["signatures"], 1);
    change(&sandbox, "UPDATE signature SET state = 'unchecked'");
    sandbox.run(["log", "--verify-from", head.trim(), "--full"]).expect(1);
}
