//! What is found in directories and named on the command line: what resembles an artifact is never passed over, what is
//! something else is.

mod archives;
mod innocents;

use serde_json::{Value, json};

use crate::packs::{gzip, part, run, tar_of, zip_of};
use crate::sandbox::{Sandbox, repository, session};

/// What "add" says of the file `name` in a directory: exit status, kind and violations.
fn found(name: &str, bytes: impl AsRef<[u8]>) -> (i32, Vec<String>) {
    let sandbox = Sandbox::new();
    // A good one beside it: the directory is not the matter.
    sandbox.write("d/good.json", session("good", &[]));
    sandbox.write(&format!("d/{name}"), bytes);
    let ran = sandbox.run(["add", "--json", "d"]);
    let lines = ran.json();
    assert_eq!(lines.iter().filter(|line| line["outcome"] == "added").count(), 1, "{}", ran.stdout);
    let rejected = lines.iter().filter(|line| line["outcome"] == "rejected");
    (ran.status, rejected.flat_map(told).collect())
}

/// The kind and the violations of a line of output.
fn told(line: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let violations = line["violations"].as_array().unwrap().iter();
    violations
        .map(|one| {
            let [rule, path, message] = ["rule_id", "path", "message"].map(|name| text(&one[name]));
            format!("{} {rule} {path}: {message}", text(&line["kind"]))
        })
        .collect()
}

/// A file in a directory is rejected, with a violation that begins with `expected`.
fn rejects(name: &str, bytes: impl AsRef<[u8]>, expected: &str) {
    let bytes = bytes.as_ref();
    let (status, violations) = found(name, bytes);
    let has = violations.iter().any(|one| one.starts_with(expected));
    assert!(status == 1 && has, "{expected}: {status} {violations:#?}\n{}", String::from_utf8_lossy(bytes));
}

fn exchanges() -> Vec<(&'static str, &'static str)> {
    vec![("first prompt", "first response"), ("second prompt", "second response")]
}

/// A session as each of these orders of members writes it.
fn sessions() -> Vec<String> {
    let text = session("an-adapter", &exchanges());
    let value: Value = serde_json::from_str(&text).unwrap();
    let in_order = |names: &[&str]| {
        let members: Vec<String> =
            names.iter().map(|name| format!("{}:{}", json!(name), value[*name])).collect();
        format!("{{{}}}", members.join(","))
    };
    vec![
        serde_json::to_string_pretty(&value).unwrap(),
        in_order(&["adapter_id", "interactions", "mode", "model_id", "model_io_schema_version"]),
        in_order(&["interactions", "model_io_schema_version", "mode", "model_id", "adapter_id"]),
        in_order(&["adapter_id", "model_id", "mode", "interactions", "model_io_schema_version"]),
        text,
    ]
}

#[test]
fn a_session_that_was_cut_off_is_rejected() {
    for text in sessions() {
        let middle = text.find("\"prompt_hash\"").unwrap() + 40;
        for length in [middle, text.find("second response").unwrap(), text.len() - 1] {
            rejects("a.json", &text[..length], "model_io DOC2 line ");
        }
    }
    // Before its interactions, where all that is left are names that others have as well.
    rejects("a.json", r#"{"adapter_id":"a","model_id":"m","mode":"record","inter"#, "model_io DOC2 line ");
}

#[test]
fn a_session_that_lost_its_beginning_is_rejected() {
    for text in sessions() {
        let from = text.find("prompt_hash").unwrap() + 20;
        rejects("a.log", &text[from..], "model_io ");
    }
}

#[test]
fn a_session_without_a_required_member_is_rejected() {
    let value: Value = serde_json::from_str(&session("a", &exchanges())).unwrap();
    for missing in ["adapter_id", "model_id", "model_io_schema_version", "mode"] {
        let mut value = value.clone();
        value.as_object_mut().unwrap().remove(missing);
        rejects(
            "a.json",
            value.to_string(),
            &format!("model_io SCHEMA $.{missing}: the required member {missing}"),
        );
        // Nor is it one without a version.
        value.as_object_mut().unwrap().remove("model_io_schema_version");
        rejects("a.json", value.to_string(), "model_io SCHEMA $.model_io_schema_version: ");
    }
}

#[test]
fn a_document_with_zeros_in_it_is_rejected() {
    let text = session("a", &exchanges());
    let trace = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let contract = std::fs::read_to_string(repository("examples/contract.yaml")).unwrap();
    for (text, kind) in [(text.as_str(), "model_io"), (&trace, "trace"), (&contract, "contract")] {
        let middle = text.len() / 2;
        let with_zeros = [&text.as_bytes()[..middle], &[0; 700], &text.as_bytes()[middle..]].concat();
        let at_the_end = [text.as_bytes(), &[0; 4096]].concat();
        let at_the_beginning = [&[0; 512], text.as_bytes()].concat();
        for bytes in [with_zeros, at_the_end, at_the_beginning] {
            rejects("a.dat", bytes, &format!("{kind} "));
        }
        let words: Vec<u16> = text.encode_utf16().collect();
        let little =
            [b"\xff\xfe".to_vec(), words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat();
        let big = [b"\xfe\xff".to_vec(), words.iter().flat_map(|word| word.to_be_bytes()).collect()].concat();
        for bytes in [little, big] {
            let rule = if kind == "contract" {
                "SCHEMA : line 1 column 1: the text is UTF-16"
            } else {
                "DOC1 line 1 column 1: the text is UTF-16"
            };
            rejects("a.dat", bytes, &format!("{kind} {rule}"));
        }
    }
}

#[test]
fn a_trace_without_its_beginning_is_rejected() {
    let trace = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let header = trace.find('\n').unwrap() + 1;
    rejects("t.log", &trace[header..], "trace TR10 line 1 /prev_hash: continues the record ");
    // Cut within the header, and within the record after it.
    for from in [1, header / 2, header - 20, header + 5, header + 200] {
        rejects("t.log", &trace[from..], "trace TR10 line 2: the trace's beginning is missing: record ");
    }
    // What is left of its last record.
    let last = trace.trim_end().rfind('\n').unwrap();
    let from = last + trace[last..].find("\"prev_hash\"").unwrap() - 3;
    rejects("t.log", &trace[from..], "trace DOC2 line 1 column ");
}

#[test]
fn a_run_that_was_cut_is_rejected_under_any_name() {
    let run = std::fs::read_to_string(repository("examples/run.rpk")).unwrap();
    let value: Value = serde_json::from_str(&run).unwrap();
    let text = value.to_string();
    let in_order = format!(
        "{{\"version\":{},\"metadata\":{},\"payload\":{},\"checksum\":{}}}",
        value["version"], value["metadata"], value["payload"], value["checksum"]
    );
    for text in [text, in_order, run] {
        rejects("r.json", &text[..text.len() / 2], "rpk DOC2 line ");
        rejects("r.json", &text[text.len() / 2..], "rpk ");
    }
    let mut without = value;
    without.as_object_mut().unwrap().remove("checksum");
    rejects("r.json", without.to_string(), "rpk RPK1 /checksum: the required member");
}

#[test]
fn a_contract_that_lost_its_refs_is_rejected() {
    let text = "effects:\n  - name: set\n    kind: resource\n    target: state:x\n    idempotency:\n      type: reentrant\n";
    rejects("c.yaml", text, "contract SCHEMA /io_refs: missing");
    rejects("c.yaml", &text[..text.len() - 12], "contract SCHEMA ");
}

fn pack_files() -> Vec<(String, Vec<u8>)> {
    let directory =
        std::fs::read_dir(repository("examples/pack")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    directory.map(|path| (name(&path), std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_pack_that_lost_its_run_is_rejected() {
    let all = pack_files();
    for kept in [
        vec!["bundle.json", "evidence.json", "model_io.json", "policy.json"],
        vec!["bundle.json", "model_io.json"],
    ] {
        let sandbox = Sandbox::new();
        let files = || all.iter().filter(|(name, _)| kept.contains(&name.as_str()));
        for (name, bytes) in files() {
            sandbox.write(&format!("d/p/{name}"), bytes);
        }
        for path in ["d", "d/p"] {
            let ran = sandbox.run(["verify", "--json", path]).expect(1);
            let told: Vec<String> = ran.json().iter().flat_map(told).collect();
            assert!(told.iter().any(|one| one.starts_with("pack PK1 run.json: ")), "{told:?}");
        }
        let parts: Vec<_> = files().map(|(name, bytes)| part(name, bytes)).collect();
        sandbox.write("a/p.zip", zip_of(&parts));
        sandbox.write("a/p.tgz", gzip(&tar_of(&parts)));
        let ran = sandbox.run(["verify", "--json", "a"]).expect(1);
        let lines = ran.json();
        assert_eq!(lines.len(), 2);
        assert!(
            lines.iter().flat_map(told).all(|one| one.starts_with("pack PK1 run.json: ")),
            "{}",
            ran.stdout
        );
    }
    // What belongs to no pack does not hide the rest of the directory.
    let sandbox = Sandbox::new();
    sandbox.write("d/evidence.json", &all.iter().find(|(name, _)| name == "evidence.json").unwrap().1);
    sandbox.write("d/s.json", session("a", &[]));
    sandbox.write("d/below/t.json", session("b", &[]));
    let ran = sandbox.run(["add", "--json", "d"]).expect(1);
    let outcomes: Vec<Value> = ran.json().iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["added", "rejected", "added"]);
}

#[test]
fn a_directory_that_is_named_is_never_skipped() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.write("notes/a/README.md", "# Notes\n");
    sandbox.write("notes/package.json", "{\"name\": \"x\"}");
    sandbox.write("runs/s.json", session("a", &[]));
    sandbox.write("runs/deep/er/README.md", "# Notes\n");
    let message = "neither this directory nor any file in it is recognized as an artifact";
    for command in [&["verify", "--json"][..], &["add", "--json"], &["add", "--json", "--dry-run"]] {
        for directory in ["empty", "notes", "notes/a", "runs/deep"] {
            let ran = sandbox.run(command.iter().chain(&[directory])).expect(1);
            let lines = ran.json();
            assert_eq!(lines.len(), 1, "{}", ran.stdout);
            assert_eq!(lines[0]["path"], directory);
            assert_eq!(told(&lines[0]), [format!("? KIND : {message}")]);
        }
        // Each directory speaks for itself.
        let ran = sandbox.run(command.iter().chain(&["runs", "notes", "runs", "empty"])).expect(1);
        let paths: Vec<Value> = ran.json().iter().map(|line| line["path"].clone()).collect();
        assert_eq!(paths, ["runs/s.json", "notes", "runs/s.json", "empty"]);
        sandbox.run(command.iter().chain(&["runs"])).expect(0);
    }
    let ran = sandbox.run(["verify", "--json", "--kind", "trace", "runs"]).expect(1);
    assert!(told(&ran.json()[0])[0].starts_with(
        "trace KIND : neither this directory nor any file in it is recognized as an artifact of the kind trace"
    ));
    // What comes before is stored, what comes after is not looked at.
    let ran = sandbox.run(["add", "--fail-fast", "runs", "empty", "notes", "runs"]).expect(1);
    assert!(ran.stderr.contains("0 added, 1 seen again"), "{}", ran.stderr);
    assert!(ran.stderr.contains("stopped at the first failure"), "{}", ran.stderr);
    let ran = sandbox.run(["verify", "runs", "gone"]).expect(2);
    assert!(ran.stderr.contains("gone: "), "{}", ran.stderr);
}

#[test]
fn a_rejection_names_the_file_the_rule_the_place_and_what_to_do() {
    let sandbox = Sandbox::new();
    let text = session("a", &exchanges());
    sandbox.write("d/cut.json", &text[..text.len() / 2]);
    let ran = sandbox.run(["add", "d"]).expect(1);
    assert!(ran.stderr.contains("rejected session d/cut.json\n  error line 1 column "), "{}", ran.stderr);
    assert!(ran.stderr.contains("(rule DOC2)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\"runvault rules ID\" explains a rule and what to do"), "{}", ran.stderr);
    let explained = sandbox.run(["rules", "DOC2"]).expect(0).stdout;
    assert!(explained.contains("copy it again"), "{explained}");
}

#[test]
fn strict_rejects_everything_that_is_no_artifact() {
    let sandbox = Sandbox::new();
    sandbox.write("d/a.json", session("a", &[]));
    sandbox.write("d/README.md", "# Notes\n");
    sandbox.write("d/data.bin", [0, 1, 2, 3]);
    sandbox.write("d/below/package.json", "{\"name\": \"x\"}");
    sandbox.write("d/other.zip", zip_of(&[part("src/main.rs", "fn main() {}")]));
    sandbox.write("d/log.xz", b"\xfd7zXZ\0rest");
    sandbox.write("d/empty", "");
    let lenient = sandbox.run(["verify", "d"]).expect(0);
    assert!(lenient.stderr.contains("1 good, 0 bad, 6 other files skipped"), "{}", lenient.stderr);
    for command in ["verify", "add"] {
        let ran = sandbox.run([command, "--json", "--strict", "d"]).expect(1);
        let lines = ran.json();
        let bad: Vec<&Value> =
            lines.iter().filter(|line| !line["violations"].as_array().unwrap().is_empty()).collect();
        let paths: Vec<&str> = bad.iter().map(|line| line["path"].as_str().unwrap()).collect();
        assert_eq!(
            paths,
            ["d/README.md", "d/below/package.json", "d/data.bin", "d/empty", "d/log.xz", "d/other.zip"]
        );
        for line in bad {
            assert!(told(line).iter().all(|one| one.starts_with("? KIND ")), "{line}");
        }
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.json", sandbox.path("d/link")).unwrap();
        let ran = sandbox.run(["verify", "--json", "--strict", "d"]).expect(1);
        assert!(ran.stdout.contains("d/link"), "{}", ran.stdout);
    }
    // Who asks for one kind means that there is nothing else.
    sandbox.write("t/a.json", session("a", &[]));
    sandbox.write("t/t.ndjson", std::fs::read(repository("examples/trace.ndjson")).unwrap());
    sandbox.run(["verify", "--kind", "trace", "t"]).expect(0);
    let ran = sandbox.run(["verify", "--json", "--strict", "--kind", "trace", "t"]).expect(1);
    assert_eq!(told(&ran.json()[0]), ["? KIND : this is recognized as model_io"]);
    let watched = sandbox.run(["watch", "--once", "--settle", "0s", "--strict", "d"]).expect(1);
    assert!(watched.stderr.contains("rejected d/README.md"), "{}", watched.stderr);
    // A pack is one artifact, whatever is in it.
    sandbox.write("p/run.json", run().to_string());
    sandbox.run(["verify", "--strict", "p"]).expect(0);
}

#[test]
fn a_contract_in_a_json_file_must_be_json() {
    let sandbox = Sandbox::new();
    for text in
        ["{io_refs: [], effects: []}", "{\"io_refs\": [], \"effects\": [],}", "io_refs: []\neffects: []\n"]
    {
        for name in ["c.json", "c.JSON"] {
            let path = sandbox.write(name, text);
            let ran =
                sandbox.run(["verify".as_ref(), "--kind".as_ref(), "contract".as_ref(), path.as_os_str()]);
            assert!(ran.expect(1).stdout.contains("SCHEMA"), "{text}");
        }
        let path = sandbox.write("c.yaml", text);
        sandbox.run(["verify".as_ref(), path.as_os_str()]).expect(0);
        sandbox.run_on(text.as_bytes(), &["verify", "-"]).expect(0);
    }
    sandbox
        .run(["verify".as_ref(), sandbox.write("c.json", "{\"io_refs\": [], \"effects\": []}").as_os_str()])
        .expect(0);
}
