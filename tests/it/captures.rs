//! Captures of one artifact that mean different things, where the format's canonical form allows it.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, run_pack, session};

/// A run, and the same run with other line ends, digits, a path in another spelling and tags in another order.
fn two_spellings() -> [String; 2] {
    let run = run_pack(
        "r",
        &[
            json!({"type": "tool.request", "input": {"tool": "read", "arguments": {
                "path": "/c/data", "text": "one\ntwo", "ratio": 0.5, "tags": ["a", "b"], "list": [1, {"file": "x/y"}]}}}),
            json!({"type": "tool.response", "input": {"tool": "read"}, "output": {"text": "three\nfour"}}),
        ],
    );
    let other = run
        .replace("/c/data", "C:\\\\data")
        .replace("one\\ntwo", "one\\r\\ntwo")
        .replace("three\\nfour", "three\\r\\nfour")
        .replace("0.5", "0.50")
        .replace(r#"["a","b"]"#, r#"["b","a"]"#)
        .replace("x/y", "x\\\\y");
    assert_ne!(run, other);
    [run, other]
}

fn digest(text: &str) -> String {
    runvault::digest::Digest::from_content(text.as_bytes()).to_string()
}

fn added(documents: &[String]) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let paths: Vec<_> =
        (0..).zip(documents).map(|(n, text)| sandbox.write(&format!("{n}.json"), text)).collect();
    let mut cores = sandbox.add(paths);
    cores.dedup();
    assert_eq!(cores.len(), 1);
    (sandbox, cores.remove(0))
}

#[test]
fn diff_all_shows_how_captures_of_one_core_differ_in_meaning() {
    let documents = two_spellings();
    let (sandbox, core) = added(&documents);
    let hashes = documents.each_ref().map(|document| digest(document));
    let pointers = |arguments: &[&str]| -> Vec<String> {
        let document = sandbox.run(arguments).expect(1).json().remove(0);
        assert_eq!((&document["same_core"], &document["first_divergence"]), (&true.into(), &Value::Null));
        let changes = document["changes"].as_array().unwrap().clone();
        assert!(changes.iter().all(|change| change["change"] == "spelling"), "{changes:?}");
        let values = changes.iter().flat_map(|change| change["values"].as_array().unwrap());
        values.map(|value| value["pointer"].as_str().unwrap().to_owned()).collect()
    };
    let expected = [
        "/input/arguments/list/1/file",
        "/input/arguments/path",
        "/input/arguments/ratio",
        "/input/arguments/tags",
        "/input/arguments/text",
        "/output/text",
    ];
    for arguments in [
        &["diff", "--all", "--json", &core][..],
        &["diff", "--all", "--json", &hashes[0], &hashes[1]],
        &["diff", "--all", "--json", "0.json", "1.json"],
    ] {
        let mut found = pointers(arguments);
        found.sort();
        assert_eq!(found, expected);
    }
    let text = sandbox.run(["diff", "--all", &core]).expect(1).stdout;
    assert!(text.contains("identical core") && text.contains("only the spelling differs: input"), "{text}");
    assert!(text.contains("/input/arguments/path (spelling)"), "{text}");
    // Without --all, they are the same as before.
    sandbox.run(["diff", &hashes[0], &hashes[1]]).expect(0);
    sandbox.run(["diff", &core]).expect(3);
    sandbox.run(["diff", "--all", "0.json"]).expect(3);
}

#[test]
fn stub_show_and_diff_say_that_there_are_several_captures_and_which_one_is_used() {
    let documents = two_spellings();
    let (sandbox, core) = added(&documents);
    let first = digest(&documents[0]);
    let note = format!("has 2 captures; this is {}", &first["sha256:".len()..][..12]);
    for arguments in [&["replay", &core][..], &["replay", &core, "--json"], &["diff", &core, "1.json"]] {
        let ran = sandbox.run(arguments).expect(0);
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    }
    let served = sandbox.run_on(b"", &["replay", &core, "--serve-stdio"]).expect(0);
    assert!(served.stderr.contains(&note), "{}", served.stderr);
    // A capture's own hash says which one is meant.
    for (document, response) in documents.iter().zip(["three\nfour", "three\r\nfour"]) {
        let ran = sandbox.run(["replay", &digest(document), "--json"]).expect(0);
        assert!(!ran.stderr.contains("captures"), "{}", ran.stderr);
        let output: Value = serde_json::from_str(ran.json()[0]["response"].as_str().unwrap()).unwrap();
        assert_eq!(output["text"], response);
    }
    let shown = sandbox.run(["show", &core]).expect(0).stdout;
    assert!(shown.contains("is used; \"runvault diff --all "), "{shown}");
    let captures = sandbox.run(["show", &core, "--json"]).expect(0).json()[0]["captures"].clone();
    let preferred: Vec<&Value> =
        captures.as_array().unwrap().iter().filter(|one| one["preferred"] == true).collect();
    assert_eq!(preferred.len(), 1);
    assert_eq!(preferred[0]["capture_hash"], first.as_str());
}

#[test]
fn replay_says_that_there_are_several_captures_and_which_one_is_used() {
    let document = session("s", &[("p", "r")]);
    let mut other: Value = serde_json::from_str(&document).unwrap();
    other["interactions"][0]["latency_ms"] = 5.into();
    let documents = [document, other.to_string()];
    let (sandbox, core) = added(&documents);
    let note = format!("has 2 captures; this is {}", &digest(&documents[0])["sha256:".len()..][..12]);
    for recording in [core.as_str(), "any"] {
        let ran = sandbox.run(["replay", recording, "--prompt", "p"]).expect(0);
        assert_eq!(ran.stdout, "r");
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    }
    let one = sandbox.run(["replay", &digest(&documents[1]), "--prompt", "p"]).expect(0);
    assert!(!one.stderr.contains("captures"), "{}", one.stderr);
    // One capture is nothing to speak of.
    let (sandbox, core) = added(&documents[..1]);
    assert_eq!(sandbox.run(["replay", &core, "--prompt", "p"]).expect(0).stderr, "");
    assert_eq!(
        sandbox.run(["diff", "--all", &core]).expect(0).stderr.trim_end(),
        format!("{} has one capture", &core["sha256:".len()..][..12])
    );
}
