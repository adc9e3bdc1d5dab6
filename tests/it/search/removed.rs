//! Nothing that was removed is found, and nothing of it is left in the files.

use memchr::memmem;

use super::{examples, found, hits};
use crate::journal::sql;
use crate::removal::bytes::is_somewhere;
use crate::sandbox::{Sandbox, session};
use runvault::storage::Storage;

/// A word that is in one response only.
fn secret(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    let (first, second) = (letter(number), letter(number / 26 + number));
    format!("{first}{second}unseen{second}{first}")
}

/// What the index has of it: of words that begin alike FTS5 keeps only the ends, and no two have two letters in common.
fn kept(number: usize) -> String {
    secret(number)[1..].to_owned()
}

fn filled(count: usize) -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    for number in 0..count {
        let response = format!("{} and {}", secret(number), "words that all have ".repeat(number % 50));
        sandbox.write(&format!("d/{number:04}.json"), session(&format!("n{number}"), &[("p", &response)]));
    }
    let cores = sandbox.add([sandbox.path("d")]);
    sandbox.run(["index", "build"]).expect(0);
    (sandbox, cores)
}

fn expect_clean(sandbox: &Sandbox) {
    let ran = sandbox.run(["fsck"]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
}

#[test]
fn words_of_what_was_removed_are_gone_from_the_files() {
    let (sandbox, cores) = filled(60);
    assert!((0..60).all(|number| index_has(&sandbox, &kept(number))), "the test looks for what is there");
    // A vault that is open meanwhile does not keep them.
    let open = runvault::Vault::open(&sandbox.vault()).unwrap();
    for (number, core) in cores.iter().enumerate().filter(|(number, _)| number % 3 == 0) {
        sandbox.run(["rm", core]).expect(0);
        assert!(!is_somewhere(&sandbox, kept(number).as_bytes()), "{}", secret(number));
        assert_eq!(found(&sandbox, &[&secret(number)]), [""; 0]);
    }
    drop(open);
    for number in 0..60 {
        let is_left = number % 3 != 0;
        assert_eq!(hits(&sandbox, &[&secret(number)]).len(), usize::from(is_left));
        assert_eq!(index_has(&sandbox, &kept(number)), is_left, "{}", secret(number));
    }
    assert_eq!(words_of(&sandbox).iter().filter(|word| word.contains("unseen")).count(), 40);
    expect_clean(&sandbox);
}

/// Every word that the index has, of whatever passage.
fn words_of(sandbox: &Sandbox) -> Vec<String> {
    let connection = sql(sandbox);
    connection
        .execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, search_text, row)")
        .unwrap();
    let mut words = connection.prepare("SELECT term FROM temp.words").unwrap();
    words.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The bytes of the index.
fn index_has(sandbox: &Sandbox, text: &str) -> bool {
    let connection = sql(sandbox);
    let mut blocks = connection.prepare("SELECT block FROM search_text_data").unwrap();
    let mut blocks = blocks.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap().map(Result::unwrap);
    blocks.any(|block| memmem::find(&block, text.as_bytes()).is_some())
}

#[test]
fn where_the_file_is_not_rewritten_gc_takes_the_words_out() {
    let (sandbox, cores) = filled(40);
    // As a removal leaves it that was killed before it rewrote the file, or in a large vault.
    let store =
        runvault::storage::Store::open(&sandbox.vault(), runvault::storage::CreationPolicy::Never).unwrap();
    let mut change =
        Storage::transaction(&store, runvault::clock::now(), runvault::storage::BUSY_TIMEOUT).unwrap();
    change.remove(cores[7].parse().unwrap(), None).unwrap();
    change.commit().unwrap();
    drop(store);
    assert_eq!(found(&sandbox, &[&secret(7)]), [""; 0]);
    expect_clean(&sandbox);
    assert!(index_has(&sandbox, &kept(7)), "FTS5 only marks it");
    sandbox.run(["gc"]).expect(0);
    assert!(!is_somewhere(&sandbox, kept(7).as_bytes()));
    assert_eq!(hits(&sandbox, &[&secret(8)]).len(), 1);
    expect_clean(&sandbox);
    assert_eq!(sandbox.run(["gc"]).expect(0).stdout, "nothing to reclaim\n");
}

#[test]
fn a_vault_that_is_emptied_has_an_empty_index() {
    let sandbox = examples();
    let all: Vec<String> = sandbox
        .run(["find", "--all-versions", "--json"])
        .json()
        .iter()
        .map(|hit| hit["core_hash"].as_str().unwrap().to_owned())
        .collect();
    sandbox.run(std::iter::once("rm").chain(all.iter().map(String::as_str))).expect(0);
    assert_eq!(hits(&sandbox, &["export"]).len(), 0);
    assert_eq!(words_of(&sandbox), [""; 0]);
    expect_clean(&sandbox);
}

#[test]
fn dropping_an_index_leaves_none_of_its_words() {
    let (sandbox, cores) = filled(30);
    sandbox.run(["index", "drop"]).expect(0);
    sandbox.run(["rm", &cores[3]]).expect(0);
    assert!(!is_somewhere(&sandbox, kept(3).as_bytes()));
    expect_clean(&sandbox);
}

#[test]
fn a_damaged_index_keeps_nobody_from_removing() {
    for damage in [
        "UPDATE search_text_data SET block = zeroblob(20) WHERE id > 10; UPDATE search_text_docsize SET sz = x'ff'",
        "DELETE FROM search_text_config",
        "DELETE FROM search_state",
        "DROP TABLE search_capture",
        "DROP TABLE search_text_data",
    ] {
        let (sandbox, cores) = filled(30);
        let connection = sql(&sandbox);
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.execute_batch(damage).unwrap();
        drop(connection);
        sandbox.run(["rm", &cores[3]]).expect(0);
        assert!(!is_somewhere(&sandbox, kept(3).as_bytes()), "{damage}");
        sandbox.run(["index", "build"]).expect(0);
        assert_eq!(hits(&sandbox, &["words", "--limit", "100"]).len(), 28, "{damage}");
        expect_clean(&sandbox);
    }
}
