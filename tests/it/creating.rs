//! Vaults are created only where that was requested.

use std::fs;

use rusqlite::{Connection, OpenFlags};

use crate::sandbox::{Ran, Sandbox, repository, session};

/// Runs without any vault in the environment: the one at the default location is meant.
fn by_default(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command
        .env_remove("RUNVAULT_VAULT")
        .env("XDG_DATA_HOME", sandbox.path("data"))
        .env("HOME", sandbox.path(""));
    command.args(arguments).output().unwrap().into()
}

/// The files of a directory and their bytes.
fn contents(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    // Readers also write to the shared index of the log.
    let files = entries.filter(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"));
    let mut files: Vec<_> = files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_mistyped_vault_is_not_created() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("s.json", session("a", &[("p", "r")]));
    sandbox.run(["add", "s.json", "--create", "--vault", "runs.vault"]).expect(0);
    sandbox.run(["export", "--all", "-o", "all.rvz", "--vault", "runs.vault"]).expect(0);
    fs::create_dir(sandbox.path("spool")).unwrap();
    for arguments in [
        &["add", "s.json"][..],
        &["add", "--dry-run", "s.json"],
        &["import", "all.rvz"],
        &["import", "--dry-run", "all.rvz"],
        &["watch", "--once", "spool"],
        &["find"],
        &["tag", "set", "latest", "x"],
    ] {
        let ran = sandbox.run([arguments, &["--vault", "rums.vault"]].concat()).expect(2);
        assert!(
            ran.stderr.contains(
                "there is no vault at rums.vault; \"runvault init\" or \"runvault add --create\" creates one"
            ),
            "{}",
            ran.stderr
        );
        assert!(!sandbox.path("rums.vault").exists(), "{arguments:?}");
    }
}

#[test]
fn what_an_interrupted_creation_left_becomes_a_vault() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("s.json", session("a", &[("p", "r")]));
    sandbox.write("empty.vault", "");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let begun = Connection::open_with_flags(sandbox.path("begun.vault"), flags).unwrap();
    begun.execute_batch("PRAGMA page_size = 8192").unwrap();
    let mode: String = begun.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    drop(begun);
    assert_eq!((mode.as_str(), fs::metadata(sandbox.path("begun.vault")).unwrap().len()), ("wal", 8192));
    fs::copy(sandbox.path("begun.vault"), sandbox.path("again.vault")).unwrap();
    sandbox.run(["init", "--vault", "again.vault"]).expect(0);
    sandbox.run(["init", "--vault", "again.vault"]).expect(2);
    sandbox.run(["fsck", "--vault", "again.vault"]).expect(0);
    for vault in ["empty.vault", "begun.vault"] {
        sandbox.run(["find", "--vault", vault]).expect(2);
        sandbox.run(["add", "s.json", "--vault", vault]).expect(2);
        sandbox.run(["add", "s.json", "--create", "--vault", vault]).expect(0);
        sandbox.run(["fsck", "--vault", vault]).expect(0);
    }
}

#[test]
fn a_creation_that_fails_leaves_nothing() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("s.json", session("a", &[("p", "r")]));
    // No log can be created.
    fs::create_dir(sandbox.path("v.vault-wal")).unwrap();
    for arguments in [&["init"][..], &["add", "--create", "s.json"]] {
        sandbox.run(arguments).expect(2);
        assert!(!sandbox.path("v.vault").exists(), "{arguments:?}");
    }
    fs::remove_dir(sandbox.path("v.vault-wal")).unwrap();
    sandbox.run(["init"]).expect(0);
    sandbox.run(["fsck"]).expect(0);
}

#[cfg(unix)]
#[test]
fn a_named_pipe_beside_a_vault_is_an_error() {
    for ending in ["-wal", "-shm", "-journal"] {
        let sandbox = Sandbox::new();
        sandbox.add([sandbox.write("s.json", session("a", &[("p", "r")]))]);
        let pipe = sandbox.path(&format!("v.vault{ending}"));
        let _ = fs::remove_file(&pipe);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for arguments in [&["find"][..], &["fsck"], &["add", "s.json"], &["backup", "copy.vault"]] {
            let ran = sandbox.run(arguments).expect(2);
            assert!(ran.stderr.contains(&format!("v.vault{ending} is not a file")), "{}", ran.stderr);
        }
        fs::remove_file(sandbox.vault()).unwrap();
        sandbox.run(["init"]).expect(2);
        assert!(!sandbox.vault().exists());
    }
}

#[test]
fn init_creates_a_vault_once() {
    let sandbox = Sandbox::without_vault();
    assert_eq!(sandbox.run(["init"]).expect(0).stderr, "created v.vault\n");
    sandbox.add([sandbox.write("s.json", session("a", &[]))]);
    let before = contents(&sandbox.path(""));
    let again = sandbox.run(["init"]).expect(2);
    assert_eq!(again.stderr, "error: v.vault already exists\n");
    sandbox.run(["--vault", "s.json", "init"]).expect(2);
    assert_eq!(contents(&sandbox.path("")), before);
    // Directories above it are made as well.
    sandbox.run(["--vault", "a/b/c.vault", "init"]).expect(0);
    sandbox.run(["--vault", "a/b/c.vault", "fsck"]).expect(0);
}

#[test]
fn the_default_vault_is_created_when_something_is_stored() {
    let sandbox = Sandbox::without_vault();
    let vault = sandbox.path("data/runvault/default.vault");
    sandbox.write("bad.json", session("a", &[("p", "r")]).replace("\"r\"", "\"x\""));
    sandbox.write("good.json", session("a", &[("p", "r")]));
    by_default(&sandbox, &["add", "bad.json"]).expect(1);
    by_default(&sandbox, &["add", "--dry-run", "good.json"]).expect(0);
    assert!(!vault.exists(), "a rejected document and a dry run leave no vault behind");
    let added = by_default(&sandbox, &["add", "good.json"]).expect(0);
    assert!(added.stderr.contains("default.vault"), "the vault is not named: {}", added.stderr);
    assert!(vault.is_file());
    assert_eq!(by_default(&sandbox, &["find", "--json"]).expect(0).json().len(), 1);
}

#[test]
fn a_rejected_document_leaves_no_vault_behind() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("bad.json", session("a", &[("p", "r")]).replace("\"r\"", "\"x\""));
    let ran = sandbox.run(["add", "--create", "bad.json"]).expect(1);
    assert!(ran.stderr.starts_with("rejected session bad.json"), "{}", ran.stderr);
    assert!(ran.stderr.contains("; no vault was created\n"), "{}", ran.stderr);
    assert_eq!(contents(&sandbox.path("")).len(), 1);
}

#[test]
fn a_dry_run_of_import_changes_nothing_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox.run(["tag", "set", "4df877dec7f4", "base"]).expect(0);
    sandbox.run(["note", "set", "4df877dec7f4", "the first one"]).expect(0);
    sandbox.run(["link", "add", "5c496a37feba", "governs", "66c2f87e8153"]).expect(0);
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    sandbox.run(["--vault", "other.vault", "init"]).expect(0);
    let before = contents(&sandbox.path(""));
    let ran = sandbox.run(["--vault", "other.vault", "import", "--dry-run", "all.rvz"]).expect(0);
    for said in [
        "dry run, nothing was stored: 7 added",
        "1 link would be added",
        "1 tag would be set",
        "1 note would be set",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(contents(&sandbox.path("")), before);
    sandbox.run(["--vault", "other.vault", "find"]).expect(1);
}

#[test]
fn a_vault_of_an_earlier_build_is_refused_with_the_way_through_a_bundle_and_left_alone() {
    let sandbox = Sandbox::without_vault();
    let earlier = fs::File::open(repository("tests/vaults/earlier-build.vault.zst")).unwrap();
    fs::write(sandbox.vault(), zstd::decode_all(earlier).unwrap()).unwrap();
    sandbox.write("s.json", session("a", &[]));
    let before = contents(&sandbox.path(""));
    for arguments in [
        &["find"][..],
        &["add", "s.json"],
        &["add", "--create", "s.json"],
        &["init"],
        &["fsck"],
        &["fsck", "--repair"],
        &["index", "rebuild"],
        &["gc"],
        &["backup", "copy.vault"],
        &["copy", "v.vault", "copy.vault"],
    ] {
        let ran = sandbox.run(arguments).expect(2);
        if arguments != ["init"] {
            assert!(ran.stderr.contains("(schema version 7)"), "{arguments:?}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("\"runvault export --all -o FILE\""),
                "{arguments:?}: {}",
                ran.stderr
            );
        }
        assert_eq!(contents(&sandbox.path("")), before, "{arguments:?}");
    }
}
