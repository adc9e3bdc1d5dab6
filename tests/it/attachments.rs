//! Any bytes as artifacts: added on request, or because an artifact beside them states their path and hash.

use std::fs;
use std::path::PathBuf;

use runvault::Vault;
use runvault::digest::Digest;
use runvault::formats;
use runvault::intake::ExamineOptions;
use runvault::vault::resolve::ResolveRequest;
use serde_json::{Value, json};

use crate::audit::{audited_in, contract, run_pack as run_pack_of, trace};
use crate::packs::run;
use crate::sandbox::{Ran, Sandbox, repository, run_pack, session};

fn digest(bytes: impl AsRef<[u8]>) -> String {
    Digest::from_content(bytes.as_ref()).to_string()
}

fn add_as(sandbox: &Sandbox, path: &str) -> Value {
    sandbox.run(["add", "--json", "--as", "attachment", path]).expect(0).json().remove(0)
}

/// The core hashes of the attachments in a vault, in order.
fn attachments(sandbox: &Sandbox) -> Vec<String> {
    let ran = sandbox.run(["find", "attachments", "--sort", "core", "--json"]);
    ran.json().iter().map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect()
}

fn clean(sandbox: &Sandbox) {
    let checked = sandbox.run(["fsck"]).expect(0);
    assert!(checked.stderr.contains(" 0 findings"), "{}", checked.stderr);
    let head = sandbox.run(["log", "--head"]).expect(0).stdout;
    sandbox.run(["log", "--verify-from", head.trim(), "--full"]).expect(0);
}

/// Bytes that other kinds or archives could be taken for, and bytes that are none of them.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", Vec::new()),
        ("bytes", (0..=255).cycle().take(3000).collect()),
        ("text", b"one\ntwo\n".to_vec()),
        ("schema.json", br#"{"type":"object"}"#.to_vec()),
        ("archive.7z", b"7z\xbc\xaf\x27\x1c rest".to_vec()),
        ("archive.gz", zstd::encode_all(&b"content"[..], 1).unwrap()),
        ("broken.rpk", b"{\"version\": ".to_vec()),
        ("model_io.json", session("a", &[("p", "r")]).into_bytes()),
    ]
}

#[test]
fn files_of_any_bytes_are_compared_as_attachments() {
    let sandbox = Sandbox::new();
    sandbox.write("one.txt", "hello\n");
    sandbox.write("other.txt", "hallo\n");
    let stored = add_as(&sandbox, "one.txt");
    let core = stored["core_hash"].as_str().unwrap();
    let refused = sandbox.run(["diff", "one.txt", "other.txt"]).expect(2);
    assert!(refused.stderr.contains("--kind"), "{}", refused.stderr);
    sandbox.run(["diff", "--kind", "attachment", "one.txt", "other.txt"]).expect(1);
    sandbox.run(["diff", "--as", "attachment", core, "other.txt"]).expect(1);
    sandbox.run(["diff", "--as", "attachment", core, "one.txt"]).expect(0);
}

#[test]
fn any_bytes_are_added_on_request_and_come_back_as_they_were() {
    let sandbox = Sandbox::new();
    for (name, bytes) in contents() {
        sandbox.write(&format!("in/{name}"), &bytes);
        let line = add_as(&sandbox, &format!("in/{name}"));
        assert_eq!(line["core_hash"], digest(&bytes), "{name}");
        assert_eq!((&line["kind"], &line["outcome"]), (&json!("attachment"), &json!("added")), "{name}");
        let read = sandbox.command().args(["get", "--force", &digest(&bytes)]).output().unwrap().stdout;
        assert!(read == bytes, "{name}");
        let core = sandbox.command().args(["get", "--core", &digest(&bytes)]).output().unwrap().stdout;
        assert!(core == bytes, "the core of {name}");
    }
    // The same from their directory, from which only artifacts are added without the request.
    let again = sandbox.run(["add", "--json", "--kind", "attachment", "in"]).expect(0).json();
    assert!(again.iter().all(|line| line["outcome"] == "present"), "{again:?}");
    assert_eq!(again.len(), contents().len());
    assert_eq!(attachments(&sandbox).len(), contents().len());
    let verified = sandbox.run(["verify", "--json", "--as", "attachment", "in"]).expect(0).json();
    assert_eq!(verified.len(), contents().len());
    sandbox.run(["verify", &digest("one\ntwo\n")]).expect(0);
    sandbox.run(["index", "rebuild"]).expect(0);
    clean(&sandbox);
}

#[test]
fn nothing_is_an_attachment_unless_it_is_requested() {
    let sandbox = Sandbox::new();
    for (name, bytes) in contents() {
        sandbox.write(&format!("in/{name}"), bytes);
    }
    sandbox.run(["add", "in"]);
    assert_eq!(attachments(&sandbox), Vec::<String>::new());
    sandbox.run(["add", "in/text"]).expect(1);
    // Limits hold for any bytes, before they are all read.
    let refused =
        sandbox.run(["add", "--json", "--as", "attachment", "--max-size", "4", "in/text"]).expect(1);
    assert_eq!(refused.json()[0]["violations"][0]["rule_id"], "DOC5");
    assert_eq!(attachments(&sandbox), Vec::<String>::new());
}

#[test]
fn attachments_have_a_view_and_are_compared_by_line() {
    let sandbox = Sandbox::new();
    for (name, bytes) in [("a", &b"one\ntwo\n"[..]), ("b", b"one\n2\n"), ("c", b"\xff\x00")] {
        sandbox.write(name, bytes);
        add_as(&sandbox, name);
    }
    let query = "SELECT core_hash, content, length, added_at FROM attachments ORDER BY length DESC";
    let rows = sandbox.run(["sql", "--json", query]).expect(0).json();
    let told =
        rows.iter().map(|row| (row["core_hash"].clone(), row["content"].clone(), row["length"].clone()));
    let expected = [
        (json!(digest("one\ntwo\n")), json!("text"), json!(8)),
        (json!(digest("one\n2\n")), json!("text"), json!(6)),
        (json!(digest(b"\xff\x00")), json!("binary"), json!(2)),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let artifacts = "SELECT added_at FROM artifacts ORDER BY added_at LIMIT 1";
    let first = sandbox.run(["sql", "--json", artifacts]).expect(0).json().remove(0);
    assert!(rows.iter().any(|row| row["added_at"] == first["added_at"]), "{rows:?}");
    let changes = |one: &str, other: &str| -> Vec<String> {
        let ran = sandbox.run(["diff", "--json", one, other]);
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        let told = ran.json().remove(0);
        told["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| change["change"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(changes(&digest("one\ntwo\n"), &digest("one\n2\n")), ["changed"]);
    assert_eq!(changes(&digest("one\ntwo\n"), &digest(b"\xff\x00")).len(), 4);
    sandbox.run(["diff", &digest("one\ntwo\n"), &digest("one\ntwo\n")]).expect(0);
}

#[test]
fn bundles_carry_attachments() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    for (name, bytes) in contents() {
        sandbox.write(name, bytes);
        add_as(&sandbox, name);
    }
    let bundle = other.path("b.tar.zst");
    sandbox.run(["export".into(), "-o".into(), bundle.clone(), PathBuf::from("--all")]).expect(0);
    other.run(["import".into(), bundle]).expect(0);
    assert_eq!(attachments(&other), attachments(&sandbox));
    clean(&other);
}

/// A session that states the digests of a schema and of another document.
fn referring() -> String {
    let mut session: Value = serde_json::from_str(&session("a", &[])).unwrap();
    session["metadata"] = json!({"schema_hash": digest("a schema"), "parent": digest("a document")});
    session.to_string()
}

fn unresolved(sandbox: &Sandbox) -> Vec<String> {
    let lines = sandbox.run(["unresolved", "--all", "--json"]).json();
    let mut missing: Vec<String> =
        lines.iter().filter_map(|line| Some(line["digest"].as_str()?.to_owned())).collect();
    missing.sort();
    missing
}

#[test]
fn references_are_resolved_when_their_attachment_is_added() {
    let sandbox = Sandbox::new();
    let session = sandbox.add([sandbox.write("s.json", referring())]).remove(0);
    let mut both = vec![digest("a schema"), digest("a document")];
    both.sort();
    assert_eq!(unresolved(&sandbox), both);
    sandbox.write("schema", "a schema");
    let schema = add_as(&sandbox, "schema")["core_hash"].as_str().unwrap().to_owned();
    assert_eq!(unresolved(&sandbox), [digest("a document")]);
    let links = sandbox.run(["links", "--json", &schema]).expect(0).json();
    assert_eq!((&links[0]["relation"], &links[0]["core_hash"]), (&json!("references"), &json!(session)));
    // It stays as long as the session needs it.
    sandbox.run(["rm", &schema]).expect(1);
    clean(&sandbox);
}

#[test]
fn states_of_a_trace_are_linked_and_checked() {
    let sandbox = Sandbox::new();
    let results = [json!({"output": {"status": "ok"}})];
    // The helper's traces state the digest of "state" as that of the problem and of each state.
    let run = trace(&results);
    let contract = contract(&[json!({"evidence": {"type": "status", "metric": "status"}})], &[]);
    let before = audited_in(&sandbox, &contract, &run);
    assert!(!before.rules().contains(&"AU13"), "{:?}", before.findings);
    sandbox.write("state", "state");
    let state = add_as(&sandbox, "state")["core_hash"].as_str().unwrap().to_owned();
    let links = sandbox.run(["links", "--json", &state]).expect(0).json();
    assert_eq!((links.len(), &links[0]["relation"]), (1, &json!("references")));
    let after = audited_in(&sandbox, &contract, &run);
    let found: Vec<_> = after.findings.iter().filter(|(rule, ..)| rule == "AU13").collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].2.contains("is not JSON"), "{found:?}");
    assert!(found.iter().all(|(_, place, _)| place == "record 0"), "{found:?}");
}

#[test]
fn a_canonical_state_is_what_a_trace_says() {
    let sandbox = Sandbox::new();
    let state = r#"{"step_index":0,"values":{}}"#;
    let of = |text: &str| {
        let digest = Digest::from_content(text.as_bytes()).hex();
        let run = trace(&[]).replace(&Digest::from_content(b"state").hex(), &digest);
        // Only the header, whose hash changes with the state.
        let mut header: Value = serde_json::from_str(run.lines().next().unwrap()).unwrap();
        header.as_object_mut().unwrap().remove("record_hash");
        let text = header.to_string();
        let value = runvault::json::reader::read(text.as_bytes(), &runvault::json::reader::Limits::default())
            .unwrap();
        let canonical = runvault::json::canonical::c14n_v1::to_vec(&value).unwrap();
        header["record_hash"] = Digest::from_content(&canonical).hex().into();
        header.to_string() + "\n"
    };
    let contract = contract(&[json!({"evidence": {"type": "status", "metric": "status"}})], &[]);
    for (name, text, is_right) in
        [("canonical", state.to_owned(), true), ("spaced", state.replace(',', ", "), false)]
    {
        sandbox.write(name, &text);
        add_as(&sandbox, name);
        let audited = audited_in(&sandbox, &contract, of(&text));
        assert_eq!(audited.rules().contains(&"AU13"), !is_right, "{name}: {:?}", audited.findings);
    }
}

#[test]
fn payloads_are_checked_against_a_schema_that_was_attached() {
    let sandbox = Sandbox::new();
    let schema = json!({"required": ["id"]}).to_string();
    let refs = [json!({"ref": "service:tracker", "schema": digest(&schema)})];
    let contract = contract(&[json!({"evidence": {"type": "status", "metric": "m"}})], &refs);
    let steps = [
        json!({"type": "tool.request", "input": {"tool": "tracker.label", "arguments": {"label": "bug"}}}),
        json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": {"m": "ok"}}),
    ];
    let run = run_pack_of(&steps, &json!({})).to_string();
    assert_eq!(audited_in(&sandbox, &contract, &run).rules(), ["AU11"]);
    sandbox.write("schema.json", &schema);
    add_as(&sandbox, "schema.json");
    assert_eq!(audited_in(&sandbox, &contract, &run).rules(), ["AU10"]);
}

#[test]
fn a_schema_at_a_path_is_stored_and_used_if_its_hash_is_stated() {
    let sandbox = Sandbox::new();
    let schema = json!({"required": ["id"]}).to_string();
    sandbox.write("schemas/label.json", &schema);
    let refs = |hash: Value| {
        let mut io_ref = json!({"ref": "service:tracker", "schema": "schemas/label.json"});
        io_ref.as_object_mut().unwrap().extend(hash.as_object().unwrap().clone());
        contract(&[json!({"evidence": {"type": "status", "metric": "m"}})], &[io_ref])
    };
    let steps = [
        json!({"type": "tool.request", "input": {"tool": "tracker.label", "arguments": {"label": "bug"}}}),
        json!({"type": "tool.response", "input": {"tool": "tracker.label"}, "output": {"m": "ok"}}),
    ];
    let run = run_pack_of(&steps, &json!({})).to_string();
    // A path alone does not identify a file: it could be any, such as one with secrets.
    assert_eq!(audited_in(&sandbox, &refs(json!({})), &run).rules(), ["AU11"]);
    assert_eq!(attachments(&sandbox), Vec::<String>::new());
    let stated = refs(json!({"schema_hash": digest(&schema)}));
    assert_eq!(audited_in(&sandbox, &stated, &run).rules(), ["AU10"]);
    assert_eq!(attachments(&sandbox), [digest(&schema)]);
}

/// A run pack with a step that names files with the hashes of `contents`.
fn naming(files: &[(&str, &str)]) -> String {
    let evidence: Vec<Value> =
        files.iter().map(|(path, content)| json!({"path": path, "sha256": digest(content)})).collect();
    run_pack("run-1", &[json!({"type": "tool.response", "output": {"evidence": evidence}})])
}

fn stored_with(line: &Value) -> Vec<String> {
    let stored = line["attachments"].as_array().cloned().unwrap_or_default();
    let mut stored: Vec<String> = stored.iter().map(|hash| hash.as_str().unwrap().to_owned()).collect();
    stored.sort();
    stored
}

#[test]
fn files_that_a_run_names_with_their_hashes_are_stored_with_it() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "in/run.rpk",
        naming(&[("out/a.txt", "a"), ("b.txt", "b"), ("c.txt", "c"), ("gone.txt", "d")]),
    );
    sandbox.write("in/out/a.txt", "a");
    sandbox.write("in/b.txt", "b");
    sandbox.write("in/c.txt", "something else");
    let mut expected = vec![digest("a"), digest("b")];
    expected.sort();
    // Verifying stores nothing, and a dry run reports what would be stored.
    let verified = sandbox.run(["verify", "--json", "in/run.rpk"]).expect(0).json().remove(0);
    assert_eq!(stored_with(&verified), Vec::<String>::new());
    let previewed = sandbox.run(["add", "--json", "--dry-run", "in/run.rpk"]).expect(0).json().remove(0);
    assert_eq!(stored_with(&previewed), expected);
    assert_eq!(attachments(&sandbox), Vec::<String>::new());
    let added = sandbox.run(["add", "--json", "in/run.rpk"]).expect(0).json().remove(0);
    assert_eq!(stored_with(&added), expected);
    assert_eq!(attachments(&sandbox), expected);
    assert_eq!(unresolved(&sandbox).len(), 2);
    // In its directory, too; and what arrives later is stored when the run is added again.
    sandbox.write("in/c.txt", "c");
    let again = sandbox.run(["add", "in"]).expect(0);
    assert!(again.stderr.contains("1 seen again"), "{}", again.stderr);
    assert_eq!(attachments(&sandbox).len(), 3);
    assert_eq!(unresolved(&sandbox), [digest("d")]);
    clean(&sandbox);
}

#[test]
fn the_intent_of_a_pack_is_beside_its_directory_or_archive() {
    for form in ["p", "p.tar"] {
        let sandbox = Sandbox::new();
        let mut run = run();
        run["intent"] = json!({"path": "intents/one.json", "sha256": digest("{}")});
        sandbox.write("in/p/run.json", run.to_string());
        if form == "p.tar" {
            let tar = crate::packs::tar_of(&[crate::packs::part("run.json", run.to_string())]);
            fs::remove_dir_all(sandbox.path("in/p")).unwrap();
            sandbox.write("in/p.tar", tar);
        }
        sandbox.write("in/intents/one.json", "{}");
        let added = sandbox
            .run(["add".to_owned(), "--json".to_owned(), format!("in/{form}")])
            .expect(0)
            .json()
            .remove(0);
        assert_eq!(stored_with(&added), [digest("{}")], "{form}");
        let links = sandbox.run(["links", "--json", &digest("{}")]).expect(0).json();
        assert_eq!((links.len(), &links[0]["core_hash"]), (1, &added["core_hash"]), "{form}");
    }
}

#[cfg(unix)]
#[test]
fn no_path_leads_out_of_the_directory() {
    let sandbox = Sandbox::new();
    let outside = sandbox.write("secret", "secret");
    let absolute = outside.to_str().unwrap();
    let paths =
        ["../secret", absolute, "link", "linked/secret", "in/../../secret", "./../secret", "pipe", "."];
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, "secret")).collect();
    sandbox.write("in/run.rpk", naming(&files));
    std::os::unix::fs::symlink(&outside, sandbox.path("in/link")).unwrap();
    std::os::unix::fs::symlink(sandbox.path("."), sandbox.path("in/linked")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(sandbox.path("in/pipe")).status().unwrap();
    assert!(pipe.success());
    let added = sandbox.run(["add", "--json", "in/run.rpk"]).expect(0).json().remove(0);
    assert_eq!(stored_with(&added), Vec::<String>::new());
    assert_eq!(attachments(&sandbox), Vec::<String>::new());
    // Standard input has no directory.
    sandbox.write("beside", "secret");
    let run = naming(&[("beside", "secret")]);
    let added = sandbox.run_on(run.as_bytes(), &["add", "--json", "-"]).expect(0).json().remove(0);
    assert_eq!(stored_with(&added), Vec::<String>::new());
}

#[test]
fn a_core_hash_is_that_of_one_artifact() {
    let expect_conflict = |ran: Ran| {
        let line = ran.expect(1).json().remove(0);
        assert_eq!(line["violations"][0]["rule_id"], "CONFLICT", "{line}");
    };
    for example in ["contract.yaml", "session.json", "run.rpk", "trace.ndjson", "pack"] {
        let sandbox = Sandbox::new();
        let example = repository("examples").join(example);
        let core = sandbox.add([&example]).remove(0);
        let bytes = sandbox.command().args(["get", "--core", &core]).output().unwrap().stdout;
        assert_eq!(digest(&bytes), core);
        sandbox.write("core", &bytes);
        expect_conflict(sandbox.run(["add", "--json", "--as", "attachment", "core"]));
        expect_conflict(sandbox.run(["add", "--json", "--dry-run", "--as", "attachment", "core"]));
        assert_eq!(attachments(&sandbox), Vec::<String>::new());
        clean(&sandbox);
        // The other way round: what was first remains until it is removed.
        let other = Sandbox::new();
        other.write("core", &bytes);
        add_as(&other, "core");
        let add = |arguments: &[&str]| {
            let path = example.as_os_str().to_owned();
            other.run(arguments.iter().map(std::ffi::OsString::from).chain([path]))
        };
        expect_conflict(add(&["add", "--json", "--dry-run"]));
        expect_conflict(add(&["add", "--json"]));
        clean(&other);
        other.run(["rm", &core]).expect(0);
        add(&["add", "--json", "--allow-removed"]).expect(0);
        clean(&other);
    }
}

#[test]
fn a_core_hash_is_that_of_one_artifact_in_memory_too() {
    let attachment = ExamineOptions { kind: formats::called("attachment"), ..ExamineOptions::default() };
    let session = fs::read(repository("examples/session.json")).unwrap();
    let vault = Vault::in_memory();
    let core = vault.add_document(session, &ExamineOptions::default()).unwrap().core;
    let bytes = vault.read_core(&vault.locate(&core.0.into()).unwrap()).unwrap();
    let refused = vault.add_document(bytes, &attachment).unwrap_err();
    assert!(refused.to_string().contains("CONFLICT"), "{refused}");
    assert_eq!(ResolveRequest::new("latest").locate(&vault).unwrap().artifact.core, core);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it damages the file, as no writer of the library does")]
fn lost_attachments_are_restored_from_files() {
    let sandbox = Sandbox::new();
    let bytes: Vec<u8> = (0..2_000_u32).flat_map(u32::to_le_bytes).collect();
    sandbox.write("in/bytes", &bytes);
    add_as(&sandbox, "in/bytes");
    let connection = rusqlite::Connection::open(sandbox.vault()).unwrap();
    connection.execute_batch("UPDATE payload SET bytes = zeroblob(length(bytes))").unwrap();
    drop(connection);
    let damaged = sandbox.run(["fsck"]).expect(1);
    assert!(!damaged.stderr.contains(" 0 findings"), "{}", damaged.stderr);
    sandbox.run(["fsck", "--repair", "--from", "in"]).expect(0);
    let read = sandbox.command().args(["get", "--force", &digest(&bytes)]).output().unwrap().stdout;
    assert!(read == bytes);
    clean(&sandbox);
}
