//! What goes in comes out, and adding twice changes nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use runvault::digest::Digest;

use crate::conformance::corpus;
use crate::sandbox::{Sandbox, session};

/// The accepted files of the corpus with their core hashes, as the program itself tells them.
fn accepted(sandbox: &Sandbox) -> Vec<(PathBuf, String, String)> {
    let mut accepted = Vec::new();
    for kind in ["model_io", "rpk", "trace", "contract"] {
        let directory = corpus().join(kind);
        let ran = sandbox.run(["verify".as_ref(), "--json".as_ref(), directory.as_os_str()]).expect(1);
        for line in ran.json().iter().filter(|line| line["ok"] == true) {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            accepted.push((PathBuf::from(text("path")), text("kind"), text("core_hash")));
        }
    }
    assert!(accepted.len() > 100);
    accepted
}

#[test]
fn every_accepted_file_comes_out_byte_for_byte() {
    let sandbox = Sandbox::new();
    let accepted = accepted(&sandbox);
    sandbox.add(accepted.iter().map(|(path, ..)| path));
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    for (path, kind, core) in &accepted {
        let bytes = std::fs::read(path).unwrap();
        let located = vault.locate(&Digest::from_content(&bytes).into()).unwrap();
        assert_eq!(vault.read(&located).unwrap(), bytes, "{}", path.display());
        // A document in another form is an attachment beside the artifact that it implies.
        if located.artifact.kind == "attachment" {
            continue;
        }
        assert_eq!(located.artifact.core.to_string(), *core, "{}", path.display());
        assert_eq!(located.artifact.kind, *kind);
        let canonical = vault.read_core(&located).unwrap();
        assert_eq!(Digest::from_content(&canonical).to_string(), *core, "{}", path.display());
    }
}

#[test]
fn adding_twice_changes_nothing_but_when_it_was_seen() {
    let sandbox = Sandbox::new();
    let accepted = accepted(&sandbox);
    let paths = || accepted.iter().map(|(path, ..)| path);
    sandbox.add(paths());
    let everything = || {
        let mut answers = sandbox.run(["find", "--sort", "core", "--json"]).expect(0).json();
        for (_, _, core) in &accepted {
            answers.extend(sandbox.run(["show", "--json", core]).expect(0).json());
        }
        answers.iter_mut().for_each(forget_when_seen);
        answers
    };
    let before = everything();
    let arguments =
        ["add".as_ref(), "--json".as_ref()].into_iter().chain(paths().map(|path| path.as_os_str()));
    let again = sandbox.run(arguments).expect(0);
    assert!(again.json().iter().all(|line| line["outcome"] == "present"), "{}", again.stdout);
    assert!(again.stderr.starts_with("0 added"), "{}", again.stderr);
    assert_eq!(everything(), before);
}

/// Takes the times at which something was seen again out of an answer.
fn forget_when_seen(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.remove("seen_at");
            members.values_mut().for_each(forget_when_seen);
        }
        serde_json::Value::Array(elements) => elements.iter_mut().for_each(forget_when_seen),
        _ => {}
    }
}

#[test]
fn the_order_of_arrival_does_not_matter() {
    let (forth, back) = (Sandbox::new(), Sandbox::new());
    let accepted = accepted(&forth);
    forth.add(accepted.iter().map(|(path, ..)| path));
    // Backwards, and one at a time, so that nothing is in one batch.
    for (path, ..) in accepted.iter().rev() {
        back.add([path]);
    }
    let answers = |sandbox: &Sandbox| -> BTreeSet<String> {
        let cores: BTreeSet<&String> = accepted.iter().map(|(_, _, core)| core).collect();
        let mut answers = BTreeSet::new();
        for core in cores {
            let mut shown = sandbox.run(["show", "--json", core]).expect(0).json().remove(0);
            for time in ["/added_at", "/seen_at", "/captures"] {
                shown.pointer_mut(time).unwrap().take();
            }
            answers.insert(shown.to_string());
        }
        answers
    };
    assert_eq!(answers(&forth), answers(&back));
}

#[test]
fn two_byte_forms_are_one_artifact_with_two_captures() {
    let sandbox = Sandbox::new();
    let first = session("a", &[("hello", "hi")]);
    let second = first.replacen('{', "{\n  \"created_at_utc\": \"2026-01-01T00:00:00Z\",", 1);
    sandbox.write("first.json", &first);
    sandbox.write("second.json", &second);
    let lines = sandbox.run(["add", "--json", "first.json", "second.json"]).expect(0).json();
    assert_eq!([&lines[0]["outcome"], &lines[1]["outcome"]], ["added", "capture"]);
    assert_eq!(lines[0]["core_hash"], lines[1]["core_hash"]);
    let core = lines[0]["core_hash"].as_str().unwrap();
    assert_eq!(sandbox.run(["get", core]).expect(0).stdout, first);
    let capture = Digest::from_content(second.as_bytes());
    assert_eq!(sandbox.run(["get", &capture.hex()]).expect(0).stdout, second);
    assert_eq!(sandbox.run(["get", core, "--capture", &format!("{capture:.8}")]).expect(0).stdout, second);
    let canonical = sandbox.run(["get", core, "--core"]).expect(0).stdout;
    assert_eq!(Digest::from_content(canonical.as_bytes()).to_string(), core);
    // The canonical form is a capture like any other, although its hash is the core hash.
    sandbox.add([sandbox.write("canonical.json", &canonical)]);
    assert_eq!(sandbox.run(["get", core]).expect(0).stdout, first);
    assert_eq!(sandbox.run(["get", core, "--capture", core]).expect(0).stdout, canonical);
    assert_eq!(sandbox.run(["get", core, "--capture", "000000"]).expect(1).stdout, "");
}

#[test]
fn a_file_is_written_whole_and_never_over_another() {
    let sandbox = Sandbox::new();
    let text = session("a", &[("hello", "hi")]);
    let core = sandbox.add([sandbox.write("s.json", &text)]).remove(0);
    sandbox.run(["get", &core, "-o", "out.json"]).expect(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("out.json")).unwrap(), text);
    std::fs::write(sandbox.path("out.json"), "mine").unwrap();
    let refused = sandbox.run(["get", &core, "-o", "out.json"]).expect(2);
    assert!(refused.stderr.contains("out.json: it already exists; use --force"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(sandbox.path("out.json")).unwrap(), "mine");
    sandbox.run(["get", &core, "-o", "out.json", "--force"]).expect(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("out.json")).unwrap(), text);
    assert_eq!(sandbox.run(["get", &core, "-o", "-"]).expect(0).stdout, text);
    for (target, because) in [(".", "is not a file"), ("no/such/out.json", "there is no such directory")] {
        let refused = sandbox.run(["get", &core, "-o", target, "--force"]).expect(2);
        assert!(refused.stderr.contains(because), "{}", refused.stderr);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("out.json", sandbox.path("link.json")).unwrap();
        std::fs::write(sandbox.path("out.json"), "mine").unwrap();
        sandbox.run(["get", &core, "-o", "link.json"]).expect(2);
        sandbox.run(["get", &core, "-o", "link.json", "--force"]).expect(0);
        assert!(!sandbox.path("link.json").is_symlink());
        assert_eq!(std::fs::read_to_string(sandbox.path("link.json")).unwrap(), text);
        assert_eq!(std::fs::read_to_string(sandbox.path("out.json")).unwrap(), "mine");
    }
}

#[test]
fn a_session_is_fetched_as_typed_data() {
    let sandbox = Sandbox::new();
    let core =
        sandbox.add([sandbox.write("s.json", session("a", &[("hello", "hi"), ("bye", "")]))]).remove(0);
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let session = vault.session(core.parse().unwrap()).unwrap();
    assert_eq!(session.adapter_id, "a");
    let contents: Vec<&str> = session.interactions.iter().map(|one| one.response_content.as_str()).collect();
    assert_eq!(contents, ["hi", ""]);
    assert_eq!(session.interactions[1].prompt_hash, Digest::from_content(b"bye"));
}
