//! Removing: what is refused, what remains, and that the bytes are gone.

pub(crate) mod bytes;
mod calendar;
mod containers;
mod policy;
mod taken_back;

use runvault::vault::journal::CheckJournalRequest;
use runvault::vault::show::ShowRequest;
use rusqlite::Connection;
use serde_json::json;

use crate::journal::sql;
use crate::output::steady;
use crate::sandbox::{Sandbox, repository, session};

const CONTRACT: &str = "5c496a37feba";
const PACK: &str = "54490aab8b3f";
const RUN: &str = "3941d389b337";
const SESSION: &str = "4df877dec7f4";
const SMALL: &str = "103ef1c54b58";
const PARTIAL: &str = "66c2f87e8153";
const TRACE: &str = "7c8de5910f63";

/// A sandbox with the shipped examples in a vault.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["--actor".as_ref(), "alice".as_ref(), "add".as_ref(), repository("examples").as_os_str()]);
    sandbox
}

fn told(sandbox: &Sandbox, commands: &[&[&str]]) -> String {
    let mut all = String::new();
    for arguments in commands {
        let ran = sandbox.run(["--actor", "alice"].iter().chain(*arguments));
        let (stdout, stderr, status) = (&ran.stdout, &ran.stderr, ran.status);
        all += &format!("$ runvault {}\n{stdout}{stderr}status {status}\n\n", arguments.join(" "));
    }
    steady(&all)
}

fn count(connection: &Connection, table: &str) -> u64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Whether everything in the vault can be read, and nothing refers to what is gone.
fn expect_whole(sandbox: &Sandbox) {
    let connection = sql(sandbox);
    let mut broken = connection.prepare("PRAGMA foreign_key_check").unwrap();
    assert!(!broken.exists([]).unwrap());
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    for artifact in vault.snapshot().unwrap().all_artifacts(None).unwrap() {
        let shown = vault.run(&ShowRequest { artifact: artifact.core }).unwrap();
        for capture in shown.captures {
            vault.snapshot().unwrap().read_members(artifact.core, capture.capture_hash).unwrap();
        }
    }
    let check = vault.run(&CheckJournalRequest::default()).unwrap();
    assert_eq!(check.defect, None);
}

#[test]
fn what_people_are_told() {
    let sandbox = examples();
    insta::assert_snapshot!(told(
        &sandbox,
        &[
            &["rm", SESSION],
            &["rm", SESSION, "--force"],
            &["rm", SESSION, "--with-containers"],
            &["rm", PACK, "--force", "--dry-run"],
            &["rm", TRACE, "--dry-run"],
            &["pin", "add", PARTIAL, "--note", "evidence"],
            &["pin", "add", PARTIAL, "--note", "evidence"],
            &["pin", "list"],
            &["rm", PARTIAL, TRACE, "--force"],
            &["pin", "remove", PARTIAL],
            &["pin", "remove", PARTIAL],
            &["rm", PARTIAL],
            &["rm", PARTIAL, TRACE, "--reason", "it names a customer"],
            &["get", TRACE],
            &["show", PARTIAL],
            &["links", PARTIAL],
            &["rm", TRACE],
            &["find", "--mentions", TRACE],
            &["tag", "set", SMALL, "baseline"],
            &["tag", "list"],
            &["rm", "@baseline"],
            &["get", "@baseline"],
            &["rm", "000000000000"],
            &["rm", CONTRACT, "--json", "--force"],
            &["rm", SESSION, "--with-containers", "--force", "--reason", "it names a customer", "--dry-run"],
            &["rm", SESSION, "--with-containers", "--force", "--reason", "it names a customer"],
            &["get", PACK],
            &["tombstones"],
            &["tombstones", "--kind", "contract", "--json"],
            &["tombstones", "--kind", "rpk"],
            &["log", "--action", "remove"],
            &["gc", "--dry-run"],
        ],
    ));
    expect_whole(&sandbox);
}

#[test]
fn a_tombstone_tells_removed_from_never_there() {
    let sandbox = examples();
    let shown = sandbox.run(["show", "--json", SESSION]).expect(0).json().remove(0);
    // The pack that has it goes first, with its own.
    sandbox.run(["rm", PACK, "--force"]).expect(0);
    sandbox.run(["rm", SESSION, "--force", "--reason", "r", "--actor", "bob"]).expect(0);
    let mut hashes = vec![shown["core_hash"].as_str().unwrap().to_owned()];
    hashes.extend(
        shown["captures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["capture_hash"].as_str().unwrap().to_owned()),
    );
    assert_eq!(hashes.len(), 3);
    for hash in &hashes {
        for hash in [hash.as_str(), &hash[..20]] {
            let gone = sandbox.run(["get", hash]).expect(1);
            assert!(
                gone.stderr.contains("was removed on") && gone.stderr.contains("by bob: r"),
                "{}",
                gone.stderr
            );
        }
    }
    let connection = sql(&sandbox);
    let row = connection
        .query_row(
            "SELECT core_hash, kind, actor, reason FROM tombstones WHERE hash = ?1",
            [&hashes[2]],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .unwrap();
    let expected = (hashes[0].clone(), "model_io".to_owned(), "bob".to_owned(), "r".to_owned());
    assert_eq!(row, expected);
    // It may be added again on request, and then it is there.
    take_back(&sandbox, "examples/session.json");
    sandbox.run(["get", SESSION]).expect(0);
    sandbox.run(["rm", SESSION, "--force", "--reason", "again"]).expect(0);
    assert!(sandbox.run(["get", SESSION]).expect(1).stderr.contains("again"));
    let entry = sandbox.run(["log", "--action", "remove", "--json"]).expect(0).json().remove(1);
    assert_eq!(entry["entry"]["captures"].as_array().unwrap().len(), 2);
    assert_eq!((&entry["entry"]["left"], &entry["entry"]["kind"]), (&json!(0), &json!("model_io")));
}

#[test]
fn removing_takes_everything_that_belongs_to_an_artifact() {
    let sandbox = examples();
    let tables = [
        "artifact",
        "blob",
        "payload",
        "capture",
        "member",
        "mention_list",
        "attribute",
        "attribute_value",
        "identity",
        "name_mention",
        "unresolved_reference",
        "link",
        "tag",
        "pin",
        "mention_bucket",
    ];
    sandbox.run(["link", "add", CONTRACT, "governs", SMALL]).expect(0);
    sandbox.run(["tag", "set", PACK, "p"]).expect(0);
    let all = [CONTRACT, PACK, RUN, SESSION, SMALL, PARTIAL, TRACE];
    // Together they may go: nothing that stays links to them.
    sandbox.run(["rm"].iter().chain(&all)).expect(0);
    let connection = sql(&sandbox);
    for table in tables {
        let left = match table {
            "mention_bucket" => connection
                .query_row("SELECT coalesce(sum(length(bytes)), 0) FROM mention_bucket", [], |row| row.get(0))
                .unwrap(),
            table => count(&connection, table),
        };
        assert_eq!(left, 0, "{table}");
    }
    assert_eq!(count(&connection, "tombstone"), 7 + 8);
    expect_whole(&sandbox);
    // The same files make the same vault again.
    take_back(&sandbox, "examples");
    expect_whole(&sandbox);
    assert_eq!(sandbox.run(["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
}

#[test]
fn what_artifacts_share_stays() {
    let sandbox = examples();
    let session_bytes = std::fs::read(repository("examples/session.json")).unwrap();
    // The session is in the pack; without the pack, it is still whole.
    sandbox.run(["rm", PACK, "--force"]).expect(0);
    assert_eq!(sandbox.run(["get", SESSION]).expect(0).stdout.into_bytes(), session_bytes);
    expect_whole(&sandbox);
    // Two packs with the same session.
    take_back(&sandbox, "examples/pack");
    copy_directory(&repository("examples/pack"), &sandbox.path("other"));
    let evidence = sandbox.path("other/evidence.json");
    if std::fs::remove_file(evidence).is_ok() {
        let other = sandbox.run(["add", "--json", "other"]).json();
        if let Some(other) = other.first().and_then(|line| line["core_hash"].as_str()) {
            sandbox.run(["rm", PACK, "--force"]).expect(0);
            let member = sandbox.run(["get", other, "--member", "model_io.json"]).expect(0).stdout;
            assert_eq!(member.into_bytes(), session_bytes);
        }
    }
    expect_whole(&sandbox);
}

/// Adds something of the repository that was removed.
fn take_back(sandbox: &Sandbox, path: &str) {
    sandbox.run(["add".as_ref(), "--allow-removed".as_ref(), repository(path).as_os_str()]).expect(0);
}

fn copy_directory(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_capture_is_not_removed_alone() {
    let sandbox = examples();
    let shown = sandbox.run(["show", "--json", SESSION]).expect(0).json().remove(0);
    let capture = shown["captures"][1]["capture_hash"].as_str().unwrap().to_owned();
    let refused = sandbox.run(["rm", &capture, "--force"]).expect(3);
    assert!(refused.stderr.contains("is a capture of"), "{}", refused.stderr);
    sandbox.run(["get", &capture]).expect(0);
}

#[test]
fn all_are_removed_or_none() {
    let sandbox = examples();
    sandbox.run(["rm", SMALL, SESSION]).expect(1);
    sandbox.run(["rm", SMALL, "000000000000"]).expect(1);
    sandbox.run(["pin", "add", SMALL]).expect(0);
    sandbox.run(["rm", TRACE, SMALL, "--force"]).expect(1);
    assert_eq!(sandbox.run(["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
    sandbox.run(["rm", TRACE, TRACE]).expect(0);
}

#[test]
fn tags_stand_for_artifacts() {
    let sandbox = examples();
    sandbox.run(["tag", "set", SESSION, "base"]).expect(0);
    assert_eq!(sandbox.run(["tag", "set", SESSION, "@base"]).expect(0).stderr, "already tagged\n");
    for arguments in [
        &["get", "@base"][..],
        &["show", "@base"],
        &["links", "@base"],
        &["path", "@base", PACK],
        &["pin", "add", "@base"],
        &["pin", "remove", "@base"],
    ] {
        sandbox.run(arguments).expect(0);
    }
    let moved = sandbox.run(["tag", "set", SMALL, "base"]).expect(0).stderr;
    assert_eq!(moved, format!("tagged; @base was {SESSION}\n"));
    let tags = sandbox.run(["tag", "list", "--json"]).expect(0).json();
    assert_eq!(tags.len(), 1);
    assert!(tags[0]["core_hash"].as_str().unwrap().contains(SMALL));
    sandbox.run(["tag", "remove", "base"]).expect(0);
    sandbox.run(["tag", "remove", "base"]).expect(1);
    sandbox.run(["get", "@base"]).expect(1);
    sandbox.run(["tag", "set", SMALL, "no spaces"]).expect(3);
    sandbox.run(["get", "@\u{1b}"]).expect(3);
}

/// Sessions that are recordings of one run: each is stored as a difference to the first.
fn recordings(sandbox: &Sandbox, count: usize) -> Vec<String> {
    let exchanges: Vec<(String, String)> =
        (0..30).map(|number| (format!("prompt {number}"), format!("response {number}"))).collect();
    (0..count)
        .map(|recording| {
            let mut exchanges: Vec<(&str, &str)> =
                exchanges.iter().map(|(prompt, response)| (prompt.as_str(), response.as_str())).collect();
            let own = format!("own words of recording {recording}");
            exchanges[recording % 30].1 = &own;
            let text = session("same", &exchanges);
            sandbox.add([sandbox.write(&format!("r/{recording}.json"), text)]).remove(0)
        })
        .collect()
}

#[test]
fn what_is_stored_as_a_difference_survives_its_base() {
    let sandbox = Sandbox::new();
    let mut cores = recordings(&sandbox, 6);
    let differences = |sandbox: &Sandbox| count(&sql(sandbox), "payload WHERE base IS NOT NULL");
    assert_eq!(differences(&sandbox), 5);
    let mut number = 0;
    while cores.len() > 1 {
        // Always the base, which the others are differences to.
        sandbox.run(["rm", &cores.remove(0)]).expect(0);
        number += 1;
        expect_whole(&sandbox);
        assert_eq!(differences(&sandbox), cores.len() as u64 - 1, "the next one is the base");
        for (offset, core) in cores.iter().enumerate() {
            let original =
                std::fs::read_to_string(sandbox.path(&format!("r/{}.json", number + offset))).unwrap();
            assert_eq!(sandbox.run(["get", core]).expect(0).stdout, original);
            let prompt = format!("prompt {}", 29 - offset);
            let found = sandbox.run(["find", "--prompt", &prompt, "--json"]).expect(0).json();
            assert!(found.len() >= cores.len() - 1, "lists of mentions still fit");
        }
    }
    // In one go, with the differences among what goes.
    let sandbox = Sandbox::new();
    let cores = recordings(&sandbox, 6);
    sandbox.run(["rm", &cores[3], &cores[0], &cores[5]]).expect(0);
    expect_whole(&sandbox);
    assert_eq!(differences(&sandbox), 2);
}
