//! Whatever the system refuses, at whatever moment: an error is reported, the vault is whole, a second try succeeds.

use std::path::Path;
use std::process::Command;

use faulty::{Failure, Operation};
use runvault::Vault;
use runvault::artifact::KeyRing;
use runvault::digest::CoreHash;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::fsck::{Finding, FsckMonitor, FsckOptions};

use crate::sandbox::{Sandbox, repository, session};

/// The number of artifacts that are added while something fails.
const ARTIFACTS: usize = 50;

/// With this variable in the environment, every single allocation fails once; without it, one in 41.
const ALL: &str = "RUNVAULT_TEST_ALL_FAULTS";

/// Runs the ignored test with this name in a process of its own: what fails there must not fail for others.
pub(crate) fn alone(test: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--test-threads=1"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_write_that_fails() {
    alone("faults::writes");
}

#[test]
fn every_sync_that_fails() {
    alone("faults::syncs");
}

#[test]
fn writes_of_a_repair_that_fail() {
    alone("faults::writes_of_a_repair");
}

#[test]
fn allocations_that_fail() {
    alone("faults::allocations");
}

#[test]
fn a_file_that_can_only_be_read() {
    alone("faults::only_read");
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn only_read() {
    faulty::install();
    let sandbox = Sandbox::new();
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    add(&vault, vec![Input::Path(repository("examples"))]).0.unwrap();
    drop(vault);
    let before = std::fs::read(sandbox.vault()).unwrap();
    for directory in [false, true] {
        faulty::only_read(directory);
        let outcome = Vault::open(&sandbox.vault()).and_then(|vault| add(&vault, documents()).0);
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("is read-only: the file"), "{directory}: {message}");
        faulty::repair();
        assert_eq!(std::fs::read(sandbox.vault()).unwrap(), before);
    }
    check(&sandbox.vault(), &Acknowledged::default());
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn writes() {
    for failure in [Failure::Once, Failure::ForGood] {
        fail_each(Operation::Write, failure, 1);
    }
}

/// A repair during which a write fails reports that, and loses nothing that the next one needs.
#[test]
#[ignore = "runs in a process of its own, started by another test"]
#[expect(clippy::disallowed_methods, reason = "it damages the vault")]
fn writes_of_a_repair() {
    faulty::install();
    let sandbox = Sandbox::new();
    let intact = sandbox.path("intact.vault");
    let vault = Vault::open_or_create(&intact).unwrap();
    add(&vault, vec![Input::Path(repository("examples"))]).0.unwrap();
    drop(vault);
    std::fs::copy(&intact, sandbox.path("damaged.vault")).unwrap();
    let damaged = rusqlite::Connection::open(sandbox.path("damaged.vault")).unwrap();
    damaged
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DELETE FROM artifact WHERE id = 1; DELETE FROM blob WHERE id = 2;
             DELETE FROM payload WHERE blob = 3; DELETE FROM attribute; DELETE FROM tag;",
        )
        .unwrap();
    damaged.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(damaged);
    let check = |vault: &Vault| vault.fsck(&FsckOptions::default(), &mut Silent).unwrap();
    let mut errors = 0;
    for times in (0..).step_by(one_in(5)) {
        let path = sandbox.path("copy.vault");
        for ending in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(sandbox.path(&format!("copy.vault{ending}")));
        }
        std::fs::copy(sandbox.path("damaged.vault"), &path).unwrap();
        let vault = Vault::open(&path).unwrap();
        let repair =
            |report| vault.repair(report, std::slice::from_ref(&intact), &KeyRing::default(), &mut Silent);
        let report = check(&vault);
        assert!(!report.is_clean());
        let asked = faulty::asked(Operation::Write);
        faulty::fail_after(Operation::Write, times, Failure::Once);
        let outcome = repair(&report);
        faulty::repair();
        let failed = faulty::asked(Operation::Write) - asked > u64::from(times);
        let left = check(&vault);
        match outcome {
            // A failed checkpoint is repeated later.
            Ok(_) => assert!(left.is_clean(), "{times}: {:#?}", left.findings),
            Err(error) => {
                assert!(failed && error.is_transient(), "{times}: {error}");
                errors += 1;
                repair(&left).unwrap();
                let left = check(&vault);
                assert!(left.is_clean(), "{times}: {:#?}", left.findings);
            }
        }
        if !failed {
            break;
        }
    }
    assert!(errors >= 3, "{errors}");
}

struct Silent;

impl FsckMonitor for Silent {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn syncs() {
    for failure in [Failure::Once, Failure::ForGood] {
        fail_each(Operation::Sync, failure, 1);
    }
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn allocations() {
    fail_each(Operation::Allocation, Failure::Once, one_in(41));
}

/// How many operations to go on after each that fails: 1 if all are to fail.
pub(crate) fn one_in(step: usize) -> usize {
    if std::env::var_os(ALL).is_some() { 1 } else { step }
}

/// The core hashes of what was acknowledged.
#[derive(Default)]
pub(crate) struct Acknowledged(pub(crate) Vec<runvault::digest::CoreHash>);

impl AddMonitor for Acknowledged {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert_ne!(examined.outcome, DocumentOutcome::Rejected, "{:?}", examined.violations);
        self.0.extend(examined.core_hash);
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

/// Adds fifty artifacts, and lets `operation` fail.
fn fail_each(operation: Operation, failure: Failure, step: usize) {
    let attempt = |path: &Path| match Vault::open(path).map(|vault| add(&vault, documents())) {
        Ok((outcome, acknowledged)) => (outcome.err().map(|error| error.to_string()), acknowledged),
        Err(error) => (Some(error.to_string()), Acknowledged::default()),
    };
    each_failure((operation, failure, step), attempt, check);
}

/// Does the same again and again, each time to a copy of a vault with the examples, and lets an operation fail a little
/// later each time, until it no longer comes to that. `attempt` gives the error, if there was one, and what `check` wants
/// to know.
pub(crate) fn each_failure<A>(
    (operation, failure, step): (Operation, Failure, usize),
    attempt: impl Fn(&Path) -> (Option<String>, A),
    check: impl Fn(&Path, &A),
) {
    faulty::install();
    let sandbox = Sandbox::new();
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    add(&vault, vec![Input::Path(repository("examples"))]).0.unwrap();
    drop(vault);
    let before = std::fs::read(sandbox.vault()).unwrap();
    let mut failures = 0;
    for times in (0..).step_by(step) {
        let path = sandbox.path("copy.vault");
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(sandbox.path(&format!("copy.vault{ending}")));
        }
        std::fs::write(&path, &before).unwrap();
        let asked = faulty::asked(operation);
        faulty::fail_after(operation, times, failure);
        let (error, done) = attempt(&path);
        faulty::repair();
        let failed = faulty::asked(operation) - asked > u64::from(times);
        if let Some(error) = error {
            assert!(failed && !error.is_empty(), "{error}");
        }
        check(&path, &done);
        if !failed {
            break;
        }
        failures += 1;
    }
    assert!(failures >= 3, "{operation:?}: {failures}");
}

fn documents() -> Vec<Input> {
    let text =
        |number: usize| session(&format!("adapter-{number}"), &[(&format!("prompt {number}"), "a response")]);
    let document = |number| Input::Document { name: String::new(), bytes: text(number).into_bytes() };
    (0..ARTIFACTS).map(document).collect()
}

pub(crate) fn add(
    vault: &Vault,
    inputs: Vec<Input>,
) -> (Result<runvault::vault::add::Summary, runvault::storage::StorageError>, Acknowledged) {
    let mut acknowledged = Acknowledged::default();
    let outcome = vault.add(Inputs::new(inputs), &ExamineOptions::default(), &mut acknowledged);
    (outcome, acknowledged)
}

/// The vault is whole, has what was acknowledged, and takes in the rest.
fn check(path: &Path, acknowledged: &Acknowledged) {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let vault = Vault::open(path).unwrap();
    let found: String = rusqlite::Connection::open_with_flags(path, flags)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(found, "ok");
    for core in &acknowledged.0 {
        vault.get(&core.0.into()).unwrap();
    }
    let (outcome, _) = add(&vault, documents());
    let summary = outcome.unwrap();
    assert_eq!(summary.added + summary.present, ARTIFACTS as u64);
    // On a busy machine an `add` may be several batches. Each of them is stored as a whole, and then acknowledged.
    let whole = [acknowledged.0.len() as u64, ARTIFACTS as u64];
    assert!(whole.contains(&summary.present), "a part of a batch was stored: {summary:?}, of {whole:?}");
    for artifact in vault.snapshot().unwrap().all_artifacts(None).unwrap() {
        let located = vault.locate(&artifact.core.0.into()).unwrap();
        vault.members(&located).unwrap();
    }
}
