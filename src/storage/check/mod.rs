//! Checks that do not trust the content of a vault, and repairs: what engines report and the steps that they offer.
//!
//! Each check returns findings. Damage that prevents reading is also a finding, and the other checks continue; an error
//! means that the check could not run, for example because of an I/O failure.

mod bytes;
pub(super) mod compare;
mod expected;
pub mod finding;
mod journal;

use std::ops::RangeInclusive;

use super::Result;
use crate::artifact::Kind;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

pub use crate::storage::catalog::Row;
pub(crate) use crate::storage::catalog::rows_of;
pub use compare::compare_rows;
pub use expected::{ExpectedCatalog, JournaledTable, UnreadRows};
pub use finding::{
    CaptureId, CatalogCounts, CheckedArtifact, Finding, FindingInfo, IntegrityLevel, JournalInspection,
    KindFacts, ReadCapture, ReadmittedArtifact, ReindexOutcome, Repair, StoredBytes, Subject,
};
pub use journal::{EntrySelection, JournalReplay, JournalRow, MOST_ARTIFACTS};

/// The catalog at one point in time, for checking: what every database is asked with the same statements.
///
/// Methods return an error if the vault cannot be read for a reason other than damage. Those with `findings` add damage
/// that prevents reading to them.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait CatalogInspection {
    /// Returns the kinds as the vault records them.
    fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>>;

    /// Passes entries of the journal to `take`, in the order of their numbers. Returns false and adds a finding if it cannot
    /// be read.
    fn journal(
        &self,
        selection: &EntrySelection,
        take: &mut dyn FnMut(JournalRow<'_>),
        findings: &mut Vec<Finding>,
    ) -> Result<bool>;

    /// Passes the rows of the artifacts with core hashes in a range to `take`, those that can be read. The others are
    /// findings.
    fn artifacts_between(
        &self,
        range: &RangeInclusive<Digest>,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<()>;

    /// Returns the blobs that checking every artifact does not read.
    fn unreferenced_blobs(&self, findings: &mut Vec<Finding>) -> Result<Vec<BlobHash>>;

    /// Returns the captures whose seals bind them to the artifact `core`, whatever artifact their rows refer to.
    fn sealed(&self, core: CoreHash) -> Result<Vec<CaptureHash>>;
}

/// A vault at one point in time, for checking. Errors are those of [`CatalogInspection`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Inspection: CatalogInspection + Send {
    /// Checks the engine's own structures, without reading stored bytes: access rights, files, tables and rows. Finds the
    /// artifacts that are recorded as removed and whose bytes are still in the vault.
    fn structures(&self, integrity: IntegrityLevel) -> Result<Vec<Finding>>;

    /// Returns what could not be checked so far, and why: the engine or its user does not permit it.
    fn unchecked(&self) -> Vec<String> {
        Vec::new()
    }

    /// Passes the rows of a table, or those of artifacts with core hashes in a range and perhaps others, to `take`, those that
    /// can be read. Returns the others, about which it adds findings. Rows that refer to missing artifacts are left out.
    fn rows(
        &self,
        table: JournaledTable,
        of: Option<&RangeInclusive<Digest>>,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows>;

    /// Checks that the mention index can be read and is sorted, and, in a full check, whether it has exactly one entry for
    /// every digest that a capture mentions. If the returned flag is false, [`Inspection::unlisted`] should be called for
    /// every artifact.
    fn mentions_index(&self, integrity: IntegrityLevel) -> Result<(Vec<Finding>, bool)>;

    /// Adds a finding if the artifact's captures mention digests that are missing from the mention index.
    fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()>;

    /// Announces that the first of these artifacts is read next, and then the others in their order, so that the engine
    /// can read several at once.
    fn read_ahead(&self, artifacts: &[CheckedArtifact]) -> Result<()> {
        let _ = artifacts;
        Ok(())
    }

    /// Returns the ids of an artifact's captures in the order in which they were added.
    fn capture_ids(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Vec<CaptureId>>;

    /// Returns what the row of a capture of `artifact` has, without its files. Returns `None` and adds a finding if it cannot be
    /// read.
    fn capture(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>>;

    /// Returns the rows of an artifact that follow from bytes, or `None` and a finding if they cannot be read.
    fn derived_rows(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<Row>>>;

    /// Returns whether the vault contains this capture of the artifact `core`.
    fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool>;

    /// Reads the stored bytes of a blob and hashes them again. Returns a finding if they are missing or damaged.
    fn stored_bytes(&self, blob: BlobHash) -> Result<std::result::Result<StoredBytes, Finding>>;

    /// Returns whether the blob with this hash is stored as a delta.
    fn is_difference(&self, blob: BlobHash) -> Result<bool>;
}

/// The steps of repairs, none of which requires guessing. Each is one transaction with its journal entries, and returns what
/// it repaired.
///
/// Methods return an error if the vault cannot be read or written.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Repairs {
    /// Repairs what is the engine's own, as far as `found` requires it: access rights, a damaged file, numbers and the end of
    /// the journal, and the rows that say which bytes are stored.
    fn repair_structures(&self, found: &[Finding]) -> Result<Vec<Repair>>;

    /// Stores `bytes`, which have this hash, as the blob with it unless the vault has it undamaged.
    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>>;

    /// Writes the rows that follow from the journal alone, and deletes those that refer to missing ones. Captures whose bytes
    /// are not stored are left out, and other rows that the journal does not record are kept. If the journal's chain is
    /// broken, or an entry is not understood, it is no proof, and rows are only deleted. `kinds` are all that this program
    /// knows.
    fn rebuild(&self, kinds: &[Kind]) -> Result<Vec<Repair>>;

    /// Rebuilds what is derived from the captures of each artifact of `batch`, in one transaction. Returns the outcome of each,
    /// in their order.
    fn reindex(&self, batch: &[ReadmittedArtifact]) -> Result<Vec<ReindexOutcome>>;

    /// Completes [`Repairs::reindex`]: rebuilds what is about all artifacts, and records in the journal how many there were and
    /// how many of them were not admitted.
    fn finish_reindex(&self, artifacts: u64, not_admitted: u64) -> Result<()>;

    /// Drops blobs that nothing refers to.
    fn drop_unreferenced(&self) -> Result<Vec<Repair>>;
}
