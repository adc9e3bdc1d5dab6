//! Checks that do not trust the content of a vault, and repairs: what engines report and the steps that they offer.
//!
//! Each check returns findings. Damage that prevents reading is also a finding, and the other checks continue; an error
//! means that the check could not run, for example because of an I/O failure.

pub(super) mod capture;
pub(super) mod comparison;
pub(super) mod facts;
pub mod finding;
pub(super) mod journal;
pub(super) mod journal_state;
mod records;
pub(super) mod sum;

use chrono::{DateTime, Utc};

use super::{Prepared, PutResult, Result, StoredMember};
use crate::artifact::{Admitted, Signature, is_capture_of, manifest_of, parse_manifest};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

pub use facts::ArtifactFacts;
pub use finding::{Finding, FindingInfo, Subject};
pub use records::{
    CaptureId, CatalogCounts, CheckedArtifact, DictionaryCopy, IntegrityLevel, JournalInspection,
    JournalRestoreResult, KindFacts, ReadCapture, ReadmittedArtifact, RecordedCapture, RecordedSignatures,
    ReindexOutcome, Removals, Repair,
};

/// A vault at one point in time, for checking.
///
/// Methods return an error if the vault cannot be read for a reason other than damage. Those with `findings` add damage
/// that prevents reading to them.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Inspection: Send {
    /// Checks the engine's own structures, without reading stored bytes: access rights, files, tables and rows.
    fn structures(&self, integrity: IntegrityLevel) -> Result<Vec<Finding>>;

    /// Returns what could not be checked so far, and why: the engine or its user does not permit it.
    fn unchecked(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the kinds as the vault records them.
    fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>>;

    /// Computes the chain of the journal, looks for the entry whose chain value is `since`, and compares the journal
    /// with everything in the catalog that follows from it, in both directions. No stored bytes are read.
    fn journal(&self, since: Option<Digest>) -> Result<JournalInspection>;

    /// Finds the artifacts that are recorded as removed and whose bytes are still in the vault.
    fn removed(&self) -> Result<Vec<Finding>>;

    /// Reads and hashes the stored bytes that checking every artifact does not read.
    fn unreferenced(&self) -> Result<Vec<Finding>>;

    /// Checks that the mention index can be read and is sorted.
    fn order_of_mentions(&self) -> Result<Vec<Finding>>;

    /// Checks that the mention index can be read and is sorted, and whether it has exactly one entry for every digest
    /// that a capture mentions. If the returned flag is false, [`Inspection::unlisted`] should be called for every
    /// artifact.
    fn mentions_index(&self) -> Result<(Vec<Finding>, bool)>;

    /// Adds a finding if the artifact's captures mention digests that are missing from the mention index.
    fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()>;

    /// Returns all artifacts, or those of one kind, ordered by core hash. An unreadable part of the table is a finding.
    fn artifacts(&self, kind: Option<&str>, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>>;

    /// Returns the artifacts that captures refer to and that are missing from the vault. Their hashes are not known.
    fn lost_artifacts(&self, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>>;

    /// Announces that the first of these artifacts is read next, and then the others in their order, so that the engine
    /// can read several at once.
    fn read_ahead(&self, artifacts: &[CheckedArtifact]) -> Result<()> {
        let _ = artifacts;
        Ok(())
    }

    /// Returns the ids of an artifact's captures in the order in which they were added.
    fn capture_ids(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Vec<CaptureId>>;

    /// Reads a capture of `artifact` and hashes every byte again. Returns `None` and adds a finding if its row cannot
    /// be read.
    fn read(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>>;

    /// Returns the indexed facts of an artifact, or `None` and a finding if they cannot be read.
    fn facts(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>)
    -> Result<Option<ArtifactFacts>>;

    /// Returns whether the vault contains this capture of the artifact `core`.
    fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool>;

    /// Returns the removals that the journal records.
    fn removals(&self) -> Result<Removals>;

    /// Returns the captures that should be in the vault according to the journal and are missing.
    fn lost_captures(&self) -> Result<Vec<RecordedCapture>>;

    /// Returns the added captures that the journal, or a seal, proves to have `digest` or to belong to the artifact with
    /// this core hash, in the order in which they were added.
    fn recorded_with(&self, digest: Digest) -> Result<Vec<RecordedCapture>>;

    /// Returns the names and hashes of the files of every set of files that may be the capture of several files with this
    /// hash, whatever refers to them.
    fn file_lists(&self, capture: CaptureHash) -> Result<Vec<Vec<(String, BlobHash)>>>;

    /// Returns the manifest of the directory with this capture hash, made of its files, if the vault records them.
    fn manifest(&self, capture: CaptureHash) -> Result<Option<Vec<u8>>> {
        let manifests = self.file_lists(capture)?.into_iter();
        let mut manifests =
            manifests.map(|list| manifest_of(list.iter().map(|(name, blob)| (&**name, *blob))));
        Ok(manifests.find(|manifest| Digest::from_content(manifest) == capture.0))
    }

    /// Returns the files of the directory with this capture hash, whatever refers to them, if the vault has all of them
    /// undamaged.
    fn files_of(&self, capture: CaptureHash) -> Result<Option<Vec<StoredMember>>> {
        let manifest = self.bytes_of(BlobHash(capture.0))?.and_then(|manifest| parse_manifest(&manifest));
        for list in manifest.into_iter().chain(self.file_lists(capture)?) {
            let named: Vec<(&str, BlobHash)> = list.iter().map(|(name, blob)| (&**name, *blob)).collect();
            if !is_capture_of(capture, &named) {
                continue;
            }
            let read = |(name, blob): (String, BlobHash)| {
                Ok(self.bytes_of(blob)?.map(|bytes| StoredMember { name, bytes }))
            };
            if let Some(files) = list.into_iter().map(read).collect::<Result<_>>()? {
                return Ok(Some(files));
            }
        }
        Ok(None)
    }

    /// Returns the signature states of captures that the journal records. Returns an empty map if its chain is broken
    /// or it contains entries that this program does not understand.
    fn recorded_signatures(&self) -> Result<RecordedSignatures>;

    /// Returns the bytes with this hash, if the vault has them undamaged.
    fn bytes_of(&self, blob: BlobHash) -> Result<Option<Vec<u8>>>;

    /// Returns whether the blob with this hash is stored as a delta.
    fn is_difference(&self, blob: BlobHash) -> Result<bool>;

    /// Returns the dictionary with this digest, if the vault has it undamaged.
    fn dictionary(&self, digest: &Digest) -> Result<Option<DictionaryCopy>>;
}

/// The steps of repairs, none of which requires guessing. Each is one transaction with its journal entries, and returns
/// what it repaired. What an engine has no need of does nothing.
///
/// Methods return an error if the vault cannot be read or written.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait Repairs {
    /// Restores the record of where the journal ends and the numbers of entries, if the journal proves them: later entries
    /// follow on its end.
    fn repair_end(&self) -> Result<Vec<Repair>> {
        Ok(Vec::new())
    }

    /// Restricts write permission for the vault's files to the owner; `subject` is the file that others could write.
    fn repair_permissions(&self, subject: Subject) -> Result<Vec<Repair>> {
        let _ = subject;
        Ok(Vec::new())
    }

    /// Rebuilds the engine's own indexes, unless the vault is too damaged for that.
    fn repair_sql_indexes(&self) -> Result<Vec<Repair>> {
        Ok(Vec::new())
    }

    /// Restores row ids and hashes of rows that stored bytes or the journal prove.
    fn repair_rows(&self) -> Result<Vec<Repair>> {
        Ok(Vec::new())
    }

    /// Removes digests and dictionaries from payloads whose encoding does not use them, and files from captures of documents.
    fn drop_surplus(&self) -> Result<Vec<Repair>> {
        Ok(Vec::new())
    }

    /// Restores damaged dictionaries that `other` has undamaged. Without `other`, corrects the fields stored with their
    /// bytes if their digests prove them, and drops damaged dictionaries that no payload needs.
    fn repair_dictionaries(&self, other: Option<&dyn Inspection>) -> Result<Vec<Repair>> {
        let _ = other;
        Ok(Vec::new())
    }

    /// Restores the lost rows of blobs whose hashes the seals of captures and the journal prove.
    fn repair_blob_rows(&self) -> Result<Vec<Repair>> {
        Ok(Vec::new())
    }

    /// Corrects the recorded hash of a blob if its stored bytes have another hash that the seal or the hash of a
    /// capture proves.
    fn repair_digest(&self, blob: BlobHash) -> Result<Vec<Repair>>;

    /// Replaces the damaged or missing bytes of `blob` with `bytes`. Repairs nothing if `bytes` have another hash, or
    /// the vault has no such blob.
    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>>;

    /// Restores the missing row of an artifact that captures belong to. `admitted` is the result of admitting such a
    /// capture.
    fn repair_artifact(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>>;

    /// Assigns `capture` of `artifact` to the artifact that its seal proves: the admitted one, if that was sealed when
    /// the capture was added.
    fn repair_core(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>>;

    /// Corrects the hashes of captures that the journal does not have, if it has one with their seal, and deletes what
    /// refers to missing captures and artifacts.
    fn repair_captures(&self) -> Result<Vec<Repair>> {
        Ok(Vec::new())
    }

    /// Stores one artifact whose capture was lost, like [`Storage::put`](crate::storage::Storage::put). Restores the
    /// previously `recorded` signature state unless the signature was checked now.
    fn put_again(
        &self,
        artifact: &Prepared,
        recorded: Option<Signature>,
        at: DateTime<Utc>,
    ) -> Result<PutResult>;

    /// Deletes a damaged capture and stores `artifact`, which has it intact, as by [`Repairs::put_again`].
    fn replace_capture(
        &self,
        artifact: &Prepared,
        recorded: Option<Signature>,
        at: DateTime<Utc>,
    ) -> Result<(Vec<Repair>, PutResult)>;

    /// Restores everything that the journal determines. Other rows that the journal does not know are kept. Changes
    /// nothing if the journal's chain is broken or it contains entries that this program does not understand.
    fn restore_from_journal(&self) -> Result<JournalRestoreResult>;

    /// Records a repair in the journal and returns it.
    fn record_repair(&self, subject: Subject, did: &'static str) -> Result<Vec<Repair>>;

    /// Drops unreferenced blobs.
    fn drop_unreferenced(&self) -> Result<Vec<Repair>>;
}
