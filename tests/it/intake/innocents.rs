//! Files that have nothing to do with artifacts, and look a little like some.

use runvault::intake::{self, DocumentVerdict, ExamineOptions, Input, Inputs};
use serde_json::json;

use crate::packs::{part, zip_of};
use crate::sandbox::{Sandbox, repository, session};

/// Name and content of what is found beside recordings.
fn innocents() -> Vec<(&'static str, Vec<u8>)> {
    let session = session("a", &[("hello", "hi")]);
    let trace = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let hash = "0123456789abcdef".repeat(4);
    let text = |text: &str| text.as_bytes().to_vec();
    let json = |value: serde_json::Value| value.to_string().into_bytes();
    vec![
        ("README.md", format!("# Sessions\n\n```json\n{session}\n```\n\n```\n{trace}\n```\n").into_bytes()),
        ("notes.txt", text("\"prompt_hash\": what we send, \"response_hash\": what comes back}\n")),
        (
            "package.json",
            json(json!({"name": "x", "version": "1.0.0", "dependencies": {}, "type": "module"})),
        ),
        ("tsconfig.json", text("{\n  // comments\n  \"compilerOptions\": {\"strict\": true,},\n}\n")),
        ("lock.json", json(json!({"version": 3, "metadata": {"hash": "x"}, "packages": {}}))),
        ("lora.json", json(json!({"adapter_id": "lora", "model_id": "llama", "mode": "train"}))),
        ("chat.json", json(json!({"interactions": [{"prompt": "hello", "response": "hi"}], "user": "u"}))),
        (
            "schema.json",
            json(json!({"type": "object", "properties": {"model_io_schema_version": {}, "interactions": {},
                "prompt_hash": {}, "response_hash": {}, "response_content": {}, "record_hash": {}}})),
        ),
        ("event.json", json(json!({"version": "1", "metadata": {}, "payload": {"id": 1}}))),
        ("effects.json", json(json!({"effects": [{"name": "blur", "target": "image"}]}))),
        ("effects.yaml", text("name: party\neffects:\n  - fog\n  - lights\n")),
        (
            "workflow.yml",
            text(
                "name: ci\non: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n",
            ),
        ),
        ("compose.yaml", text("services:\n  web:\n    image: nginx\n    ports: [\"80:80\"]\n")),
        (
            "k8s.yaml",
            text("apiVersion: v1\nkind: Service\nmetadata:\n  name: x\n---\napiVersion: v1\nkind: Pod\n"),
        ),
        (
            "app.ndjson",
            text("{\"level\":\"info\",\"msg\":\"a\"}\n{\"level\":\"warn\",\"msg\":\"b\"}\n{\"level\":\"er"),
        ),
        (
            "audit.ndjson",
            format!("{{\"type\":\"login\",\"record_hash\":\"{hash}\",\"prev_hash\":\"{hash}\"}}\n")
                .repeat(3)
                .into_bytes(),
        ),
        (
            "audit-tail.ndjson",
            format!("in\",\"record_hash\":\"{hash}\",\"prev_hash\":\"{hash}\"}}\n").into_bytes(),
        ),
        (
            "wrapped.ndjson",
            format!("{{\"time\":1,\"session\":{session}}}\n{{\"time\":2,\"session\":{}", &session[..80])
                .into_bytes(),
        ),
        (
            "rows.json",
            json(json!([{"i": 0, "prompt_hash": hash, "response_hash": hash, "response_content": "hi"}])),
        ),
        ("rows.csv", format!("i,prompt_hash,response_hash\n0,{hash},{hash}\n").into_bytes()),
        (
            "notebook.ipynb",
            json(json!({"cells": [{"source": [session, trace]}], "metadata": {}, "nbformat": 4})),
        ),
        (
            "client.ts",
            text(
                "const record = {\n  \"type\": \"step\", \"prev_hash\": prev, \"record_hash\": h,\n  \"state_hash\": s\n}",
            ),
        ),
        ("main.py", text("RECORD = {\"record_hash\": None, \"prev_hash\": None, \"state_hash\": True}\n")),
        ("bundle.json", json(json!({"name": "web", "outputs": [], "id": "main"}))),
        ("web/bundle.json", json(json!({"version": 3, "sources": []}))),
        ("web/policy.json", json(json!({"Statement": []}))),
        ("web/evidence.json", json(json!({"status": "ok"}))),
        ("web/patch.json", json(json!([{"op": "add", "path": "/a", "value": 1}]))),
        ("web/meta.json", text("{}")),
        ("run.json", json(json!({"command": "make"}))),
        ("ledger.jsonl", text("{\"account\":\"cash\",\"amount\":1}\n")),
        ("data.bin", b"\x7fELF\0\0\0model_io_schema_version\0\"prompt_hash\":\"response_hash\":}".to_vec()),
        ("pic.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        ("db.sqlite", [b"SQLite format 3\0".as_slice(), session.as_bytes(), b"}"].concat()),
        ("zeros", vec![0; 5000]),
        ("utf16.txt", "\u{feff}hello {\"a\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("empty.json", Vec::new()),
        ("template.html", text("{{#if interactions}}<p>\"prompt_hash\": x</p>{{/if}}\n")),
        (
            "other.zip",
            zip_of(&[
                part("src/main.rs", "fn main() {}"),
                part("bundle.json", "{}"),
                part("policy.json", "{}"),
            ]),
        ),
        ("log.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0".to_vec()),
        ("log.xz", b"\xfd7zXZ\0rest".to_vec()),
        ("image.bz2", b"BZh91AY&SYrest".to_vec()),
    ]
}

#[test]
fn other_files_in_a_directory_are_skipped() {
    let sandbox = Sandbox::new();
    sandbox.write("d/session.json", session("a", &[("hello", "hi")]));
    let innocents = innocents();
    for (name, bytes) in &innocents {
        sandbox.write(&format!("d/{name}"), bytes);
    }
    // Each for itself first: two of them may make a pack of their directory.
    for (name, bytes) in &innocents {
        let alone = Sandbox::new();
        alone.write("d/session.json", session("a", &[]));
        alone.write(&format!("d/{name}"), bytes);
        let ran = alone.run(["verify", "d"]);
        assert_eq!(ran.status, 0, "{name}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("1 good, 0 bad, 1 other file skipped"), "{name}: {}", ran.stderr);
    }
    let ran = sandbox.run(["add", "d"]);
    let expected =
        format!("1 added, 0 seen again, 0 new captures, 0 rejected, {} other files skipped", innocents.len());
    assert!(ran.status == 0 && ran.stderr.contains(&expected), "{}", ran.stderr);
}

#[test]
fn source_trees_and_their_documentation_are_skipped() {
    let mut seen = 0;
    for path in
        ["src", "docs", "migrations", "benches", "README.md", "CHANGELOG.md", "Cargo.toml", "Cargo.lock"]
    {
        let path = repository(path);
        let below = if path.is_dir() { path } else { path.parent().unwrap().join(path.file_name().unwrap()) };
        for item in Inputs::new(vec![Input::Path(below.clone())]) {
            let item = match item.unwrap() {
                // A file that is named is judged like one that is found here.
                intake::InputItem::Named(path) => intake::InputItem::Found(path.into()),
                item => item,
            };
            let name = item.name();
            let verdict = intake::examine(item, &ExamineOptions::default()).unwrap();
            assert!(matches!(verdict, DocumentVerdict::NoArtifact), "{name:?}: {verdict:?}");
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
}
