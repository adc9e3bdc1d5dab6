//! Additions of what the vault has in damaged form: it is restored, or its file is kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runvault::Vault;
use runvault::digest::Digest;

use crate::fsck::shared_pages::share;
use crate::fsck::{examples, findings, siblings, sql};
use crate::sandbox::{Sandbox, repository};

/// Changes behind the program's back after which at least some stored bytes are not returned any more, and which adding the
/// same files repairs.
const RESTORED: &[&str] = &[
    "UPDATE payload SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || x'00' AS BLOB)",
    "UPDATE payload SET bytes = x'00'",
    "UPDATE payload SET encoding = 0, bytes = CAST('{}' AS BLOB)",
    "UPDATE payload SET digests = zeroblob(length(digests)) WHERE digests IS NOT NULL",
    "UPDATE payload SET digests = NULL, encoding = 1",
    "DELETE FROM payload",
    "DELETE FROM payload WHERE base IS NULL",
    "UPDATE capture SET seal = zeroblob(16)",
];

/// Changes of the rows that lead to stored bytes.
const OTHERS: &[&str] = &[
    "DELETE FROM member",
    "UPDATE blob SET digest = zeroblob(32) WHERE id = 1",
    "UPDATE member SET blob = 1",
    "DELETE FROM capture",
    "DELETE FROM artifact",
    "DELETE FROM blob",
];

/// Copies a directory into the sandbox, and returns the files in it with their bytes.
fn copied(sandbox: &Sandbox, from: &Path, to: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        let name = format!("{to}/{}", name.to_str().unwrap());
        if path.is_dir() {
            files.append(&mut copied(sandbox, &path, &name));
        } else {
            let bytes = std::fs::read(path).unwrap();
            files.insert(sandbox.write(&name, &bytes), bytes);
        }
    }
    files
}

/// Everything that the vault returns: documents, and the members of directories.
fn returned(sandbox: &Sandbox) -> Vec<Vec<u8>> {
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let snapshot = vault.snapshot().unwrap();
    let mut returned = Vec::new();
    for artifact in snapshot.all_artifacts(None).unwrap() {
        for capture in snapshot.captures_of(artifact.core).unwrap_or_default() {
            let members = snapshot.read_members(artifact.core, capture.capture).unwrap_or_default();
            returned.extend(members.into_iter().map(|member| member.bytes));
        }
    }
    returned
}

#[test]
fn no_file_is_removed_that_the_vault_does_not_return() {
    for change in RESTORED.iter().chain(OTHERS) {
        let sandbox = examples();
        let files = copied(&sandbox, &repository("examples"), "d");
        sql(&sandbox).execute_batch(change).unwrap();
        let ran = sandbox.run(["add", "--move", "d"]);
        assert!(ran.status <= 1, "{change}: {}", ran.stderr);
        let vault = Vault::open(&sandbox.vault()).unwrap();
        let (kept, gone): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| path.exists());
        for (path, bytes) in gone {
            let found = vault.get(&Digest::from_content(bytes).into());
            assert!(found.is_ok_and(|found| found == *bytes), "{change}: {} is lost", path.display());
        }
        // Only what no kind recognizes is left.
        assert!(kept.iter().all(|(path, _)| !path.ends_with("run.rpk")), "{change}: {}", ran.stderr);
    }
}

#[test]
fn an_addition_restores_damaged_bytes_and_says_so() {
    for change in RESTORED {
        let sandbox = examples();
        sql(&sandbox).execute_batch(change).unwrap();
        let examples = repository("examples");
        let ran = sandbox.run(["add", "--json", examples.to_str().unwrap()]).expect(0);
        assert!(ran.json().iter().any(|line| line["outcome"] == "restored"), "{change}: {}", ran.stdout);
        assert!(ran.stderr.contains(" restored"), "{}", ran.stderr);
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
        let again = sandbox.run(["add", "--json", examples.to_str().unwrap()]).expect(0);
        assert!(again.json().iter().all(|line| line["outcome"] == "present"), "{change}: {}", again.stdout);
    }
}

#[test]
fn files_are_returned_although_their_rows_are_lost_or_changed() {
    let pack = "54490aab8b3f";
    for change in
        ["DELETE FROM member", "UPDATE member SET blob = 1", "UPDATE member SET name = name || '.x'"]
    {
        let sandbox = examples();
        let shown = sandbox.run(["show", pack, "--json"]).expect(0).stdout;
        sql(&sandbox).execute_batch(change).unwrap();
        assert_eq!(sandbox.run(["show", pack, "--json"]).expect(0).stdout, shown, "{change}");
        for name in ["evidence.json", "model_io.json", "policy.json", "run.json"] {
            let bytes = sandbox.run(["get", pack, "--member", name]).expect(0).stdout;
            let original = std::fs::read_to_string(repository("examples/pack").join(name)).unwrap();
            assert_eq!(bytes, original, "{change}: {name}");
        }
        // An addition reads back what it was given, and finds nothing to restore.
        sandbox.run(["add", repository("examples/pack").to_str().unwrap()]).expect(0);
        assert!(findings(&sandbox, &[]).contains(" | member "), "{change}");
        let repaired = findings(&sandbox, &["--repair"]);
        assert!(repaired.lines().all(|line| line.starts_with("repaired: ")), "{change}\n{repaired}");
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
    }
}

#[test]
fn a_difference_is_restored_with_and_without_its_base() {
    for change in ["UPDATE payload SET bytes = x'00' WHERE base IS NULL", "UPDATE payload SET bytes = x'00'"]
    {
        for names in [&["a.json"][..], &["b.json"], &["c.json", "b.json", "a.json"]] {
            let sandbox = siblings();
            let originals: Vec<Vec<u8>> =
                names.iter().map(|name| std::fs::read(sandbox.path(name)).unwrap()).collect();
            sql(&sandbox).execute_batch(change).unwrap();
            let ran = sandbox.run([&["add", "--move"], names].concat()).expect(0);
            assert!(ran.stderr.contains(&format!("{} restored", names.len())), "{}", ran.stderr);
            let returned = returned(&sandbox);
            assert!(originals.iter().all(|original| returned.contains(original)), "{change}, {names:?}");
        }
    }
}

#[test]
fn an_import_restores_damaged_bytes() {
    let sandbox = examples();
    let bundle = sandbox.path("b.rvb");
    sandbox.run(["export", "--all", "-o", bundle.to_str().unwrap()]).expect(0);
    sql(&sandbox).execute_batch("UPDATE payload SET bytes = x'00'").unwrap();
    let ran = sandbox.run(["import", "--json", bundle.to_str().unwrap()]).expect(0);
    assert!(ran.json().iter().any(|line| line["outcome"] == "restored"), "{}", ran.stdout);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn what_cannot_be_restored_is_rejected_and_its_file_kept() {
    let sandbox = examples();
    sandbox.write("session.json", std::fs::read(repository("examples/session.json")).unwrap());
    sql(&sandbox).execute_batch("UPDATE payload SET bytes = x'00'").unwrap();
    // Restoring bytes could overwrite intact data.
    share(&sandbox, "note", "SELECT rootpage FROM sqlite_schema WHERE name = 'journal'");
    let ran = sandbox.run(["add", "--move", "--json", "session.json"]).expect(1);
    let line = &ran.json()[0];
    assert_eq!(
        (&line["outcome"], &line["violations"][0]["rule_id"]),
        (&"rejected".into(), &"UNREADABLE".into())
    );
    assert!(sandbox.path("session.json").exists());
}
