//! The options and the report of a check, and its events.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::signatures::SignatureCounts;
use crate::artifact::{KeyRing, Kind};
use crate::digest::{CoreHash, Digest};
use crate::storage::StorageError;
use crate::storage::check::Repair;
use crate::storage::check::finding::{self, Finding, Subject};

/// Maximum number of findings listed in a report; the others are counted.
const MAX_FINDINGS: usize = 100_000;

/// A receiver of the events of a check.
pub trait FsckMonitor {
    /// Called for each finding, once. The order of the calls depends only on the vault.
    fn found(&mut self, finding: &Finding);

    /// Called after all findings about an artifact. `bytes` is the size of its captures. Calls are in the order of core
    /// hashes.
    fn checked(&mut self, core: CoreHash, bytes: u64);

    /// Called for what could not be checked, with the reason.
    fn unchecked(&mut self, what: &str) {
        let _ = what;
    }

    /// Called when `done` of `of` parts of another item were checked; `what` describes the item.
    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        let _ = (what, done, of);
    }
}

/// The report of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckReport {
    /// The findings, by subject, type and detail.
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed.
    pub omitted: u64,
    /// What could not be checked, and why: the engine, or the role of its user, does not permit it.
    pub unchecked: Vec<String>,
    /// Number of artifacts that were checked.
    pub artifacts: u64,
    /// The total size of their captures.
    pub bytes: u64,
    /// The results of checking signatures, if keys were given.
    pub signatures: Option<SignatureCounts>,
}

impl FsckReport {
    /// Returns whether there are no findings.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns whether there are findings that an earlier report does not list.
    #[must_use]
    pub fn has_others_than(&self, earlier: &Self) -> bool {
        // Both are sorted.
        let is_other =
            |found: &Finding| earlier.findings.binary_search_by(|one| one.key().cmp(&found.key())).is_err();
        self.findings.iter().any(is_other)
    }
}

/// The result of a repair. What remains to be repaired is found by another check.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// The repairs made.
    pub repaired: Vec<Repair>,
    /// Errors caused by damage, because of which a step was not completed.
    pub failures: Vec<StorageError>,
}

impl RepairReport {
    /// Returns whether entries of the journal that cannot be read were left out. They may say something else than those before
    /// them, from which another repair would write the rows again.
    #[must_use]
    pub fn leaves_out_entries(&self) -> bool {
        let is_of_journal = |subject: &Subject| *subject == Subject::Table("journal".to_owned());
        self.repaired.iter().any(|repair| repair.did == Repair::LEFT_OUT && is_of_journal(&repair.subject))
    }
}

/// A completed repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepairSummary {
    /// What was done.
    pub repaired: String,
    /// The type of its subject, such as `artifact`.
    pub about: String,
    /// The name or hash of its subject.
    pub subject: String,
}

impl From<&Repair> for RepairSummary {
    fn from(Repair { subject, did }: &Repair) -> Self {
        Self { repaired: (*did).to_owned(), about: subject.type_name().to_owned(), subject: subject.name() }
    }
}

/// A reporter that passes each finding to the monitor once.
pub(super) struct FsckReporter<'m> {
    pub(super) monitor: &'m mut dyn FsckMonitor,
    pub(super) report: FsckReport,
    pub(super) reported: HashSet<Digest>,
}

impl<'m> FsckReporter<'m> {
    pub(super) fn new(monitor: &'m mut dyn FsckMonitor) -> Self {
        Self { monitor, report: FsckReport::default(), reported: HashSet::new() }
    }

    pub(super) fn report(mut self) -> FsckReport {
        finding::sort(&mut self.report.findings);
        self.report
    }

    pub(super) fn add_all(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.add(finding);
        }
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.report.findings.len() >= MAX_FINDINGS {
            self.report.omitted += 1;
            return;
        }
        let text = format!("{} {} {}", finding.info.id, finding.subject, finding.detail);
        if self.reported.insert(Digest::from_content(text.as_bytes())) {
            self.monitor.found(&finding);
            self.report.findings.push(finding);
        }
    }

    pub(super) fn add_unchecked(&mut self, unchecked: Vec<String>) {
        for what in &unchecked {
            self.monitor.unchecked(what);
        }
        self.report.unchecked.extend(unchecked);
    }

    pub(super) fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        self.monitor.progress(what, done, of);
    }

    pub(super) fn checked(&mut self, core: CoreHash, bytes: u64) {
        self.report.artifacts += 1;
        self.report.bytes += bytes;
        self.monitor.checked(core, bytes);
    }
}

/// The depth of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Depth {
    /// The file, its tables and the journal. Reads no stored bytes.
    Quick,
    /// A sample of the artifacts, as in a full check, and nothing else.
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
    pub(in crate::vault) fn has(&self, core: CoreHash) -> bool {
        self.ranges().iter().any(|range| range.contains(&core.0))
    }

    /// Returns the core hashes of its parts. Core hashes are evenly distributed, so a part between two
    /// of them is a sample, of which only the rows have to be read. The seed says where it begins; after the highest core hash
    /// it goes on with the lowest.
    pub(in crate::vault) fn ranges(&self) -> Vec<RangeInclusive<Digest>> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an approximate share is sufficient"
        )]
        let length = (self.percent / 100.0 * 2_f64.powi(64)).clamp(0.0, 2_f64.powi(64)) as u128;
        let others = length.checked_sub(1).and_then(|others| u64::try_from(others).ok());
        let Some(others) = others else { return Vec::new() };
        let first = Digest::from_content(&self.seed.to_le_bytes()).key().cast_unsigned();
        let last = first.wrapping_add(others);
        let parts = if first <= last { vec![first..=last] } else { vec![0..=last, first..=u64::MAX] };
        parts.iter().map(Digest::with_keys).collect()
    }
}

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct FsckOptions {
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
