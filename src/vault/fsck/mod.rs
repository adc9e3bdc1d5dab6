//! Checking and repair of a vault.
//!
//! The store checks the file, its tables, stored bytes and the journal. This module admits every artifact again from
//! its stored bytes, and compares the result with the catalog and the index.

mod artifacts;
mod reading;
mod reindex;
mod repair;
mod search;
mod signatures;
mod sources;

use std::collections::HashSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{KeyRing, Kind};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::check::finding::{KIND_DIFFERS, Subject};
use crate::storage::check::{Inspection, Integrity, Repair};
use crate::storage::{Result, Storage};

pub use crate::storage::check::finding::{self, Finding, FindingInfo};
pub use signatures::SignatureCounts;

pub(crate) use reading::admit_stored;

/// Maximum number of findings listed in a report; the others are counted.
const MAX_FINDINGS: usize = 100_000;

/// The depth of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Depth {
    /// The file, its tables and the journal. Reads no stored bytes.
    Quick,
    /// Like a quick check, and a sample of the artifacts as in a full check.
    Sample(Sample),
    /// Everything.
    #[default]
    Full,
}

/// A selection of artifacts to check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArtifactSample)]
pub struct Sample {
    /// Percentage of the artifacts.
    pub percent: f64,
    /// The seed, which determines the selected artifacts of a vault.
    #[serde(default)]
    pub seed: u64,
}

impl Sample {
    /// Returns whether it contains an artifact.
    pub(super) fn has(&self, core: CoreHash) -> bool {
        let mut bytes = self.seed.to_le_bytes().to_vec();
        bytes.extend(core.0.as_bytes());
        #[expect(clippy::cast_precision_loss, reason = "an approximate share is sufficient")]
        let share = Digest::from_content(&bytes).key().cast_unsigned() as f64 / u64::MAX as f64;
        share * 100.0 < self.percent
    }
}

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The depth of the check.
    pub depth: Depth,
    /// Check only artifacts of this kind. Checks that are not about artifacts are not affected.
    pub kind: Option<Kind>,
    /// Continue after the artifact with this core hash, where another check ended. Checks that precede the artifacts
    /// are skipped.
    pub after: Option<CoreHash>,
    /// Keys for checking signatures; signatures without a key are only compared with their recorded state.
    pub keys: KeyRing,
}

/// A receiver of the events of a check.
pub trait Monitor {
    /// Called for each finding, once. The order of the calls depends only on the vault.
    fn found(&mut self, finding: &Finding);

    /// Called after all findings about an artifact. `bytes` is the size of its captures. Calls are in the order of core
    /// hashes.
    fn checked(&mut self, core: CoreHash, bytes: u64);

    /// Called when `done` of `of` parts of another item were checked; `what` describes the item.
    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        let _ = (what, done, of);
    }
}

/// The report of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings, by subject, type and detail.
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed.
    pub omitted: u64,
    /// Number of artifacts that were checked.
    pub artifacts: u64,
    /// The total size of their captures.
    pub bytes: u64,
    /// The results of checking signatures, if keys were given.
    pub signatures: Option<SignatureCounts>,
}

impl Report {
    /// Returns whether there are no findings.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks the vault.
///
/// # Errors
/// Returns an error if the check could not run. Damage is a finding, not an error.
pub fn check(storage: &dyn Storage, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut reporter = Reporter::new(monitor);
    let inspection = storage.maintenance().inspect()?;
    if options.after.is_none() {
        reporter.add_all(storage.maintenance().check_logs()?);
        reporter.add_all(overall(&*inspection, options)?);
    }
    if options.depth != Depth::Quick {
        artifacts::check(storage, &*inspection, options, &mut reporter)?;
    }
    if options.depth == Depth::Full && options.kind.is_none() {
        search::check(storage, &mut reporter)?;
    }
    Ok(reporter.report())
}

/// Rebuilds all indexes from the artifacts' bytes: mentions, attributes, names, warnings. Signatures are checked with
/// `keys`; earlier results of signatures for which there is no key are kept. An interrupted rebuild is partial, and the
/// vault answers correctly at any time. The report lists the artifacts that were not admitted again; they remain in the
/// vault with their previous data.
///
/// # Errors
/// Returns an error if the vault cannot be read or written.
pub fn reindex(storage: &dyn Storage, keys: &KeyRing, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut reporter = Reporter::new(monitor);
    reindex::reindex(storage, keys, &mut reporter)?;
    Ok(reporter.report())
}

/// Repairs the findings of `report` as far as that is unambiguous, with bytes from `from`: other vaults, and
/// directories of files and archives. Signatures of artifacts that are added or indexed again are checked with `keys`.
/// Returns the repairs made; run another check for what remains.
///
/// # Errors
/// Returns an error if the vault cannot be read or written, or a path in `from` does not exist.
pub fn repair(
    storage: &dyn Storage,
    report: &Report,
    from: &[PathBuf],
    keys: &KeyRing,
    monitor: &mut dyn Monitor,
) -> Result<Vec<Repair>> {
    repair::repair(storage, report, from, keys, &mut Reporter::new(monitor))
}

/// Returns the findings that are not about single artifacts.
fn overall(inspection: &dyn Inspection, options: &Options) -> Result<Vec<Finding>> {
    let is_full = options.depth == Depth::Full;
    let mut findings = inspection.structures(if is_full { Integrity::Full } else { Integrity::Quick })?;
    for known in inspection.kinds(&mut findings)? {
        let differs = |kind: Kind| {
            kind.stated_by() != known.stated_by.as_deref()
                || kind.document_member() != known.member.as_deref()
        };
        if formats::named(&known.name).is_some_and(differs) {
            let subject = Subject::Kind(known.name.clone());
            findings.push(Finding::new(KIND_DIFFERS, subject, "this program defines it differently"));
        }
    }
    findings.append(&mut inspection.journal(None)?.findings);
    findings.append(&mut inspection.removed()?);
    if is_full {
        findings.append(&mut inspection.unreferenced()?);
    } else {
        findings.append(&mut inspection.order_of_mentions()?);
    }
    Ok(findings)
}

/// A reporter that passes each finding to the monitor once.
struct Reporter<'m> {
    monitor: &'m mut dyn Monitor,
    report: Report,
    told: HashSet<Digest>,
}

impl<'m> Reporter<'m> {
    fn new(monitor: &'m mut dyn Monitor) -> Self {
        Self { monitor, report: Report::default(), told: HashSet::new() }
    }

    fn report(mut self) -> Report {
        self.report.findings.sort_by(|one, other| one.key().cmp(&other.key()));
        self.report
    }

    fn add_all(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.add(finding);
        }
    }

    fn add(&mut self, finding: Finding) {
        if self.report.findings.len() >= MAX_FINDINGS {
            self.report.omitted += 1;
            return;
        }
        let text = format!("{} {} {}", finding.info.id, finding.subject, finding.detail);
        if self.told.insert(Digest::from_content(text.as_bytes())) {
            self.monitor.found(&finding);
            self.report.findings.push(finding);
        }
    }

    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        self.monitor.progress(what, done, of);
    }

    fn checked(&mut self, core: CoreHash, bytes: u64) {
        self.report.artifacts += 1;
        self.report.bytes += bytes;
        self.monitor.checked(core, bytes);
    }
}
