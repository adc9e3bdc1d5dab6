//! The times of artifacts: first seen, last seen, and created as they state it.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository, session};

/// A valid session that states when it was created.
fn created(adapter: &str, created_at: &str) -> String {
    let mut session: Value = serde_json::from_str(&session(adapter, &[("p", adapter)])).unwrap();
    session["created_at_utc"] = created_at.into();
    session.to_string()
}

/// Writes sessions under these names, adds them in this order with one command, and gives their core hashes.
fn add_together(sandbox: &Sandbox, names: &[&str]) -> Vec<String> {
    sandbox.add(names.iter().map(|name| sandbox.write(name, session(name, &[("p", name)]))))
}

/// Names whose core hashes are in an order of their own.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The core hashes that `find` lists.
fn found(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let lines = sandbox.run(["find", "--json"].iter().chain(arguments)).json().into_iter();
    lines.map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect()
}

fn stated(sandbox: &Sandbox, core: &str) -> Vec<String> {
    let shown = sandbox.run(["show", core, "--json"]).expect(0).json().remove(0);
    let attributes = shown["attributes"].as_array().unwrap().iter();
    let times = attributes.filter(|attribute| attribute["name"] == "created_at");
    times.map(|attribute| attribute["value"].as_str().unwrap().to_owned()).collect()
}

fn reversed(cores: &[String]) -> Vec<String> {
    cores.iter().rev().cloned().collect()
}

#[test]
fn every_kind_that_states_a_time_has_it_as_an_attribute() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    let sql = |view: &str| {
        let query = format!("SELECT created_at FROM {view} ORDER BY core_hash");
        let rows = sandbox.run(["sql", &query, "--json"]).expect(0).json();
        rows.iter().map(|row| row["created_at"].clone()).collect::<Vec<_>>()
    };
    // The session was recorded again: the later time counts.
    assert_eq!(sql("sessions"), ["2026-11-19T08:00:00.000Z", "2026-11-18T11:30:00.000Z"]);
    assert_eq!(sql("runs"), ["2026-11-18T09:00:05.000Z"]);
    assert_eq!(sql("traces"), ["2026-11-18T09:00:05.000Z", "2026-11-18T09:00:05.000Z"]);
    assert_eq!(sql("packs"), ["2026-11-18T09:00:00.000Z"]);
    assert_eq!(sql("contracts"), [Value::Null]);
    let session = "4df877dec7f4";
    assert_eq!(stated(&sandbox, session), ["2026-11-18T09:00:00.000Z", "2026-11-18T11:30:00.000Z"]);
    let shown = sandbox.run(["show", session, "--json"]).expect(0).json().remove(0);
    assert_eq!(shown["created_at"], "2026-11-18T11:30:00.000Z");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn times_are_normalized_and_what_is_no_time_is_not_one() {
    let sandbox = Sandbox::new();
    for (text, expected) in [
        ("2026-11-18T09:00:00+02:00", vec!["2026-11-18T07:00:00.000Z"]),
        ("2026-11-18 09:00:00.1239z", vec!["2026-11-18T09:00:00.123Z"]),
        ("20261118T0900Z", vec!["2026-11-18T09:00:00.000Z"]),
        // The format says that its times are in UTC.
        ("2026-11-18T09:00:00", vec!["2026-11-18T09:00:00.000Z"]),
        ("2026-11-31T09:00:00Z", vec![]),
        ("2026-11-18", vec![]),
        ("yesterday", vec![]),
        ("", vec![]),
    ] {
        let core = sandbox.add([sandbox.write("s.json", created(&format!("of {text}"), text))]).remove(0);
        assert_eq!(stated(&sandbox, &core), expected, "{text:?}");
    }
    let mut odd: Value = serde_json::from_str(&session("odd", &[])).unwrap();
    odd["created_at_utc"] = json!(1_763_456_400);
    let core = sandbox.add([sandbox.write("s.json", odd.to_string())]).remove(0);
    assert_eq!(stated(&sandbox, &core), [""; 0]);
}

#[test]
fn artifacts_are_selected_by_the_time_of_their_end() {
    let sandbox = Sandbox::at("2026-11-21T00:00:00Z");
    sandbox.add([repository("examples")]);
    let by =
        |arguments: &[&str]| found(&sandbox, &[arguments, &["--by", "finished", "--all-versions"]].concat());
    let stating = "SELECT a.core_hash FROM artifacts a JOIN attributes t ON t.artifact = a.artifact
                    WHERE t.name = 'finished_at' GROUP BY a.artifact";
    let stated = sandbox.run(["sql", stating, "--json"]).expect(0).json().len();
    let all = by(&["--since", "2000-01-01"]);
    assert!(stated > 1 && all.len() == stated, "{stated}: {all:?}");
    assert_eq!(by(&[])[..stated], all, "those that state none come last");
    assert_eq!(by(&["--until", "2000-01-01"]), [""; 0]);
    let line = sandbox.run(["find", "--by", "finished", "--all-versions"]).expect(0).stdout;
    let times = "SELECT max(t.value) AS at FROM attributes t WHERE t.name = 'finished_at'";
    let latest = sandbox.run(["sql", times, "--json"]).expect(0).json()[0]["at"].as_str().unwrap().to_owned();
    let shown = latest.replace('T', " ");
    assert!(line.lines().next().unwrap().contains(&shown[..19]), "{shown}: {line}");
    let age = sandbox
        .run(["find", "--by", "finished", "--since", "2000-01-01", "--columns", "age"])
        .expect(0)
        .stdout;
    assert!(age.lines().all(|line| line.ends_with("ago")), "{age}");
    let stats = sandbox.run(["stats", "--by", "finished"]).expect(0);
    assert!(stats.stderr.contains("no end time"), "{}", stats.stderr);
    let plan = sandbox.run(["forget", "--keep-last", "1", "--by", "finished", "--dry-run"]).expect(0);
    assert!(plan.stdout.contains("states no end time"), "{}", plan.stdout);
}

#[test]
fn find_goes_by_what_was_last_seen_if_that_is_asked_for() {
    let mut sandbox = Sandbox::at("2026-01-10T00:00:00Z");
    let cores = add_together(&sandbox, &["a", "b"]);
    sandbox.set_clock("2026-01-20T00:00:00Z");
    sandbox.run(["add", "a"]).expect(0);
    sandbox.set_clock("2026-01-21T00:00:00Z");
    assert_eq!(found(&sandbox, &["--since", "2026-01-15", "--by", "last-seen"]), [&*cores[0]]);
    assert_eq!(found(&sandbox, &["--since", "36h", "--by", "last-seen"]), [&*cores[0]]);
    assert_eq!(found(&sandbox, &["--since", "yesterday", "--by", "last-seen"]), [&*cores[0]]);
    assert_eq!(found(&sandbox, &["--until", "2026-01-15", "--by", "last-seen"]), [&*cores[1]]);
    assert_eq!(found(&sandbox, &["--since", "2026-01-15", "--by", "first-seen"]), [""; 0]);
    assert_eq!(found(&sandbox, &["--until", "2026-01-15", "--by", "first-seen"]), reversed(&cores));
    assert_eq!(found(&sandbox, &["--until", "2027-01-01", "--by", "created"]), [""; 0]);
    let line = sandbox.run(["find", "--since", "2026-01-15", "--by", "last-seen", "--json"]).expect(0);
    let line = line.json().remove(0);
    assert_eq!(
        [&line["added_at"], &line["seen_at"], &line["created_at"]],
        [&json!("2026-01-10T00:00:00.000Z"), &json!("2026-01-20T00:00:00.000Z"), &Value::Null]
    );
    let listed = |by: &str| sandbox.run(["find", "--by", by]).expect(0).stdout;
    assert!(
        listed("last-seen")
            .starts_with(&format!("{} session  2026-01-20 00:00:00 UTC a m\n", &cores[0][7..19]))
    );
    assert!(
        listed("first-seen")
            .starts_with(&format!("{} session  2026-01-10 00:00:00 UTC b m\n", &cores[1][7..19]))
    );
    let columns = ["find", "--columns", "seen,added,age", "--since", "2026-01-15", "--by", "last-seen"];
    assert_eq!(
        sandbox.run(columns).expect(0).stdout,
        "2026-01-20 00:00:00 UTC 2026-01-10 00:00:00 UTC 1 day ago\n"
    );
}

#[test]
fn find_and_list_go_by_the_creation_that_artifacts_state() {
    let sandbox = Sandbox::at("2026-06-01T00:00:00Z");
    let times = [
        "2026-03-01T00:00:00Z",
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
        "no time",
        "2026-02-01T01:00:00+01:00",
    ];
    let names = ["a", "b", "c", "d", "e"];
    let paths = names.iter().zip(times).map(|(name, time)| sandbox.write(name, created(name, time)));
    let cores = sandbox.add(paths);
    let by_created = |arguments: &[&str]| {
        let all: Vec<&str> = ["--by", "created"].iter().chain(arguments).copied().collect();
        let found = found(&sandbox, &all).into_iter();
        found.map(|core| names[cores.iter().position(|one| *one == core).unwrap()]).collect::<Vec<_>>()
    };
    let created = found(&sandbox, &[]);
    assert_eq!(created, found(&sandbox, &["--by", "created"]));
    let listed = sandbox.run(["list", "--json"]).expect(0).json().into_iter();
    let listed: Vec<String> = listed.map(|row| row["core_hash"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed, created);
    for command in ["find", "list"] {
        let ran = sandbox.run([command, "--since", "2026-02", "--until", "2026-03", "--json"]).expect(0);
        assert_eq!(ran.json().len(), 2, "{command}");
        assert_eq!(
            ran.stderr,
            "1 artifact states no creation time and cannot match; --by last-seen compares another time\n"
        );
    }
    // The later of two that were created at the same time arrived later; the one without a time is the last.
    assert_eq!(by_created(&[]), ["a", "e", "c", "b", "d"]);
    assert_eq!(by_created(&["--since", "2026-02-01"]), ["a", "e", "c"]);
    assert_eq!(by_created(&["--until", "2026-02-01"]), ["b"]);
    assert_eq!(by_created(&["--sort", "seen"]), ["e", "d", "c", "b", "a"]);
    let columns = sandbox.run(["find", "--by", "created", "--columns", "adapter_id,created"]).expect(0);
    assert!(columns.stdout.starts_with("a 2026-03-01 00:00:00 UTC\n"), "{}", columns.stdout);
    let json =
        sandbox.run(["find", "--json", "--sort", "created", "--limit", "1"]).expect(0).json().remove(0);
    assert_eq!(json["created_at"], "2026-03-01T00:00:00.000Z");
}

#[test]
fn a_later_capture_makes_an_artifact_created_later() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("1", created("a", "2026-01-01T00:00:00Z"))]).remove(0);
    let again = sandbox.add([sandbox.write("2", created("a", "2026-05-01T00:00:00Z"))]).remove(0);
    let earlier = sandbox.add([sandbox.write("3", created("a", "2025-05-01T00:00:00Z"))]).remove(0);
    assert_eq!((&again, &earlier), (&core, &core));
    assert_eq!(stated(&sandbox, &core).len(), 3);
    assert_eq!(found(&sandbox, &["--by", "created", "--since", "2026-04-01"]), [&*core]);
    assert_eq!(found(&sandbox, &["--by", "created", "--until", "2026-04-01"]), [""; 0]);
}

#[test]
fn one_order_everywhere_that_of_the_journal() {
    let mut sandbox = Sandbox::at("2026-01-01T00:00:00Z");
    let cores = add_together(&sandbox, &NAMES);
    let mut by_hash = cores.clone();
    by_hash.sort_unstable();
    assert!(by_hash != cores && by_hash != reversed(&cores), "the order of hashes must be another one");
    let everywhere = |sandbox: &Sandbox, newest_first: &[String]| {
        assert_eq!(found(sandbox, &[]), newest_first);
        assert_eq!(found(sandbox, &["--sort", "seen"]), newest_first);
        assert_eq!(found(sandbox, &["--sort", "kind"]), newest_first);
        assert_eq!(found(sandbox, &["--prompt", "p"]), newest_first);
        for (back, core) in newest_first.iter().enumerate() {
            let latest = sandbox.run(["show", &format!("latest~{back}"), "--format", "{{core}}"]).expect(0);
            assert_eq!(latest.stdout.trim_end(), core);
        }
        let played = sandbox.run(["replay", "any", "--prompt", "p", "--json"]).expect(0).json().remove(0);
        assert_eq!(played["core_hash"], *newest_first[0]);
        let plan = sandbox.run(["forget", "--keep-last", "3", "--dry-run", "--json"]).expect(0).json();
        let order: Vec<&str> = plan.iter().map(|line| line["core_hash"].as_str().unwrap()).collect();
        assert_eq!(order, newest_first);
        assert!(plan.iter().enumerate().all(|(at, line)| line["keep"] == (at < 3)), "{plan:?}");
        let stats = sandbox.run(["stats", "--by", "last-seen", "--json"]).expect(0).json().remove(0);
        assert_eq!(stats["newest"]["core_hash"], *newest_first[0]);
        assert_eq!(stats["oldest"]["core_hash"], *newest_first[newest_first.len() - 1]);
        sandbox.run(["index", "build"]).expect(0);
    };
    everywhere(&sandbox, &reversed(&cores));
    // All at one time, and two of them once more at the same time.
    sandbox.run(["add", "d", "b"]).expect(0);
    let again: Vec<String> = [1, 3, 5, 4, 2, 0].map(|index| cores[index].clone()).to_vec();
    everywhere(&sandbox, &again);
    assert_eq!(found(&sandbox, &["--sort", "added"]), reversed(&cores));
    // A clock that runs ahead, and is put right.
    sandbox.set_clock("2030-01-01T00:00:00Z");
    sandbox.run(["add", "c"]).expect(0);
    sandbox.set_clock("2026-01-02T00:00:00Z");
    sandbox.run(["add", "a"]).expect(0);
    let again: Vec<String> = [0, 2, 1, 3, 5, 4].map(|index| cores[index].clone()).to_vec();
    everywhere(&sandbox, &again);
}

#[test]
fn passages_that_match_alike_are_in_the_order_of_the_journal() {
    let sandbox = Sandbox::at("2026-01-01T00:00:00Z");
    let paths = NAMES.map(|name| sandbox.write(name, session(name, &[("p", "the same words")])));
    let cores = sandbox.add(&paths);
    sandbox.run(["index", "build"]).expect(0);
    let order = |sandbox: &Sandbox| {
        let lines = sandbox.run(["search", "same", "--json"]).expect(0).json().into_iter();
        lines.map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(&sandbox), reversed(&cores));
    sandbox.run(["add", "c"]).expect(0);
    assert_eq!(order(&sandbox)[0], cores[2]);
}

#[test]
fn search_takes_the_time_that_counts() {
    let mut sandbox = Sandbox::at("2026-01-10T00:00:00Z");
    let paths = ["a", "b"].map(|name| sandbox.write(name, created(name, "2025-12-24T00:00:00Z")));
    sandbox.add(&paths);
    sandbox.run(["index", "build"]).expect(0);
    sandbox.set_clock("2026-01-20T00:00:00Z");
    sandbox.run(["add", "a"]).expect(0);
    let hits = |arguments: &[&str]| {
        sandbox.run(["search", "a", "OR", "b", "--json"].iter().chain(arguments)).json().len()
    };
    assert_eq!(hits(&["--since", "2026-01-15"]), 0);
    assert_eq!(hits(&["--since", "2026-01-15", "--by", "last-seen"]), 1);
    assert_eq!(hits(&["--since", "2026-01-15", "--by", "first-seen"]), 0);
    assert_eq!(hits(&["--until", "2026-01-01", "--by", "created"]), 2);
    let told = sandbox.run(["search", "a", "--by", "created"]).expect(0).stdout;
    assert!(told.contains("2025-12-24 00:00:00 UTC"), "{told}");
}

#[test]
fn replay_goes_by_what_was_last_seen() {
    let mut sandbox = Sandbox::at("2026-01-10T00:00:00Z");
    let cores = add_together(&sandbox, &["a", "b"]);
    sandbox.set_clock("2026-01-20T00:00:00Z");
    sandbox.run(["add", "a"]).expect(0);
    let played = |arguments: &[&str]| {
        let all = ["replay", "any", "--prompt", "p", "--json"].iter().chain(arguments);
        sandbox.run(all).json().pop().map(|line| line["core_hash"].as_str().unwrap().to_owned())
    };
    assert_eq!(played(&[]), Some(cores[0].clone()));
    assert_eq!(played(&["--since", "2026-01-15"]), Some(cores[0].clone()));
    assert_eq!(played(&["--until", "2026-01-15"]), Some(cores[1].clone()));
}

#[test]
fn stats_go_by_the_time_that_is_asked_for() {
    let mut sandbox = Sandbox::at("2026-01-10T00:00:00Z");
    let texts = [
        created("a", "2025-12-24T23:59:59.999Z"),
        created("b", "1969-12-31T12:00:00Z"),
        created("c", "no time"),
    ];
    let names = ["a", "b", "c"];
    let cores = sandbox.add(names.iter().zip(&texts).map(|(name, text)| sandbox.write(name, text)));
    sandbox.set_clock("2026-01-20T00:00:00Z");
    sandbox.run(["add", "b"]).expect(0);
    let stats = |by: &[&str]| sandbox.run(["stats", "--json"].iter().chain(by)).expect(0).json().remove(0);
    let ends =
        |stats: &Value| ["oldest", "newest"].map(|end| stats[end]["core_hash"].as_str().unwrap().to_owned());
    let days = |stats: &Value| {
        let days = stats["days"].as_array().unwrap().iter();
        days.map(|day| {
            (
                day["date"].as_str().unwrap().to_owned(),
                day["artifacts"].as_u64().unwrap(),
                day["captures"].as_u64().unwrap(),
            )
        })
        .collect::<Vec<_>>()
    };
    let day = |date: &str, count: u64| (date.to_owned(), count, count);
    assert_eq!(stats(&[]), stats(&["--by", "created"]));
    let last = stats(&["--by", "last-seen"]);
    assert_eq!((&last["by"], &last["undated"]), (&json!("last-seen"), &json!(0)));
    assert_eq!(ends(&last), [cores[0].clone(), cores[1].clone()]);
    assert_eq!(last["newest"]["at"], "2026-01-20T00:00:00.000Z");
    assert_eq!(days(&last), [day("2026-01-10", 2), day("2026-01-20", 1)]);
    let first = stats(&["--by", "first-seen"]);
    assert_eq!(ends(&first), [cores[0].clone(), cores[2].clone()]);
    assert_eq!(days(&first), [day("2026-01-10", 3)]);
    let created = stats(&["--by", "created"]);
    assert_eq!(created["undated"], 1);
    assert_eq!(ends(&created), [cores[1].clone(), cores[0].clone()]);
    assert_eq!(created["newest"]["at"], "2025-12-24T23:59:59.999Z");
    assert_eq!(days(&created), [day("1969-12-31", 1), day("2025-12-24", 1)]);
    let told = sandbox.run(["stats", "--by", "created"]).expect(0);
    assert_eq!(told.stderr, "1 artifact states no creation time\n");
    assert!(told.stdout.contains("\n2025-12-24         1        1 "), "{}", told.stdout);
}

#[test]
fn a_journal_that_ends_in_the_future_is_warned_of() {
    let mut sandbox = Sandbox::at("2030-01-01T00:00:00Z");
    let path = sandbox.write("a", session("a", &[]));
    assert!(!sandbox.run(["add".as_ref(), path.as_os_str()]).expect(0).stderr.contains("warning"));
    // Clocks differ a little.
    sandbox.set_clock("2029-12-31T23:59:30Z");
    assert!(!sandbox.run(["add", "a"]).expect(0).stderr.contains("warning"));
    sandbox.set_clock("2026-01-01T00:00:00Z");
    for command in [&["add", "a"][..], &["forget", "--keep-last", "1"], &["watch", "--once", "w"]] {
        std::fs::create_dir_all(sandbox.path("w")).unwrap();
        let told = sandbox.run(command).expect(0).stderr;
        let warning = "warning: the last journal entry is in the future (2030-01-01 00:00:00 UTC)";
        assert!(told.contains(warning), "{command:?}: {told}");
    }
}
