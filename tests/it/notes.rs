//! Notes: what people want to remember, kept apart from what is hashed, and gone with its artifact.

use serde_json::{Value, json};

use crate::bundle::on;
use crate::sandbox::{Sandbox, repository, session};

const SESSION: &str = "4df877dec7f4";
const RUN: &str = "3941d389b337";

fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox
}

fn entries(sandbox: &Sandbox) -> Vec<Value> {
    let lines = sandbox.run(["log", "--action", "note", "--json"]).json();
    lines.into_iter().map(|mut line| line["entry"].take()).collect()
}

#[test]
fn one_note_is_written_read_replaced_and_removed() {
    let sandbox = examples();
    let before = sandbox.run(["get", SESSION]).expect(0).stdout;
    let none = sandbox.run(["note", "show", SESSION]).expect(1);
    assert!(
        none.stderr.contains("has no note; \"runvault note set 4df877dec7f4 TEXT\" writes one"),
        "{}",
        none.stderr
    );
    sandbox.run(["note", "remove", SESSION]).expect(1);
    assert_eq!(sandbox.run(["note", "set", SESSION, "first"]).expect(0).stderr, "note set\n");
    assert_eq!(sandbox.run(["note", "set", SESSION, "first"]).expect(0).stderr, "note unchanged\n");
    assert_eq!(
        sandbox.run_on(b"two\nlines\r\n", &["note", "set", SESSION, "-"]).expect(0).stderr,
        "note set\n"
    );
    assert_eq!(sandbox.run(["note", "show", SESSION]).expect(0).stdout, "two\nlines\n");
    let json = sandbox.run(["note", "show", SESSION, "--json"]).expect(0).json().remove(0);
    assert_eq!(json["note"], "two\nlines");
    assert!(json["core_hash"].as_str().unwrap().starts_with("sha256:4df877dec7f4"));
    let shown = sandbox.run(["show", SESSION]).expect(0).stdout;
    assert!(shown.contains("\n  note         two\\nlines\n"), "{shown}");
    assert_eq!(sandbox.run(["show", SESSION, "--json"]).expect(0).json()[0]["note"], "two\nlines");
    assert_eq!(sandbox.run(["note", "remove", SESSION]).expect(0).stderr, "note removed\n");
    sandbox.run(["note", "show", SESSION]).expect(1);
    let texts: Vec<Value> = entries(&sandbox).into_iter().map(|mut entry| entry["note"].take()).collect();
    assert_eq!(texts, [json!("first"), json!("two\nlines"), Value::Null]);
    let log = sandbox.run(["log", "--action", "note", "--limit", "1"]).expect(0).stdout;
    assert!(log.contains(" note    4df877dec7f4 removed "), "{log}");
    assert_eq!(sandbox.run(["get", SESSION]).expect(0).stdout, before);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn what_is_no_note_is_refused() {
    let sandbox = examples();
    sandbox.run(["note", "set", RUN, &"a".repeat(4096)]).expect(0);
    let (none, long) =
        ("the note is empty; \"runvault note remove\"", "too long; a note has at most 4096 bytes");
    for (text, why) in [("", none), (" \n", none), (&"a".repeat(4097), long), (&"é".repeat(3000), long)] {
        let refused = sandbox.run(["note", "set", RUN, text]).expect(3);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        sandbox.run_on(text.as_bytes(), &["note", "set", RUN, "-"]).expect(3);
    }
    assert!(sandbox.run_on(b"\xff", &["note", "set", RUN, "-"]).expect(2).stderr.contains("not UTF-8"));
    sandbox.run(["note", "set", RUN, "text", "--remove"]).expect(3);
    sandbox.run(["note", "set", "abcdef", "text"]).expect(1);
    // A capture has no note of its own.
    assert!(
        sandbox.run(["note", "set", "a587d00a12c1", "text"]).expect(3).stderr.contains("give the core hash")
    );
    assert_eq!(entries(&sandbox).len(), 1);
}

#[test]
fn notes_are_found_by_what_they_say() {
    let sandbox = examples();
    sandbox.run(["note", "set", SESSION, "The Golden one"]).expect(0);
    sandbox.run(["note", "set", RUN, "not golden\u{1b}[2J"]).expect(0);
    let found = |arguments: &[&str]| -> Vec<String> {
        let all: Vec<&str> =
            ["find", "--format", "{{hash}}", "--sort", "core"].iter().chain(arguments).copied().collect();
        sandbox.run(all).stdout.lines().map(str::to_owned).collect()
    };
    assert_eq!(found(&["--note", "golden"]), [RUN, SESSION]);
    assert_eq!(found(&["--note", "THE"]), [SESSION]);
    assert_eq!(found(&["--note", ""]), [RUN, SESSION]);
    assert_eq!(found(&["runs", "--note", ""]), [RUN]);
    assert_eq!(found(&["sessions", "--note", "golden", "--model", "triage-large-2"]), [SESSION]);
    assert!(found(&["--note", "silver"]).is_empty());
    let text = sandbox.run(["find", "runs", "--note", "golden"]).expect(0).stdout;
    assert!(text.ends_with("\n    note not golden\\u{1b}[2J\n"), "{text}");
    let line = sandbox.run(["find", "sessions", "--note", "golden", "--json"]).expect(0).json().remove(0);
    assert_eq!(line["matches"], json!([{"note": "The Golden one"}]));
    // Who only looks at some of them may export those.
    sandbox.run(["export", "--note", "the golden", "-o", "golden.rvz"]).expect(0);
}

#[test]
fn a_note_goes_with_its_artifact() {
    let sandbox = examples();
    sandbox.run(["note", "set", RUN, "secret plans"]).expect(0);
    sandbox.run(["rm", RUN, "--force"]).expect(0);
    let last = entries(&sandbox).pop().unwrap();
    assert!(last.get("note").is_none() && last["core"].as_str().unwrap().contains(RUN));
    sandbox.run(["fsck"]).expect(0);
    let run = repository("examples/run.rpk");
    sandbox.run(["add".as_ref(), "--allow-removed".as_ref(), run.as_os_str()]).expect(0);
    sandbox.run(["note", "show", RUN]).expect(1);
    assert_eq!(sandbox.run(["stats", "--json"]).expect(0).json()[0]["notes"], 0);
}

#[test]
fn notes_travel_in_bundles() {
    let sandbox = examples();
    sandbox.run(["note", "set", SESSION, "from home"]).expect(0);
    sandbox.run(["note", "set", RUN, "from home as well"]).expect(0);
    sandbox.run(["export", SESSION, RUN, "-o", "two.rvz"]).expect(0);
    // To a vault that has one of them already, with a note of its own.
    on(&sandbox, "other.vault", &["add", "--create", repository("examples/run.rpk").to_str().unwrap()])
        .expect(0);
    on(&sandbox, "other.vault", &["note", "set", RUN, "mine"]).expect(0);
    let notes = |line: &Value| line.get("note").is_some();
    let previewed = on(&sandbox, "other.vault", &["import", "--create", "two.rvz", "--dry-run", "--json"])
        .expect(0)
        .json();
    let imported = on(&sandbox, "other.vault", &["import", "--create", "two.rvz", "--json"]).expect(0).json();
    let outcomes = |lines: &[Value]| -> Vec<Value> {
        lines.iter().filter(|line| notes(line)).map(|line| line["outcome"].clone()).collect()
    };
    assert_eq!(outcomes(&imported), ["not_noted", "noted"]);
    assert_eq!(outcomes(&previewed), outcomes(&imported));
    assert_eq!(on(&sandbox, "other.vault", &["note", "show", SESSION]).expect(0).stdout, "from home\n");
    assert_eq!(on(&sandbox, "other.vault", &["note", "show", RUN]).expect(0).stdout, "mine\n");
    let again = on(&sandbox, "other.vault", &["import", "--create", "two.rvz"]).expect(0).stderr;
    assert!(again.contains("not noted 3941d389b337: it has another note here"), "{again}");
    assert!(again.ends_with("0 notes set\n"), "{again}");
    on(&sandbox, "other.vault", &["fsck"]).expect(0);
}

#[test]
fn views_have_notes() {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", session("a", &[("hello", "hi")]));
    sandbox.add([sandbox.path("one.json")]);
    sandbox.run(["note", "set", "latest", "seen from outside"]).expect(0);
    let connection =
        rusqlite::Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::default()).unwrap();
    let note = connection.query_row(
        "SELECT a.kind || ': ' || n.note FROM notes n JOIN artifacts a USING (artifact)",
        [],
        |row| row.get::<_, String>(0),
    );
    assert_eq!(note.unwrap(), "model_io: seen from outside");
}
