//! Each sort of damage is found.

use rusqlite::types::Value;

use super::{bytes_of, examples, findings, of_bytes, siblings, sql};
use crate::sandbox::{Sandbox, repository};

/// What is found after `change`.
fn after(sandbox: &Sandbox, change: &str) -> String {
    sql(sandbox).execute_batch(change).unwrap();
    format!("{change}\n{}\n", findings(sandbox, &[]))
}

#[test]
fn damage_is_named() {
    let mut reports = String::new();
    for change in [
        "UPDATE payload SET bytes = CAST(substr(bytes, 1, 20) || x'00' || substr(bytes, 22) AS BLOB) WHERE blob = 1",
        "DELETE FROM payload WHERE blob = 1",
        "UPDATE payload SET blob = CASE blob WHEN 1 THEN -2 WHEN 2 THEN -1 END WHERE blob IN (1, 2);
         UPDATE payload SET blob = -blob WHERE blob < 0",
        "UPDATE blob SET digest = zeroblob(32) WHERE id = 1",
        "UPDATE blob SET size = size + 1 WHERE id = 1",
        "INSERT INTO blob (digest, size) SELECT digest, size FROM blob WHERE id = 1",
        "UPDATE artifact SET core = zeroblob(32) WHERE id = 1",
        "UPDATE artifact SET kind = 1 + kind % 2 WHERE id = 1",
        "UPDATE capture SET artifact = 2 WHERE artifact = 1",
        "UPDATE capture SET seal = zeroblob(16) WHERE id = 1",
        "UPDATE capture SET warnings = '[]x' WHERE id = 1",
        "UPDATE capture SET added_at = 0 WHERE id = 1",
        "UPDATE capture SET size = 1 WHERE id = 1",
        "DELETE FROM capture WHERE id = 1",
        "DELETE FROM artifact WHERE id = 1",
        "DELETE FROM member WHERE name = 'policy.json'",
        "UPDATE kind SET name = 'another' WHERE id = 1",
        "UPDATE kind SET stated_by = 'another' WHERE id = 1",
        "UPDATE role SET relation = 'another' WHERE id = 1",
        "DELETE FROM role WHERE id = 1",
        "DELETE FROM attribute WHERE artifact = 1",
        "INSERT INTO attribute SELECT value, 1 FROM attribute WHERE artifact = 2",
        "UPDATE attribute_value SET value = 'another' WHERE id = 1",
        "UPDATE identity SET handle = 'run:another'",
        "DELETE FROM name_mention",
        "DELETE FROM mention_list WHERE capture = 2",
        "UPDATE mention_list SET bytes = x'ff' WHERE capture = 2",
        "UPDATE mention_bucket SET bytes = x'ff'",
        "UPDATE mention_bucket SET bytes = x'0101'",
        "DELETE FROM mention_bucket",
        "INSERT INTO mention_bucket VALUES (7 << 24, x'0101')",
        "UPDATE journal SET size = 1 WHERE seq = 2",
        "DELETE FROM journal WHERE seq = 2",
        "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
    ] {
        reports += &after(&examples(), change);
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn damage_to_what_others_need_is_named() {
    let mut reports = String::new();
    for change in [
        "UPDATE payload SET bytes = x'00' WHERE base IS NULL",
        "UPDATE payload SET base = 3 WHERE blob = 2",
        "DELETE FROM payload WHERE base IS NULL",
        "UPDATE payload SET encoding = 9 WHERE base IS NULL",
        "UPDATE payload SET digests = x'00' WHERE base IS NULL",
        "INSERT INTO dictionary (kind, begun, digest, bytes) VALUES (1, 0, zeroblob(32), x'00')",
        "DROP TABLE identity",
    ] {
        reports += &after(&siblings(), change);
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn columns_that_an_encoding_does_not_use_are_named_and_emptied() {
    for change in [
        "UPDATE payload SET digests = zeroblob(32) WHERE encoding = 1",
        "UPDATE payload SET dictionary = 7 WHERE encoding IN (0, 3)",
    ] {
        let sandbox = examples();
        let stats =
            |sandbox: &Sandbox| sandbox.run(["stats", "--json"]).expect(0).json()[0]["stored_bytes"].clone();
        let before = stats(&sandbox);
        let changed = sql(&sandbox).execute(change, []).unwrap();
        let found = findings(&sandbox, &["--quick"]);
        assert_eq!(
            found.matches(" | payload: its encoding does not use its digests, dictionary or base\n").count(),
            changed,
            "{change}\n{found}"
        );
        assert!(changed > 0);
        let repaired = findings(&sandbox, &["--repair"]);
        assert!(repaired.lines().all(|line| line.starts_with("repaired: ")), "{change}\n{repaired}");
        assert!(
            repaired.contains("repaired: removed what no encoding uses | table payload | "),
            "{repaired}"
        );
        assert_eq!(findings(&sandbox, &[]), "");
        assert_eq!(stats(&sandbox), before);
    }
}

#[cfg(unix)]
#[test]
fn a_vault_that_others_can_write_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = examples();
    let mode =
        |mode| std::fs::set_permissions(sandbox.vault(), std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    assert_eq!(findings(&sandbox, &[]), "");
    mode(0o666);
    assert_eq!(findings(&sandbox, &[]), "insecure-permissions | file v.vault | its mode is 0666\n");
    assert_eq!(findings(&sandbox, &["--repair"]), "repaired: closed to others | file v.vault | \n");
    assert_eq!(std::fs::metadata(sandbox.vault()).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn what_was_removed_is_not_missed() {
    let sandbox = examples();
    // The session with both of its captures, and the pack that it is in.
    sandbox.run(["rm", "4df877dec7f4", "--force", "--with-containers"]).expect(0);
    for arguments in [&[][..], &["--repair"]] {
        assert_eq!(findings(&sandbox, arguments), "");
    }
    // What comes back and is lost then is missed again.
    let session = repository("examples/session.json");
    sandbox.run(["add".as_ref(), "--allow-removed".as_ref(), session.as_os_str()]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
    sql(&sandbox).execute("DELETE FROM capture WHERE id = (SELECT max(id) FROM capture)", []).unwrap();
    assert!(findings(&sandbox, &[]).contains("missing-row | capture "));
    sandbox.run(["fsck", "--repair"]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
}

/// Tables all of whose rows matter.
const TABLES: &[&str] = &[
    "kind",
    "artifact",
    "blob",
    "payload",
    "capture",
    "member",
    "mention_list",
    "mention_bucket",
    "role",
    "attribute",
    "attribute_value",
    "identity",
    "name_mention",
    "journal",
];

#[test]
fn every_row_is_missed() {
    let original = examples();
    let bytes = bytes_of(&original);
    let connection = sql(&original);
    for table in TABLES {
        let mut columns = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let names: Vec<String> = columns.column_names().into_iter().map(str::to_owned).collect();
        let read = |row: &rusqlite::Row<'_>| (0..names.len()).map(|at| row.get::<_, Value>(at)).collect();
        let rows: Vec<Vec<Value>> = columns.query_map([], read).unwrap().map(Result::unwrap).collect();
        assert!(!rows.is_empty(), "{table}");
        // Large tables: some of the rows.
        for row in rows.iter().step_by(1 + rows.len() / 6) {
            let sandbox = of_bytes(&bytes);
            let wanted: Vec<String> =
                names.iter().zip(1..).map(|(name, at)| format!("{name} IS ?{at}")).collect();
            let delete = format!("DELETE FROM {table} WHERE {}", wanted.join(" AND "));
            assert_eq!(sql(&sandbox).execute(&delete, rusqlite::params_from_iter(row)).unwrap(), 1);
            assert!(!findings(&sandbox, &[]).is_empty(), "{table} {row:?}");
        }
    }
}

#[test]
fn the_table_of_unresolved_references_is_held_to_the_lists() {
    let original = crate::unresolved::referring();
    let bytes = bytes_of(&original);
    let unresolved =
        |sandbox: &Sandbox| sandbox.run(["unresolved", "--all", "--json"]).expect(0).json().len();
    let all = unresolved(&original);
    let table = "table unresolved_reference";
    let one = "WHERE key = (SELECT min(key) FROM unresolved_reference)";
    for (change, found, left) in [
        (
            format!("DELETE FROM unresolved_reference {one}"),
            format!("missing-row | {table} | 1 row\n"),
            all - 1,
        ),
        ("DELETE FROM unresolved_reference".to_owned(), format!("missing-row | {table} | 5 rows\n"), all - 5),
        (
            "INSERT INTO unresolved_reference VALUES (1, 1), (1, 2), (1, 3)".to_owned(),
            format!("surplus-row | {table} | 3 rows\n"),
            all,
        ),
        (
            format!("UPDATE unresolved_reference SET key = 1 {one}"),
            format!("missing-row | {table} | 1 row\nsurplus-row | {table} | 1 row\n"),
            all - 1,
        ),
    ] {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(&change).unwrap();
        assert_eq!(findings(&sandbox, &[]), found, "{change}");
        assert_eq!(unresolved(&sandbox), left, "{change}");
        for command in [&["fsck", "--repair"][..], &["index", "rebuild"]] {
            let sandbox = of_bytes(&bytes_of(&sandbox));
            sandbox.run(command).expect(0);
            assert_eq!(findings(&sandbox, &[]), "", "{change}");
            assert_eq!(unresolved(&sandbox), all, "{change}");
        }
    }
}

/// What a vault gives and tells.
fn answers(sandbox: &Sandbox) -> Vec<(i32, String)> {
    let mut ask =
        vec![vec!["find", "--json", "--sort", "core"], vec!["find", "--prompt", "prompt 3", "--json"]];
    let cores = ["4b133b9f0666", "10a0b5431374", "f1653308817a"];
    ask.extend(cores.map(|core| vec!["get", core]));
    ask.extend(cores.map(|core| vec!["show", core, "--json"]));
    ask.into_iter().map(|arguments| sandbox.run(arguments)).map(|ran| (ran.status, ran.stdout)).collect()
}

#[test]
fn a_vault_that_was_cut_off_is_not_clean() {
    let original = siblings();
    let before = answers(&original);
    let bytes = bytes_of(&original);
    for length in (0..bytes.len()).step_by(8_192).chain([100, bytes.len() - 1]) {
        let sandbox = of_bytes(&bytes[..length]);
        let ran = sandbox.run(["fsck"]);
        // What is cut off may be zeros at the end of an empty page, which is read as zeros all the same.
        let same = || bytes[length..].iter().all(|byte| *byte == 0) && answers(&sandbox) == before;
        assert!((1..=2).contains(&ran.status) || same(), "{length}: {}", ran.stderr);
    }
}
