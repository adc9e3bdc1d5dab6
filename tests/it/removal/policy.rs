//! Removing by rules of what to keep.

use super::{examples, expect_whole, told};
use crate::output::steady;
use crate::sandbox::{Sandbox, repository, session};

/// A session of each name, added at these times, and the clock at `now`.
pub(super) fn arrived(times: &[(&str, &'static str)], now: &'static str) -> (Sandbox, Vec<String>) {
    let mut sandbox = Sandbox::new();
    let mut cores = Vec::new();
    for (name, time) in times {
        sandbox.set_clock(time);
        cores.extend(sandbox.add([sandbox.write(name, session(name, &[("p", name)]))]));
    }
    sandbox.set_clock(now);
    (sandbox, cores)
}

/// The positions in `cores` of what would be kept.
pub(super) fn kept(sandbox: &Sandbox, cores: &[String], arguments: &[&str]) -> Vec<usize> {
    let lines = sandbox.run(["forget", "--dry-run", "--json"].iter().chain(arguments)).expect(0).json();
    assert_eq!(lines.len(), cores.len());
    let mut kept: Vec<usize> = lines
        .iter()
        .filter(|line| line["keep"] == true)
        .map(|line| cores.iter().position(|core| line["core_hash"] == core.as_str()).unwrap())
        .collect();
    kept.sort_unstable();
    kept
}

#[test]
fn what_people_are_told() {
    let sandbox = examples();
    sandbox.run(["tag", "set", super::SMALL, "release/1"]).expect(0);
    sandbox.run(["pin", "add", super::PARTIAL]).expect(0);
    insta::assert_snapshot!(told(
        &sandbox,
        &[
            &["forget", "--dry-run"],
            &["forget", "--keep-last", "0", "--kind", "nothing"],
            &["forget", "--keep-last", "0", "--dry-run"],
            &["forget", "--keep-last", "0", "--force"],
            &["forget", "--keep-last", "1", "--keep-tag", "release/*", "--kind", "model_io", "--dry-run"],
            &["forget", "--keep-last", "0", "--kind", "model_io", "--kind", "pack", "--dry-run", "--json"],
            &["forget", "--keep-last", "0", "--kind", "model_io", "--force", "--reason", "it ended", "--yes"],
            &["forget", "--keep-within", "1d"],
            &["forget", "--keep-last", "0", "--force", "--yes"],
            &["log", "--action", "remove"],
        ],
    ));
    expect_whole(&sandbox);
}

#[test]
fn rules_keep_what_they_say() {
    let times = [
        ("a", "2025-10-17T12:00:00Z"),
        ("b", "2026-08-23T12:00:00Z"),
        ("c", "2026-10-22T12:00:00Z"),
        ("d", "2026-10-23T12:00:00Z"),
        ("e", "2026-11-11T12:00:00Z"),
        ("f", "2026-11-18T12:00:00Z"),
    ];
    let (sandbox, cores) = arrived(&times, "2026-11-21T12:00:00Z");
    sandbox.run(["tag", "set", &cores[0], "first"]).expect(0);
    let kept = |arguments: &[&str]| kept(&sandbox, &cores, arguments);
    assert_eq!(kept(&["--keep-last", "2"]), [4, 5]);
    assert_eq!(kept(&["--keep-last", "100"]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(kept(&["--keep-last", "unlimited"]), [0, 1, 2, 3, 4, 5]);
    // Counted from now, not from the newest, which is three days old.
    assert_eq!(kept(&["--keep-within", "2d", "--keep-last", "0"]), [0; 0]);
    assert_eq!(kept(&["--keep-within", "29d"]), [3, 4, 5]);
    assert_eq!(kept(&["--keep-within", "30d"]), [2, 3, 4, 5]);
    assert_eq!(kept(&["--keep-tag", "first"]), [0]);
    assert_eq!(kept(&["--keep-tag", "@first"]), [0]);
    assert_eq!(kept(&["--keep-tag", "f*", "--keep-last", "1"]), [0, 5]);
    assert!(kept(&["--keep-tag", "fir"]).is_empty());
    sandbox.run(["forget", "--keep-last", "1", "--keep-within", "10"]).expect(3);
    let done = sandbox.run(["forget", "--keep-last", "2", "--yes"]).expect(0);
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
    let lines = sandbox.run(["forget", "--keep-last", "0", "--json", "--yes"]).expect(0).json();
    assert!(lines.iter().all(|line| line["keep"] == false), "{lines:?}");
    assert_eq!(sandbox.run(["find"]).status, 1);
    // What is pinned holds what it links to, and that holds more.
    let sandbox = examples();
    sandbox.run(["pin", "add", super::PACK]).expect(0);
    let lines = sandbox.run(["forget", "--keep-last", "0", "--json", "--yes"]).expect(0).json();
    let kept = lines.iter().filter(|line| line["keep"] == true);
    let mut kept: Vec<&str> = kept.map(|line| line["kind"].as_str().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["model_io", "pack"]);
    expect_whole(&sandbox);
}

#[test]
fn what_was_seen_again_counts_as_new() {
    let times = [("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z"), ("c", "2026-01-03T00:00:00Z")];
    let (mut sandbox, cores) = arrived(&times, "2026-02-01T00:00:00Z");
    // The nightly recording was made again.
    sandbox.run(["add", "a"]).expect(0);
    sandbox.set_clock("2026-02-01T06:00:00Z");
    assert_eq!(kept(&sandbox, &cores, &["--keep-last", "1"]), [0]);
    assert_eq!(kept(&sandbox, &cores, &["--keep-within", "1d"]), [0]);
    assert_eq!(kept(&sandbox, &cores, &["--keep-last", "1", "--by", "first-seen"]), [2]);
    assert_eq!(kept(&sandbox, &cores, &["--keep-within", "31d", "--by", "first-seen"]), [1, 2]);
    sandbox.run(["forget", "--keep-last", "1", "--yes"]).expect(0);
    assert_eq!(sandbox.run(["show", "latest", "--format", "{{core}}"]).expect(0).stdout.trim_end(), cores[0]);
}

#[test]
fn a_rule_that_can_match_nothing_is_wrong_usage() {
    let times = [("a", "2026-01-01T00:00:00Z")];
    let (sandbox, _) = arrived(&times, "2026-02-01T00:00:00Z");
    for (rule, why) in [
        (&["--keep-tag", ""][..], "it is empty"),
        (&["--keep-tag", "@"], "it is empty"),
        (&["--keep-tag", " base"], "no tag can match it"),
        (&["--keep-tag", "base "], "no tag can match it"),
        (&["--keep-tag", "**"], "a * can only be the last character"),
        (&["--keep-tag", "re*se"], "a * can only be the last character"),
        (&["--keep-tag", "x", "--keep-tag", "ä"], "no tag can match it"),
        (&["--keep-daily", "0"], "these rules keep nothing"),
        (&["--keep-within", "0d", "--keep-yearly", "0"], "these rules keep nothing"),
        (&["--keep-daily", "-1"], "unexpected argument"),
        (&["--keep-daily", "many"], "expected a number such as 7, or unlimited"),
        (&["--keep-within", ""], "expected a duration such as"),
        (&["--keep-within", "99999999999999999999d"], "expected a duration such as"),
        (&["--keep-last", "1", "--group-by", "color"], "use kind, label, label:KEY, accepted, adapter_id,"),
        (&["--keep-last", "1", "--group-by", "kind,"], "empty name in --group-by"),
        (&[], "give at least one rule"),
    ] {
        let refused = sandbox.run(["forget", "--yes"].iter().chain(rule)).expect(3);
        assert!(refused.stderr.contains(why), "{rule:?}: {}", refused.stderr);
    }
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 1);
}

#[test]
fn what_cannot_be_computed_keeps() {
    let times = [("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-01T00:00:00Z")];
    let (sandbox, cores) = arrived(&times, "2026-02-01T00:00:00Z");
    for age in ["99999999999d", "9000000000000000s", "15000000000w"] {
        assert_eq!(kept(&sandbox, &cores, &["--keep-within", age]), [0, 1], "{age}");
    }
}

#[test]
fn one_artifact_from_the_future_makes_no_other_forgotten() {
    let times = [("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-30T00:00:00Z"), ("c", "2099-01-01T00:00:00Z")];
    let (mut sandbox, cores) = arrived(&times, "2026-02-01T00:00:00Z");
    assert_eq!(kept(&sandbox, &cores, &["--keep-within", "7d"]), [1, 2]);
    assert_eq!(kept(&sandbox, &cores, &["--keep-daily", "2"]), [1, 2]);
    // What comes after it is of its time, and is newer.
    assert!(cores.iter().all(|core| core.starts_with("sha256:")));
    sandbox.run(["add", "b"]).expect(0);
    let played = sandbox.run(["replay", "any", "--prompt", "p", "--json"]).expect(0).json().remove(0);
    assert_eq!(played["core_hash"], *cores[1]);
    sandbox.set_clock("2026-02-20T00:00:00Z");
    assert_eq!(kept(&sandbox, &cores, &["--keep-last", "1"]), [1]);
}

#[test]
fn more_than_half_of_a_kind_is_not_removed_in_scripts() {
    let sandbox = examples();
    let refused = sandbox.run(["forget", "--keep-last", "0"]).expect(1);
    assert_eq!(refused.stdout, "");
    assert!(refused.stderr.contains("--dry-run lists them, --yes removes them"), "{}", refused.stderr);
    assert!(refused.stderr.contains("  2 of 2 traces\n"), "{}", refused.stderr);
    assert_eq!(sandbox.run(["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
    // Exactly one half goes without a question; a dry run does as well.
    let (sandbox, _) =
        arrived(&[("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")], "2026-01-03T00:00:00Z");
    sandbox.run(["forget", "--keep-last", "0", "--dry-run"]).expect(0);
    sandbox.run(["forget", "--keep-last", "1"]).expect(0);
    sandbox.run(["forget", "--keep-within", "1d"]).expect(0);
    sandbox.run(["forget", "--keep-within", "1h"]).expect(1);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 1);
}

#[test]
fn what_changed_after_the_decision_is_spared() {
    use runvault::Vault;
    use runvault::intake::ExamineOptions;
    use runvault::vault::forget::ForgetRequest;
    use runvault::vault::retention::Policy;

    let times = [
        ("a", "2026-01-01T00:00:00Z"),
        ("b", "2026-01-02T00:00:00Z"),
        ("c", "2026-01-03T00:00:00Z"),
        ("d", "2026-01-04T00:00:00Z"),
    ];
    let (sandbox, cores) = arrived(&times, "2026-01-05T00:00:00Z");
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let policy = Policy { keep_last: Some(1), ..Policy::default() };
    let request = ForgetRequest { policy, dry_run: true, ..ForgetRequest::default() };
    let plan = vault.run(&request).unwrap().plan();
    assert_eq!(plan.artifacts.len(), 3);
    let document = std::fs::read(sandbox.path("a")).unwrap();
    vault.add_document(document, &ExamineOptions::default()).unwrap();
    sandbox.run(["pin", "add", &cores[1]]).expect(0);
    let request = ForgetRequest { plan: Some(plan), dry_run: false, ..request };
    let done = vault.run(&request).unwrap().removal.unwrap();
    let removed: Vec<String> = done.removed.iter().map(ToString::to_string).collect();
    assert_eq!(removed, [&*cores[2]]);
    let mut spared: Vec<String> = done.spared.iter().map(ToString::to_string).collect();
    spared.sort_by_key(|core| cores.iter().position(|one| one == core));
    assert_eq!(spared, cores[..2]);
    expect_whole(&sandbox);
}

#[test]
fn what_only_has_an_exchange_in_common_is_not_kept_for_that() {
    let sandbox = Sandbox::new();
    let names = ["run.rpk", "session-small-model.json"].map(|name| repository("examples").join(name));
    let cores = sandbox.add(names);
    let links = sandbox.run(["links", "--json", &cores[1]]).expect(0).json();
    assert_eq!(links.iter().map(|link| &link["relation"]).collect::<Vec<_>>(), ["replays"]);
    sandbox.add([sandbox.write("newer.json", session("a", &[("p", "r")]))]);
    let policy = ["forget", "--kind", "model_io", "--keep-last", "1", "--json"];
    let decided = sandbox.run(policy.iter().chain(&["--dry-run"])).expect(0).json();
    let small = decided.iter().find(|line| line["core_hash"] == cores[1].as_str()).unwrap();
    assert_eq!(small["keep"], false, "{small}");
    sandbox.run(policy).expect(0);
    sandbox.run(["show", &cores[1]]).expect(1);
    sandbox.run(["fsck"]).expect(0);
}
