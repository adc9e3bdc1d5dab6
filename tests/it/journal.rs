//! The journal: what it says, that it proves what it says, and that others can check it.

use std::process::Command;

use runvault::intake::ExamineOptions;
use rusqlite::Connection;
use serde_json::Value;

use crate::output::steady;
use crate::sandbox::{Ran, Sandbox, repository, session};

/// Names that break whatever does not quote them.
const HOSTILE: &[&str] = &[
    "alice",
    "o'brien \"quoted\" \\ back/slash",
    "line\nbreak\r\ttab \u{8}\u{c}",
    "\u{1}\u{1f}\u{7f}\u{9b}\u{1b}[2J",
    "Zoë 名前 \u{1f600} \u{2028}\u{2029}\u{e000}\u{fffd}",
    "<script>&amp; %00 {} ]",
];

pub(crate) fn sql(sandbox: &Sandbox) -> Connection {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    Connection::open_with_flags(sandbox.vault(), flags).unwrap()
}

fn entries(sandbox: &Sandbox) -> Vec<(String, String)> {
    let connection = sql(sandbox);
    let mut statement = connection.prepare("SELECT entry, chain FROM journal_entries ORDER BY seq").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn said(ran: &Ran) -> String {
    format!("{}{}status {}\n", ran.stdout, ran.stderr, ran.status)
}

fn head(sandbox: &Sandbox) -> String {
    sandbox.run(["log", "--head"]).expect(0).stdout.trim().to_owned()
}

/// A vault in which everything that the journal knows has happened.
fn eventful() -> Sandbox {
    let sandbox = Sandbox::new();
    let act = |arguments: &[&str]| {
        sandbox.run(["--actor", "alice"].iter().chain(arguments)).expect(0);
    };
    act(&["add", repository("examples").to_str().unwrap()]);
    let (contract, trace, small) = ("5c496a37feba", "7c8de5910f63", "103ef1c54b58");
    act(&["link", "add", contract, "governs", trace, "--note", "agreed on \"Monday\""]);
    act(&["link", "remove", contract, "governs", trace]);
    act(&["tag", "set", small, "baseline"]);
    act(&["tag", "remove", "baseline"]);
    act(&["pin", "add", small, "--note", "keep"]);
    act(&["pin", "remove", small]);
    act(&["tag", "set", small, "baseline"]);
    act(&["link", "add", contract, "governs", small]);
    act(&["rm", "@baseline", "--force", "--reason", "a \u{1b}[31mred\u{1b}[0m reason"]);
    sandbox
}

#[test]
fn it_says_what_was_done_when_and_by_whom() {
    let sandbox = eventful();
    let mut all = String::new();
    for arguments in [
        &["log"][..],
        &["log", "--action", "remove"],
        &["log", "--limit", "2"],
        &["log", "--action", "add", "--limit", "1"],
        &["log", "--until", "2020-01-01"],
        &["log", "--since", "1h", "--action", "tag"],
    ] {
        let ran = sandbox.run(arguments);
        all += &format!("$ runvault {}\n{}\n", arguments.join(" "), said(&ran));
    }
    insta::assert_snapshot!(steady(&all));
    let lines = sandbox.run(["log", "--json"]).expect(0).json();
    for (line, (entry, chain)) in lines.iter().zip(entries(&sandbox)) {
        assert_eq!(line["entry"], serde_json::from_str::<Value>(&entry).unwrap());
        assert_eq!(line["chain"], chain.as_str());
        assert_eq!(line["entry"]["actor"], "alice");
    }
    sandbox.run(["log", "--head", "--limit", "1"]).expect(3);
    sandbox.run(["log", "--verify-from", "12345678"]).expect(3);
}

#[test]
fn the_view_has_exactly_what_was_chained_whoever_acts() {
    let sandbox = Sandbox::new();
    for (number, actor) in HOSTILE.iter().enumerate() {
        let adapter = format!("adapter-{number}");
        let file = sandbox.write("s.json", session(&adapter, &[("p", &adapter)]));
        sandbox.run(["add".as_ref(), "--actor".as_ref(), (*actor).as_ref(), file.as_os_str()]).expect(0);
        let core = sandbox.run(["find", "--adapter", &adapter, "--json"]).expect(0).json();
        let core = core[0]["core_hash"].as_str().unwrap();
        sandbox.run(["pin", "add", core, "--note", actor, "--actor", actor]).expect(0);
    }
    let mut chain = vec![0; 32];
    let mut actors = Vec::new();
    for (text, stated) in entries(&sandbox) {
        chain.extend_from_slice(text.as_bytes());
        let digest = runvault::digest::Digest::from_content(&chain);
        assert_eq!(digest.to_string(), stated, "{text}");
        chain = digest.as_bytes().to_vec();
        let entry: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), text, "members are sorted");
        actors.push(entry["actor"].as_str().unwrap().to_owned());
    }
    let expected: Vec<&str> = HOSTILE.iter().flat_map(|actor| [*actor, *actor]).collect();
    assert_eq!(actors, expected);
    let printed = sandbox.run(["log"]).expect(0).stdout;
    assert!(!printed.contains('\u{1b}') && !printed.contains('\u{9b}'), "{printed}");
    let last = sandbox.run(["log", "--verify-from", &head(&sandbox)]).expect(0).stdout;
    assert!(last.starts_with("journal intact: entries 1–"), "{last}");
}

#[test]
fn a_nul_in_the_name_of_an_actor_is_chained_as_well() {
    use runvault::storage::Actor;
    use runvault::vault::journal::CheckJournalRequest;
    let sandbox = Sandbox::new();
    let vault = runvault::Vault::open_or_create(&sandbox.vault()).unwrap();
    let vault = vault.acting_as(Actor::new("nul \0 inside").unwrap());
    vault.add_document(session("a", &[("p", "r")]).into_bytes(), &ExamineOptions::default()).unwrap();
    assert_eq!(vault.run(&CheckJournalRequest::default()).unwrap().defect, None);
    let entry: Value = serde_json::from_str(&entries(&sandbox)[0].0).unwrap();
    assert_eq!(entry["actor"], "nul \0 inside");
    assert!(Actor::new("").is_err() && Actor::new("x".repeat(257)).is_err());
    Actor::new("x".repeat(256)).unwrap();
}

#[test]
fn the_actor_is_an_option_or_a_variable_or_the_user() {
    let sandbox = Sandbox::new();
    let add = |number: u32, arguments: &[&str], variables: &[(&str, &str)]| {
        let file = sandbox.write("s.json", session(&format!("{number}"), &[]));
        let mut command = sandbox.command();
        command.arg("add").arg(file).args(arguments).envs(variables.iter().copied());
        assert!(command.output().unwrap().status.success());
        let (entry, _) = entries(&sandbox).pop().unwrap();
        serde_json::from_str::<Value>(&entry).unwrap()["actor"].as_str().unwrap().to_owned()
    };
    assert_eq!(add(0, &["--actor", "option"], &[("RUNVAULT_ACTOR", "variable")]), "option");
    assert_eq!(add(1, &[], &[("RUNVAULT_ACTOR", "variable"), ("USER", "zoe")]), "variable");
    assert!(add(2, &[], &[("RUNVAULT_ACTOR", ""), ("USER", "zoe")]).starts_with("zoe@"));
    assert!(add(3, &[], &[]).contains('@'));
    let none = sandbox.run(["--actor", "", "tag", "list"]).expect(3);
    assert!(none.stderr.contains("the name of an actor must have 1 to 256 bytes"), "{}", none.stderr);
}

#[test]
fn a_head_that_was_written_down_proves_that_the_vault_only_grew() {
    let sandbox = Sandbox::new();
    sandbox.run(["--actor", "a", "add", repository("examples/trace.ndjson").to_str().unwrap()]).expect(0);
    let written_down = head(&sandbox);
    sandbox.run(["--actor", "a", "add", repository("examples").to_str().unwrap()]).expect(0);
    let check = |digest: &str| sandbox.run(["log", "--verify-from", digest]);
    let grown = check(&written_down).expect(0);
    assert!(grown.stdout.starts_with("journal intact: entry 1 unchanged, 8 added; the head is sha256:"));
    let all = check(&"0".repeat(64)).expect(0).stdout;
    assert!(all.starts_with("journal intact: no entries before, 9 added"), "{all}");
    let unknown = check(&"ab".repeat(32)).expect(1).stderr;
    assert!(unknown.contains("was never the head of this journal"), "{unknown}");
    let json = sandbox.run(["log", "--json", "--verify-from", &written_down]).expect(0).json();
    assert_eq!((&json[0]["ok"], &json[0]["since"]), (&true.into(), &1.into()));
    sandbox.run(["log", "--json", "--verify-from", &"ab".repeat(32)]).expect(1);
}

#[test]
fn what_head_prints_is_what_verify_from_accepts() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/trace.ndjson")]);
    let printed = sandbox.run(["log", "--head"]).expect(0);
    assert_eq!((printed.stdout.lines().count(), printed.stderr.as_str()), (1, ""));
    let check = |head: &str| sandbox.run(["log", "--verify-from", head]);
    // As a shell gives it, with and without quotes, and as it stands in a file.
    for head in [printed.stdout.trim(), &printed.stdout] {
        assert!(check(head).expect(0).stdout.starts_with("journal intact: entry 1 unchanged, 0 added"));
    }
    // What earlier versions printed.
    let numbered = format!("1 {}", printed.stdout);
    assert!(check(&numbered).expect(0).stdout.starts_with("journal intact: entry 1 unchanged, 0 added"));
    let other = format!("2 {}", printed.stdout);
    assert!(check(&other).expect(1).stderr.contains("was the head after entry 1, not after entry 2"));
    check("one sha256:00").expect(3);
}

#[test]
fn a_journal_that_is_intact_says_nothing_of_the_catalog_unless_that_was_compared() {
    let sandbox = eventful();
    let known = head(&sandbox);
    sandbox.run(["tag", "set", "5c496a37feba", "golden"]).expect(0);
    let whole = sandbox.run(["log", "--verify-from", &known, "--full"]).expect(0);
    let expected = "catalog matches the journal: 6 artifacts, 7 captures, 1 tag, 0 notes, 0 pins, 0 labels, 0 manual links, \
                    2 tombstones, 0 signatures\n";
    assert!(whole.stdout.ends_with(expected), "{}", whole.stdout);
    assert!(
        whole.stdout.starts_with("journal intact: entries 1–19 unchanged, 1 added; "),
        "{}",
        whole.stdout
    );
    let json = sandbox.run(["log", "--verify-from", &known, "--full", "--json"]).expect(0).json().remove(0);
    assert_eq!(
        (&json["catalog"]["artifacts"], &json["catalog"]["findings"]),
        (&6.into(), &serde_json::json!([]))
    );
    // An artifact is deleted without an entry.
    let change = "DELETE FROM capture WHERE artifact = 1; DELETE FROM tag; DELETE FROM artifact WHERE id = 1";
    sql(&sandbox).execute_batch(&format!("PRAGMA foreign_keys = OFF; {change}")).unwrap();
    let journal = sandbox.run(["log", "--verify-from", &known]).expect(0);
    assert!(!journal.stdout.contains("catalog") && !journal.stdout.contains("nothing was changed"));
    assert_eq!(journal.stderr, "only the journal was checked; --full compares the catalog with it\n");
    let full = sandbox.run(["log", "--verify-from", &known, "--full"]).expect(1);
    assert!(full.stdout.contains("missing-row capture sha256:"), "{}", full.stdout);
    assert!(full.stdout.contains("missing-row tag golden: tag: the journal records it"), "{}", full.stdout);
    assert!(full.stderr.contains("the catalog does not match the journal: 3 findings"), "{}", full.stderr);
    let json = sandbox.run(["log", "--verify-from", &known, "--full", "--json"]).expect(1).json().remove(0);
    assert_eq!((&json["ok"], json["catalog"]["findings"].as_array().unwrap().len()), (&false.into(), 3));
    sandbox.run(["log", "--full"]).expect(3);
}

#[test]
fn rewritten_history_is_seen() {
    let sandbox = eventful();
    let heads: Vec<String> = entries(&sandbox).into_iter().map(|(_, chain)| chain).collect();
    let pristine = std::fs::read(sandbox.vault()).unwrap();
    let mut all = String::new();
    for (change, from) in [
        // A time in the middle, before and after the head that is known.
        ("UPDATE journal SET at = at + 1 WHERE seq = 3", 1),
        ("UPDATE journal SET at = at + 1 WHERE seq = 3", 6),
        ("UPDATE journal SET actor = NULL WHERE seq = 2", 2),
        ("UPDATE journal SET actor = 'mallory' WHERE core IS NOT NULL", 0),
        ("UPDATE journal SET entry = replace(entry, 'Monday', 'Friday') WHERE seq = 9", 0),
        ("UPDATE journal SET chain = zeroblob(32) WHERE seq = 5", 4),
        ("DELETE FROM journal WHERE seq = 4", 0),
        ("DELETE FROM tombstone; DELETE FROM journal WHERE seq > 10", 9),
        ("DELETE FROM tombstone; DELETE FROM journal WHERE seq > 10", 12),
    ] {
        std::fs::write(sandbox.vault(), &pristine).unwrap();
        sql(&sandbox).execute_batch(change).unwrap();
        let ran = sandbox.run(["log", "--verify-from", &heads[from]]);
        all += &format!("{change}; head {}\n{}\n", from + 1, said(&ran));
    }
    // Heads differ with the time.
    for head in &heads {
        let digits = &head["sha256:".len()..];
        all = all.replace(digits, "(head)").replace(&digits[..12], "(head)");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn another_program_can_check_it() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let sandbox = eventful();
    let file = sandbox.write("s.json", session("hostile", &[]));
    sandbox.run(["add".as_ref(), "--actor".as_ref(), HOSTILE[4].as_ref(), file.as_os_str()]).expect(0);
    let verify = |digest: &str| -> Ran {
        let mut command = Command::new("python3");
        command.arg(repository("examples/verify_journal.py")).arg(sandbox.vault()).arg(digest);
        command.output().unwrap().into()
    };
    let known = entries(&sandbox)[2].1.clone();
    let whole = verify(&known).expect(0).stdout;
    assert!(whole.contains(&head(&sandbox)) && whole.contains("after entry 3"), "{whole}");
    assert!(verify(&"ab".repeat(32)).expect(1).stderr.contains("was never the head"));
    sql(&sandbox).execute_batch("UPDATE journal SET at = at + 1 WHERE seq = 2").unwrap();
    assert!(verify(&known).expect(1).stderr.contains("entry 2 was changed"));
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_a_new_vault_or_its_copies() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let vault = runvault::Vault::open_or_create(&sandbox.vault()).unwrap();
    vault.add_document(session("a", &[("p", "r")]).into_bytes(), &ExamineOptions::default()).unwrap();
    for ending in ["", "-wal", "-shm"] {
        assert_eq!(mode(&sandbox.path(&format!("v.vault{ending}"))), 0o600, "{ending}");
    }
    drop(vault);
}

#[test]
fn times_come_from_the_clock_that_a_test_fixes() {
    let mut sandbox = Sandbox::at("2024-02-29T23:59:59.999Z");
    sandbox.add([sandbox.write("a.json", session("a", &[("hello", "hi")]))]);
    sandbox.set_clock("1969-12-31T23:00:00+00:30");
    sandbox.run(["tag", "set", "latest", "old"]).expect(0);
    let times: Vec<_> = sandbox
        .run(["log", "--json"])
        .expect(0)
        .json()
        .iter()
        .map(|line| line["entry"]["at"].clone())
        .collect();
    assert_eq!(times, ["2024-02-29T23:59:59.999Z"; 2]);
    // Times never go back. Those before 1970 are times as well.
    sandbox.run(["--vault", "old.vault", "add", "--create", "a.json"]).expect(0);
    sandbox.run(["--vault", "old.vault", "tag", "set", "latest", "old"]).expect(0);
    let log = sandbox.run(["--vault", "old.vault", "log", "--json"]).expect(0).json();
    assert!(
        log.len() == 2 && log.iter().all(|line| line["entry"]["at"] == "1969-12-31T22:30:00.000Z"),
        "{log:?}"
    );
    sandbox.run(["--vault", "old.vault", "fsck"]).expect(0);
    sandbox.set_clock("yesterday");
    let ran = sandbox.run(["log"]).expect(3);
    assert!(ran.stderr.contains("RUNVAULT_TEST_CLOCK is not an RFC 3339 timestamp"), "{}", ran.stderr);
}

#[test]
fn the_history_of_an_artifact_begins_with_the_last_change() {
    let sandbox = eventful();
    let history = |arguments: &[&str]| {
        let shown = sandbox.run([&["show"], arguments, &["--history", "--json"]].concat()).expect(0);
        let entries = shown.json();
        let mut about = sandbox.run([&["log"], arguments, &["--json"]].concat()).expect(0).json();
        about.reverse();
        assert_eq!(entries, about);
        let actions = entries.iter().map(|entry| entry["entry"]["action"].as_str().unwrap().to_owned());
        actions.collect::<Vec<_>>()
    };
    assert_eq!(history(&["7c8de5910f63"]), ["unlink", "link", "add"]);
    // It was removed, and before that its tag and its link.
    let removed = history(&["103ef1c54b58"]);
    assert_eq!(removed, ["remove", "untag", "unlink", "link", "tag", "unpin", "pin", "untag", "tag", "add"]);
    let shown = sandbox.run(["show", "7c8de5910f63", "--history"]).expect(0);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert!(lines[0].contains(" unlink ") && lines[0].contains("by alice"), "{}", shown.stdout);
    assert!(lines[2].contains(" add ") && lines.len() == 3, "{}", shown.stdout);
    assert_eq!(shown.stderr, "3 entries\n");
    sandbox.run(["show", "abcdef", "--history"]).expect(1);
}
