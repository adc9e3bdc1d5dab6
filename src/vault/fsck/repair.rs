//! Repair of findings that have an unambiguous fix, and restoring of stored bytes, from other sources where they are lost or
//! damaged, and of what is derived from them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use super::report::{FsckMonitor, FsckReport, FsckReporter, RepairReport};
use super::{reindex, search};
use crate::artifact::{AdmitOptions, DirectoryEntry, KeyRing, SignaturePolicy, parse_manifest};
use crate::digest::{BlobHash, CoreHash, Digest};
use crate::files;
use crate::formats;
use crate::intake::archive::{self, ArchiveFormat};
use crate::intake::{self, DocumentVerdict, ExamineOptions, Input, Inputs};
use crate::json::reader::Limits;
use crate::storage::check::finding::{
    BROKEN_CHAIN, DAMAGED_BYTES, FILE_DAMAGED, Finding, FindingInfo, INDEX_DIFFERS, INSECURE_PERMISSIONS,
    LOG_DAMAGED, MISSING_BYTES, MISSING_ROW, NOT_ADMITTED, SCHEMA_DIFFERS, SURPLUS_ROW, Subject,
    UNKNOWN_ENTRY, UNREADABLE, WRONG_SIGNATURE,
};
use crate::storage::check::{CheckedArtifact, Inspection, IntegrityLevel, Repair, Repairs};
use crate::storage::{self, CreationPolicy, Result, Storage, StorageError};

/// Findings that say nothing of rows.
const NOT_OF_ROWS: &[FindingInfo] = &[
    INSECURE_PERMISSIONS,
    LOG_DAMAGED,
    SCHEMA_DIFFERS,
    WRONG_SIGNATURE,
    NOT_ADMITTED,
    BROKEN_CHAIN,
    UNKNOWN_ENTRY,
];

/// While any of these findings exists, bytes that nothing refers to may be missing elsewhere and are kept.
const NOTHING_IS_DROPPED: &[FindingInfo] =
    &[FILE_DAMAGED, MISSING_ROW, UNREADABLE, MISSING_BYTES, DAMAGED_BYTES];

/// Findings about bytes that the sources may have.
const OF_BYTES: &[FindingInfo] = &[MISSING_BYTES, DAMAGED_BYTES, MISSING_ROW, UNREADABLE];

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
    if storage.check_pages()?.is_some() {
        return Ok(RepairReport::default());
    }
    let steps = storage.repairs()?;
    let (journaled, done) = (Vec::new(), RepairReport::default());
    let mut repair = Repairer { storage, steps, report, sources, journaled, is_reindexed: false, done };
    repair.step(|repair| repair.steps.repair_structures(&repair.report.findings))?;
    repair.step(Repairer::bytes)?;
    repair.step(Repairer::rows)?;
    // Access to a file changes no rows, unlike writing the database again.
    let is_of_rows =
        |repaired: &Repair| !matches!(&repaired.subject, Subject::File(name) if name != "database");
    if repair.done.repaired.iter().any(is_of_rows) || repair.has_derived_findings() {
        repair.step(|repair| {
            reindex::reindex(repair.storage, keys, reporter)?;
            repair.is_reindexed = true;
            Ok(vec![Repair { subject: Subject::Mentions, did: "rebuilt, with all indexes of artifacts" }])
        })?;
    }
    repair.step(Repairer::search)?;
    repair.step(Repairer::unreferenced)?;
    Ok(repair.done)
}

struct Repairer<'r> {
    storage: &'r dyn Storage,
    steps: &'r dyn Repairs,
    report: &'r FsckReport,
    sources: Vec<RepairSource>,
    /// The differences from the journal before its rows were written.
    journaled: Vec<Finding>,
    /// Whether what is derived from stored bytes was rebuilt.
    is_reindexed: bool,
    done: RepairReport,
}

impl<'r> Repairer<'r> {
    /// Runs a step. An error caused by damage is noted, so that the other steps run. Any other error ends the repair:
    /// after a failure of the disk, later steps would drop what this step could restore the next time.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<Vec<Repair>>) -> Result<()> {
        match step(self) {
            Err(error) if error.is_of_damage() => self.done.failures.push(error),
            outcome => self.done.repaired.append(&mut outcome?),
        }
        Ok(())
    }

    fn inspect(&self) -> Result<Box<dyn Inspection + 'r>> {
        self.storage.inspect()
    }

    fn has(&self, info: FindingInfo) -> bool {
        self.report.findings.iter().any(|finding| finding.info == info)
    }

    /// Writes the rows that follow from the journal, if it lacks some of them or has others, and deletes rows that refer to
    /// missing ones.
    fn rows(&mut self) -> Result<Vec<Repair>> {
        self.journaled = self.inspect()?.compare_journal(None)?.findings;
        if self.done.leaves_out_entries() {
            return Ok(Vec::new());
        }
        // Rows that the journal does not record are kept.
        let is_of_journal = self.journaled.iter().any(|finding| finding.info != SURPLUS_ROW);
        let may_be_of_rows = |finding: &Finding| {
            let is_of_table = matches!(finding.subject, Subject::Table(_));
            (is_of_table && !NOT_OF_ROWS.contains(&finding.info))
                || [FILE_DAMAGED, UNREADABLE].contains(&finding.info)
        };
        if is_of_journal || self.report.findings.iter().any(may_be_of_rows) {
            return self.steps.rebuild(&formats::ALL);
        }
        Ok(Vec::new())
    }

    /// Returns whether there are findings about rows that are derived from stored bytes.
    fn has_derived_findings(&self) -> bool {
        let is_derived = |finding: &Finding| {
            !NOT_OF_ROWS.contains(&finding.info)
                && finding.subject != Subject::Search
                && unreferenced_blob(finding).is_none()
                && !self.journaled.contains(finding)
        };
        self.report.findings.iter().any(is_derived)
    }

    /// Returns the blobs that findings say are damaged or missing, and those of captures that are.
    fn wanted(&self) -> BTreeSet<BlobHash> {
        let found = self.report.findings.iter().filter(|finding| OF_BYTES.contains(&finding.info));
        let blob = |finding: &Finding| match finding.subject {
            Subject::Blob(blob) => Some(blob),
            Subject::Capture(capture) => Some(BlobHash(capture.0)),
            _ => None,
        };
        found.filter_map(blob).collect()
    }

    /// Restores bytes that are damaged or missing, or that captures in the journal need, from the sources.
    fn bytes(&mut self) -> Result<Vec<Repair>> {
        let mut wanted = self.wanted();
        let mut repaired = Vec::new();
        while !wanted.is_empty() {
            let sources = &self.sources;
            repaired.append(&mut restore_bytes(self.storage, &wanted, &mut |missing, restore| {
                sources.iter().try_for_each(|source| source.blobs(missing, restore))
            })?);
            wanted = self.files_of(&wanted)?;
        }
        Ok(repaired)
    }

    /// Returns the files of those of `blobs` that are manifests, if they cannot be read.
    fn files_of(&self, blobs: &BTreeSet<BlobHash>) -> Result<BTreeSet<BlobHash>> {
        let inspection = self.inspect()?;
        let mut files = BTreeSet::new();
        for blob in blobs {
            let manifest = inspection.bytes_of(*blob)?.and_then(|bytes| parse_manifest(&bytes));
            for (_, file) in manifest.into_iter().flatten() {
                if !blobs.contains(&file) && inspection.bytes_of(file)?.is_none() {
                    files.insert(file);
                }
            }
        }
        Ok(files)
    }

    /// Rebuilds the search index.
    fn search(&mut self) -> Result<Vec<Repair>> {
        let is_of_search =
            |finding: &Finding| finding.info == INDEX_DIFFERS && finding.subject == Subject::Search;
        let is_damaged = self.report.findings.iter().any(is_of_search) || self.has(FILE_DAMAGED);
        if !is_damaged || !search::has_index(self.storage)? {
            return Ok(Vec::new());
        }
        if !self.is_reindexed {
            search::rebuild(self.storage)?;
        }
        Ok(vec![Repair { subject: Subject::Search, did: "rebuilt" }])
    }

    /// Removes bytes that nothing refers to, if they are certainly not needed.
    fn unreferenced(&mut self) -> Result<Vec<Repair>> {
        if !self.has(SURPLUS_ROW) {
            return Ok(Vec::new());
        }
        let inspection = self.inspect()?;
        let mut left = inspection.structures(IntegrityLevel::Quick)?;
        left.append(&mut inspection.compare_journal(None)?.findings);
        let unreferenced: BTreeSet<BlobHash> = left.iter().filter_map(unreferenced_blob).collect();
        let is_of_others = |finding: &&Finding| match finding.subject {
            Subject::Blob(blob) => !unreferenced.contains(&blob),
            _ => true,
        };
        let mut others = left.iter().filter(is_of_others);
        if others.any(|finding| NOTHING_IS_DROPPED.contains(&finding.info)) {
            return Ok(Vec::new());
        }
        // One of them may be a manifest, which says what else is needed.
        for blob in self.wanted().difference(&unreferenced) {
            if inspection.bytes_of(*blob)?.is_none() {
                return Ok(Vec::new());
            }
        }
        drop(inspection);
        self.steps.drop_unreferenced()
    }
}

/// Returns the blob that nothing refers to, if `finding` is about one.
fn unreferenced_blob(finding: &Finding) -> Option<BlobHash> {
    match finding.subject {
        Subject::Blob(blob) if finding.info == SURPLUS_ROW => Some(blob),
        _ => None,
    }
}

/// Passes bytes of blobs on.
type Give<'g> = dyn FnMut(BlobHash, &[u8]) -> Result<()> + 'g;

/// Restores those of `blobs` that cannot be read from the bytes that `source` passes on for the blobs that it gets. Returns
/// what was repaired.
///
/// # Errors
/// Returns an error if the vault cannot be read or written.
pub(in crate::vault) fn restore_bytes(
    storage: &dyn Storage,
    blobs: &BTreeSet<BlobHash>,
    source: &mut dyn FnMut(&mut BTreeSet<BlobHash>, &mut Give<'_>) -> Result<()>,
) -> Result<Vec<Repair>> {
    let steps = storage.repairs()?;
    let mut repaired = Vec::new();
    let mut restore = |select: &dyn Fn(&dyn Inspection, BlobHash) -> Result<bool>| {
        let inspection = storage.inspect()?;
        let mut missing = BTreeSet::new();
        for blob in blobs {
            if select(&*inspection, *blob)? && inspection.bytes_of(*blob)?.is_none() {
                missing.insert(*blob);
            }
        }
        drop(inspection);
        if missing.is_empty() {
            return Ok(());
        }
        source(&mut missing, &mut |blob, bytes| {
            // Nothing else may take the place of lost bytes.
            if BlobHash(Digest::from_content(bytes)) == blob {
                repaired.append(&mut steps.restore_blob(blob, bytes)?);
            }
            Ok(())
        })
    };
    // Delta bases come first: once they are restored, their dependents may be readable again.
    restore(&|inspection, blob| inspection.is_difference(blob).map(|is_difference| !is_difference))?;
    restore(&|_, _| Ok(true))?;
    Ok(repaired)
}

/// Rebuilds what is derived from some artifacts, such as their mentions. Signatures that were checked keep their state.
///
/// # Errors
/// Returns an error if the vault cannot be read or written.
pub(in crate::vault) fn reindex_artifacts(storage: &dyn Storage, of: &BTreeSet<CoreHash>) -> Result<()> {
    let mut silent = Silent;
    let mut reporter = FsckReporter::new(&mut silent);
    let is_of = |artifact: &CheckedArtifact| of.contains(&artifact.core);
    reindex::artifacts(storage, &is_of, &KeyRing::default(), &mut reporter).map(drop)
}

/// A monitor for rebuilding a few artifacts.
struct Silent;

impl FsckMonitor for Silent {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

/// Another vault, or files.
pub(super) enum RepairSource {
    Vault(Box<dyn Storage>),
    Files(PathBuf),
}

impl RepairSource {
    /// Opens the source at `path`: a directory, or otherwise a vault.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let metadata = storage::file_of(path).map(fs::metadata).transpose();
        let metadata = metadata.map_err(|source| StorageError::io(path, source))?;
        if metadata.is_some_and(|metadata| metadata.is_dir()) {
            Ok(Self::Files(path.to_owned()))
        } else {
            storage::open(path, CreationPolicy::Never).map(|opened| Self::Vault(opened.storage))
        }
    }

    /// Passes the `missing` bytes that the source has to `give`, and removes them from `missing`.
    pub(super) fn blobs(
        &self,
        missing: &mut BTreeSet<BlobHash>,
        give: &mut dyn FnMut(BlobHash, &[u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Vault(storage) => {
                let inspection = storage.inspect()?;
                for blob in missing.clone() {
                    if let Some(bytes) = inspection.bytes_of(blob)? {
                        missing.remove(&blob);
                        give(blob, &bytes)?;
                    }
                }
                Ok(())
            }
            Self::Files(path) => {
                files(path, &mut |bytes| {
                    let members = members(bytes);
                    let parts = members.iter().filter_map(DirectoryEntry::bytes).chain([bytes]);
                    for part in parts {
                        let blob = BlobHash(Digest::from_content(part));
                        if missing.remove(&blob) {
                            give(blob, part)?;
                        }
                    }
                    Ok(!missing.is_empty())
                })?;
                manifests(path, missing, give)
            }
        }
    }
}

/// Passes the `missing` manifests of directories and archives below `path` to `give`, and removes them from `missing`.
fn manifests(
    path: &Path,
    missing: &mut BTreeSet<BlobHash>,
    give: &mut dyn FnMut(BlobHash, &[u8]) -> Result<()>,
) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let admit = AdmitOptions { signature_policy: SignaturePolicy::Record, ..AdmitOptions::default() };
    let options = ExamineOptions { admit, ..ExamineOptions::default() };
    for item in Inputs::new(vec![Input::Path(path.to_owned())]) {
        if missing.is_empty() {
            break;
        }
        // Unreadable files have nothing to offer.
        let verdict = item.and_then(|item| intake::examine(item, &options));
        let Ok(DocumentVerdict::Admitted(admitted)) = verdict else { continue };
        let blob = BlobHash(admitted.capture().0);
        if let Some(manifest) = admitted.manifest()
            && missing.remove(&blob)
        {
            give(blob, manifest.bytes())?;
        }
    }
    Ok(())
}

/// Passes the bytes of every file below `path` to `look` until it returns false, without following links. Unreadable
/// files are skipped.
fn files(path: &Path, look: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(true) };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(file_type) = entry.file_type() else { continue };
        let goes_on = if file_type.is_dir() {
            files(&entry.path(), look)?
        } else if file_type.is_file() {
            match bytes(&entry.path()) {
                Some(bytes) => look(&bytes)?,
                None => true,
            }
        } else {
            true
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the bytes of a file, unless it exceeds the maximum size of artifacts.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = files::open(path).ok()?.take(Limits::MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (length as u64 <= Limits::MAX_BYTES).then_some(bytes)
}

/// Returns the files in an archive that may be part of an artifact.
fn members(bytes: &[u8]) -> Vec<DirectoryEntry> {
    let Some(format) = ArchiveFormat::detect(bytes) else { return Vec::new() };
    let is_member = |name: &str| {
        formats::ALL.into_iter().any(|kind| kind.is_of_directories() && kind.members().contains(&name))
    };
    let limits = archive::ArchiveLimits { bytes: Limits::MAX_BYTES, entries: Limits::default().entries };
    archive::read(format, Cursor::new(bytes), &is_member, limits).entries
}
