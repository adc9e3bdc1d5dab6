//! Nothing is written to a file in which two tables have the same page.

use super::{bytes_of, examples, findings, of_bytes, small_pages, sql};
use crate::sandbox::Sandbox;

/// Gives a table the root page of another one, or a page within it.
pub(crate) fn share(sandbox: &Sandbox, table: &str, page: &str) {
    let connection = sql(sandbox);
    let change = format!(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET rootpage = ({page}) WHERE name = '{table}';
         PRAGMA wal_checkpoint(TRUNCATE);"
    );
    connection.execute_batch(&change).unwrap();
}

/// Expects that the damage is found, and that repairing and rebuilding leave the file as it is.
fn expect_refused(sandbox: &Sandbox) {
    let before = std::fs::read(sandbox.vault()).unwrap();
    assert!(findings(sandbox, &["--quick"]).contains("page-shared | file database | "));
    let repaired = sandbox.run(["fsck", "--repair"]).expect(1);
    assert!(!repaired.stdout.lines().any(|line| line.starts_with("repaired ")), "{}", repaired.stdout);
    assert!(repaired.stdout.contains("Write nothing to this vault."), "{}", repaired.stdout);
    let rebuilt = sandbox.run(["index", "rebuild"]).expect(2);
    assert!(rebuilt.stderr.contains("a page of the vault's file is used twice"), "{}", rebuilt.stderr);
    assert!(rebuilt.stderr.contains("runvault fsck"), "{}", rebuilt.stderr);
    sandbox.run(["index", "build"]).expect(2);
    // What is only in the log was also written.
    assert_eq!(bytes_of(sandbox), before);
}

#[test]
fn a_table_with_the_root_page_of_another_one_is_not_written() {
    let root = |name: &str| format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'");
    for (table, other) in
        [("mention_segment", "payload"), ("note", "journal"), ("mention_bucket", "blob_by_digest")]
    {
        let sandbox = examples();
        share(&sandbox, table, &root(other));
        expect_refused(&sandbox);
    }
}

#[test]
fn a_table_with_a_page_within_another_one_is_not_written() {
    let page = "SELECT max(pageno) FROM dbstat WHERE name = 'journal' AND pagetype = 'leaf'";
    let sandbox = of_bytes(&small_pages(&examples()));
    share(&sandbox, "note", page);
    expect_refused(&sandbox);
}

/// SQLite's own check of the file ends at a search index that cannot be opened.
#[test]
fn a_shared_page_is_found_beside_a_damaged_search_index() {
    let sandbox = examples();
    sandbox.run(["index", "build"]).expect(0);
    sql(&sandbox).execute("UPDATE search_text_config SET v = 99 WHERE k = 'version'", []).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'payload'";
    share(&sandbox, "mention_segment", root);
    expect_refused(&sandbox);
}
