//! Keeping by days, weeks, months and years, and by groups.

use serde_json::Value;

use super::policy::{arrived, kept};
use super::{examples, told};
use crate::sandbox::{Sandbox, session};

/// Two a day around the turn of a year.
const TIMES: [(&str, &str); 10] = [
    ("a", "2025-12-27T08:00:00Z"),
    ("b", "2025-12-28T08:00:00Z"),
    ("c", "2025-12-28T23:59:59.999Z"),
    ("d", "2025-12-29T00:00:00Z"),
    ("e", "2025-12-31T23:00:00Z"),
    ("f", "2025-12-31T23:59:00Z"),
    ("g", "2026-01-01T00:00:00Z"),
    ("h", "2026-01-04T12:00:00Z"),
    ("i", "2026-01-05T12:00:00Z"),
    ("j", "2026-01-05T13:00:00Z"),
];

#[test]
fn the_newest_of_each_period_is_kept() {
    let (sandbox, cores) = arrived(&TIMES, "2026-01-06T00:00:00Z");
    let kept = |arguments: &[&str]| kept(&sandbox, &cores, arguments);
    assert_eq!(kept(&["--keep-hourly", "3"]), [7, 8, 9]);
    assert_eq!(kept(&["--keep-daily", "3"]), [6, 7, 9]);
    assert_eq!(kept(&["--keep-daily", "6"]), [2, 3, 5, 6, 7, 9]);
    // The week from the 29th of December to the 4th of January is the first of 2026.
    assert_eq!(kept(&["--keep-weekly", "2"]), [7, 9]);
    assert_eq!(kept(&["--keep-weekly", "3"]), [2, 7, 9]);
    assert_eq!(kept(&["--keep-monthly", "2"]), [5, 9]);
    assert_eq!(kept(&["--keep-yearly", "2"]), [5, 9]);
    // As long as there are fewer, the oldest stays: the next periods are counted from it.
    assert_eq!(kept(&["--keep-monthly", "3"]), [0, 5, 9]);
    assert_eq!(kept(&["--keep-yearly", "unlimited"]), [0, 5, 9]);
    assert_eq!(
        kept(&["--keep-daily", "2", "--keep-weekly", "0", "--keep-yearly", "2", "--keep-last", "3"]),
        [5, 7, 8, 9]
    );
}

#[test]
fn applying_the_same_rules_again_removes_nothing_more() {
    let (sandbox, _) = arrived(&TIMES, "2026-01-06T00:00:00Z");
    let rules = ["forget", "--keep-daily", "2", "--keep-weekly", "2", "--keep-monthly", "5", "--yes"];
    let first = sandbox.run(rules).expect(0).stderr;
    assert!(first.contains("6 artifacts removed"), "{first}");
    let second = sandbox.run(rules).expect(0).stderr;
    assert!(second.starts_with("0 artifacts removed (0 B), 4 kept"), "{second}");
    let entry =
        sandbox.run(["log", "--action", "remove", "--limit", "1", "--json"]).expect(0).json().remove(0);
    assert_eq!(entry["entry"]["reason"], "forget --keep-daily 2 --keep-weekly 2 --keep-monthly 5");
}

#[test]
fn days_are_those_of_what_was_last_seen() {
    let (mut sandbox, cores) = arrived(&TIMES[..4], "2026-01-10T00:00:00Z");
    sandbox.run(["add", "b"]).expect(0);
    sandbox.set_clock("2026-01-11T00:00:00Z");
    assert_eq!(kept(&sandbox, &cores, &["--keep-daily", "2"]), [1, 3]);
    assert_eq!(kept(&sandbox, &cores, &["--keep-daily", "2", "--by", "first-seen"]), [2, 3]);
}

#[test]
fn a_dry_run_says_why_each_is_kept_or_removed() {
    let (sandbox, cores) = arrived(&TIMES, "2026-01-06T00:00:00Z");
    sandbox.run(["tag", "set", &cores[1], "release/1.4"]).expect(0);
    sandbox.run(["pin", "add", &cores[3]]).expect(0);
    let rules = &[
        "forget",
        "--keep-last",
        "1",
        "--keep-within",
        "2d",
        "--keep-daily",
        "4",
        "--keep-monthly",
        "3",
        "--keep-tag",
        "release/*",
        "--dry-run",
    ];
    insta::assert_snapshot!(told(&sandbox, &[&rules[..], &[&rules[..], &["--json"]].concat()]));
}

/// Sessions of two models from two agents' adapters, in turn.
fn of_models() -> (Sandbox, Vec<String>) {
    let mut sandbox = Sandbox::at("2026-01-01T00:00:00Z");
    let mut cores = Vec::new();
    for (day, (adapter, model)) in
        [("x", "m1"), ("x", "m2"), ("y", "m1"), ("x", "m1"), ("y", "m2"), ("y", "m1")].iter().enumerate()
    {
        sandbox.set_clock(format!("2026-01-0{}T00:00:00Z", day + 1).leak());
        let mut text: Value = serde_json::from_str(&session(adapter, &[("p", &day.to_string())])).unwrap();
        text["model_id"] = (*model).into();
        cores.extend(sandbox.add([sandbox.write("s.json", text.to_string())]));
    }
    (sandbox, cores)
}

#[test]
fn groups_are_judged_each_for_itself() {
    let (sandbox, cores) = of_models();
    let kept = |arguments: &[&str]| kept(&sandbox, &cores, arguments);
    let last = |by| [&["--keep-last", "1", "--group-by"][..], &[by]].concat();
    assert_eq!(kept(&last("kind")), [5]);
    assert_eq!(kept(&last("model_id")), [4, 5]);
    assert_eq!(kept(&last("adapter_id")), [3, 5]);
    assert_eq!(kept(&last("model_id,adapter_id")), [1, 3, 4, 5]);
    assert_eq!(kept(&last("kind, model_id")), [4, 5]);
    assert_eq!(kept(&last("label")), [1, 3, 4, 5]);
    // None has this one.
    assert_eq!(kept(&last("agent")), [5]);
    assert_eq!(kept(&last("")), [5]);
    let told =
        sandbox.run(["forget", "--keep-last", "1", "--group-by", "model_id", "--dry-run"]).expect(0).stdout;
    assert!(told.starts_with("model_id m1\nkeep "), "{told}");
    let line =
        sandbox.run(["forget", "--keep-last", "1", "--group-by", "model_id,tool", "--dry-run", "--json"]);
    let group = line.expect(0).json().remove(0)["group"].to_string();
    assert_eq!(group, r#"[{"name":"model_id","values":["m1"]},{"name":"tool","values":[]}]"#);
    sandbox.run(["forget", "--keep-last", "1", "--group-by", "model_id,adapter_id"]).expect(0);
    let entry =
        sandbox.run(["log", "--action", "remove", "--limit", "1", "--json"]).expect(0).json().remove(0);
    assert_eq!(entry["entry"]["reason"], "forget --keep-last 1 --group-by model_id,adapter_id");
}

#[test]
fn kinds_share_a_group_only_if_that_is_asked_for() {
    let sandbox = examples();
    let count = |group: &str| {
        let lines = sandbox.run([
            "forget",
            "--keep-last",
            "1",
            "--force",
            "--dry-run",
            "--json",
            "--group-by",
            group,
        ]);
        lines.expect(0).json().iter().filter(|line| line["reasons"][0] == "last 1").count()
    };
    assert_eq!((count("kind"), count("")), (5, 1));
    // Runs and sessions name their models; there are two.
    assert_eq!(count("model_id"), 3);
}

#[test]
fn by_created_what_states_no_time_is_never_removed() {
    let mut sandbox = Sandbox::at("2026-06-01T00:00:00Z");
    let created = |name: &str, time: &str| {
        let mut text: Value = serde_json::from_str(&session(name, &[])).unwrap();
        text["created_at_utc"] = time.into();
        text.to_string()
    };
    let texts = [
        created("a", "2026-03-01T00:00:00Z"),
        created("b", "2026-05-01T00:00:00Z"),
        session("c", &[]),
        created("d", "not known"),
        created("e", "2026-04-01T00:00:00Z"),
    ];
    let cores =
        sandbox.add(texts.iter().enumerate().map(|(index, text)| sandbox.write(&index.to_string(), text)));
    sandbox.set_clock("2026-07-01T00:00:00Z");
    for (rule, expected) in [
        (&["--keep-last", "1"][..], [1, 2, 3].as_slice()),
        (&["--keep-last", "0"], &[2, 3]),
        (&["--keep-within", "80d"], &[1, 2, 3]),
        (&["--keep-monthly", "2"], &[1, 2, 3, 4]),
        (&["--keep-tag", "none"], &[2, 3]),
    ] {
        assert_eq!(kept(&sandbox, &cores, &[rule, &["--by", "created"]].concat()), expected, "{rule:?}");
    }
    // By the time at which they came, they are as old as the others.
    assert_eq!(kept(&sandbox, &cores, &["--keep-within", "80d"]), [0, 1, 2, 3, 4]);
    let told = sandbox.run(["forget", "--keep-last", "1", "--by", "created", "--dry-run"]).expect(0).stdout;
    assert_eq!(told.matches(" undated ").count(), 2, "{told}");
    assert_eq!(told.matches(": states no creation time\n").count(), 2, "{told}");
    sandbox.run(["forget", "--keep-last", "0", "--by", "created", "--yes"]).expect(0);
    let left = sandbox.run(["find", "--json"]).expect(0).json();
    assert!(left.len() == 2 && left.iter().all(|line| line["created_at"].is_null()), "{left:?}");
}
