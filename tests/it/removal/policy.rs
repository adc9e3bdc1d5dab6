//! Removing by rules of what to keep.

use super::{examples, expect_whole, told};
use crate::journal::sql;
use crate::output::steady;
use crate::sandbox::{Sandbox, session};

/// Sessions that were added so many days ago.
fn aged(days: &[u32]) -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    let cores: Vec<String> = days
        .iter()
        .map(|days| sandbox.add([sandbox.write("s.json", session(&format!("{days}-days"), &[]))]).remove(0))
        .collect();
    for (artifact, days) in (1_i64..).zip(days) {
        sql(&sandbox)
            .execute(
                "UPDATE artifact SET added_at = 1800000000000 - ?1 * 86400000 WHERE id = ?2",
                (days, artifact),
            )
            .unwrap();
    }
    (sandbox, cores)
}

#[test]
fn what_people_are_told() {
    let sandbox = examples();
    sandbox.run(["tag", super::SMALL, "release/1"]).expect(0);
    sandbox.run(["pin", super::PARTIAL]).expect(0);
    insta::assert_snapshot!(told(
        &sandbox,
        &[
            &["forget", "--dry-run"],
            &["forget", "--keep-last", "0", "--kind", "nothing"],
            &["forget", "--keep-last", "0", "--dry-run"],
            &["forget", "--keep-last", "1", "--keep-tag", "release/*", "--kind", "model_io", "--dry-run"],
            &["forget", "--keep-last", "0", "--kind", "model_io", "--kind", "pack", "--dry-run", "--json"],
            &["forget", "--keep-last", "0", "--kind", "model_io", "--force", "--reason", "the project ended"],
            &["forget", "--keep-within", "1d"],
            &["forget", "--keep-last", "0", "--force"],
            &["log", "--action", "remove"],
        ],
    ));
    expect_whole(&sandbox);
}

#[test]
fn rules_keep_what_they_say() {
    let (sandbox, cores) = aged(&[400, 90, 30, 29, 10, 3]);
    sandbox.run(["tag", &cores[0], "first"]).expect(0);
    let kept = |arguments: &[&str]| {
        let lines = sandbox.run(["forget", "--dry-run", "--json"].iter().chain(arguments)).expect(0).json();
        let mut kept: Vec<usize> = lines
            .iter()
            .filter(|line| line["keep"] == true)
            .map(|line| cores.iter().position(|core| line["core_hash"] == core.as_str()).unwrap())
            .collect();
        kept.sort_unstable();
        kept
    };
    assert_eq!(kept(&["--keep-last", "2"]), [4, 5]);
    assert_eq!(kept(&["--keep-last", "100"]), [0, 1, 2, 3, 4, 5]);
    // Counted from the newest, which is three days old.
    assert_eq!(kept(&["--keep-within", "26d"]), [3, 4, 5]);
    assert_eq!(kept(&["--keep-within", "27d"]), [2, 3, 4, 5]);
    assert_eq!(kept(&["--keep-tag", "first"]), [0]);
    assert_eq!(kept(&["--keep-tag", "f*", "--keep-last", "1"]), [0, 5]);
    assert!(kept(&["--keep-tag", "fir"]).is_empty());
    sandbox.run(["forget", "--keep-last", "1", "--keep-within", "10"]).expect(3);
    let done = sandbox.run(["forget", "--keep-last", "2"]).expect(0);
    insta::assert_snapshot!(steady(&(done.stdout + &done.stderr)));
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 2);
    let entry =
        sandbox.run(["log", "--action", "remove", "--limit", "1", "--json"]).expect(0).json().remove(0);
    assert_eq!(entry["entry"]["reason"], "forget --keep-last 2");
    expect_whole(&sandbox);
}

#[test]
fn what_links_to_each_other_goes_together() {
    let sandbox = examples();
    // All of them link to each other; nothing that stays does.
    let lines = sandbox.run(["forget", "--keep-last", "0", "--json"]).expect(0).json();
    assert!(lines.iter().all(|line| line["keep"] == false), "{lines:?}");
    assert_eq!(sandbox.run(["find"]).status, 1);
    // What is pinned holds what it links to, and that holds more.
    let sandbox = examples();
    sandbox.run(["pin", super::PACK]).expect(0);
    let lines = sandbox.run(["forget", "--keep-last", "0", "--json"]).expect(0).json();
    let kept = lines.iter().filter(|line| line["keep"] == true);
    let mut kept: Vec<&str> = kept.map(|line| line["kind"].as_str().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["model_io", "pack"]);
    expect_whole(&sandbox);
}
