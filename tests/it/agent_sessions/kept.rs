//! Agent sessions in other forms than one file for each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::forms::{claude_code, lines};
use crate::sandbox::{Ran, Sandbox, repository};

/// The session of Claude Code in these tests.
const SESSION: &str = "610bebd5-0051-4aa6-9f8e-ff8dd45fddd0";

/// The export of a session that opencode wrote.
fn export() -> String {
    fs::read_to_string(repository("tests/agents/opencode/export.json")).unwrap()
}

/// Makes a database with the tables and rows of that session, as opencode has them, and leaves it open.
fn database(path: &Path) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = Connection::open_with_flags(path, OpenFlags::default()).unwrap();
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let rows = fs::read_to_string(repository("tests/agents/opencode/database.sql")).unwrap();
    connection.execute_batch(&rows).unwrap();
    connection
}

/// Writes the files that earlier versions of opencode keep of that session.
fn files(storage: &Path) -> PathBuf {
    let export: Value = serde_json::from_str(&export()).unwrap();
    let write = |path: PathBuf, value: &Value| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, serde_json::to_string(value).unwrap()).unwrap();
        path
    };
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    for message in export["messages"].as_array().unwrap() {
        let info = &message["info"];
        let session = info["sessionID"].as_str().unwrap();
        write(storage.join("message").join(session).join(format!("{}.json", id(info))), info);
        for part in message["parts"].as_array().unwrap() {
            write(storage.join("part").join(id(info)).join(format!("{}.json", id(part))), part);
        }
    }
    let info = &export["info"];
    write(storage.join("session/global").join(format!("{}.json", id(info))), info)
}

/// Runs a command for the user whose home directory is in the sandbox.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command.env("HOME", sandbox.path("home")).args(arguments);
    Ran::from(command.output().unwrap())
}

#[test]
fn a_session_of_opencode_is_one_artifact_in_its_database_its_files_and_its_export() {
    let sandbox = Sandbox::new();
    let exported = sandbox.add([sandbox.write("export.json", export())]);
    let open = database(&sandbox.path("home/.local/share/opencode/opencode.db"));
    let before = fs::read(sandbox.path("home/.local/share/opencode/opencode.db")).unwrap();
    let stored = run(&sandbox, &["add", "--agents", "--json"]).expect(0).json();
    assert_eq!(stored.len(), 1, "{stored:?}");
    // The same bytes, which are nothing new.
    assert_eq!(
        (&stored[0]["core_hash"], &stored[0]["outcome"]),
        (&exported[0][..].into(), &"present".into())
    );
    files(&sandbox.path("storage"));
    let of_files = run(&sandbox, &["add", "storage", "--json"]).expect(0).json();
    assert_eq!(of_files.len(), 1, "{of_files:?}");
    assert_eq!(of_files[0]["core_hash"], exported[0]);
    // A session of which a file was not written to its end is not left out without a word.
    let first_in = |directory: &Path| fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
    fs::write(first_in(&first_in(&sandbox.path("storage/part"))), "{\"id\":").unwrap();
    let refused = run(&sandbox, &["add", "storage"]).expect(2).stderr;
    assert!(refused.contains("is not valid JSON"), "{refused}");
    let named =
        run(&sandbox, &["verify", "home/.local/share/opencode/opencode.db", "--json"]).expect(0).json();
    assert_eq!(named[0]["core_hash"], exported[0]);
    assert_eq!(fs::read(sandbox.path("home/.local/share/opencode/opencode.db")).unwrap(), before);
    drop(open);
    // A file that is only named so is examined as any other.
    sandbox.write("other/opencode.db", "no database");
    run(&sandbox, &["add", "other/opencode.db"]).expect(1);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_database_of_opencode_is_followed_while_it_is_written() {
    let sandbox = Sandbox::recording_source_paths();
    let path = sandbox.path("home/.local/share/opencode/opencode.db");
    let writer = database(&path);
    let watched =
        || run(&sandbox, &["watch", "--agents", "--once", "--settle", "0s", "--json"]).expect(0).json();
    let first = watched();
    assert_eq!(first.len(), 1, "{first:?}");
    // A turn that another connection is writing is not seen before it is committed.
    writer
        .execute_batch(
            "BEGIN; INSERT INTO message SELECT 'msg_3', session_id, time_created + 9000, time_updated + 9000, data \
             FROM message ORDER BY id DESC LIMIT 1",
        )
        .unwrap();
    assert_eq!(watched()[0]["outcome"], "present");
    writer.execute_batch("COMMIT").unwrap();
    let longer = watched();
    assert_eq!(longer[0]["outcome"], "added", "{longer:?}");
    let links =
        run(&sandbox, &["links", longer[0]["core_hash"].as_str().unwrap(), "--json"]).expect(0).stdout;
    assert!(links.contains("extends") && links.contains(first[0]["core_hash"].as_str().unwrap()), "{links}");
    // The session is gone when the database does not have it any more.
    run(&sandbox, &["list", "--gone"]).expect(1);
    writer.execute_batch("DELETE FROM session").unwrap();
    assert_eq!(run(&sandbox, &["list", "--gone", "--json"]).expect(0).json().len(), 1);
}

#[test]
fn the_files_of_a_session_are_listed_and_linked_to_it() {
    let sandbox = Sandbox::recording_source_paths();
    let project = format!("home/.claude/projects/-work/{SESSION}");
    let transcript = lines(&claude_code()).replace("session-1", SESSION);
    sandbox.write(&format!("{project}.jsonl"), &transcript);
    let kept = [
        (format!("{project}/tool-results/b1.txt"), "1\n2\n3\n"),
        (format!("{project}/subagents/agent-a1.meta.json"), "{\"agentType\":\"general-purpose\"}"),
        (format!("home/.claude/file-history/{SESSION}/bfe73e6a11e33a85@v1"), "old\n"),
        (format!("home/.claude/todos/{SESSION}-agent-1.json"), "[]"),
    ];
    for (path, content) in &kept {
        sandbox.write(path, content);
    }
    // These are of no session.
    sandbox.write("home/.claude/projects/-work/memory/notes.md", "a note");
    sandbox.write("home/.claude/todos/other.json", "[]");
    let added = run(&sandbox, &["add", "--agents", "--json"]).expect(0).json();
    assert_eq!(added.len(), 1 + kept.len() + 1, "{added:?}");
    let session = added.iter().find(|line| line["kind"] == "agent_session").unwrap();
    let session = session["core_hash"].as_str().unwrap();
    let linked = |depth: &str| {
        let links = run(&sandbox, &["links", session, "--depth", depth, "--json"]).expect(0).json();
        links.iter().map(|link| link["core_hash"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let lists = linked("1");
    assert_eq!(lists.len(), 1);
    let list = run(&sandbox, &["get", lists.first().unwrap()]).expect(0).stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let names: Vec<&String> = list["files"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "file-history/bfe73e6a11e33a85@v1",
            "subagents/agent-a1.meta.json",
            &format!("todos/{SESSION}-agent-1.json"),
            "tool-results/b1.txt"
        ]
    );
    assert_eq!(linked("2").len(), 1 + kept.len());
    let output = list["files"]["tool-results/b1.txt"].as_str().unwrap();
    assert_eq!(run(&sandbox, &["get", output]).expect(0).stdout, kept[0].1);
    // Nothing changed.
    let again = run(&sandbox, &["add", "--agents", "--json"]).expect(0).json();
    assert!(again.iter().all(|line| line["outcome"] == "present"), "{again:?}");
    // A file that grew is another one, in another list, and those that are gone stay.
    sandbox.write(&kept[0].0, "1\n2\n3\n4\n");
    fs::remove_file(sandbox.path(&kept[1].0)).unwrap();
    let grown = run(&sandbox, &["watch", "--agents", "--once", "--settle", "0s", "--json"]).expect(0).json();
    assert_eq!(grown.iter().filter(|line| line["outcome"] == "added").count(), 2, "{grown:?}");
    assert_eq!(linked("1").len(), 2);
    let gone = run(&sandbox, &["list", "--gone", "--json"]).expect(0).json();
    assert_eq!(gone.len(), 1, "{gone:?}");
    sandbox.run(["fsck"]).expect(0);
}
