//! What was found in vault files that were changed, each as small as it gets.

use super::{Mutant, bases, commands, limited};
use crate::fsck::sql;
use crate::sandbox::Sandbox;

/// The vault of all kinds after `change`.
fn changed(change: &str) -> Mutant {
    let sandbox = Sandbox::without_vault();
    sandbox.write("v.vault", &bases::ALL[0].bytes);
    sql(&sandbox).execute_batch(change).unwrap();
    let bytes = std::fs::read(sandbox.vault()).unwrap();
    Mutant { files: vec![("", bytes)], described: change.to_owned() }
}

/// Runs commands on the vault after `change`: each ends, with this status. Gives what the last one says.
fn ends(change: &str, asked: &[(&[&str], i32)]) -> String {
    let sandbox = commands::sandbox();
    let mutant = changed(change);
    let mut said = String::new();
    for (words, status) in asked {
        mutant.write(&sandbox);
        let outcome = limited::run(&sandbox, words);
        assert_eq!(outcome.broken, None, "{change}\n{words:?}");
        said = std::fs::read_to_string(sandbox.path("stderr")).unwrap();
        assert_eq!(outcome.status, Some(*status), "{change}\n{words:?}: {said}");
    }
    said
}

/// Rows without end.
const ENDLESS: &str = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";

#[test]
fn triggers_that_another_program_made_are_not_run() {
    for table in ["journal", "artifact", "capture", "tag"] {
        let endless = format!(
            "CREATE TABLE more (x);
             CREATE TRIGGER t AFTER INSERT ON {table} BEGIN INSERT INTO more SELECT n FROM ({ENDLESS}); END"
        );
        ends(&endless, &[(&["add", "d"], 0), (&["tag", "set", "latest", "x"], 0), (&["fsck"], 1)]);
    }
    let deleting = "CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM tag; END";
    let sandbox = commands::sandbox();
    changed(deleting).write(&sandbox);
    let tags = |sandbox: &Sandbox| sandbox.run(["tag", "list"]).expect(0).stdout;
    let before = tags(&sandbox);
    sandbox.run(["add", "d"]).expect(0);
    assert_eq!(tags(&sandbox), before);
}

#[test]
fn views_that_never_end_are_damage() {
    for table in ["artifact", "blob", "kind", "journal", "attribute"] {
        let replaced = format!("ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS {ENDLESS}");
        let said = ends(&replaced, &[(&["find"], 2), (&["stats"], 2), (&["fsck"], 2)]);
        assert!(said.contains(&format!("{table} is a view instead of a table")), "{said}");
    }
    let entries = "DROP VIEW journal_entries; CREATE VIEW journal_entries AS
         WITH RECURSIVE c (seq, entry, chain) AS (SELECT 0, '', '' UNION ALL SELECT * FROM c) SELECT * FROM c";
    let said = ends(entries, &[(&["find"], 0), (&["fsck"], 1), (&["log"], 2)]);
    assert!(said.contains("the view journal_entries differs from the definition in this program"), "{said}");
    let artifacts = format!("DROP VIEW artifacts; CREATE VIEW artifacts AS {ENDLESS}");
    let said = ends(&artifacts, &[(&["find"], 0), (&["fsck"], 1), (&["sql", "SELECT * FROM artifacts"], 2)]);
    assert!(said.contains("the view artifacts differs from the definition in this program"), "{said}");
}

/// The header of a rollback journal that says that the file had this many pages, of 16 KiB.
fn rollback_journal(pages: u32) -> Vec<u8> {
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for number in [0, 7, pages, 512, 16_384] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(512, 0);
    journal
}

/// SQLite would make the vault 64 TiB long, or cut it off after a page.
#[test]
fn a_rollback_journal_beside_a_vault_is_not_written_into_it() {
    let sandbox = commands::sandbox();
    let bytes = bases::ALL[0].bytes.clone();
    for pages in [u32::MAX, 1] {
        let files = vec![("", bytes.clone()), ("-journal", rollback_journal(pages))];
        let mutant = Mutant { files, described: String::new() };
        for words in [&["find"][..], &["fsck"], &["fsck", "--repair"], &["add", "d"], &["sql", "SELECT 1"]] {
            mutant.write(&sandbox);
            let outcome = limited::run(&sandbox, words);
            let said = std::fs::read_to_string(sandbox.path("stderr")).unwrap();
            assert_eq!((outcome.broken, outcome.status), (None, Some(2)), "{words:?}: {said}");
            assert!(said.contains("a rollback journal of another file is next to it"), "{words:?}: {said}");
            assert!(std::fs::read(sandbox.vault()).unwrap() == bytes, "{words:?}");
        }
        std::fs::remove_file(sandbox.path("v.vault-journal")).unwrap();
        sandbox.run(["fsck"]).expect(0);
    }
}
