//! What `stats` counts is what there is.

use std::collections::BTreeMap;

use runvault::Vault;
use runvault::digest::Digest;
use runvault::intake::ExamineOptions;
use runvault::vault::search::{BuildSearchIndexRequest, SearchRequest};
use runvault::vault::stats::StatsRequest;
use serde_json::Value;

use crate::output::steady;
use crate::sandbox::{Sandbox, repository};

fn examples() -> Sandbox {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    sandbox.add([repository("examples")]);
    sandbox
}

fn stats(sandbox: &Sandbox) -> Value {
    sandbox.run(["stats", "--by", "last-seen", "--json"]).expect(0).json().remove(0)
}

#[test]
fn everything_is_counted() {
    let sandbox = examples();
    sandbox.run(["tag", "set", "latest", "one"]).expect(0);
    sandbox.run(["tag", "set", "latest", "two"]).expect(0);
    sandbox.run(["note", "set", "latest", "text"]).expect(0);
    sandbox.run(["pin", "add", "latest~1"]).expect(0);
    sandbox.run(["link", "add", "latest", "governs", "latest~1"]).expect(0);
    let stats = stats(&sandbox);
    let found = sandbox.run(["find", "--all-versions", "--json"]).expect(0).json();
    assert_eq!(stats["artifacts"], found.len());
    let shown: Vec<Value> = found
        .iter()
        .map(|hit| {
            sandbox.run(["show", "--json", hit["core_hash"].as_str().unwrap()]).expect(0).json().remove(0)
        })
        .collect();
    let captures: Vec<&Value> = shown.iter().flat_map(|one| one["captures"].as_array().unwrap()).collect();
    assert_eq!(stats["captures"], captures.len());
    let bytes: u64 = captures.iter().map(|capture| capture["size"].as_u64().unwrap()).sum();
    assert_eq!(stats["bytes"], bytes);
    for kind in stats["kinds"].as_array().unwrap() {
        let of_kind = found.iter().filter(|hit| hit["kind"] == kind["kind"]).count();
        assert_eq!(kind["artifacts"], of_kind, "{kind}");
    }
    // The session that is in the pack as well is stored once.
    assert_eq!(stats["shared_blobs"], 1);
    let small = std::fs::metadata(repository("examples/pack/model_io.json")).unwrap().len();
    // The names and the hashes of the files of the pack are stored, and are none of what was received.
    let pack = shown.iter().find(|one| one["kind"] == "pack").unwrap();
    let name = |file: &Value| file["name"].as_str().unwrap().to_owned();
    let hash =
        |name: &str| Digest::from_content(&std::fs::read(repository("examples/pack").join(name)).unwrap());
    let names = pack["members"].as_array().unwrap().iter().map(name);
    let manifest: BTreeMap<String, String> =
        names.map(|name| (name.clone(), hash(&name).to_string())).collect();
    let manifest = serde_json::to_string(&manifest).unwrap().len() as u64;
    assert_eq!(stats["blob_bytes"].as_u64().unwrap() + small, bytes + manifest);
    assert!(stats["stored_bytes"].as_u64().unwrap() < stats["blob_bytes"].as_u64().unwrap());
    let marks = ["tags", "notes", "pins", "stated_links"].map(|name| stats[name].as_u64().unwrap());
    assert_eq!(marks, [2, 1, 1, 1]);
    assert_eq!(stats["journal_entries"], sandbox.run(["log", "--json"]).expect(0).json().len());
    assert_eq!(
        stats["newest"]["core_hash"],
        sandbox.run(["show", "latest", "--json"]).json()[0]["core_hash"]
    );
    assert_eq!(stats["oldest"]["kind"], "contract");
    assert_eq!(stats["largest"].as_array().unwrap().len(), 5);
    assert_eq!(stats["largest"][0]["kind"], "rpk");
    let day = stats["days"].as_array().unwrap();
    let sums = ["artifacts", "captures", "bytes"]
        .map(|name| day.iter().map(|day| day[name].as_u64().unwrap()).sum::<u64>());
    assert_eq!(sums, [found.len() as u64, captures.len() as u64, bytes]);
}

/// The members that are about how a file stores the content.
const OF_FILES: [&str; 8] = [
    "stored_bytes",
    "differences",
    "dictionaries",
    "dictionary_bytes",
    "search_bytes",
    "file_bytes",
    "free_bytes",
    "mentions",
];

#[test]
fn vaults_in_memory_have_the_same_statistics_but_those_about_files() {
    let directory = tempfile::tempdir().unwrap();
    let vaults = [Vault::in_memory(), Vault::create(&directory.path().join("v.vault")).unwrap()];
    let [in_memory, mut in_file] = vaults.map(|vault| {
        for example in ["session.json", "run.rpk", "contract.yaml", "trace.ndjson"] {
            let document = std::fs::read(repository("examples").join(example)).unwrap();
            vault.add_document(document, &ExamineOptions::default()).unwrap();
        }
        let mut stats = serde_json::to_value(vault.run(&StatsRequest::default()).unwrap()).unwrap();
        // Times are not the same in two vaults.
        for artifact in stats["largest"].as_array_mut().unwrap() {
            artifact.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_at"));
        }
        for end in ["oldest", "newest"] {
            stats[end] = stats[end]["core_hash"].take();
        }
        stats.as_object_mut().unwrap().remove("days");
        stats
    });
    for member in OF_FILES {
        assert!(in_file.as_object_mut().unwrap().remove(member).is_some(), "{member}");
    }
    assert_eq!(in_memory, in_file);
    assert_eq!(in_memory["artifacts"], 4);
}

#[test]
fn text_is_found_in_memory() {
    let vault = Vault::in_memory();
    let session = std::fs::read(repository("examples/session.json")).unwrap();
    vault.add_document(session, &ExamineOptions::default()).unwrap();
    assert_eq!(vault.search_index().unwrap(), None);
    vault.run(&BuildSearchIndexRequest {}).unwrap();
    let search = |words: &str| {
        let request = SearchRequest { words: words.to_owned(), ..SearchRequest::default() };
        vault.run(&request).unwrap().hits.len()
    };
    assert_eq!((search("bug"), search("nothing-has-this")), (1, 0));
}

#[test]
fn what_people_read() {
    let text = examples().run(["stats"]).expect(0).stdout;
    let file = |line: &str| line.starts_with("  file");
    let lines: Vec<&str> = text.lines().filter(|line| !file(line)).collect();
    insta::assert_snapshot!(dated(&steady(&lines.join("\n"))));
}

/// `text` without the date of today, which stands at the beginning of a line.
fn dated(text: &str) -> String {
    let line = |line: &str| match line.split_once(' ') {
        Some((date, rest)) if date.len() == 10 && date.starts_with("20") => format!("0000-00-00 {rest}"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_empty_vault_has_nothing_and_what_was_removed_does_not_count() {
    let sandbox = examples();
    let before = stats(&sandbox);
    let all = sandbox.run(["find", "--all-versions", "--format", "{{core}}"]).expect(0).stdout;
    sandbox.run(["rm", "--force"].into_iter().chain(all.lines())).expect(0);
    let after = stats(&sandbox);
    for name in
        ["artifacts", "captures", "bytes", "blobs", "blob_bytes", "stored_bytes", "mentions", "differences"]
    {
        assert_eq!(after[name], 0, "{name}");
        assert_ne!(before[name], 0, "{name}");
    }
    assert_eq!((&after["oldest"], &after["newest"]), (&Value::Null, &Value::Null));
    for empty in ["kinds", "largest", "days"] {
        assert_eq!(after[empty].as_array().unwrap().len(), 0);
    }
    let text = sandbox.run(["stats"]).expect(0).stdout;
    assert!(
        text.starts_with("kind     artifacts captures size\nall              0        0  0 B\n"),
        "{text}"
    );
    sandbox.run(["--vault", "none.vault", "stats"]).expect(2);
}

#[test]
fn an_index_for_search_is_measured_if_there_is_one() {
    let sandbox = examples();
    assert_eq!(stats(&sandbox)["search_bytes"], Value::Null);
    sandbox.run(["index", "build"]).expect(0);
    assert!(stats(&sandbox)["search_bytes"].as_u64().unwrap() > 16_384);
    sandbox.run(["index", "drop"]).expect(0);
    assert_eq!(stats(&sandbox)["search_bytes"], Value::Null);
}
