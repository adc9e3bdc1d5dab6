//! Single rows that are damaged, lost or have other numbers: what is found about them, and that nothing else is affected.

use super::{bytes_of, examples, findings, of_bytes, small_pages, sql};
use crate::sandbox::{Sandbox, session};
use crate::signatures::signed;

/// Changes a vault, also to what its tables do not allow.
fn change(sandbox: &Sandbox, change: &str) {
    let connection = sql(sandbox);
    connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
    connection.execute_batch(change).unwrap();
}

fn annotated() -> Sandbox {
    let sandbox = examples();
    for arguments in [
        &["tag", "set", "5c496a37feba", "agreed"][..],
        &["note", "set", "5c496a37feba", "a note"],
        &["pin", "add", "7c8de5910f63"],
        &["label", "set", "7c8de5910f63", "branch=main"],
        &["link", "add", "5c496a37feba", "governs", "7c8de5910f63"],
        &["rm", "103ef1c54b58", "--reason", "small", "--force"],
    ] {
        sandbox.run(arguments).expect(0);
    }
    sandbox
}

/// What the vault returns of every artifact.
fn contents(sandbox: &Sandbox) -> Vec<String> {
    let found = sandbox.run(["find", "--sort", "core", "--json"]).expect(0);
    let cores: Vec<String> =
        found.json().iter().map(|hit| hit["core_hash"].as_str().unwrap().to_owned()).collect();
    let mut contents = vec![found.stdout];
    contents.extend(cores.iter().map(|core| sandbox.run(["show", core, "--json"]).expect(0).stdout));
    contents.extend(cores.iter().map(|core| sandbox.run(["links", core, "--json"]).stdout));
    contents
}

/// Checks that the repair of `sandbox` leaves a vault that returns `before`, and to which can be added.
fn is_repaired(sandbox: &Sandbox, before: &[String], what: &str) {
    let repaired = findings(sandbox, &["--repair"]);
    assert!(repaired.lines().all(|line| line.starts_with("repaired")), "{what}\n{repaired}");
    assert_eq!(findings(sandbox, &[]), "", "{what}");
    assert_eq!(contents(sandbox), before, "{what}");
    sandbox.add([sandbox.write("later.json", session("later", &[("p", "r")]))]);
    assert_eq!(findings(sandbox, &[]), "", "{what}");
}

/// Whether rows of artifacts or captures are called lost.
fn names_a_lost_row(found: &str) -> bool {
    let is_lost = |line: &str| {
        line.starts_with("missing-row | artifact sha256:") && line.contains(" | artifact: ")
            || line.starts_with("missing-row | capture sha256:")
    };
    found.lines().any(is_lost)
}

#[test]
fn a_damaged_row_is_named_and_the_other_rows_are_not_lost() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for (damage, named) in [
        ("UPDATE artifact SET core = x'010203' WHERE id = 1", "unreadable | table artifact | row 1: "),
        (
            "UPDATE blob SET digest = x'010203' WHERE id = (SELECT blob FROM capture WHERE id = 5)",
            "unreadable | table capture | row 5: ",
        ),
        ("UPDATE blob SET digest = x'010203' WHERE id = (SELECT blob FROM member)", " | member: "),
    ] {
        let sandbox = of_bytes(&bytes);
        change(&sandbox, damage);
        let found = findings(&sandbox, &[]);
        assert!(found.contains(named) && !names_a_lost_row(&found), "{damage}\n{found}");
        is_repaired(&sandbox, &before, damage);
    }
}

#[test]
fn a_damaged_capture_does_not_keep_other_captures_of_its_artifact_from_being_stored_and_indexed() {
    let sandbox = Sandbox::new();
    let document = session("a", &[("p", "r"), ("q", "s")]);
    sandbox.add([sandbox.write("first.json", &document)]);
    sandbox.add([sandbox.write("second.json", format!("{document}\n"))]);
    change(&sandbox, "DELETE FROM payload WHERE blob = 1; DELETE FROM attribute");
    let found = findings(&sandbox, &["--repair"]);
    assert!(found.contains("missing-bytes | blob sha256:") && !found.contains("attribute "), "{found}");
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("first.json", &document)]);
    change(&sandbox, "DELETE FROM payload");
    sandbox.write("second.json", format!("{document}\n"));
    sandbox.run(["add", "second.json"]).expect(0);
}

#[test]
fn a_capture_in_a_row_that_cannot_be_identified_is_not_called_lost() {
    let sandbox = examples();
    let manifest = "SELECT blob FROM capture WHERE id = (SELECT capture FROM member)";
    change(&sandbox, &format!("UPDATE blob SET digest = x'01' WHERE id = ({manifest})"));
    let found = findings(&sandbox, &[]);
    let said = "unreadable | table capture | 1 row that follows from the journal is not in the part that can be read\n";
    assert!(found.contains(said) && !names_a_lost_row(&found), "{found}");
}

/// The number of rows that a finding lists, such as "rows 1, 2, 3 and 1 more".
fn listed(line: &str) -> usize {
    let rows = line.split(": ").next().unwrap();
    let (named, more) = rows.split_once(" and ").unwrap_or((rows, "0 more"));
    named.split(", ").count() + more.split(' ').next().unwrap().parse::<usize>().unwrap()
}

#[test]
fn rows_after_a_damaged_page_are_compared() {
    let original = Sandbox::new();
    for number in 0..40 {
        original.write(&format!("d/{number}.json"), session(&format!("a{number}"), &[("p", "r")]));
    }
    original.run(["add", "d"]).expect(0);
    let bytes = small_pages(&original);
    for table in ["artifact", "capture"] {
        let sandbox = of_bytes(&bytes);
        let page = "SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = 'leaf' ORDER BY path LIMIT 1";
        let connection = sql(&sandbox);
        let page: usize = connection.query_row(page, [table], |row| row.get(0)).unwrap();
        let rows: usize =
            connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        drop(connection);
        let mut damaged = bytes.clone();
        damaged[(page - 1) * 512] = 0x77;
        let sandbox = of_bytes(&damaged);
        let found = findings(&sandbox, &[]);
        let named = |line: &&str| line.starts_with(&format!("unreadable | table {table} | row"));
        let named = found.lines().find(named).unwrap_or_else(|| panic!("{table}\n{found}"));
        let listed = listed(named);
        assert!(listed < 20, "{table}\n{found}");
        assert!(rows == 40 && !names_a_lost_row(&found), "{table}\n{found}");
        let unknown = format!(
            "unreadable | table {table} | {listed} rows that follow from the journal are not in the part that can be read\n"
        );
        assert!(found.contains(&unknown), "{found}");
    }
}

#[test]
fn rows_with_other_numbers_get_their_own_again() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for number in [i64::MAX, 77, -7] {
        for row in [
            "artifact SET id = ? WHERE id = 1",
            "artifact SET id = ? WHERE id = (SELECT artifact FROM note)",
            "artifact SET id = ? WHERE id = (SELECT max(id) FROM artifact)",
            "capture SET id = ? WHERE id = (SELECT capture FROM member)",
            "capture SET id = ? WHERE id = (SELECT max(id) FROM capture)",
            "blob SET id = ? WHERE id = (SELECT blob FROM member)",
            "blob SET id = ? WHERE id = (SELECT max(blob) FROM capture)",
            "capture SET artifact = ? WHERE id = 1",
            "capture SET artifact = ? WHERE id = (SELECT max(id) FROM capture)",
            "capture SET blob = ? WHERE id = (SELECT capture FROM member)",
            "journal SET size = ? WHERE entry IS NOT NULL",
            "journal SET seq = ? WHERE seq = 2",
            "journal SET seq = ? WHERE seq = (SELECT max(seq) FROM journal)",
        ] {
            let damage = format!("UPDATE {}", row.replace('?', &number.to_string()));
            let sandbox = of_bytes(&bytes);
            change(&sandbox, &damage);
            assert_ne!(findings(&sandbox, &[]), "", "{damage}");
            is_repaired(&sandbox, &before, &damage);
        }
    }
}

/// Changes a vault to what its tables do not allow: values of other types, and none where there must be one.
fn change_types(sandbox: &Sandbox, damage: &str) {
    let define = |definitions: &[(String, String)]| {
        let connection = sql(sandbox);
        connection.pragma_update(None, "writable_schema", true).unwrap();
        for (name, sql) in definitions {
            let update = "UPDATE sqlite_schema SET sql = ?2 WHERE type = 'table' AND name = ?1";
            connection.execute(update, (name, sql)).unwrap();
        }
    };
    let strict: Vec<(String, String)> = sql(sandbox)
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let loose = |sql: &str| {
        let sql = sql.replace(") STRICT, WITHOUT", ") WITHOUT").replace(") STRICT", ")");
        sql.replace("IS NOT NULL", "NOTNULL").replace(" NOT NULL", "").replace("NOTNULL", "IS NOT NULL")
    };
    define(&strict.iter().map(|(name, sql)| (name.clone(), loose(sql))).collect::<Vec<_>>());
    change(sandbox, damage);
    define(&strict);
}

#[test]
fn values_get_the_types_of_their_columns_again() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for (table, column, other) in [
        ("artifact", "core", "TEXT"),
        ("attribute_value", "value", "BLOB"),
        ("capture", "seal", "TEXT"),
        ("journal", "chain", "TEXT"),
        ("journal", "entry", "BLOB"),
        ("kind", "name", "BLOB"),
        ("label", "key", "BLOB"),
        ("link", "relation", "BLOB"),
        ("member", "name", "BLOB"),
        ("note", "text", "BLOB"),
        ("payload", "bytes", "TEXT"),
        ("tag", "name", "BLOB"),
        ("tombstone", "digest", "TEXT"),
        ("tombstone", "reason", "BLOB"),
    ] {
        let sandbox = of_bytes(&bytes);
        let damage = format!("UPDATE {table} SET {column} = CAST({column} AS {other})");
        change_types(&sandbox, &damage);
        assert_ne!(findings(&sandbox, &[]), "", "{damage}");
        is_repaired(&sandbox, &before, &damage);
    }
}

#[test]
fn texts_that_are_not_utf_8_are_restored_if_bytes_or_the_journal_prove_them() {
    let original = annotated();
    original.add([original.write("signed.rpk", signed("ci", "key"))]);
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for (table, column) in [
        ("attribute_value", "value"),
        ("capture", "warnings"),
        ("identity", "handle"),
        ("kind", "name"),
        ("label", "key"),
        ("label", "value"),
        ("link", "relation"),
        ("note", "text"),
        ("pin", "note"),
        ("role", "name"),
        ("signature", "key_id"),
        ("tag", "name"),
        ("tombstone", "kind"),
        ("tombstone", "reason"),
    ] {
        let sandbox = of_bytes(&bytes);
        // For example, a bit of the first character was flipped.
        let rest = format!("coalesce(substr(CAST({column} AS BLOB), 2), x'')");
        let damage = format!("UPDATE OR IGNORE {table} SET {column} = CAST(x'ff' || {rest} AS TEXT)");
        change(&sandbox, &damage);
        assert_ne!(findings(&sandbox, &[]), "", "{damage}");
        is_repaired(&sandbox, &before, &damage);
    }
}

#[test]
fn values_that_are_missing_are_restored_if_bytes_or_the_journal_prove_them() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for damage in [
        "UPDATE artifact SET kind = NULL WHERE id = 1",
        "UPDATE artifact SET added_at = NULL WHERE id = 1",
        "UPDATE blob SET size = NULL WHERE id = 1",
        "UPDATE tag SET at = NULL, artifact = NULL",
        "UPDATE note SET at = NULL, text = NULL",
        "UPDATE pin SET at = NULL",
        "UPDATE link SET at = NULL",
        "UPDATE label SET at = NULL",
        "UPDATE label SET value = NULL",
        "UPDATE tombstone SET kind = NULL",
    ] {
        let sandbox = of_bytes(&bytes);
        change_types(&sandbox, damage);
        assert_ne!(findings(&sandbox, &[]), "", "{damage}");
        is_repaired(&sandbox, &before, damage);
    }
}

/// The last entry is lost, and those before it say something else.
#[test]
fn what_an_entry_said_that_cannot_be_read_is_not_undone() {
    let sandbox = annotated();
    sandbox.run(["tag", "set", "7c8de5910f63", "agreed"]).expect(0);
    let tags = sandbox.run(["tag", "list", "--json"]).expect(0).stdout;
    change_types(&sandbox, "UPDATE journal SET chain = NULL WHERE seq = (SELECT max(seq) FROM journal)");
    let repaired = findings(&sandbox, &["--repair"]);
    assert!(
        repaired.contains("repaired: left out rows that cannot be read | table journal | "),
        "{repaired}"
    );
    assert!(repaired.contains("different-row | tag agreed | "), "{repaired}");
    assert_eq!(sandbox.run(["tag", "list", "--json"]).expect(0).stdout, tags);
}

#[test]
fn sizes_follow_from_the_bytes() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for size in ["0", "-1", "size - 1", "size + 1", "size * 1000000"] {
        let sandbox = of_bytes(&bytes);
        let damage = format!("UPDATE blob SET size = {size}");
        change(&sandbox, &damage);
        assert_ne!(findings(&sandbox, &[]), "", "{damage}");
        is_repaired(&sandbox, &before, &damage);
    }
}

#[test]
fn a_signature_of_no_capture_is_removed() {
    let sandbox = annotated();
    let before = contents(&sandbox);
    change(&sandbox, "INSERT INTO signature (capture, state) VALUES (77, 'unchecked')");
    assert!(findings(&sandbox, &[]).starts_with("surplus-row | table signature | "));
    is_repaired(&sandbox, &before, "");
}

#[test]
fn a_capture_that_is_there_twice_is_read() {
    let sandbox = annotated();
    let columns = "artifact, blob, size, added_at, warnings, seal, seen_at, source_entry";
    let double = format!("INSERT INTO capture ({columns}) SELECT {columns} FROM capture");
    change(&sandbox, &double);
    assert!(findings(&sandbox, &[]).contains("surplus-row | capture "));
    sandbox.run(["get", "3941d389b337"]).expect(0);
}

#[test]
fn a_lost_blob_and_lost_bytes_of_another_one_are_not_taken_for_a_changed_number() {
    let sandbox = examples();
    change(
        &sandbox,
        "DELETE FROM blob WHERE id = (SELECT blob FROM member WHERE name = 'policy.json');
         DELETE FROM payload WHERE blob = (SELECT max(blob) FROM capture)",
    );
    let ran = sandbox.run(["fsck", "--repair"]).expect(1);
    assert!(!ran.stdout.contains("number again") && !ran.stderr.contains("failed"), "{}", ran.stderr);
}

#[test]
fn rows_with_impossible_numbers_are_found_if_everything_refers_to_them() {
    let sandbox = Sandbox::new();
    sandbox.write("bytes", "some bytes");
    sandbox.run(["add", "--as", "attachment", "bytes"]).expect(0);
    let before = contents(&sandbox);
    let number = i64::MAX;
    change(
        &sandbox,
        &format!(
            "UPDATE artifact SET id = {number}; UPDATE capture SET id = {number}, artifact = {number}, blob = {number};
             UPDATE blob SET id = {number}; UPDATE payload SET blob = {number}; UPDATE attribute SET artifact = {number}"
        ),
    );
    let found = findings(&sandbox, &[]);
    assert!(
        found.contains(&format!("different-row | table blob | {number} is the number of a row\n")),
        "{found}"
    );
    for row in ["artifact", "capture"] {
        assert!(found.contains(&format!(" | {row}: id differs from the journal\n")), "{found}");
    }
    // It is an error, not a row in the wrong order.
    sandbox.write("other", "other bytes");
    sandbox.run(["add", "--as", "attachment", "other"]).expect(2);
    is_repaired(&sandbox, &before, "");
}

#[test]
fn rows_that_take_the_place_of_others_or_are_added_are_repaired() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for damage in [
        "UPDATE OR REPLACE artifact SET id = 3 WHERE id = 2",
        "UPDATE OR REPLACE artifact SET id = (SELECT max(id) FROM artifact) WHERE id = (SELECT artifact FROM note)",
        "UPDATE OR REPLACE capture SET id = (SELECT max(id) FROM capture) WHERE id = (SELECT min(id) FROM capture)",
        "INSERT INTO payload SELECT 9999, encoding, base, dictionary, digests, bytes FROM payload
          WHERE blob = (SELECT blob FROM capture ORDER BY id LIMIT 1)",
        "UPDATE payload SET base = (SELECT max(blob) FROM payload WHERE base IS NULL)
          WHERE blob = (SELECT min(blob) FROM payload WHERE base IS NULL)",
        "INSERT INTO sqlite_sequence VALUES ('dictionary', 9223372036854775807)",
        "INSERT INTO sqlite_sequence VALUES ('dictionary', -1)",
        "INSERT INTO sqlite_sequence VALUES ('artifact', 1)",
        "INSERT INTO tombstone VALUES (zeroblob(32), 999, 0, zeroblob(32), 'rpk', NULL, NULL, 0, 0)",
        "INSERT INTO attribute_value (name, value) VALUES ('agent', 'none')",
    ] {
        let sandbox = of_bytes(&bytes);
        change(&sandbox, damage);
        assert_ne!(findings(&sandbox, &[]), "", "{damage}");
        is_repaired(&sandbox, &before, damage);
    }
}

/// A file is written again without the rows that cannot be read, and only then is it known which bytes are missing.
#[test]
fn a_repair_goes_on_with_what_it_uncovers() {
    let source = examples();
    let mut bytes = small_pages(&source);
    let sandbox = of_bytes(&bytes);
    let (size, page): (usize, usize) = sql(&sandbox)
        .query_row(
            "SELECT pgsize, pageno FROM dbstat WHERE name = 'payload' AND pagetype = 'leaf' LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    bytes[(page - 1) * size..page * size].fill(0);
    let sandbox = of_bytes(&bytes);
    let from = source.vault();
    let repaired = findings(&sandbox, &["--repair", "--from", from.to_str().unwrap()]);
    assert!(repaired.lines().all(|line| line.starts_with("repaired")), "{repaired}");
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn kinds_are_restored_from_the_stored_bytes() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    for damage in [
        "UPDATE kind SET name = 'other' WHERE name = 'rpk'",
        "UPDATE kind SET name = CAST(x'ff' AS TEXT) WHERE name = 'trace'",
        "UPDATE kind SET id = 9223372036854775807 WHERE name = 'rpk'",
        "DELETE FROM kind",
        "UPDATE kind SET name = 'x' WHERE name = 'rpk'; UPDATE kind SET name = 'rpk' WHERE name = 'trace';
         UPDATE kind SET name = 'trace' WHERE name = 'x'",
    ] {
        let sandbox = of_bytes(&bytes);
        let log = sandbox.run(["log", "--json"]).expect(0).stdout;
        change(&sandbox, damage);
        for depth in ["--full", "--quick"] {
            let found = findings(&sandbox, &[depth]);
            assert!(found.contains(" | artifact: kind differs from the journal\n"), "{damage}\n{found}");
        }
        is_repaired(&sandbox, &before, damage);
        let now = sandbox.run(["log", "--json"]).expect(0).stdout;
        assert!(log.lines().all(|entry| now.contains(entry)), "{damage}");
    }
}

#[test]
fn the_number_of_a_lost_row_is_not_given_to_another() {
    let sandbox = annotated();
    sandbox.write("bytes", "some bytes");
    sandbox.run(["add", "--as", "attachment", "bytes"]).expect(0);
    sandbox.run(["tag", "set", "latest", "last"]).expect(0);
    // Neither the journal proves it nor its bytes, so it is not restored.
    change(
        &sandbox,
        "UPDATE payload SET bytes = x'00' WHERE blob = (SELECT max(blob) FROM capture);
         DELETE FROM artifact WHERE id = (SELECT max(id) FROM artifact);
         DELETE FROM kind WHERE name = 'attachment';
         UPDATE journal SET entry = replace(entry, 'a note', 'a forgery') WHERE entry LIKE '%a note%'",
    );
    let repaired = findings(&sandbox, &["--repair"]);
    for left in ["\nbroken-chain | entry ", "\ndamaged-bytes | blob ", "\nmissing-row | artifact "] {
        assert!(repaired.contains(left), "{left}\n{repaired}");
    }
    let added = sandbox.add([sandbox.write("later.json", session("later", &[("p", "r")]))]);
    let shown = sandbox.run(["show", &added[0], "--json"]).expect(0).json();
    assert_eq!(shown[0]["captures"].as_array().unwrap().len(), 1, "{shown:?}");
    assert_eq!(shown[0]["kind"], "model_io");
    assert!(shown[0]["tags"].as_array().is_none_or(Vec::is_empty), "{shown:?}");
    sandbox.run(["get", &added[0]]).expect(0);
}

#[test]
fn a_reader_that_closes_the_output_does_not_make_a_damaged_vault_clean() {
    for arguments in [&["fsck"][..], &["fsck", "--json"], &["fsck", "--repair"]] {
        let sandbox = examples();
        change(&sandbox, "UPDATE payload SET bytes = x'00' WHERE blob = 1");
        let mut command = sandbox.command();
        command.args(arguments).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        // Closed before anything is written.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command.stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn a_vault_with_a_damaged_index_can_be_copied() {
    let original = annotated();
    let (bytes, before) = (bytes_of(&original), contents(&original));
    let page: usize = sql(&original).query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    for table in [
        "attribute",
        "attribute_value",
        "identity",
        "mention_bucket",
        "mention_list",
        "name_mention",
        "unresolved_reference",
    ] {
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        let root: usize = sql(&original).query_row(root, [table], |row| row.get(0)).unwrap();
        let mut bytes = bytes.clone();
        bytes[(root - 1) * page..root * page].fill(0);
        let sandbox = of_bytes(&bytes);
        assert_ne!(findings(&sandbox, &[]), "", "{table}");
        sandbox.run(["copy", "v.vault", "copy.vault"]).expect(0);
        let copy = of_bytes(&std::fs::read(sandbox.path("copy.vault")).unwrap());
        assert_eq!(findings(&copy, &[]), "", "{table}");
        assert_eq!(contents(&copy), before, "{table}");
    }
}
