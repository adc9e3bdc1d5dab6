//! Whatever the system refuses while the index is made, asked, and emptied: an error is reported, the vault is whole, and a
//! second try succeeds.

use faulty::{Failure, Operation};
use runvault::Vault;
use runvault::vault::fsck;
use runvault::vault::remove::RemoveRequest;
use runvault::vault::search::{BuildSearchIndexRequest, SearchError, SearchRequest};

use super::RUN;
use crate::faults::{alone, each_failure, one_in};

#[test]
fn every_write_and_sync_that_fails() {
    alone("search::failing::writes_and_syncs");
}

#[test]
fn allocations_that_fail() {
    alone("search::failing::allocations");
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn writes_and_syncs() {
    for failure in [Failure::Once, Failure::ForGood] {
        fail_each(Operation::Write, failure, one_in(5));
        fail_each(Operation::Sync, failure, 1);
    }
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn allocations() {
    fail_each(Operation::Allocation, Failure::Once, one_in(97));
}

/// Makes an index, asks it, and removes a run, and lets `operation` fail.
fn fail_each(operation: Operation, failure: Failure, step: usize) {
    each_failure((operation, failure, step), |path| (work(path).err(), ()), |path, ()| check(path));
}

fn work(path: &std::path::Path) -> Result<(), String> {
    let vault = Vault::open(path).map_err(|error| error.to_string())?;
    vault.run(&BuildSearchIndexRequest {}).map_err(|error| error.to_string())?;
    exports(&vault).map_err(|error| error.to_string())?;
    let located = vault.locate(&RUN.parse().unwrap()).map_err(|error| error.to_string())?;
    let artifacts = vec![located.artifact.core];
    let request = RemoveRequest { artifacts, ignore_links: true, ..RemoveRequest::default() };
    vault.run(&request).map(drop).map_err(|error| error.to_string())
}

/// The number of artifacts with the word, after the index was brought up to date.
fn exports(vault: &Vault) -> Result<usize, SearchError> {
    vault.catch_up_search(&mut |_| {})?;
    let request = SearchRequest { words: "export".to_owned(), ..SearchRequest::default() };
    Ok(vault.run(&request)?.hits.len())
}

struct Silent;

impl fsck::FsckMonitor for Silent {
    fn found(&mut self, _: &fsck::Finding) {}

    fn checked(&mut self, _: runvault::digest::CoreHash, _: u64) {}
}

/// The vault is whole, and so is what there is of the index; with it, everything is found that is still there.
fn check(path: &std::path::Path) {
    let vault = Vault::open(path).unwrap();
    let report = vault.fsck(&fsck::FsckOptions::default(), &mut Silent).unwrap();
    assert_eq!(
        report.findings.iter().filter(|finding| finding.info.id != "insecure-permissions").count(),
        0,
        "{report:?}"
    );
    if vault.search_index().unwrap().is_none() {
        vault.run(&BuildSearchIndexRequest {}).unwrap();
    }
    let hits = exports(&vault).unwrap();
    let is_there = vault.locate(&RUN.parse().unwrap()).is_ok();
    assert_eq!(hits, if is_there { 5 } else { 4 });
}
