//! The index is kept in step with the vault.

use std::process::Stdio;

use runvault::artifact::Field;
use runvault::formats;
use runvault::storage::{BUSY_TIMEOUT, FullText, Storage};
use runvault::vault::search::SearchIndexRequest;

use super::{examples, found, hits, of_responses};
use crate::journal::sql;
use crate::sandbox::{Sandbox, session};

/// A file with a session that says `response`.
fn written(sandbox: &Sandbox, adapter: &str, response: &str) -> std::path::PathBuf {
    sandbox.write(&format!("{adapter}.json"), session(adapter, &[("p", response)]))
}

fn clean(sandbox: &Sandbox) {
    let ran = sandbox.run(["fsck"]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
}

/// The columns are written out in the definition of the index, and declared by the kinds.
#[test]
fn the_index_has_a_column_for_each_field_of_the_kinds() {
    let sandbox = of_responses(&["first"]);
    let connection = sql(&sandbox);
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('search_text')").unwrap();
    let columns: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let fields: Vec<&str> = formats::fields().into_iter().map(Field::name).collect();
    assert_eq!(columns, fields);
}

#[test]
fn what_is_added_is_found_whoever_adds_it() {
    let sandbox = of_responses(&["first"]);
    sandbox.add([written(&sandbox, "b", "second")]);
    assert_eq!(found(&sandbox, &["second"]).len(), 1);
    // With the setting, adding does it; without, asking does.
    for (value, has_row) in [("on", true), ("off", false), ("", false)] {
        let path = written(&sandbox, &format!("with-{value}"), &format!("third{value}"));
        let mut command = sandbox.command();
        let status = command.args(["add".as_ref(), path.as_os_str()]).env("RUNVAULT_SEARCH", value);
        assert!(status.output().unwrap().status.success());
        let waiting: i64 = sql(&sandbox)
            .query_row(
                "SELECT count(*) FROM capture WHERE id > (SELECT capture FROM search_state)",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(waiting == 0, has_row, "{value}");
        assert_eq!(found(&sandbox, &[&format!("third{value}")]).len(), 1);
    }
    let mut command = sandbox.command();
    let ran = command.args(["add", "b.json"]).env("RUNVAULT_SEARCH", "maybe").output().unwrap();
    assert_eq!(ran.status.code(), Some(3));
    clean(&sandbox);
}

#[test]
fn the_setting_builds_the_index_of_a_vault_that_has_none() {
    let sandbox = Sandbox::new();
    sandbox.add([written(&sandbox, "a", "before")]);
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    written(&sandbox, "b", "after");
    let on = |arguments: &[&str]| {
        let mut command = sandbox.command();
        assert!(command.args(arguments).env("RUNVAULT_SEARCH", "on").output().unwrap().status.success());
    };
    on(&["add", "b.json"]);
    assert_eq!(found(&sandbox, &["before OR after"]).len(), 2);
    // What is imported is found, and a dry run changes nothing.
    on(&["--vault", "other.vault", "import", "--create", "all.rvz"]);
    assert_eq!(found(&sandbox, &["before", "--vault", "other.vault"]).len(), 1);
    on(&["--vault", "none.vault", "add", "--create", "--dry-run", "b.json"]);
    assert!(!sandbox.path("none.vault").exists());
}

#[test]
fn captures_of_an_artifact_are_one_hit_with_what_they_say_otherwise() {
    let sandbox = Sandbox::new();
    let contract = "io_refs: []\neffects: []\ndescription: the first wording\nowner: reviewer\n";
    sandbox.add([sandbox.write("one.yaml", contract)]);
    sandbox.run(["index", "build"]).expect(0);
    sandbox.add([sandbox.write("two.yaml", contract.replace("first", "second"))]);
    assert_eq!(hits(&sandbox, &["wording", "--all"]).len(), 2);
    assert_eq!(hits(&sandbox, &["reviewer", "--all"]).len(), 1, "it is said in the same place");
    assert_eq!(hits(&sandbox, &["wording"]).len(), 1);
    assert_ne!(hits(&sandbox, &["first"])[0]["capture_hash"], hits(&sandbox, &["second"])[0]["capture_hash"]);
    clean(&sandbox);
    // Built at once, it is the same index.
    let before = hits(&sandbox, &["wording", "--all"]);
    sandbox.run(["index", "build"]).expect(0);
    assert_eq!(hits(&sandbox, &["wording", "--all"]), before);
}

#[test]
fn numbers_of_captures_that_are_used_again_hide_nothing() {
    let sandbox = of_responses(&["zero", "one", "two"]);
    for round in 0..3 {
        for last in ["one", "two"] {
            if let Some(core) = found(&sandbox, &[last]).first() {
                sandbox.run(["rm", core]).expect(0);
            }
        }
        assert_eq!(hits(&sandbox, &["one OR two"]).len(), 0);
        // They get the numbers of those that were removed.
        sandbox.add([
            written(&sandbox, &format!("x{round}"), "two"),
            written(&sandbox, &format!("y{round}"), "one"),
        ]);
        assert_eq!((found(&sandbox, &["one"]).len(), found(&sandbox, &["two"]).len()), (1, 1));
        clean(&sandbox);
    }
}

#[test]
fn an_index_of_another_version_is_rebuilt() {
    let sandbox = of_responses(&["a word"]);
    let before = hits(&sandbox, &["word"]);
    sql(&sandbox)
        .execute_batch("UPDATE search_state SET version = 999; DELETE FROM search_text WHERE rowid = 1")
        .unwrap();
    assert_eq!(hits(&sandbox, &["word"]), before);
    clean(&sandbox);
}

#[test]
fn many_may_search_build_add_and_remove_at_once() {
    let sandbox = Sandbox::new();
    for number in 0..400 {
        let text = session(&format!("n{number}"), &[("p", &format!("common word{number}"))]);
        sandbox.write(&format!("{}/{number}.json", number % 4), text);
    }
    let leaving = sandbox.add([sandbox.path("0")]);
    let start = |arguments: &[&str]| {
        let mut command = sandbox.command();
        command.env("RUNVAULT_SEARCH", "on").args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut children = vec![start(&["index", "build"]), start(&["index", "build"])];
    for part in ["1", "2", "3"] {
        children.push(start(&["add", part]));
    }
    for pair in leaving.chunks(2).take(10) {
        children.push(start(&["rm", &pair[0], &pair[1]]));
        children.push(start(&["index", "build"]));
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(hits(&sandbox, &["common", "--limit", "1000"]).len(), 380);
    clean(&sandbox);
}

#[test]
fn an_interrupted_build_is_completed_by_the_next_question() {
    let sandbox = Sandbox::new();
    for number in 0..300 {
        let text = session(&format!("n{number}"), &[("p", &format!("common {}", "words ".repeat(number)))]);
        sandbox.write(&format!("d/{number}.json"), text);
    }
    sandbox.add([sandbox.path("d")]);
    for milliseconds in [1, 5, 10, 20, 40, 80] {
        let mut command = sandbox.command();
        command.args(["index", "build"]).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        clean(&sandbox);
    }
    sandbox.run(["search", "common", "--in", "tool"]);
    if sandbox.run(["search", "common"]).status == 1 {
        sandbox.run(["index", "build"]).expect(0);
    }
    assert_eq!(hits(&sandbox, &["common", "--limit", "1000"]).len(), 300);
    clean(&sandbox);
}

#[test]
fn copies_of_a_vault_have_its_index_and_dropping_it_gives_the_space_back() {
    let sandbox = examples();
    sandbox.run(["backup", "copy.vault"]).expect(0);
    let before = hits(&sandbox, &["export"]);
    assert_eq!(hits(&sandbox, &["export", "--vault", "copy.vault"]), before);
    sandbox.run(["index", "rebuild"]).expect(0);
    assert_eq!(hits(&sandbox, &["export"]), before);
    sandbox.run(["gc"]).expect(0);
    let size = || std::fs::metadata(sandbox.vault()).unwrap().len();
    let with = size();
    let of_index =
        runvault::Vault::open(&sandbox.vault()).unwrap().run(&SearchIndexRequest {}).unwrap().bytes;
    sandbox.run(["index", "drop"]).expect(0);
    assert_eq!(
        runvault::Vault::open(&sandbox.vault()).unwrap().run(&SearchIndexRequest {}).unwrap().bytes,
        0
    );
    sandbox.run(["index", "drop"]).expect(1);
    sandbox.run(["gc"]).expect(0);
    let without = size();
    // The definitions of its tables may take two pages more: where they do not fit on one, there are two and one above them.
    let gone = with - without;
    assert!(
        of_index > 0 && (of_index..=of_index + 2 * 8_192).contains(&gone),
        "{of_index} of {with}: {gone}"
    );
    clean(&sandbox);
}

#[test]
fn what_was_read_before_it_was_removed_does_not_come_back() {
    for is_replaced in [true, false] {
        let sandbox = of_responses(&["first"]);
        let cores = sandbox.add(["second", "third"].map(|word| written(&sandbox, word, word)));
        let store =
            runvault::storage::Store::open(&sandbox.vault(), runvault::storage::CreationPolicy::Never)
                .unwrap();
        let text = |word: &str| vec![Some((runvault::artifact::Field::RESPONSE, word.to_owned()))];
        let snapshot = Storage::snapshot(&store).unwrap();
        let read = snapshot.full_text().unwrap().unindexed(10).unwrap();
        drop(snapshot);
        let batch = [read[0].with(text("second")), read[1].with(text("third"))];
        sandbox.run(["rm", &cores[1]]).expect(0);
        if is_replaced {
            sandbox.add([written(&sandbox, "other", "other")]);
        }
        let index = || FullText::index_passages(&store, &batch, BUSY_TIMEOUT).unwrap();
        assert!(index());
        assert!(!index(), "they are there already");
        drop(store);
        assert_eq!(found(&sandbox, &["second"]).len(), 1);
        assert_eq!(found(&sandbox, &["third"]), [""; 0]);
        sandbox.add([written(&sandbox, "other", "other")]);
        assert_eq!(found(&sandbox, &["other"]).len(), 1);
        clean(&sandbox);
    }
}
