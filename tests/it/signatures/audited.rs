//! What fsck says of signatures.

use super::{ring, signed, state};
use crate::journal::sql;
use crate::sandbox::{Ran, Sandbox, repository};

fn verified() -> Sandbox {
    let sandbox = Sandbox::new();
    ring(&sandbox, "ring", &[("ci", "right")]);
    ring(&sandbox, "other", &[("ci", "other")]);
    sandbox.write("run.rpk", signed("ci", "right"));
    sandbox.run(["add", "run.rpk", "--signing-key-file", "ring"]).expect(0);
    sandbox
}

/// The ids of the findings, each with what it is about and the row that its detail begins with.
fn findings(ran: &Ran) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let row = |line: &serde_json::Value| text(&line["detail"]).split(':').next().unwrap().to_owned();
    ran.json()
        .iter()
        .map(|line| [text(&line["finding"]), text(&line["about"]), row(line)].join(" "))
        .collect()
}

#[test]
fn fsck_with_keys_checks_signatures_again() {
    let sandbox = verified();
    let ran = sandbox.run(["fsck", "--signing-key-file", "ring"]).expect(0);
    assert!(ran.stderr.contains("signatures: 1 verified, 0 not checked, 0 wrong"), "{}", ran.stderr);
    assert!(!sandbox.run(["fsck"]).expect(0).stderr.contains("signatures:"));
    let ran = sandbox.run(["fsck", "--signing-key-file", "other"]).expect(1);
    assert!(
        ran.stdout.contains("wrong-signature") && ran.stdout.contains("it is recorded as verified"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("signatures: 0 verified, 0 not checked, 1 wrong"), "{}", ran.stderr);
    // It looked, and changed nothing.
    assert_eq!(state(&sandbox), "verified");
    sandbox.run(["index", "rebuild", "--signing-key-file", "other"]).expect(1);
    let ran = sandbox.run(["fsck", "--json", "--signing-key-file", "ring"]).expect(1);
    assert_eq!(findings(&ran), ["different-row capture signature"]);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn what_was_never_checked_is_no_finding_but_is_said() {
    let sandbox = Sandbox::new();
    ring(&sandbox, "ring", &[("ci", "right")]);
    sandbox.write("run.rpk", signed("ci", "right"));
    sandbox.run(["add", "run.rpk"]).expect(0);
    let ran = sandbox.run(["fsck", "--signing-key-file", "ring"]).expect(0);
    assert!(ran.stderr.contains("1 verified (1 recorded as not checked;"), "{}", ran.stderr);
    assert_eq!(state(&sandbox), "unchecked");
}

#[test]
fn fsck_finds_rows_that_the_bytes_contradict() {
    for (change, repaired) in [
        ("DELETE FROM signature", "verified"),
        ("UPDATE signature SET key_id = 'laptop'", "verified"),
        ("UPDATE signature SET key_id = NULL", "verified"),
    ] {
        let sandbox = verified();
        sql(&sandbox).execute_batch(change).unwrap();
        let ran = sandbox.run(["fsck", "--json"]).expect(1);
        assert!(
            findings(&ran).iter().any(|finding| finding == "different-row capture signature"),
            "{change}: {}",
            ran.stdout
        );
        sandbox.run(["fsck", "--repair", "--signing-key-file", "ring"]).expect(0);
        assert_eq!(state(&sandbox), repaired, "{change}");
    }
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/run.rpk")]);
    sql(&sandbox).execute_batch("INSERT INTO signature SELECT id, 'verified', 'ci' FROM capture").unwrap();
    let ran = sandbox.run(["fsck", "--json"]).expect(1);
    assert!(
        findings(&ran).iter().any(|finding| finding == "different-row capture signature"),
        "{}",
        ran.stdout
    );
    sandbox.run(["fsck", "--repair"]).expect(0);
    assert_eq!(state(&sandbox), "unsigned");
    assert_eq!(sandbox.run(["find", "--signed-by", "ci"]).expect(1).stdout, "");
}
