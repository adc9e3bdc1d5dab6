//! What only vaults of some size have: dictionaries, and an index of mentions in several segments. And many processes.

use std::process::Stdio;

use runvault::Vault;
use runvault::digest::Digest;

use super::{bytes_of, findings, of_bytes, sql};
use crate::sandbox::{Sandbox, session};

/// Enough sessions for a dictionary, and more digests than fit into the first segment.
fn many() -> Sandbox {
    let sandbox = Sandbox::new();
    write(&sandbox, "d", 0..400);
    sandbox.run(["add", "d"]).expect(0);
    let count = |table: &str| -> i64 {
        let sql = sql(&sandbox);
        sql.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("dictionary"), count("mention_segment")), (1, 1));
    sandbox
}

fn write(sandbox: &Sandbox, directory: &str, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let texts: Vec<String> = (0..4).map(|part| format!("text {part} of {number}")).collect();
        let exchanges: Vec<(&str, &str)> = texts.iter().map(|text| ("p", text.as_str())).collect();
        let text = session(&format!("adapter-{number}"), &exchanges);
        sandbox.write(&format!("{directory}/{number:04}.json"), text);
    }
}

/// The first words of what is found, each with how often.
fn sorts(findings: &str) -> Vec<(String, usize)> {
    let mut sorts: Vec<(String, usize)> = Vec::new();
    for line in findings.lines() {
        let sort = line.split(" | ").next().unwrap();
        match sorts.iter_mut().find(|(known, _)| known == sort) {
            Some((_, count)) => *count += 1,
            None => sorts.push((sort.to_owned(), 1)),
        }
    }
    sorts
}

#[test]
fn a_large_index_is_checked_and_rebuilt() {
    let sandbox = many();
    assert_eq!(findings(&sandbox, &[]), "");
    let mut reports = String::new();
    for change in [
        "DELETE FROM mention_segment",
        "DELETE FROM mention_bucket WHERE id = (SELECT max(id) FROM mention_bucket)",
        "UPDATE mention_segment SET bits = bits + 1",
        "UPDATE mention_segment SET entries = entries + 1",
        "UPDATE mention_bucket SET id = id + 1 WHERE id = (SELECT max(id) FROM mention_bucket)",
        "INSERT INTO mention_bucket SELECT id + 9000000000, bytes FROM mention_bucket WHERE id > 0 LIMIT 1",
        "DELETE FROM mention_list WHERE capture = 1",
    ] {
        sql(&sandbox).execute_batch(change).unwrap();
        let found = sorts(&findings(&sandbox, &[]));
        assert!(!found.is_empty(), "{change}");
        reports += &format!("{change}\n{found:?}\n");
        sandbox.run(["index", "rebuild"]).expect(0);
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
        assert_eq!(sandbox.run(["find", "--prompt", "p", "--json"]).expect(0).json().len(), 400, "{change}");
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn a_damaged_dictionary_is_dropped_and_its_blobs_are_restored_from_a_vault_or_from_files() {
    let bytes = bytes_of(&many());
    for from in ["copy.vault", "d"] {
        let sandbox = of_bytes(&bytes);
        sandbox.write("copy.vault", &bytes);
        write(&sandbox, "d", 0..400);
        let change = "UPDATE dictionary SET bytes = CAST(bytes || x'00' AS BLOB)";
        assert_eq!(sql(&sandbox).execute(change, []).unwrap(), 1);
        let found = findings(&sandbox, &[]);
        assert!(found.starts_with("damaged-bytes | table dictionary | "), "{found}");
        let blobs = found.lines().filter(|line| line.starts_with("damaged-bytes | blob ")).count();
        assert!(blobs > 100, "{found}");
        let repaired = findings(&sandbox, &["--repair", "--from", from]);
        let (restored, others): (Vec<&str>, Vec<&str>) =
            repaired.lines().partition(|line| line.starts_with("repaired: restored | blob "));
        assert_eq!(restored.len(), 400, "{from}");
        assert_eq!(
            others,
            [
                "repaired: written from the journal again | table catalog | ",
                "repaired: removed what belongs to nothing | table dictionary | ",
                "repaired: rebuilt, with all indexes of artifacts | index mentions | ",
            ],
            "{from}"
        );
        assert_eq!(findings(&sandbox, &[]), "", "{from}");
        let vault = Vault::open(&sandbox.vault()).unwrap();
        for entry in std::fs::read_dir(sandbox.path("d")).unwrap() {
            let document = std::fs::read(entry.unwrap().path()).unwrap();
            assert_eq!(vault.get(&Digest::from_content(&document).into()).unwrap(), document, "{from}");
        }
    }
}

/// Nothing proves when the documents of a dictionary were collected, so that documents are no longer stored with it.
#[test]
fn a_dictionary_that_is_described_wrongly_is_dropped() {
    let bytes = bytes_of(&many());
    for change in ["begun = begun + 1", "digest = zeroblob(32)", "digest = x'00'"] {
        let sandbox = of_bytes(&bytes);
        let connection = sql(&sandbox);
        connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
        assert_eq!(connection.execute(&format!("UPDATE dictionary SET {change}"), []).unwrap(), 1);
        assert!(findings(&sandbox, &[]).contains("damaged-bytes | table dictionary | "), "{change}");
        let repaired = findings(&sandbox, &["--repair"]);
        assert!(repaired.lines().all(|line| line.starts_with("repaired: ")), "{change}\n{repaired}");
        assert_eq!(findings(&sandbox, &[]), "", "{change}\n{repaired}");
        let left: i64 =
            connection.query_row("SELECT count(*) FROM dictionary", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{change}");
    }
}

#[test]
fn a_vault_that_others_write_is_clean_all_the_time() {
    let sandbox = many();
    write(&sandbox, "e", 400..900);
    let mut adding = sandbox.command();
    let mut adding = adding.args(["add", "e"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut checks = 0;
    while adding.try_wait().unwrap().is_none() || checks < 2 {
        sandbox.run(["index", "rebuild"]).expect(0);
        assert_eq!(findings(&sandbox, &[]), "");
        checks += 1;
    }
    assert!(adding.wait().unwrap().success());
    assert_eq!(findings(&sandbox, &[]), "");
    assert_eq!(sandbox.run(["find", "--prompt", "p", "--json"]).expect(0).json().len(), 900);
}
