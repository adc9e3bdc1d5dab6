//! Commands that change one thing, as programs run them: with `--json`, and with the words of other programs.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository};

const SESSION: &str = "4df877dec7f4";
const TRACE: &str = "66c2f87e8153";

fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox
}

/// Runs the command with `--json`, and returns the one document that it prints.
fn answer(sandbox: &Sandbox, words: &[&str], status: i32) -> Value {
    let ran = sandbox.run(words.iter().chain(&["--json"])).expect(status);
    assert_eq!(ran.stderr.is_empty(), status == 0 || words[0] == "index", "{words:?}: {}", ran.stderr);
    let mut documents = ran.json();
    assert_eq!(documents.len(), 1, "{words:?}");
    documents.remove(0)
}

#[test]
fn every_change_prints_its_answer_as_json() {
    let sandbox = examples();
    let changes: [(&[&str], &[&str]); 4] = [
        (&["note", "set", SESSION, "text"], &["note", "remove", SESSION]),
        (&["pin", "add", SESSION], &["pin", "remove", SESSION]),
        (&["label", "set", SESSION, "commit=4f2a91c"], &["label", "remove", SESSION, "commit"]),
        (&["link", "add", SESSION, "seen-in", TRACE], &["link", "remove", SESSION, "seen-in", TRACE]),
    ];
    for (set, remove) in changes {
        assert_eq!(answer(&sandbox, set, 0), json!({"changed": true}));
        assert_eq!(answer(&sandbox, set, 0), json!({"changed": false}));
        assert_eq!(answer(&sandbox, remove, 0), json!({"changed": true}));
        assert_eq!(answer(&sandbox, remove, 1), json!({"changed": false}));
    }
    let core = sandbox.run(["show", SESSION, "--json"]).expect(0).json().remove(0)["core_hash"].take();
    let unmoved = json!({"changed": true, "moved_from": null});
    assert_eq!(answer(&sandbox, &["tag", "set", SESSION, "baseline"], 0), unmoved);
    let moved = json!({"changed": true, "moved_from": core});
    assert_eq!(answer(&sandbox, &["tag", "set", TRACE, "baseline"], 0), moved);
    assert_eq!(answer(&sandbox, &["tag", "remove", "baseline"], 0), json!({"changed": true}));
    assert_eq!(answer(&sandbox, &["tag", "remove", "baseline"], 1), json!({"changed": false}));
}

#[test]
fn a_blank_reason_is_none() {
    let sandbox = examples();
    for blank in ["", " "] {
        sandbox.run(["pin", "add", SESSION, "--note", blank]).expect(0);
        sandbox.run(["link", "add", SESSION, "seen-in", TRACE, "--note", blank]).expect(0);
        let pins = sandbox.run(["pin", "list", "--json"]).expect(0).json();
        assert_eq!(pins[0]["note"], Value::Null);
        let links = sandbox.run(["links", SESSION, "--json"]).expect(0).json();
        let added = links.iter().find(|link| link["relation"] == "seen-in").unwrap();
        assert_eq!(added["because"], Value::Null);
    }
}

#[test]
fn the_vault_itself_is_changed_with_json() {
    let sandbox = examples();
    let path = sandbox.path("new.vault");
    let path = path.to_str().unwrap();
    assert_eq!(answer(&sandbox, &["init", "--vault", path], 0), json!({"path": path}));
    let built = answer(&sandbox, &["index", "build"], 0);
    assert_eq!((&built["captures"], &built["damaged"]), (&json!(8), &json!([])));
    assert!(built["bytes"].as_u64().unwrap() > 0);
    assert_eq!(answer(&sandbox, &["index", "drop"], 0), json!({"changed": true}));
    assert_eq!(answer(&sandbox, &["index", "drop"], 1), json!({"changed": false}));
    // It prints findings, and there are none.
    assert_eq!(sandbox.run(["index", "rebuild", "--json"]).expect(0).stdout, "");
}

#[test]
fn the_words_of_other_programs_are_understood() {
    let sandbox = examples();
    for (line, told) in [
        ("tag add 4df877dec7f4 one", "tagged\n"),
        ("tag rm one", "untagged\n"),
        ("label add 4df877dec7f4 a=b", "labeled\n"),
        ("label rm 4df877dec7f4 a", "label removed\n"),
        ("pin set 4df877dec7f4", "pinned\n"),
        ("pin delete 4df877dec7f4", "unpinned\n"),
        ("note add 4df877dec7f4 text", "note set\n"),
        ("note unset 4df877dec7f4", "note removed\n"),
    ] {
        assert_eq!(sandbox.run(line.split(' ')).expect(0).stderr, told, "{line}");
    }
}

#[test]
fn values_that_are_not_valid_are_explained() {
    let sandbox = examples();
    for (line, told) in [
        ("find --limit many", "expected a whole number"),
        ("find --limit 99999999999999999999999", "the number is too large"),
        ("log --action relabel", "possible values: add, allow-removed"),
        ("init other.vault", "\"runvault init --vault other.vault\""),
        ("man nothing", "there is no command nothing"),
    ] {
        let ran = sandbox.run(line.split(' ')).expect(3);
        assert!(ran.stderr.contains(told), "{line}: {}", ran.stderr);
    }
    let vault = sandbox.vault();
    let told = sandbox.run(["import", vault.to_str().unwrap()]).expect(1).stderr;
    assert!(told.contains("is a vault or another SQLite database, not a bundle"), "{told}");
}

#[test]
fn every_action_is_documented() {
    let documented = std::fs::read_to_string(repository("docs/journal.md")).unwrap();
    let mut actions: Vec<&str> = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | `"))
        .map(|(action, _)| action)
        .collect();
    actions.sort_unstable();
    assert_eq!(actions, runvault::vault::journal::ACTIONS);
}
