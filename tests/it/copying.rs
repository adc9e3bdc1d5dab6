//! A copy of a vault is the same vault, wherever it is, or it cannot be mistaken for one.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runvault::Vault;
use runvault::storage::ErrorKind;
use runvault::vault::copy::{CopyAnswer, CopyError, CopyMode, CopyOptions, CopyRequest, CopyWatch};
use serde_json::Value;

use crate::sandbox::{Ran, Sandbox, repository, session};

const CLOCK: &str = "2026-03-01T12:00:00Z";

/// Questions whose answers say everything about a vault that does not depend on the engine.
const QUESTIONS: &[&[&str]] = &[
    &["find", "--json"],
    &["find", "--json", "--all-versions", "--sort", "core"],
    &["find", "--all-versions", "--sort", "added", "--by", "first-seen"],
    &["find", "--json", "--sort", "created", "--by", "created"],
    &["find", "--json", "--sort", "tokens"],
    &["find", "--prompt", "Summarise ticket 4711 in one sentence.", "--json"],
    &["show", "@best", "--json"],
    &["find", "--label", "ci=7", "--json"],
    &["find", "--note", "ärger", "--json"],
    &["list", "--json"],
    &["list", "--flat"],
    &["unresolved", "--json"],
    &["forks", "--json"],
    &["tag", "list", "--json"],
    &["label", "list", "--json"],
    &["pin", "list", "--json"],
    &["tombstones", "--json"],
    &["log", "--json"],
    &["log", "--head"],
    &["show", "4df877dec7f4", "--json"],
    &["show", "3941d389b337", "--json"],
    &["show", "54490aab8b3f"],
    &["show", "7c8de5910f63"],
    &["get", "4df877dec7f4"],
    &["links", "4df877dec7f4", "--depth", "3", "--json"],
    &["links", "5c496a37feba", "--json"],
    &["path", "54490aab8b3f", "4df877dec7f4"],
    &["view", "3941d389b337"],
    &["diff", "4df877dec7f4", "103ef1c54b58"],
    &["verify", "4df877dec7f4", "3941d389b337", "54490aab8b3f"],
];

/// Runs the program on the vault at an address.
fn on(sandbox: &Sandbox, address: &str, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command.env("RUNVAULT_VAULT", address).args(["--actor", "tester"]).args(arguments);
    // The credentials of the bucket of the tests, if there is one.
    command.envs(std::env::vars().filter(|(name, _)| name.starts_with("AWS_")));
    command.output().unwrap().into()
}

/// Fills the vault with the examples and the corpus, twice, and makes changes of every kind.
fn fill(sandbox: &mut Sandbox) {
    let (examples, corpus) = (repository("examples"), repository("tests/corpus"));
    for paths in [[&examples, &corpus], [&corpus, &examples]] {
        for path in paths {
            sandbox.run([OsStr::new("add"), path.as_os_str()]);
        }
        sandbox.set_clock("2026-03-02T12:00:00Z");
    }
    for arguments in [
        &["tag", "set", "4df877dec7f4", "best"][..],
        &["tag", "set", "103ef1c54b58", "best"],
        &["tag", "set", "7c8de5910f63", "gone"],
        &["note", "set", "4df877dec7f4", "Ein Ärgernis"],
        &["pin", "add", "3941d389b337", "--note", "keep"],
        &["label", "set", "4df877dec7f4", "ci=7", "commit=4f2a91c"],
        &["link", "add", "4df877dec7f4", "about", "3941d389b337"],
        &["link", "add", "4df877dec7f4", "about", "103ef1c54b58"],
        &["link", "remove", "4df877dec7f4", "about", "103ef1c54b58"],
        &["rm", "--force", "--reason", "names a customer", "7c8de5910f63"],
    ] {
        on(sandbox, "v.vault", arguments).expect(0);
    }
}

fn copy(sandbox: &Sandbox, from: &str, to: &str) -> Value {
    on(sandbox, "none", &["copy", from, to, "--json"]).expect(0).json().remove(0)
}

fn expect_same_answers(sandbox: &Sandbox, one: &str, other: &str) {
    for arguments in QUESTIONS {
        let (expected, found) = (on(sandbox, one, arguments), on(sandbox, other, arguments));
        assert_ne!(expected.status, 3, "{arguments:?}: {}", expected.stderr);
        assert_eq!(
            (found.status, &found.stdout),
            (expected.status, &expected.stdout),
            "{arguments:?}: {}",
            found.stderr
        );
    }
    let counts = |address| {
        let mut stats = on(sandbox, address, &["stats", "--json"]).expect(0).json().remove(0);
        // What the engine takes on disk is its own.
        let stats = stats.as_object_mut().unwrap();
        stats.retain(|key, _| {
            ["kinds", "days", "tags", "pins", "notes", "labels", "stated_links", "journal_entries"]
                .contains(&&**key)
        });
        Value::from(stats.clone())
    };
    assert_eq!(counts(one), counts(other));
}

#[test]
fn a_copy_into_an_empty_vault_is_the_same_vault() {
    let mut sandbox = Sandbox::at(CLOCK);
    fill(&mut sandbox);
    let copied = copy(&sandbox, "v.vault", "c.vault");
    assert_eq!((&copied["mode"], &copied["is_complete"]), (&"verbatim".into(), &true.into()));
    expect_same_answers(&sandbox, "v.vault", "c.vault");
    on(&sandbox, "c.vault", &["fsck", "--full"]).expect(0);
    // There is nothing left to copy, and both go on alike.
    let again = copy(&sandbox, "v.vault", "c.vault");
    assert_eq!((&again["captures"], &again["journal_head"]), (&0.into(), &copied["journal_head"]));
    for arguments in [&["tag", "set", "4df877dec7f4", "last"][..], &["rm", "--force", "103ef1c54b58"]] {
        for vault in ["v.vault", "c.vault"] {
            on(&sandbox, vault, arguments).expect(0);
        }
    }
    expect_same_answers(&sandbox, "v.vault", "c.vault");
    on(&sandbox, "c.vault", &["fsck", "--full"]).expect(0);
}

#[test]
fn a_head_that_was_written_down_is_proved_by_the_copy() {
    let mut sandbox = Sandbox::at(CLOCK);
    sandbox.run([OsStr::new("add"), repository("examples").as_os_str()]).expect(0);
    let head = on(&sandbox, "v.vault", &["log", "--head"]).expect(0).stdout;
    let head = head.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap().to_owned();
    fill(&mut sandbox);
    copy(&sandbox, "v.vault", "c.vault");
    let proved = |vault| on(&sandbox, vault, &["log", "--verify-from", &head]).expect(0).stdout;
    assert_eq!(proved("c.vault"), proved("v.vault"));
}

#[cfg(feature = "postgres")]
#[test]
fn a_vault_moves_to_a_database_and_back() {
    let Some(schema) = crate::postgres::Schema::new() else { return };
    let address = schema.address();
    let mut sandbox = Sandbox::at(CLOCK);
    fill(&mut sandbox);
    let there = copy(&sandbox, "v.vault", &address);
    assert_eq!((&there["mode"], &there["is_complete"]), (&"verbatim".into(), &true.into()));
    expect_same_answers(&sandbox, "v.vault", &address);
    let back = copy(&sandbox, &address, "back.vault");
    assert_eq!((&back["captures"], &back["journal_head"]), (&there["captures"], &there["journal_head"]));
    expect_same_answers(&sandbox, "v.vault", "back.vault");
    on(&sandbox, "back.vault", &["fsck", "--full"]).expect(0);
    for vault in [&*address, "back.vault", "v.vault"] {
        on(&sandbox, vault, &["rm", "--force", "103ef1c54b58"]).expect(0);
        on(&sandbox, vault, &["tag", "set", "4df877dec7f4", "last"]).expect(0);
    }
    expect_same_answers(&sandbox, "v.vault", &address);
    expect_same_answers(&sandbox, "v.vault", "back.vault");
}

#[cfg(feature = "objects")]
#[test]
fn a_vault_moves_through_object_storage() {
    use crate::postgres::{Place, Schema};

    let (Some(first), Some(second)) = (Schema::new(), Schema::new()) else { return };
    let (bucket, directory) = (Place::bucket().unwrap_or_else(Place::directory), Place::directory());
    let mut sandbox = Sandbox::at(CLOCK);
    fill(&mut sandbox);
    let (there, beyond) = (bucket.address_with(&first.address()), directory.address_with(&second.address()));
    for (from, to) in [("v.vault", &*there), (&there, &beyond), (&beyond, "back.vault")] {
        let copied = copy(&sandbox, from, to);
        assert_eq!((&copied["mode"], &copied["is_complete"]), (&"verbatim".into(), &true.into()));
        expect_same_answers(&sandbox, "v.vault", to);
        on(&sandbox, to, &["fsck", "--full"]).expect(0);
    }
    // What was removed from the source is in no object of a copy, and what is there is not uploaded again.
    let objects = || first.client().query_one("SELECT count(*) FROM object", &[]).unwrap().get::<_, i64>(0);
    let before = objects();
    let again = copy(&sandbox, &beyond, &there);
    assert_eq!((&again["captures"], objects()), (&0.into(), before));
    assert_eq!(
        on(&sandbox, &there, &["gc", "--dry-run"]).status,
        on(&sandbox, &beyond, &["gc", "--dry-run"]).status
    );
}

/// The bytes of a batch are one object, and entries that add to the vault are adopted in groups, between others.
#[cfg(feature = "objects")]
#[test]
fn an_object_whose_blobs_are_recorded_in_groups_has_its_whole_size() {
    use crate::postgres::{Place, Schema};

    let Some(schema) = Schema::new() else { return };
    let sandbox = Sandbox::at(CLOCK);
    for number in 0..12 {
        sandbox.write("s.json", session(&format!("s{number}"), &[("p", "r")]));
        sandbox.run(["add", "s.json"]).expect(0);
        sandbox.run(["tag", "set", "latest", &format!("t{number}")]).expect(0);
    }
    let there = Place::directory().address_with(&schema.address());
    copy(&sandbox, "v.vault", &there);
    on(&sandbox, &there, &["fsck"]).expect(0);
}

/// Adds captures with paths and without, one of them again from elsewhere, and one after its removal.
fn add_from_paths(sandbox: &Sandbox) {
    for (name, prompt) in [("a \"ä\".json", "a"), ("b.json", "b"), ("c.json", "c"), ("again/a.json", "a")] {
        sandbox.write(name, session("s", &[(prompt, "r")]));
        sandbox.run(["add", name]).expect(0);
    }
    sandbox.write("d.json", session("s", &[("d", "r")]));
    sandbox.run(["add", "--no-source-path", "d.json"]).expect(0);
    let hash = sandbox.run(["find", "--json", "--sort", "added"]).json()[0]["core_hash"].to_string();
    sandbox.run(["rm", "--force", hash.trim_matches('"')]).expect(0);
    sandbox.write("again/d.json", session("s", &[("d", "r")]));
    sandbox.run(["add", "--allow-removed", "again/d.json"]).expect(0);
}

/// Returns the paths of all captures.
fn paths(sandbox: &Sandbox, address: &str) -> Vec<String> {
    let columns = ["find", "--all-versions", "--sort", "core", "--columns", "hash,source_path"];
    on(sandbox, address, &columns).expect(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn paths_are_copied() {
    let sandbox = Sandbox::recording_source_paths();
    add_from_paths(&sandbox);
    let expected = paths(&sandbox, "v.vault");
    for path in ["a \"ä\".json", "b.json", "c.json", "again/d.json"] {
        assert!(expected.iter().any(|line| line.ends_with(path)), "{path}: {expected:?}");
    }
    copy(&sandbox, "v.vault", "c.vault");
    assert_eq!(paths(&sandbox, "c.vault"), expected);
    on(&sandbox, "c.vault", &["fsck", "--full"]).expect(0);
    // A vault with a history of its own keeps the paths that it has.
    on(&sandbox, "own.vault", &["add", "--create", "again/a.json"]).expect(0);
    copy(&sandbox, "v.vault", "own.vault");
    let merged: Vec<String> =
        expected.iter().map(|line| line.replace("a \"ä\".json", "again/a.json")).collect();
    assert_eq!(paths(&sandbox, "own.vault"), merged);
    on(&sandbox, "own.vault", &["fsck", "--full"]).expect(0);
}

#[cfg(feature = "postgres")]
#[test]
fn paths_are_copied_to_a_database_and_back() {
    let Some(schema) = crate::postgres::Schema::new() else { return };
    let sandbox = Sandbox::recording_source_paths();
    add_from_paths(&sandbox);
    let (address, expected) = (schema.address(), paths(&sandbox, "v.vault"));
    copy(&sandbox, "v.vault", &address);
    copy(&sandbox, &address, "back.vault");
    assert_eq!((paths(&sandbox, &address), paths(&sandbox, "back.vault")), (expected.clone(), expected));
    let heads =
        ["v.vault", &*address, "back.vault"].map(|vault| on(&sandbox, vault, &["log", "--head"]).stdout);
    assert!(heads.iter().all(|head| *head == heads[0]), "{heads:?}");
    on(&sandbox, "back.vault", &["fsck", "--full"]).expect(0);
}

/// Copies until this number of entries was read.
fn copy_some(from: &Vault, to: &Vault, entries: u64) -> Result<CopyAnswer, CopyError> {
    let read = AtomicU64::new(0);
    let is_stopped = || read.fetch_add(1, Ordering::Relaxed) >= entries;
    from.copy_to(to, CopyOptions::default(), CopyWatch { progress: &mut |_| {}, is_stopped: &is_stopped })
}

#[test]
fn an_interrupted_copy_is_no_vault_and_is_continued() {
    let mut sandbox = Sandbox::at(CLOCK);
    fill(&mut sandbox);
    let (from, path) = (Vault::open(&sandbox.vault()).unwrap(), sandbox.path("c.vault"));
    for step in [1, 10, 30] {
        let to = Vault::open_for_copy(&path).unwrap();
        assert!(!copy_some(&from, &to, step).unwrap().is_complete);
    }
    assert_eq!(Vault::open(&path).map(drop).unwrap_err().kind(), ErrorKind::Incomplete);
    for arguments in [
        &["find"][..],
        &["add", "--create", "v.vault"],
        &["fsck"],
        &["fsck", "--repair"],
        &["init"],
        &["backup", "b.vault"],
        &["log"],
        &["copy", "c.vault", "d.vault"],
    ] {
        let refused = on(&sandbox, "c.vault", arguments).expect(2);
        let is_named = refused.stderr.contains("incomplete copy") || arguments == ["init"];
        assert!(is_named, "{arguments:?}: {}", refused.stderr);
    }
    // Another vault is not mixed into it.
    let other = Vault::create(&sandbox.path("other.vault")).unwrap();
    let to = Vault::open_for_copy(&path).unwrap();
    assert!(matches!(copy_some(&other, &to, 1), Err(CopyError::OtherSource(_))));
    // The source goes on meanwhile, and loses what was copied.
    on(&sandbox, "v.vault", &["rm", "--force", "103ef1c54b58"]).expect(0);
    on(&sandbox, "v.vault", &["add", "--allow-removed", repository("examples").to_str().unwrap()]);
    let continued = copy(&sandbox, "v.vault", "c.vault");
    assert_eq!(continued["is_complete"], true);
    expect_same_answers(&sandbox, "v.vault", "c.vault");
    on(&sandbox, "c.vault", &["fsck", "--full"]).expect(0);
}

/// Kills copies into the vault at an address, until one is complete.
fn expect_survives_kills(sandbox: &Sandbox, to: &str) {
    for round in 0_u64.. {
        let mut command = sandbox.command();
        command.args(["copy", "v.vault", to]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Any moment is right.
        std::thread::sleep(Duration::from_millis(100 + round * 400));
        let _ = child.kill();
        let status = child.wait().unwrap();
        match Vault::open(Path::new(to)) {
            Ok(_) if status.success() => break,
            Ok(_) => {
                let head = |vault: &str| on(sandbox, vault, &["log", "--head"]).stdout;
                assert_eq!(head(to), head("v.vault"), "what is no whole copy cannot be opened");
            }
            Err(error) => {
                let is_known =
                    [ErrorKind::Incomplete, ErrorKind::Missing, ErrorKind::NotAVault].contains(&error.kind());
                assert!(is_known, "{error}");
            }
        }
    }
    for arguments in [&["find", "--json"][..], &["log", "--json"]] {
        let (expected, found) = (on(sandbox, "v.vault", arguments), on(sandbox, to, arguments));
        assert_eq!((found.status, found.stdout), (0, expected.stdout));
    }
}

/// Returns a sandbox with a vault of more than two batches.
fn with_many() -> Sandbox {
    let sandbox = Sandbox::at(CLOCK);
    for number in 0..2_500 {
        sandbox.write(&format!("d/{number:04}.json"), session(&format!("adapter-{number}"), &[("p", "r")]));
    }
    sandbox.run(["add", "d"]).expect(0);
    sandbox
}

#[test]
fn a_killed_copy_is_continued() {
    let sandbox = with_many();
    expect_survives_kills(&sandbox, sandbox.path("c.vault").to_str().unwrap());
    on(&sandbox, "c.vault", &["fsck", "--full"]).expect(0);
}

#[cfg(feature = "postgres")]
#[test]
fn a_killed_copy_into_a_database_is_continued() {
    let Some(schema) = crate::postgres::Schema::new() else { return };
    expect_survives_kills(&with_many(), &schema.address());
}

#[test]
fn what_another_vault_does_not_have_is_added_to_it() {
    let mut sandbox = Sandbox::at(CLOCK);
    fill(&mut sandbox);
    let example = repository("examples/session.json");
    for arguments in [
        &["add", "--create", example.to_str().unwrap()][..],
        &["tag", "set", "4df877dec7f4", "mine"],
        &["note", "set", "4df877dec7f4", "another note"],
        &["label", "set", "4df877dec7f4", "ci=8"],
    ] {
        on(&sandbox, "own.vault", arguments).expect(0);
    }
    let before = on(&sandbox, "own.vault", &["log", "--json"]).stdout;
    let merged = copy(&sandbox, "v.vault", "own.vault");
    assert_eq!(
        (&merged["mode"], &merged["is_complete"], &merged["rejected"]),
        (&"merged".into(), &true.into(), &0.into())
    );
    // Its own history is still there.
    let after = on(&sandbox, "own.vault", &["log", "--json"]).stdout;
    assert!(before.lines().count() == 4 && after.lines().count() > 50);
    let is_kept = before.lines().all(|line| after.contains(line));
    assert!(is_kept, "{after}");
    let cores = |vault| {
        on(&sandbox, vault, &["find", "--all-versions", "--sort", "core", "--columns", "hash"]).stdout
    };
    assert_eq!(cores("own.vault"), cores("v.vault"));
    let shown = on(&sandbox, "own.vault", &["show", "4df877dec7f4", "--json"]).json().remove(0);
    assert_eq!(shown["note"], "another note");
    assert_eq!(shown["labels"]["ci"], "8");
    assert_eq!(shown["labels"]["commit"], "4f2a91c");
    for name in ["@mine", "@best"] {
        on(&sandbox, "own.vault", &["show", name]).expect(0);
    }
    assert!(merged["annotations"]["kept"].as_u64() >= Some(2), "{merged}");
    on(&sandbox, "own.vault", &["fsck", "--full"]).expect(0);
    // Copying again changes nothing.
    let again = copy(&sandbox, "v.vault", "own.vault");
    assert_eq!((&again["captures"], &again["annotations"]["set"]), (&0.into(), &0.into()));
    assert_eq!(again["journal_head"], merged["journal_head"]);
}

#[test]
fn what_was_removed_from_another_vault_is_copied_only_if_asked() {
    let sandbox = Sandbox::at(CLOCK);
    sandbox.run([OsStr::new("add"), repository("examples/session.json").as_os_str()]).expect(0);
    for arguments in [
        &["add", "--create", repository("examples/session.json").to_str().unwrap()][..],
        &["rm", "--force", "4df877dec7f4"],
    ] {
        on(&sandbox, "own.vault", arguments).expect(0);
    }
    let refused = on(&sandbox, "none", &["copy", "v.vault", "own.vault"]).expect(1);
    assert!(
        refused.stderr.contains("not copied: ") && refused.stderr.contains("REMOVED"),
        "{}",
        refused.stderr
    );
    on(&sandbox, "own.vault", &["show", "4df877dec7f4"]).expect(1);
    on(&sandbox, "none", &["copy", "v.vault", "own.vault", "--allow-removed"]).expect(0);
    on(&sandbox, "own.vault", &["show", "4df877dec7f4"]).expect(0);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it damages the vault")]
fn damage_is_not_copied() {
    let sandbox = Sandbox::at(CLOCK);
    sandbox.run([OsStr::new("add"), repository("examples").as_os_str()]).expect(0);
    let connection = rusqlite::Connection::open(sandbox.vault()).unwrap();
    let change = |sql: &str| connection.execute_batch(sql).unwrap();
    // The catalog says that a capture was added at another time than the journal says.
    change("UPDATE capture SET added_at = added_at + 1 WHERE id = 1");
    let refused = on(&sandbox, "none", &["copy", "v.vault", "a.vault"]).expect(2);
    assert!(
        refused.stderr.contains("does not match its journal: the captures of sha256:"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains(" differ; the copy is not complete"), "{}", refused.stderr);
    assert_eq!(Vault::open(&sandbox.path("a.vault")).map(drop).unwrap_err().kind(), ErrorKind::Incomplete);
    change("UPDATE capture SET added_at = added_at - 1 WHERE id = 1");
    // An entry was changed.
    change("UPDATE journal SET at = at + 1 WHERE seq = 3");
    let refused = on(&sandbox, "none", &["copy", "v.vault", "b.vault"]).expect(2);
    assert!(refused.stderr.contains("entry 3 does not continue the journal"), "{}", refused.stderr);
    change("UPDATE journal SET at = at - 1 WHERE seq = 3");
    // Bytes were changed.
    change("UPDATE payload SET bytes = zeroblob(length(bytes)) WHERE blob = 2");
    on(&sandbox, "none", &["copy", "v.vault", "d.vault"]).expect(2);
    assert_eq!(Vault::open(&sandbox.path("d.vault")).map(drop).unwrap_err().kind(), ErrorKind::Incomplete);
}

#[test]
fn the_request_names_the_target_and_the_actor() {
    let sandbox = Sandbox::at(CLOCK);
    let from = Vault::open(&sandbox.vault()).unwrap();
    let to = sandbox.path("c.vault");
    let request = CopyRequest {
        to: to.clone(),
        allow_removed: false,
        without_source_paths: false,
        actor: Some("copier".to_owned()),
    };
    let copied = from.run(&request).unwrap();
    assert_eq!((copied.mode, copied.is_complete, copied.journal_entries), (CopyMode::Verbatim, true, 0));
    assert_eq!(copied.target.path, to.to_string_lossy());
    sandbox.run([OsStr::new("add"), repository("examples/session.json").as_os_str()]).expect(0);
    on(&sandbox, "c.vault", &["add", repository("examples/contract.yaml").to_str().unwrap()]);
    assert_eq!(from.run(&request).unwrap().captures, 1);
    let log = on(&sandbox, "c.vault", &["log", "--json"]).stdout;
    assert!(log.contains("\"copier\""), "{log}");
    let refused = on(&sandbox, "none", &["copy", "v.vault", "./v.vault"]).expect(3);
    assert!(refused.stderr.contains("the same vault"), "{}", refused.stderr);
}
