//! Checking and repair of a vault.
//!
//! The store checks the file, its tables, stored bytes and the journal. This module admits every artifact again from
//! its stored bytes, and compares the result with the catalog and the index.

mod artifacts;
mod reader;
mod reindex;
mod repair;
mod report;
mod search;
mod signatures;

use std::path::PathBuf;

use crate::artifact::{KeyRing, Kind};
use crate::formats;
use crate::storage::check::finding::{DIFFERENT_ROW, Subject};
use crate::storage::check::{Inspection, IntegrityLevel};
use crate::storage::{Result, Storage, StorageError};

pub use crate::storage::check::finding::{self, Finding, FindingInfo};
pub use report::{Depth, FsckMonitor, FsckOptions, FsckReport, RepairReport, RepairSummary, Sample};
pub use signatures::SignatureCounts;

pub(crate) use reader::{admit_directory, admit_stored, admit_target};
pub(in crate::vault) use repair::{reindex_artifacts, restore_bytes};

use report::FsckReporter;

/// Checks the vault.
///
/// # Errors
/// Returns an error if the check could not run. Damage is a finding, not an error.
pub(crate) fn check(
    storage: &dyn Storage,
    options: &FsckOptions,
    monitor: &mut dyn FsckMonitor,
) -> Result<FsckReport> {
    let mut reporter = FsckReporter::new(monitor);
    let inspection = storage.inspect()?;
    if options.after.is_none() {
        reporter.add_all(storage.check_logs()?);
        if !matches!(options.depth, Depth::Sample(_)) {
            reporter.add_all(overall(&*inspection, options)?);
        }
    }
    if options.depth != Depth::Quick {
        artifacts::check(storage, &*inspection, options, &mut reporter)?;
    }
    if options.depth == Depth::Full && options.kind.is_none() {
        search::check(storage, &mut reporter)?;
    }
    reporter.add_unchecked(inspection.unchecked());
    Ok(reporter.report())
}

/// Rebuilds all indexes from the artifacts' bytes: mentions, attributes, names, warnings. Signatures are checked with
/// `keys`; earlier results of signatures for which there is no key are kept. An interrupted rebuild is partial, and the
/// vault answers correctly at any time. The report lists the artifacts that were not admitted again; they remain in the
/// vault with their previous data.
///
/// # Errors
/// Returns an error of the kind [`VaultDamaged`](crate::storage::ErrorKind::VaultDamaged), and writes nothing, if a page of the file is used
/// twice.
pub(crate) fn reindex(
    storage: &dyn Storage,
    keys: &KeyRing,
    monitor: &mut dyn FsckMonitor,
) -> Result<FsckReport> {
    if let Some(Finding { detail, .. }) = storage.check_pages()? {
        return Err(StorageError::shared_page(&detail));
    }
    let mut reporter = FsckReporter::new(monitor);
    reindex::reindex(storage, keys, &mut reporter)?;
    Ok(reporter.report())
}

/// Repairs the findings of `report` as far as that is unambiguous, with bytes from `from`: other vaults, and
/// directories of files and archives. Signatures of artifacts that are indexed again are checked with `keys`.
/// Returns the repairs made; run another check for what remains. Writes nothing if a page of the file is used twice.
///
/// # Errors
/// Returns an error if the vault cannot be read or written for a reason other than damage, or a path in `from` does not exist.
pub(crate) fn repair(
    storage: &dyn Storage,
    report: &FsckReport,
    from: &[PathBuf],
    keys: &KeyRing,
    monitor: &mut dyn FsckMonitor,
) -> Result<RepairReport> {
    repair::repair(storage, report, from, keys, &mut FsckReporter::new(monitor))
}

/// Returns the findings that are not about single artifacts.
fn overall(inspection: &dyn Inspection, options: &FsckOptions) -> Result<Vec<Finding>> {
    let is_full = options.depth == Depth::Full;
    let mut findings =
        inspection.structures(if is_full { IntegrityLevel::Full } else { IntegrityLevel::Quick })?;
    for known in inspection.kinds(&mut findings)? {
        let differs = |kind: Kind| {
            kind.inverse_relation() != known.inverse_relation.as_deref()
                || kind.is_of_directories() != known.is_directory
                || known.member.as_deref().is_some_and(|member| kind.document_member() != Some(member))
        };
        if formats::named(&known.name).is_some_and(differs) {
            let detail = format!("this program defines the kind {} differently", known.name);
            findings.push(Finding::new(DIFFERENT_ROW, Subject::Table("kind".to_owned()), detail));
        }
    }
    findings.append(&mut inspection.compare_journal(None)?.findings);
    if is_full {
        findings.append(&mut inspection.unreferenced()?);
    } else {
        findings.append(&mut inspection.mentions_index(IntegrityLevel::Quick)?.0);
    }
    Ok(findings)
}
