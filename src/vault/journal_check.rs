//! Checks the journal, and compares the catalog with it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{FindingSummary, Operation};
use super::handle::Vault;
use super::journal::JournalHead;
use crate::digest::Digest;
use crate::storage::check::{CatalogCounts, JournalInspection};
use crate::storage::{Capability, JournalCheck, StorageError};

/// A request to recompute the chain of the journal from the first entry to the last. Reads no stored bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckJournalRequest {
    /// A chain value that was recorded earlier as the head of the journal: whether it is the one of an entry, and so no
    /// entry up to that one was changed since.
    pub since: Option<Digest>,
    /// The number of the entry that was recorded with it, if one was.
    pub since_seq: Option<u64>,
    /// Whether to also compare the artifacts, captures, tags, notes, pins, manual links, tombstones and signatures in the
    /// catalog with the journal, in both directions.
    pub catalog: bool,
}

/// The result of checking a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckJournalAnswer {
    /// Whether all entries chain, the recorded chain value is a former head, and the catalog matches the journal, as far
    /// as that was requested.
    pub ok: bool,
    /// The entry after which the recorded chain value was the head; 0 is before the first. `None` if it never was, or
    /// not after the recorded entry.
    pub since: Option<u64>,
    /// A description of the first defect of the chain.
    pub defect: Option<String>,
    /// The number of the entry with that defect.
    pub defect_entry: Option<u64>,
    /// The entry after which the recorded chain value was the head, whichever number was recorded with it.
    pub found: Option<u64>,
    /// The last entry, as stored.
    pub head: JournalHead,
    /// The comparison with the catalog, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogCheck>,
}

/// The result of comparing a catalog with its journal: the number of rows that agree, and the differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogCheck {
    /// Artifacts.
    pub artifacts: u64,
    /// Captures.
    pub captures: u64,
    /// Tags.
    pub tags: u64,
    /// Notes.
    pub notes: u64,
    /// Pins.
    pub pins: u64,
    /// Labels.
    pub labels: u64,
    /// Manual links.
    pub links: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Captures with a signature.
    pub signatures: u64,
    /// Defects of the journal, and differences between it and the catalog.
    pub findings: Vec<FindingSummary>,
}

impl Operation for CheckJournalRequest {
    type Answer = CheckJournalAnswer;
    type Error = StorageError;

    const NAME: &'static str = "check-journal";
    const SUMMARY: &'static str = "Check the journal, and compare the catalog with it";

    /// # Errors
    /// Returns an error if the check could not run; of the kind
    /// [`Unsupported`](crate::storage::ErrorKind::Unsupported) if the catalog is to be compared and the engine keeps no
    /// catalog beside the journal. Damage is a part of the answer, not an error.
    fn run(&self, vault: &Vault) -> Result<CheckJournalAnswer, StorageError> {
        if !self.catalog {
            let check = vault.snapshot()?.check_journal(self.since)?;
            return Ok(self.answer(&check, None));
        }
        vault.storage.expect(Capability::Check)?;
        let inspection = vault.storage.maintenance().inspect()?.journal(self.since)?;
        let JournalInspection { chain, counts, findings } = inspection;
        let findings = findings.iter().map(FindingSummary::from).collect();
        Ok(self.answer(&chain, Some(CatalogCheck::new(counts, findings))))
    }
}

impl CheckJournalRequest {
    fn answer(&self, check: &JournalCheck, catalog: Option<CatalogCheck>) -> CheckJournalAnswer {
        let since = check.since.filter(|since| self.since_seq.is_none_or(|seq| seq == *since));
        let is_former_head = self.since.is_none() || since.is_some();
        let matches = catalog.as_ref().is_none_or(|catalog| catalog.findings.is_empty());
        CheckJournalAnswer {
            ok: check.defect.is_none() && is_former_head && matches,
            since,
            defect: check.defect.map(|defect| defect.to_string()),
            defect_entry: check.defect.map(|defect| defect.entry()),
            found: check.since,
            head: check.head.into(),
            catalog,
        }
    }
}

impl CatalogCheck {
    fn new(counts: CatalogCounts, findings: Vec<FindingSummary>) -> Self {
        let CatalogCounts { artifacts, captures, tags, notes, pins, labels, links, tombstones, signatures } =
            counts;
        Self { artifacts, captures, tags, notes, pins, labels, links, tombstones, signatures, findings }
    }
}
