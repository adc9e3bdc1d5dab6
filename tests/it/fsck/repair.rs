//! What can be repaired without guessing is repaired, and is clean after that.

use std::process::Stdio;

use super::{bytes_of, examples, findings, siblings, sql};
use crate::sandbox::{Sandbox, repository, session};

/// Changes a vault, repairs it, and gives what was done.
fn repaired(sandbox: &Sandbox, change: &str, from: &[&str]) -> String {
    sql(sandbox).execute_batch(change).unwrap();
    assert_ne!(findings(sandbox, &[]), "", "{change}");
    let arguments: Vec<&str> = from.iter().flat_map(|from| ["--from", from]).collect();
    let report = findings(sandbox, &[&["--repair"], arguments.as_slice()].concat());
    format!("{change}\n{report}\n")
}

#[test]
fn what_the_vault_itself_proves_is_repaired() {
    let mut reports = String::new();
    for change in [
        "DELETE FROM attribute; DELETE FROM mention_list",
        "UPDATE mention_bucket SET bytes = x'ff'",
        "UPDATE mention_bucket SET bytes = x'ff'; DELETE FROM mention_list",
        "UPDATE capture SET seal = zeroblob(16), size = 1, warnings = 'x', added_at = 7",
        "UPDATE artifact SET added_at = 7 WHERE id = 2",
        "UPDATE blob SET size = size + 1 WHERE id IN (SELECT blob FROM payload WHERE encoding = 0)",
        "UPDATE artifact SET core = zeroblob(32) WHERE id IN (1, 2)",
        "UPDATE blob SET digest = zeroblob(32) WHERE id = 1",
        "UPDATE blob SET digest = zeroblob(32) WHERE id = (SELECT blob FROM member WHERE name = 'policy.json')",
        "UPDATE artifact SET kind = 1 + kind % 2 WHERE id = 1",
        "UPDATE capture SET artifact = 2 WHERE artifact = 1",
        "DELETE FROM artifact WHERE id = 1",
        "DELETE FROM capture WHERE artifact = 1",
        "DELETE FROM kind",
        "INSERT INTO blob (digest, size) VALUES (zeroblob(32), 1);
         INSERT INTO payload (blob, encoding, bytes) SELECT max(id), 0, x'00' FROM blob",
        "INSERT INTO blob (digest, size) SELECT digest, size FROM blob WHERE id = 1",
        "DELETE FROM role",
        "INSERT INTO member SELECT c.id, 'a', c.blob FROM capture c WHERE c.blob IS NOT NULL LIMIT 1",
    ] {
        let sandbox = examples();
        reports += &repaired(&sandbox, change, &[]);
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn lost_bytes_come_back_from_another_vault_and_from_files() {
    let other = examples();
    let of_other = ["4df877dec7f4", "5c496a37feba", "3941d389b337", "7c8de5910f63"]
        .map(|core| (core, other.run(["get", core]).expect(0).stdout));
    for change in [
        "UPDATE payload SET bytes = x'00'",
        "DELETE FROM payload",
        "UPDATE payload SET digests = NULL, encoding = 1",
        "DELETE FROM member",
        "DELETE FROM capture; DELETE FROM blob; DELETE FROM payload; DELETE FROM member; DELETE FROM artifact;
         DELETE FROM mention_list; DELETE FROM attribute; DELETE FROM identity; DELETE FROM name_mention",
    ] {
        for from in [other.vault(), repository("examples")] {
            let sandbox = examples();
            let report = repaired(&sandbox, change, &[from.to_str().unwrap()]);
            assert_eq!(findings(&sandbox, &[]), "", "{report}");
            for (core, bytes) in &of_other {
                assert_eq!(sandbox.run(["get", core]).expect(0).stdout, *bytes);
            }
        }
    }
}

#[test]
fn what_differs_from_lost_bytes_is_readable_when_they_are_restored() {
    let change = "UPDATE payload SET bytes = x'00' WHERE base IS NULL";
    let sandbox = siblings();
    let others = Sandbox::new();
    others.write("files/first.json", std::fs::read(sandbox.path("a.json")).unwrap());
    let report = repaired(&sandbox, change, &[others.path("files").to_str().unwrap()]);
    assert!(report.matches("restored").count() == 1, "{report}");
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn bytes_come_back_from_archives() {
    let sandbox = examples();
    sandbox.run(["get", "54490aab8b3f", "-o", "files/pack.tar.gz"]);
    std::fs::create_dir_all(sandbox.path("files")).unwrap();
    sandbox.run(["get", "54490aab8b3f", "-o", "files/pack.tar.gz"]).expect(0);
    let change = "UPDATE payload SET bytes = x'00' WHERE blob IN (SELECT blob FROM member)";
    repaired(&sandbox, change, &[sandbox.path("files").to_str().unwrap()]);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn what_cannot_be_repaired_is_said() {
    let sandbox = examples();
    let report = repaired(&sandbox, "UPDATE payload SET bytes = x'00' WHERE blob = 1", &[]);
    assert!(report.contains("\ndamaged-bytes | blob sha256:"), "{report}");
    let sandbox = examples();
    let report = repaired(&sandbox, "UPDATE journal SET size = 1 WHERE seq = 2", &[]);
    assert!(report.contains("\nbroken-chain | entry 2"), "{report}");
    let ran = sandbox.run(["fsck"]).expect(1);
    assert!(ran.stdout.contains("What to do: "), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_repaired_does_not_stop_the_rest() {
    let sandbox = examples();
    let from = repository("examples");
    let change = "UPDATE journal SET size = 1 WHERE seq = 2; UPDATE payload SET bytes = x'00' WHERE blob = 1";
    let report = repaired(&sandbox, change, &[from.to_str().unwrap()]);
    assert!(
        report.contains("\nrepaired: restored | blob ") && report.contains("\nbroken-chain | "),
        "{report}"
    );
}

#[test]
fn tables_and_views_are_as_this_program_defines_them_again() {
    let find = ["find", "--json", "--sort", "core"];
    for change in [
        "DROP TABLE identity",
        "DROP TABLE mention_list; DROP VIEW tags",
        "DROP INDEX blob_by_digest; CREATE INDEX blob_by_digest ON blob (size)",
        "DROP TABLE note; CREATE TABLE note (artifact, text)",
    ] {
        let sandbox = examples();
        let before = sandbox.run(find).expect(0).stdout;
        repaired(&sandbox, change, &[]);
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
        assert_eq!(sandbox.run(find).expect(0).stdout, before, "{change}");
    }
}

#[test]
fn a_damaged_file_is_kept_beside_the_vault() {
    let sandbox = examples();
    sql(&sandbox).execute_batch("DROP TABLE identity").unwrap();
    let damaged = bytes_of(&sandbox);
    let report = findings(&sandbox, &["--repair"]);
    assert!(
        report.contains("repaired: kept: it is the damaged file | file v.vault.damaged-1 | "),
        "{report}"
    );
    let kept = std::fs::read(sandbox.path("v.vault.damaged-1")).unwrap();
    // What SQLite counts in the header may differ.
    assert!(kept.len() == damaged.len() && kept[100..] == damaged[100..]);
    #[cfg(unix)]
    {
        let metadata = std::fs::metadata(sandbox.path("v.vault.damaged-1")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o600);
    }
    let files = std::fs::read_dir(sandbox.vault().parent().unwrap()).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("unfinished")), "{names:?}");
}

/// What was deleted is in the damaged file, and nowhere in the one that takes its place.
#[test]
fn nothing_that_was_removed_is_in_the_new_file() {
    let sandbox = examples();
    // As another program deletes: without overwriting.
    let change = "PRAGMA secure_delete = OFF; CREATE TABLE secret (x); INSERT INTO secret VALUES (zeroblob(20000) || 'a-secret');
                  DROP TABLE secret; DROP TABLE identity";
    sql(&sandbox).execute_batch(change).unwrap();
    let has_it = |bytes: &[u8]| bytes.windows(8).any(|part| part == b"a-secret");
    assert!(has_it(&bytes_of(&sandbox)));
    findings(&sandbox, &["--repair"]);
    assert_eq!(findings(&sandbox, &[]), "");
    assert!(!has_it(&bytes_of(&sandbox)));
}

#[test]
fn every_repair_is_in_the_journal() {
    let sandbox = examples();
    repaired(
        &sandbox,
        "UPDATE payload SET bytes = x'00' WHERE blob = 1; DELETE FROM attribute",
        &[repository("examples").to_str().unwrap()],
    );
    let mut actions: Vec<String> = Vec::new();
    let connection = sql(&sandbox);
    let mut entries = connection.prepare("SELECT entry FROM journal_entries ORDER BY seq").unwrap();
    for entry in entries.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        let entry: serde_json::Value = serde_json::from_str(&entry.unwrap()).unwrap();
        let (action, did) = (entry["action"].as_str().unwrap(), entry["did"].as_str().unwrap_or_default());
        actions.push(format!("{action} {did}").trim().to_owned());
    }
    actions.retain(|action| action != "add");
    assert_eq!(
        actions,
        [
            "repair restored",
            "repair written from the journal again",
            "repair removed what belongs to nothing",
            "reindex"
        ]
    );
}

/// The number of a lost blob still has a payload, which a new blob must not get.
#[test]
fn captures_whose_blobs_were_lost_are_replaced_in_one_step() {
    let other = examples();
    let vault = other.vault();
    for change in
        ["DELETE FROM blob WHERE id = 1", "DELETE FROM blob WHERE id > (SELECT max(id) - 2 FROM blob)"]
    {
        let sandbox = examples();
        // Without the bytes, nothing is dropped.
        let report = repaired(&sandbox, change, &[]);
        assert!(!report.contains("removed bytes"), "{report}");
        let report = findings(&sandbox, &["--repair", "--from", vault.to_str().unwrap()]);
        assert!(report.lines().all(|line| line.starts_with("repaired")), "{change}\n{report}");
        assert_eq!(findings(&sandbox, &[]), "");
        for core in ["4df877dec7f4", "5c496a37feba", "3941d389b337", "7c8de5910f63"] {
            let get = |sandbox: &Sandbox| sandbox.run(["get", core]).expect(0).stdout;
            assert_eq!(get(&sandbox), get(&other), "{change}");
        }
        let orphans = "SELECT count(*) FROM payload WHERE blob NOT IN (SELECT id FROM blob)";
        assert_eq!(sql(&sandbox).query_row(orphans, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}

#[test]
fn a_lost_row_of_a_blob_is_restored_without_another_vault() {
    let sandbox = examples();
    let change = "DELETE FROM blob WHERE id = (SELECT min(blob) FROM capture)";
    repaired(&sandbox, change, &[]);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn reading_an_artifact_whose_blob_was_lost_names_the_check() {
    let sandbox = examples();
    let core = sql(&sandbox)
        .query_row(
            "SELECT hex(a.core) FROM artifact a JOIN capture c ON c.artifact = a.id WHERE c.blob = 1",
            [],
            |row| row.get::<_, String>(0),
        )
        .unwrap();
    sql(&sandbox).execute_batch("DELETE FROM blob WHERE id = 1").unwrap();
    let ran = sandbox.run(["get", &core.to_lowercase()]).expect(2);
    assert!(ran.stderr.contains("is damaged") && ran.stderr.contains("\"runvault fsck\""), "{}", ran.stderr);
}

/// A vault whose file is damaged, with what it answered before.
fn damaged() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    for number in 0..40 {
        sandbox.write(&format!("d/{number}.json"), session(&format!("adapter-{number}"), &[("p", "r")]));
    }
    sandbox.run(["add", "d"]).expect(0);
    let before = sandbox.run(FIND).expect(0).stdout;
    sql(&sandbox).execute_batch("DROP TABLE name_mention; DELETE FROM attribute").unwrap();
    (sandbox, before)
}

const FIND: [&str; 4] = ["find", "--json", "--sort", "core"];

#[test]
fn others_read_while_a_file_is_written_again_and_what_they_write_is_not_lost() {
    let (sandbox, before) = damaged();
    let reader = sql(&sandbox);
    let count =
        || reader.query_row("SELECT count(*) FROM attribute", [], |row| row.get::<_, i64>(0)).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count(), 0);
    for number in 0..20 {
        sandbox.write(&format!("e/{number}.json"), session(&format!("later-{number}"), &[("p", "r")]));
    }
    let mut adding = sandbox.command();
    let adding = adding.args(["add", "e"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    sandbox.run(["fsck", "--repair"]);
    // A state is read as long as it is held.
    assert_eq!(count(), 0);
    reader.execute_batch("COMMIT").unwrap();
    assert!(adding.unwrap().wait().unwrap().success());
    sandbox.run(["fsck", "--repair"]).expect(0);
    assert!(count() > 0);
    assert_eq!(findings(&sandbox, &[]), "");
    let after = sandbox.run(FIND).expect(0).stdout;
    assert!(before.lines().all(|line| after.contains(line)) && after.lines().count() == 60);
}

#[test]
fn a_repair_that_is_killed_does_no_harm() {
    for round in 0..8 {
        let (sandbox, before) = damaged();
        let mut repair = sandbox.command();
        let repair = repair.args(["fsck", "--repair"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut repair = repair.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30 * round));
        repair.kill().unwrap();
        repair.wait().unwrap();
        sandbox.run(["fsck", "--repair"]).expect(0);
        assert_eq!(findings(&sandbox, &[]), "", "round {round}");
        assert_eq!(sandbox.run(FIND).expect(0).stdout, before, "round {round}");
    }
}
