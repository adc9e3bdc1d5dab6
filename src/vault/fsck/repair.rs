//! Repair of findings that have an unambiguous fix.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::PathBuf;

use super::reader::{FsckItem, FsckReader, admit_as};
use super::report::{FsckReport, FsckReporter, RepairReport};
use super::restoring::restore_bytes;
use super::sources::{RepairSource, from_vault};
use super::{reindex, search};
use crate::artifact::{Admitted, KeyRing};
use crate::clock;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::formats;
use crate::storage::check::finding::{
    ANNOTATION_DIFFERS, ANNOTATION_LOST, ARTIFACT_EMPTY, BASE_WRONG, BLOB_DAMAGED, BLOB_MISSING,
    BLOB_UNREFERENCED, CAPTURE_DAMAGED, CAPTURE_LOST, CORE_DIFFERS, DICTIONARY_DAMAGED, EMBEDDED_MISSING,
    ENTRY_DIFFERS, FILE_DAMAGED, FILE_SURPLUS, FindingInfo, INDEX_MISSING, INDEX_SURPLUS, INDEX_UNREADABLE,
    INSECURE_PERMISSIONS, JOURNAL_BROKEN, KIND_DIFFERS, KIND_UNKNOWN, KIND_WRONG, MENTION_INDEX_UNSORTED,
    MENTIONS_MISSING, MENTIONS_SURPLUS, ORDER_DIFFERS, PAYLOAD_SURPLUS, REFERENCE_BROKEN, ROW_NUMBER_INVALID,
    SEAL_BROKEN, SEARCH_DAMAGED, SEARCH_DIFFERS, SIGNATURE_DIFFERS, SIZE_WRONG, SOURCE_PATH_DIFFERS, Subject,
    TIME_DIFFERS, TOMBSTONE_DIFFERS, UNREADABLE, UNRESOLVED_MISSING, UNRESOLVED_SURPLUS, WARNINGS_DIFFER,
};
use crate::storage::check::{
    CaptureId, CheckedArtifact, Inspection, IntegrityLevel, ReadCapture, RecordedCapture, RecordedSignatures,
    Repair, Repairs,
};
use crate::storage::{Result, SourcePath, Storage, StorageError, StoredMember};

/// Findings that rebuilding the index repairs.
const OF_THE_INDEX: &[FindingInfo] = &[
    INDEX_MISSING,
    INDEX_SURPLUS,
    INDEX_UNREADABLE,
    MENTION_INDEX_UNSORTED,
    MENTIONS_MISSING,
    MENTIONS_SURPLUS,
    UNRESOLVED_MISSING,
    UNRESOLVED_SURPLUS,
    WARNINGS_DIFFER,
    SIGNATURE_DIFFERS,
    SEAL_BROKEN,
    SIZE_WRONG,
    KIND_WRONG,
    KIND_DIFFERS,
    KIND_UNKNOWN,
    UNREADABLE,
    REFERENCE_BROKEN,
];

/// Findings that the journal's entries repair.
const OF_THE_JOURNAL: &[FindingInfo] = &[
    TIME_DIFFERS,
    SOURCE_PATH_DIFFERS,
    ORDER_DIFFERS,
    ANNOTATION_LOST,
    ANNOTATION_DIFFERS,
    TOMBSTONE_DIFFERS,
    SIGNATURE_DIFFERS,
    ENTRY_DIFFERS,
];

/// While any of these findings exists, unreferenced bytes may be missing elsewhere and are kept.
const NOTHING_IS_DROPPED: &[FindingInfo] = &[ARTIFACT_EMPTY, FILE_DAMAGED, REFERENCE_BROKEN, UNREADABLE];

/// Repairs the findings of `report`, in the order of their dependencies.
pub(super) fn repair(
    storage: &dyn Storage,
    report: &FsckReport,
    from: &[PathBuf],
    keys: &KeyRing,
    reporter: &mut FsckReporter<'_>,
) -> Result<RepairReport> {
    let sources = from.iter().map(|path| RepairSource::open(path)).collect::<Result<Vec<_>>>()?;
    // The next check finds it again.
    if storage.maintenance().check_pages()?.is_some() {
        return Ok(RepairReport::default());
    }
    let mut repair = Repairer {
        storage,
        steps: storage.maintenance().repairs()?,
        report,
        sources,
        keys,
        done: Vec::new(),
        lost: Vec::new(),
        failures: Vec::new(),
        is_reordered: false,
        signatures: RecordedSignatures::default(),
        source_paths: HashMap::new(),
    };
    repair.step(Repairer::end)?;
    repair.step(Repairer::file)?;
    let of_the_file = repair.done.len();
    // Everything else reads the names.
    repair.step(Repairer::rows)?;
    repair.step(Repairer::bytes)?;
    repair.step(Repairer::artifacts)?;
    repair.step(Repairer::captures)?;
    let changed = repair.done.len() > of_the_file;
    repair.step(Repairer::journal)?;
    if repair.has_any(OF_THE_INDEX) || changed || repair.is_reordered {
        repair.step(|repair| {
            reindex::reindex(storage, keys, reporter)?;
            let did = "rebuilt, with all indexes of artifacts";
            repair.done.push(Repair { subject: Subject::Mentions, did });
            Ok(())
        })?;
    }
    repair.step(Repairer::search)?;
    repair.step(Repairer::unreferenced)?;
    let Repairer { done, lost, failures, .. } = repair;
    Ok(RepairReport { repaired: done, lost, failures })
}

struct Repairer<'r> {
    storage: &'r dyn Storage,
    steps: &'r dyn Repairs,
    report: &'r FsckReport,
    sources: Vec<RepairSource>,
    keys: &'r KeyRing,
    done: Vec<Repair>,
    lost: Vec<Repair>,
    failures: Vec<StorageError>,
    /// Whether rows were renumbered.
    is_reordered: bool,
    /// The signature states of captures that the journal recorded before anything was added again.
    signatures: RecordedSignatures,
    /// The source paths of lost captures that the journal records.
    source_paths: HashMap<(CoreHash, CaptureHash), SourcePath>,
}

impl<'r> Repairer<'r> {
    /// Runs a step. An error caused by damage is noted, so that the other steps run. Any other error ends the repair:
    /// after a failure of the disk, later steps would drop what this step could restore the next time.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        match step(self) {
            Err(error) if error.is_of_damage() => {
                self.failures.push(error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn inspect(&self) -> Result<Box<dyn Inspection + 'r>> {
        self.storage.maintenance().inspect()
    }

    fn has(&self, info: FindingInfo) -> bool {
        self.report.findings.iter().any(|finding| finding.info.id == info.id)
    }

    fn has_any(&self, infos: &[FindingInfo]) -> bool {
        infos.iter().any(|info| self.has(*info))
    }

    fn subjects(&self, infos: &[FindingInfo]) -> impl Iterator<Item = &Subject> {
        let of = |id: &str| infos.iter().any(|info| info.id == id);
        self.report.findings.iter().filter(move |finding| of(finding.info.id)).map(|finding| &finding.subject)
    }

    /// Restores the record of where the journal ends and the numbers of entries, on which the entries about all other repairs follow.
    fn end(&mut self) -> Result<()> {
        if self.has(JOURNAL_BROKEN) {
            self.done.append(&mut self.steps.repair_end()?);
        }
        Ok(())
    }

    fn file(&mut self) -> Result<()> {
        for subject in self.subjects(&[INSECURE_PERMISSIONS]).cloned().collect::<Vec<_>>() {
            self.done.append(&mut self.steps.repair_permissions(subject)?);
        }
        if self.has(FILE_DAMAGED) {
            self.done.append(&mut self.steps.repair_sql_indexes()?);
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<()> {
        if self.has_any(&[ROW_NUMBER_INVALID, REFERENCE_BROKEN, UNREADABLE]) {
            self.done.append(&mut self.steps.repair_rows()?);
        }
        Ok(())
    }

    /// Repairs dictionaries and blobs.
    fn bytes(&mut self) -> Result<()> {
        if self.has_any(&[PAYLOAD_SURPLUS, FILE_SURPLUS]) {
            self.done.append(&mut self.steps.drop_surplus()?);
        }
        if self.has(DICTIONARY_DAMAGED) {
            for source in self.sources.iter().filter_map(RepairSource::vault) {
                let source = source.maintenance().inspect()?;
                self.done.append(&mut self.steps.repair_dictionaries(Some(&*source))?);
            }
        }
        let damaged = self.subjects(&[BLOB_DAMAGED, BLOB_MISSING, BASE_WRONG]);
        let blob_of = |subject: &Subject| match subject {
            Subject::Blob(blob) => Some(*blob),
            _ => None,
        };
        let mut blobs: BTreeSet<BlobHash> = damaged.filter_map(blob_of).collect();
        if self.has_any(&[CAPTURE_LOST, REFERENCE_BROKEN]) {
            let mut restored = self.steps.repair_blob_rows()?;
            blobs.extend(restored.iter().filter_map(|repair| blob_of(&repair.subject)));
            self.done.append(&mut restored);
        }
        for blob in &blobs {
            self.done.append(&mut self.steps.repair_digest(*blob)?);
        }
        let (storage, sources, all) = (self.storage, &self.sources, self.has(BASE_WRONG));
        let mut restored = restore_bytes(storage, &blobs, all, &mut |missing, restore| {
            for blob in missing.clone() {
                if let Some(manifest) = storage.maintenance().inspect()?.manifest(CaptureHash(blob.0))? {
                    missing.remove(&blob);
                    restore(blob, &manifest)?;
                }
            }
            sources.iter().try_for_each(|source| source.blobs(missing, restore))
        })?;
        self.done.append(&mut restored);
        if self.has(DICTIONARY_DAMAGED) {
            self.done.append(&mut self.steps.repair_dictionaries(None)?);
        }
        Ok(())
    }

    /// Repairs artifacts whose rows are lost or changed, as far as seals prove their identity.
    fn artifacts(&mut self) -> Result<()> {
        if self.has_any(&[REFERENCE_BROKEN, UNREADABLE]) {
            let artifacts = self.inspect()?.lost_artifacts(&mut Vec::new())?;
            self.repair_captures(artifacts, |steps, artifact, capture, admitted| {
                steps.repair_artifact(artifact, capture, admitted)
            })?;
        }
        if self.has(CORE_DIFFERS) {
            let captures: BTreeSet<Subject> = self.subjects(&[CORE_DIFFERS]).cloned().collect();
            let artifacts = self.inspect()?.artifacts(None, &mut Vec::new())?;
            self.repair_captures(artifacts, |steps, artifact, capture, admitted| {
                if admitted.core() == artifact.core
                    || !captures.contains(&Subject::Capture(admitted.capture()))
                {
                    return Ok(Vec::new());
                }
                steps.repair_core(artifact, capture, admitted)
            })?;
        }
        if self.has_any(&[CAPTURE_LOST, CAPTURE_DAMAGED, REFERENCE_BROKEN]) {
            self.done.append(&mut self.steps.repair_captures()?);
        }
        Ok(())
    }

    /// Calls `repair` with each capture of `artifacts` and its admitted form.
    fn repair_captures(
        &mut self,
        artifacts: Vec<CheckedArtifact>,
        repair: impl Fn(&dyn Repairs, &CheckedArtifact, CaptureId, &Admitted) -> Result<Vec<Repair>>,
    ) -> Result<()> {
        for item in FsckReader::new(self.inspect()?, artifacts, false) {
            match item {
                FsckItem::Capture(artifact, capture) => {
                    let Some(files) = &capture.files else { continue };
                    if let Some(admitted) = proven(&capture, files, self.keys) {
                        self.done.append(&mut repair(self.steps, &artifact, capture.id, &admitted)?);
                    }
                }
                FsckItem::End(..) => {}
                FsckItem::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Restores captures that are in the journal but not in the vault, and artifacts that are contained in others.
    fn captures(&mut self) -> Result<()> {
        if self.has_any(&[CAPTURE_LOST, CAPTURE_DAMAGED, ARTIFACT_EMPTY, BLOB_UNREFERENCED, UNREADABLE]) {
            let inspection = self.inspect()?;
            let mut lost = inspection.lost_captures()?;
            self.signatures = inspection.recorded_signatures()?;
            for subject in self.subjects(&[CAPTURE_DAMAGED]) {
                if let Subject::Capture(capture) = subject {
                    let recorded = inspection.recorded_with(capture.0)?.into_iter();
                    lost.extend(recorded.filter(|recorded| recorded.capture == *capture));
                }
            }
            for lost in &lost {
                self.note_source_path(lost);
            }
            let mut lost: BTreeMap<_, _> = lost.into_iter().map(|lost| (lost.key(), lost)).collect();
            for capture in lost.values().cloned().collect::<Vec<_>>() {
                let Some(admitted) = from_vault(self.storage, &capture, self.keys)? else { continue };
                lost.remove(&capture.key());
                // A damaged capture may be intact by now.
                if !inspection.has_capture(capture.core, capture.capture)? {
                    self.add(admitted)?;
                }
            }
            drop(inspection);
            let sources = std::mem::take(&mut self.sources);
            for source in &sources {
                source.captures(&mut lost, self.keys, &mut |admitted| self.add(admitted))?;
            }
            self.sources = sources;
        }
        if self.has(EMBEDDED_MISSING) {
            self.embedded()?;
        }
        Ok(())
    }

    fn embedded(&mut self) -> Result<()> {
        let subjects: BTreeSet<Subject> = self.subjects(&[EMBEDDED_MISSING]).cloned().collect();
        let mut artifacts = self.inspect()?.artifacts(None, &mut Vec::new())?;
        artifacts.retain(|artifact| {
            artifact
                .kind
                .as_deref()
                .and_then(formats::named)
                .is_some_and(crate::artifact::Kind::is_of_directories)
        });
        for item in FsckReader::new(self.inspect()?, artifacts, false) {
            let FsckItem::Capture(artifact, capture) = item else { continue };
            let kind = artifact.kind.as_deref().and_then(formats::named);
            let (Some(kind), Some(files)) = (kind, capture.files) else { continue };
            let Ok(mut admitted) = admit_as(kind, capture.is_directory, &files, self.keys) else { continue };
            for part in admitted.take_embedded() {
                if subjects.contains(&Subject::Artifact(part.core())) {
                    self.add(part)?;
                }
            }
        }
        Ok(())
    }

    /// Remembers the source path of a lost capture until it is added again.
    fn note_source_path(&mut self, lost: &RecordedCapture) {
        let path = lost.source_path.as_deref().and_then(|path| SourcePath::new(OsStr::new(path)));
        self.source_paths.extend(path.map(|path| (lost.key(), path)));
    }

    /// Adds an artifact as usual, with a journal entry. Artifacts that were removed, or contain a removed one, are not
    /// added.
    fn add(&mut self, admitted: Admitted) -> Result<()> {
        if !self.storage.snapshot()?.tombstones_of(&admitted)?.is_empty() {
            return Ok(());
        }
        let preparer = self.storage.preparer()?;
        let subject = Subject::Capture(admitted.capture());
        let is_damaged = self.subjects(&[CAPTURE_DAMAGED]).any(|damaged| *damaged == subject);
        // An earlier step may have restored it.
        if !is_damaged && self.storage.snapshot()?.capture(admitted.core(), admitted.capture())?.is_some() {
            return Ok(());
        }
        let key = (admitted.core(), admitted.capture());
        let recorded = self.signatures.get(&key).cloned();
        let mut artifact = preparer.prepare(admitted);
        artifact.set_source_paths(&|part| self.source_paths.get(&(part.core(), part.capture())).cloned());
        let put = if is_damaged {
            let (mut dropped, put) = self.steps.replace_capture(&artifact, recorded, clock::now())?;
            self.done.append(&mut dropped);
            put
        } else {
            self.steps.put_again(&artifact, recorded, clock::now())?
        };
        if put.outcome.is_refused() {
            return Ok(());
        }
        self.done.push(Repair { subject, did: "added again" });
        Ok(())
    }

    /// Restores what the journal determines, after everything else was restored.
    fn journal(&mut self) -> Result<()> {
        // What is derived from a note is restored with it.
        let is_of_a_note = self.subjects(&[INDEX_MISSING]).any(|subject| matches!(subject, Subject::Note(_)));
        // Restored rows do not have their times yet.
        if self.has_any(OF_THE_JOURNAL)
            || self.has_any(&[REFERENCE_BROKEN, UNREADABLE])
            || is_of_a_note
            || !self.done.is_empty()
        {
            let mut restored = self.steps.restore_from_journal()?;
            self.done.append(&mut restored.repaired);
            self.is_reordered = restored.is_reordered;
        }
        Ok(())
    }

    /// Rebuilds the search index.
    fn search(&mut self) -> Result<()> {
        if self.has_any(&[SEARCH_DAMAGED, SEARCH_DIFFERS, FILE_DAMAGED]) && search::has_index(self.storage)? {
            search::rebuild(self.storage)?;
            self.done.append(&mut self.steps.record_repair(Subject::Search, "rebuilt")?);
        }
        Ok(())
    }

    /// Removes unreferenced blobs, if they are certainly not needed.
    fn unreferenced(&mut self) -> Result<()> {
        if !self.has(BLOB_UNREFERENCED) || self.has(CAPTURE_DAMAGED) {
            return Ok(());
        }
        let inspection = self.inspect()?;
        let mut left = inspection.structures(IntegrityLevel::Quick)?;
        left.append(&mut inspection.journal(None)?.findings);
        let is_sure =
            !left.iter().any(|finding| NOTHING_IS_DROPPED.iter().any(|info| info.id == finding.info.id));
        drop(inspection);
        if is_sure {
            self.done.append(&mut self.steps.drop_unreferenced()?);
        }
        Ok(())
    }
}

/// Returns the capture as the artifact that its seal identifies, of any kind.
fn proven(capture: &ReadCapture, files: &[StoredMember], keys: &KeyRing) -> Option<Admitted> {
    let admit = |kind| admit_as(kind, capture.is_directory, files, keys).ok();
    formats::ALL.into_iter().filter_map(admit).find(|admitted| capture.is_sealed_as(admitted))
}
