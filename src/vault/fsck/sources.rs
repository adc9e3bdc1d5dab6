//! Sources of lost and damaged bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use crate::artifact::{AdmitOptions, DirectoryEntry, SignaturePolicy};
use crate::digest::{BlobHash, Digest};
use crate::files;
use crate::formats;
use crate::intake::archive::{self, ArchiveFormat};
use crate::intake::{self, DocumentVerdict, ExamineOptions, Input, Inputs};
use crate::json::reader::Limits;
use crate::storage::{self, CreationPolicy, Result, Storage, StorageError};

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
                let inspection = storage.maintenance().inspect()?;
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
