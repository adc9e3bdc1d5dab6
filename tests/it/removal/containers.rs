//! Removing what is a part of something else: nothing of it stays, or nothing is removed.

use rusqlite::Connection;

use super::bytes::{is_somewhere, noise, stored, wordy};
use super::{PACK, SESSION, count, examples, expect_whole, recordings};
use crate::journal::sql;
use crate::packs;
use crate::sandbox::{Sandbox, session};
use runvault::storage::Storage;

/// Adds a pack with these files beside its `run.json`, and gives its core hash.
fn add_pack(sandbox: &Sandbox, name: &str, files: &[(&str, &str)]) -> String {
    let mut run = packs::run();
    run["run_id"] = name.into();
    for (file, text) in files {
        if *file == "policy.json" {
            run["policy"] = serde_json::from_str(text).unwrap();
        }
        sandbox.write(&format!("{name}/{file}"), text);
    }
    sandbox.write(&format!("{name}/run.json"), run.to_string());
    sandbox.add([sandbox.path(name)]).remove(0)
}

fn add(sandbox: &Sandbox, name: &str, text: &str) -> String {
    sandbox.add([sandbox.write(name, text)]).remove(0)
}

fn head(sandbox: &Sandbox) -> String {
    sandbox.run(["log", "--head"]).expect(0).stdout
}

/// A line of a refusal or a list that names an artifact.
fn short(core: &str) -> &str {
    &core["sha256:".len()..][..12]
}

#[test]
fn force_alone_does_not_remove_what_a_pack_still_has() {
    let sandbox = Sandbox::new();
    let text = session("secret", &[("p", &noise(1, 400))]);
    let (one, two) = (
        add_pack(&sandbox, "one", &[("model_io.json", &text)]),
        add_pack(&sandbox, "two", &[("model_io.json", &text)]),
    );
    let session = add(&sandbox, "s.json", &text);
    let before = head(&sandbox);
    for arguments in [&["rm"][..], &["rm", "--force"], &["rm", "--force", "--dry-run"]] {
        let refused = sandbox.run(arguments.iter().chain(&[session.as_str()])).expect(1);
        assert!(refused.stderr.contains("--with-containers"), "{}", refused.stderr);
        for pack in [&one, &two] {
            assert!(
                refused.stderr.contains(&format!("in export pack {}", short(pack))),
                "{}",
                refused.stderr
            );
        }
    }
    // One of two packs is not enough.
    let refused = sandbox.run(["rm", &session, &one, "--force"]).expect(1);
    assert!(
        !refused.stderr.contains(short(&one)) && refused.stderr.contains(short(&two)),
        "{}",
        refused.stderr
    );
    assert_eq!(head(&sandbox), before);
    sandbox.run(["get", &session]).expect(0);
    // All that have it may be named instead.
    sandbox.run(["rm", &session, &one, &two]).expect(0);
    assert_eq!(sandbox.run(["find", "--json"]).status, 1);
}

#[test]
fn with_containers_no_byte_of_a_session_stays_in_the_file() {
    let sandbox = Sandbox::new();
    // Other recordings of the run are stored as differences to it, and dictionaries would be made of it.
    let cores = recordings(&sandbox, 4);
    let base = std::fs::read_to_string(sandbox.path("r/0.json")).unwrap();
    let secret = noise(2, 600);
    let text = session("secret", &[("a secret prompt", &secret)]);
    let core = add(&sandbox, "s.json", &text);
    let packs = [
        add_pack(&sandbox, "one", &[("model_io.json", &text)]),
        add_pack(&sandbox, "two", &[("model_io.json", &text), ("patch.json", PATCH)]),
        add_pack(&sandbox, "three", &[("model_io.json", &base)]),
    ];
    sandbox.run(["index", "build"]).expect(0);
    let mut pieces = stored(&sandbox, &core);
    pieces.push(runvault::digest::Digest::from_content(b"a secret prompt").as_bytes().to_vec());
    assert!(pieces.len() > 5 && pieces.iter().all(|piece| is_somewhere(&sandbox, piece)));
    // A vault that is open meanwhile does not keep them.
    let open = runvault::Vault::open(&sandbox.vault()).unwrap();
    let removed = sandbox.run(["rm", &core, "--with-containers", "--json"]).expect(0).json();
    let names: Vec<&str> = removed.iter().map(|line| line["core_hash"].as_str().unwrap()).collect();
    let mut expected = vec![packs[0].as_str(), packs[1].as_str()];
    expected.sort_unstable();
    assert_eq!(names, [&[core.as_str()][..], &expected].concat());
    assert!(removed.iter().all(|line| line["erased"] == true), "{removed:?}");
    for piece in &pieces {
        assert!(!is_somewhere(&sandbox, piece), "{}", String::from_utf8_lossy(piece));
    }
    drop(open);
    // Everything says the same.
    for gone in names {
        assert!(sandbox.run(["get", gone]).expect(1).stderr.contains("was removed on"));
        assert_eq!(sandbox.run(["find", "--mentions", gone]).status, 1);
    }
    assert_eq!(sandbox.run(["log", "--action", "remove", "--json"]).expect(0).json().len(), 3);
    assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
    expect_whole(&sandbox);
    // The base of differences is in a pack as well.
    sandbox.run(["rm", &cores[0], "--with-containers"]).expect(0);
    assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
    let left = sandbox.run(["find", "--json"]).expect(0).json().len();
    assert_eq!(left, 3, "the other recordings");
    sandbox.run(["gc"]).expect(0);
    assert_eq!(
        sandbox.run(["get", &cores[1]]).expect(0).stdout,
        std::fs::read_to_string(sandbox.path("r/1.json")).unwrap()
    );
}

const PATCH: &str = r#"{"patch_schema_version": "1.0.0", "source_proposal_id": "p", "source_proposal_hash": "h",
    "operations": [], "total_bytes": 0}"#;

#[test]
fn the_same_bytes_under_another_name_hold_a_document() {
    let sandbox = Sandbox::new();
    // A contract that is the policy of a pack. Nothing in the pack states its core hash.
    let contract = format!(r#"{{"io_refs": [], "effects": [], "x": "{}"}}"#, noise(3, 80));
    let core = add(&sandbox, "c.json", &contract);
    let pack = add_pack(&sandbox, "p", &[("policy.json", &contract)]);
    assert_eq!(sandbox.run(["links", &core, "--json"]).stdout, "", "there is no link");
    let refused = sandbox.run(["rm", &core, "--force"]).expect(1);
    assert!(refused.stderr.contains(&format!("in export pack {}", short(&pack))), "{}", refused.stderr);
    sandbox.run(["rm", &core, "--with-containers"]).expect(0);
    assert_eq!(sandbox.run(["find"]).status, 1);
    // Nor does another pack bring the bytes back.
    let mut run = packs::run();
    run["policy"] = serde_json::from_str(&contract).unwrap();
    sandbox.write("q/run.json", run.to_string());
    sandbox.write("q/policy.json", &contract);
    let refused = sandbox.run(["add", "q"]).expect(1);
    assert!(
        refused.stderr.contains(&format!("contains contract {core}, which was removed by")),
        "{}",
        refused.stderr
    );
}

#[test]
fn containers_are_protected_like_anything_else() {
    let sandbox = examples();
    sandbox.run(["pin", "add", PACK]).expect(0);
    let refused = sandbox.run(["rm", SESSION, "--with-containers", "--force"]).expect(1);
    assert!(refused.stderr.contains("1 artifact is pinned"), "{}", refused.stderr);
    sandbox.run(["pin", "remove", PACK]).expect(0);
    // The traces say that they record the run of the pack.
    let refused = sandbox.run(["rm", SESSION, "--with-containers"]).expect(1);
    assert!(refused.stderr.contains("<- records-run trace"), "{}", refused.stderr);
    assert_eq!(sandbox.run(["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
    sandbox.run(["tag", "set", PACK, "release"]).expect(0);
    sandbox.run(["rm", SESSION, "--with-containers", "--force"]).expect(0);
    assert_eq!(sandbox.run(["tag", "list"]).expect(0).stdout, "");
    expect_whole(&sandbox);
}

#[test]
fn what_stays_of_a_removed_pack_is_named() {
    let sandbox = Sandbox::new();
    let text = session("shared", &[("p", "r")]);
    let policy = r#"{"name": "strict", "version": "7"}"#;
    let files = [("model_io.json", text.as_str()), ("policy.json", policy)];
    let packs: Vec<String> = (0..8).map(|number| add_pack(&sandbox, &format!("p{number}"), &files)).collect();
    let session = sandbox.run(["find", "sessions", "--json"]).expect(0).json().remove(0);
    let session = session["core_hash"].as_str().unwrap();
    let said = sandbox.run(["rm", &packs[0]]).expect(0).stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(
        lines[1].starts_with("  model_io.json is kept, it is also in ") && lines[1].ends_with("3 more"),
        "{said}"
    );
    assert!(
        lines[2].starts_with("  policy.json is kept, it is also in export pack ")
            && lines[2].ends_with("2 more"),
        "{said}"
    );
    // What goes in the same step holds nothing.
    let mut others: Vec<&str> = packs[1..].iter().map(String::as_str).collect();
    let last = others.pop().unwrap();
    let removed = sandbox.run(["rm", "--json"].iter().chain(&others)).expect(0).json();
    let mut dependents = vec![session, last];
    dependents.sort_unstable();
    let named = |core: &&str| {
        let kind = if *core == last { "pack" } else { "model_io" };
        serde_json::json!({"core_hash": core, "kind": kind})
    };
    let of_session: Vec<_> = dependents.iter().map(named).collect();
    assert_eq!(
        removed[0]["shared"],
        serde_json::json!([
            {"file": "model_io.json", "artifacts": dependents, "dependents": of_session, "count": 2},
            {"file": "policy.json", "artifacts": [last], "dependents": [named(&last)], "count": 1},
        ])
    );
    let removed = sandbox.run(["rm", "--json", session, last]).expect(0).json();
    assert!(removed.iter().all(|line| line["shared"] == serde_json::json!([])), "{removed:?}");
    assert_eq!(count(&sql(&sandbox), "blob"), 0);
}

#[test]
fn retention_keeps_what_a_kept_pack_has() {
    let sandbox = Sandbox::new();
    let text = session("packed", &[("p", &noise(4, 300))]);
    let pack = add_pack(&sandbox, "p", &[("model_io.json", &text)]);
    let other = add(&sandbox, "o.json", &session("other", &[("p", "r")]));
    sandbox.run(["tag", "set", &pack, "release"]).expect(0);
    let reasons = |arguments: &[&str]| {
        let lines = sandbox.run(["forget", "--json"].iter().chain(arguments)).expect(0).json();
        let reason = |line: &serde_json::Value| {
            (line["kind"].as_str().unwrap().to_owned(), line["reasons"].to_string())
        };
        lines.iter().map(reason).collect::<Vec<_>>()
    };
    let has = format!("[\"contained in export pack {}\"]", short(&pack));
    for force in [&[][..], &["--force"]] {
        let mut told = reasons(&[&["--keep-tag", "release", "--dry-run"], force].concat());
        told.sort();
        let expected =
            [("model_io", has.as_str()), ("model_io", "[\"no tag release\"]"), ("pack", "[\"tag release\"]")];
        assert_eq!(told, expected.map(|(kind, why)| (kind.to_owned(), why.to_owned())));
    }
    // Of other kinds, packs are not even looked at.
    let told = reasons(&["--keep-last", "0", "--kind", "model_io", "--force"]);
    assert!(told.contains(&("model_io".to_owned(), has)), "{told:?}");
    sandbox.run(["get", &other]).expect(1);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 2);
    // Together they go, the pack first: an interruption must not leave bytes of what is gone.
    sandbox.run(["forget", "--keep-last", "0", "--yes"]).expect(0);
    let log = sandbox.run(["log", "--action", "remove", "--json"]).expect(0).json();
    let kinds: Vec<&str> = log.iter().map(|line| line["entry"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["model_io", "pack", "model_io"]);
    assert_eq!(count(&sql(&sandbox), "blob"), 0);
}

/// Makes the file of a vault larger than what is rewritten after every removal.
fn inflate(connection: &Connection) {
    connection
        .execute_batch(
            "CREATE TABLE inflated (bytes BLOB); INSERT INTO inflated VALUES (zeroblob(66 << 20)); DROP TABLE inflated;
             PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
}

#[test]
fn what_is_still_in_the_file_is_not_called_gone() {
    const LEFT: &str = "still in the file until";
    let sandbox = Sandbox::new();
    let core = add(&sandbox, "s.json", &session("large", &[("p", &noise(5, 300))]));
    inflate(&sql(&sandbox));
    let said = sandbox.run(["rm", &core]).expect(0);
    assert!(
        said.stdout.contains(LEFT) && said.stderr.contains("larger than 64"),
        "{} {}",
        said.stdout,
        said.stderr
    );
    assert!(!sandbox.run(["gc"]).expect(0).stderr.contains(LEFT));
    // Dictionaries are made of documents.
    for number in 0..150 {
        sandbox.write(&format!("d/{number}.json"), wordy(number));
    }
    let cores = sandbox.add([sandbox.path("d")]);
    let said = sandbox.run(["rm", &cores[0], "--json"]).expect(0);
    assert_eq!(said.json()[0]["erased"], false);
    assert!(said.stderr.contains(LEFT) && said.stderr.contains("dictionary of model_io"), "{}", said.stderr);
    sandbox.run(["gc"]).expect(0);
    // Of another kind there is none.
    let trace = sandbox.add([crate::sandbox::repository("examples/trace.ndjson")]).remove(0);
    let said = sandbox.run(["rm", &trace]).expect(0);
    assert!(!said.stdout.contains(LEFT) && said.stderr.is_empty(), "{} {}", said.stdout, said.stderr);
}

#[test]
fn a_reader_of_the_log_is_told_of() {
    let sandbox = Sandbox::new();
    let core = add(&sandbox, "s.json", &session("read", &[("p", "r")]));
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let reading = vault.snapshot().unwrap();
    let said = sandbox.run(["rm", &core]).expect(0);
    assert!(said.stderr.contains("v.vault-wal until \"runvault gc\""), "{}", said.stderr);
    assert!(said.stdout.contains("still in the file until gc"), "{}", said.stdout);
    drop(reading);
    assert_eq!(sandbox.run(["gc"]).expect(0).stderr, "");
}

#[test]
fn bytes_of_what_was_removed_are_found_by_a_check() {
    let sandbox = Sandbox::new();
    let text = session("left", &[("p", &noise(6, 200))]);
    let pack = add_pack(&sandbox, "p", &[("model_io.json", &text)]);
    let core = add(&sandbox, "s.json", &text);
    // As earlier versions left it: the artifact is gone, and the pack has its bytes.
    let store =
        runvault::storage::Store::open(&sandbox.vault(), runvault::storage::CreationPolicy::Never).unwrap();
    let mut change =
        Storage::transaction(&store, runvault::clock::now(), runvault::storage::BUSY_TIMEOUT).unwrap();
    change.remove(core.parse().unwrap(), Some("it names a customer")).unwrap();
    change.commit().unwrap();
    drop(store);
    for arguments in [&["fsck", "--quick"][..], &["fsck"], &["fsck", "--repair"], &["fsck"]] {
        let found = sandbox.run(arguments).expect(1).stdout;
        let names_both =
            |line: &str| line.starts_with("surplus-row ") && line.contains(&core) && line.contains(&pack);
        assert!(found.lines().any(names_both), "{found}");
    }
    sandbox.run(["index", "rebuild"]).expect(0);
    sandbox.run(["get", &core]).expect(1);
    // Adding the pack again does not bring the session back either.
    sandbox.run(["add", "p"]).expect(1);
    sandbox.run(["rm", &pack]).expect(0);
    assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
}
