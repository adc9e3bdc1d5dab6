//! What was removed is added again only on request.

use runvault::intake::ExamineOptions;
use runvault::{AddError, Vault};
use serde_json::{Value, json};

use super::bytes::{is_somewhere, noise, wordy};
use super::{PACK, RUN, SESSION, count, examples, expect_whole, take_back};
use crate::journal::sql;
use crate::packs;
use crate::sandbox::{Sandbox, repository, session};

/// A vault from which a session was removed, and the files and the bundle that still have it.
fn removed() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let text = session("secret", &[("p", &noise(11, 200))]);
    sandbox.write("p/run.json", packs::run().to_string());
    sandbox.write("p/model_io.json", &text);
    let core = sandbox.add([sandbox.write("s.json", &text)]).remove(0);
    sandbox.run(["tag", "set", &core, "kept"]).expect(0);
    sandbox.run(["export", &core, "-o", "b.rvz"]).expect(0);
    // A byte form that was never there.
    sandbox.write("other.json", format!("{text}\n"));
    sandbox.run(["rm", &core, "--reason", "it names a customer", "--actor", "dana"]).expect(0);
    (sandbox, core)
}

/// What the vault has, by table.
fn rows(sandbox: &Sandbox) -> Vec<u64> {
    let connection = sql(sandbox);
    ["artifact", "capture", "blob", "payload", "dictionary", "journal", "tombstone"]
        .map(|table| count(&connection, table))
        .to_vec()
}

#[test]
fn what_was_removed_is_refused_wherever_it_comes_from() {
    let (sandbox, core) = removed();
    let text = std::fs::read(sandbox.path("s.json")).unwrap();
    sandbox.write("w/s.json", &text);
    let zip = packs::zip_of(&[
        packs::part("run.json", packs::run().to_string()),
        packs::part("model_io.json", &text),
    ]);
    sandbox.write("p.zip", zip);
    let before = rows(&sandbox);
    for arguments in [
        &["add", "s.json"][..],
        &["add", "other.json"],
        &["add", "p"],
        &["add", "p.zip"],
        &["add", "-"],
        &["add", "w"],
        &["import", "b.rvz"],
        &["watch", "w", "--once", "--settle", "0s"],
        &["add", "s.json", "--dry-run"],
        &["add", "p", "--dry-run"],
        &["import", "b.rvz", "--dry-run"],
    ] {
        let refused = sandbox.run_on(&text, arguments).expect(1);
        let told = &refused.stderr;
        assert!(
            told.contains("removed by dana on 2") && told.contains(": it names a customer (rule REMOVED)"),
            "{told}"
        );
        assert!(told.contains("--allow-removed adds removed artifacts again"), "{told}");
        assert!(told.contains("1 rejected") && refused.stdout.is_empty(), "{told}{}", refused.stdout);
        let is_pack = arguments[1].starts_with('p');
        assert_eq!(
            told.contains(&format!("contains session {core}, which was removed by")),
            is_pack,
            "{told}"
        );
        assert_eq!(rows(&sandbox), before, "{arguments:?}");
    }
    // The tag and the note of a bundle need the artifact.
    assert_eq!(sandbox.run(["tag", "list"]).expect(0).stdout, "");
    let line = sandbox.run(["add", "s.json", "--json"]).expect(1).json().remove(0);
    assert_eq!((&line["outcome"], &line["core_hash"]), (&json!("rejected"), &json!(core)));
    assert_eq!(line["violations"][0]["rule_id"], "REMOVED");
    sandbox.run(["rules", "removed"]).expect(0);
    // Others go in all the same.
    let other = sandbox.write("x.json", session("other", &[("p", "r")]));
    sandbox.run(["add".as_ref(), "s.json".as_ref(), other.as_os_str()]).expect(1);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 1);
    expect_whole(&sandbox);
}

#[test]
fn the_library_refuses_it_as_well() {
    let (sandbox, core) = removed();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let document = std::fs::read(sandbox.path("s.json")).unwrap();
    let refused = vault.add_document(document.clone(), &ExamineOptions::default());
    let Err(AddError::Rejected(report)) = refused else { panic!("{refused:?}") };
    assert_eq!(report.violations()[0].rule_id, "REMOVED");
    let options = ExamineOptions { allow_removed: true, ..ExamineOptions::default() };
    let put = vault.add_document(document, &options).unwrap();
    assert_eq!(put.core.to_string(), core);
}

#[test]
fn a_file_that_is_refused_is_not_moved() {
    let (sandbox, _) = removed();
    for (path, file) in [("s.json", "s.json"), ("p", "p/model_io.json")] {
        sandbox.run(["add", "--move", path]).expect(1);
        assert!(sandbox.path(file).exists());
    }
    std::fs::create_dir(sandbox.path("w")).unwrap();
    std::fs::copy(sandbox.path("s.json"), sandbox.path("w/s.json")).unwrap();
    sandbox.run(["watch", "w", "--once", "--settle", "0s", "--move"]).expect(1);
    assert!(sandbox.path("w/s.json").exists());
    sandbox.run(["watch", "w", "--once", "--settle", "0s", "--move", "--allow-removed"]).expect(0);
    assert!(!sandbox.path("w/s.json").exists());
}

#[test]
fn taking_it_back_is_journalled_before_it_is_added() {
    let sandbox = examples();
    sandbox.run(["rm", SESSION, "--with-containers", "--force"]).expect(0);
    let head = |sandbox: &Sandbox| {
        sandbox.run(["log", "--head", "--json"]).expect(0).json()[0]["seq"].as_u64().unwrap()
    };
    let before = head(&sandbox);
    let digests = |sandbox: &Sandbox| count(&sql(sandbox), "tombstone");
    assert_eq!(digests(&sandbox), 2 + 1 + 1 + 1);
    sandbox
        .run([
            "--actor".as_ref(),
            "erin".as_ref(),
            "add".as_ref(),
            "--allow-removed".as_ref(),
            repository("examples/pack").as_os_str(),
        ])
        .expect(0);
    let entries = sandbox.run(["log", "--json"]).expect(0).json().split_off(usize::try_from(before).unwrap());
    let said: Vec<(&Value, &Value, &Value)> = entries
        .iter()
        .map(|line| &line["entry"])
        .map(|entry| (&entry["action"], &entry["kind"], &entry["actor"]))
        .collect();
    let entry = |action: &str, kind: &str| (json!(action), json!(kind), json!("erin"));
    let expected = [
        entry("allow-removed", "model_io"),
        entry("allow-removed", "pack"),
        entry("add", "model_io"),
        entry("add", "pack"),
    ];
    assert_eq!(said, expected.iter().map(|(action, kind, actor)| (action, kind, actor)).collect::<Vec<_>>());
    // Both captures of the session are free, though only one came back.
    assert_eq!(digests(&sandbox), 0);
    assert_eq!(sandbox.run(["tombstones"]).expect(0).stdout, "");
    sandbox.run(["add".as_ref(), repository("examples").as_os_str()]).expect(0);
    assert_eq!(sandbox.run(["log", "--verify-from", &"0".repeat(64)]).status, 0);
    assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
    // It can be removed again, and is refused again.
    sandbox.run(["rm", SESSION, "--with-containers", "--force"]).expect(0);
    sandbox.run(["add".as_ref(), repository("examples/session.json").as_os_str()]).expect(1);
    assert_eq!(digests(&sandbox), 5);
    // An import may take it back as well.
    let (sandbox, core) = removed();
    sandbox.run(["import", "b.rvz", "--allow-removed"]).expect(0);
    sandbox.run(["get", &core]).expect(0);
    let would = sandbox.run(["add", "s.json", "--allow-removed", "--dry-run"]).expect(0);
    assert!(would.stderr.contains("1 seen again"), "{}", would.stderr);
}

#[test]
fn a_dry_run_says_what_would_be_taken_back() {
    let (sandbox, _) = removed();
    let before = rows(&sandbox);
    let would = sandbox.run(["add", "s.json", "p", "--allow-removed", "--dry-run"]).expect(0);
    assert_eq!(
        would.stdout.lines().filter(|line| line.starts_with("would add")).count(),
        2,
        "{}",
        would.stdout
    );
    assert_eq!(rows(&sandbox), before);
}

#[test]
fn fail_fast_stops_at_what_was_removed() {
    let (sandbox, _) = removed();
    for name in ["a.json", "z.json"] {
        sandbox.write(name, session(name, &[("p", "r")]));
    }
    sandbox.write("zz.json", "{\"model_io_schema_version\": 1}");
    let stopped = sandbox.run(["add", "--fail-fast", "a.json", "s.json", "z.json", "zz.json"]).expect(1);
    assert!(
        stopped.stderr.contains("1 added") && stopped.stderr.contains("1 rejected"),
        "{}",
        stopped.stderr
    );
    assert!(stopped.stderr.contains("2 documents after it were not examined"), "{}", stopped.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 1);
    // One that breaks a rule comes before it.
    let stopped = sandbox.run(["add", "--fail-fast", "zz.json", "s.json", "z.json"]).expect(1);
    assert!(stopped.stderr.contains("2 documents after it were not examined"), "{}", stopped.stderr);
}

#[test]
fn repairing_does_not_bring_it_back() {
    let sandbox = examples();
    sandbox.run(["backup", "old.vault"]).expect(0);
    sandbox.run(["rm", SESSION, "--with-containers", "--force"]).expect(0);
    // Something else is lost, so that captures are looked for.
    sql(&sandbox)
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             DELETE FROM capture WHERE artifact =
               (SELECT a.id FROM artifact a JOIN kind k ON k.id = a.kind WHERE k.name = 'rpk')",
        )
        .unwrap();
    let lost = sandbox.run(["fsck"]).expect(1).stdout;
    let names_it = |line: &str| line.starts_with("missing-row capture sha256:") && line.contains(RUN);
    assert!(lost.lines().any(names_it), "{lost}");
    let examples = repository("examples");
    for from in [sandbox.path("old.vault"), examples] {
        sandbox.run(["fsck".as_ref(), "--repair".as_ref(), "--from".as_ref(), from.as_os_str()]);
    }
    assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
    sandbox.run(["get", RUN]).expect(0);
    sandbox.run(["index", "rebuild"]).expect(0);
    for gone in [SESSION, PACK] {
        assert!(sandbox.run(["get", gone]).expect(1).stderr.contains("was removed on"));
    }
    assert_eq!(sandbox.run(["tombstones"]).expect(0).stdout.lines().count(), 2);
}

#[test]
fn what_is_refused_gets_into_no_dictionary() {
    let sandbox = Sandbox::new();
    let secret = |number: u64| {
        session("wordy", &[(&format!("{number}"), &format!("TOP SECRET PROJECT NIGHTINGALE {number}"))])
    };
    for number in 0..50 {
        sandbox.write(&format!("d/{number}.json"), secret(number));
    }
    let cores = sandbox.add([sandbox.path("d")]);
    sandbox.run(std::iter::once("rm").chain(cores.iter().map(String::as_str))).expect(0);
    sandbox.run(["gc"]).expect(0);
    assert_eq!(count(&sql(&sandbox), "dictionary"), 0);
    for number in 0..300 {
        sandbox.write(&format!("d/x{number}.json"), wordy(number));
    }
    let ran = sandbox.run(["add", "d"]).expect(1);
    assert!(ran.stderr.contains("300 added") && ran.stderr.contains("50 rejected"), "{}", ran.stderr);
    assert!(!is_somewhere(&sandbox, b"PROJECT NIGHTINGALE"));
    expect_whole(&sandbox);
}

#[test]
fn a_dictionary_is_replaced_though_the_artifact_came_back_in_another_form() {
    let sandbox = Sandbox::new();
    for number in 0..150_u64 {
        // What is not hashed differs: the same artifact may have another byte form.
        let text = wordy(number);
        let text = if number % 3 == 0 {
            text.replacen('{', "{\"note\": \"TOP SECRET PROJECT NIGHTINGALE\", ", 1)
        } else {
            text
        };
        sandbox.write(&format!("d/{number}.json"), text);
    }
    let cores = sandbox.add([sandbox.path("d")]);
    assert!(is_somewhere(&sandbox, b"PROJECT NIGHTINGALE"), "the dictionary has it");
    sandbox.run(std::iter::once("rm").chain(cores.iter().map(String::as_str))).expect(0);
    for number in 0..150_u64 {
        sandbox.write(&format!("e/{number}.json"), wordy(number));
    }
    sandbox.run(["add", "e", "--allow-removed"]).expect(0);
    assert_eq!(count(&sql(&sandbox), "tombstone"), 0);
    let told = sandbox.run(["gc", "--dry-run", "--json"]).expect(0).json().remove(0);
    assert_eq!(told["has_removals"], true);
    sandbox.run(["gc"]).expect(0);
    assert!(!is_somewhere(&sandbox, b"PROJECT NIGHTINGALE"));
    expect_whole(&sandbox);
}

#[test]
fn tombstones_are_listed() {
    let (sandbox, core) = removed();
    take_back(&sandbox, "examples/trace.ndjson");
    let trace = sandbox.run(["find", "traces", "--json"]).expect(0).json().remove(0)["core_hash"].clone();
    sandbox.run(["rm", trace.as_str().unwrap()]).expect(0);
    let lines = sandbox.run(["tombstones", "--json"]).expect(0).json();
    assert_eq!(lines.iter().map(|line| &line["core_hash"]).collect::<Vec<_>>(), [&json!(core), &trace]);
    assert_eq!((&lines[0]["actor"], &lines[0]["reason"]), (&json!("dana"), &json!("it names a customer")));
    assert_eq!(lines[1]["reason"], Value::Null);
    let text = sandbox.run(["tombstones", "--kind", "trace"]).expect(0).stdout;
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains(" trace    2"), "{text}");
    // What is in the vault again has none, whatever an earlier version left.
    sandbox.run(["add", "s.json", "--allow-removed"]).expect(0);
    assert_eq!(sandbox.run(["tombstones", "--json"]).expect(0).json().len(), 1);
    let entry = "(SELECT max(seq) FROM journal WHERE entry ->> 'action' = 'remove')";
    let core: runvault::digest::Digest = core.parse().unwrap();
    let forged = format!("INSERT INTO tombstone VALUES (?1, {entry}, 0, ?1, 'trace', NULL, NULL, 0, 0)");
    sql(&sandbox).execute(&forged, [core.as_bytes()]).unwrap();
    assert_eq!(sandbox.run(["tombstones", "--json"]).expect(0).json().len(), 1);
}
