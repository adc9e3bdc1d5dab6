//! Sources of lost and damaged bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use super::reader::admit_as;
use crate::artifact::{AdmitOptions, Admitted, DirectoryEntry, KeyRing, SignaturePolicy};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::files;
use crate::formats;
use crate::intake::archive::{self, ArchiveFormat};
use crate::intake::{self, DocumentVerdict, ExamineOptions, Input, Inputs};
use crate::json::reader::Limits;
use crate::storage::check::RecordedCapture;
use crate::storage::{self, CreationPolicy, Result, Storage, StorageError, StoredMember};

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

    /// Returns the vault, if the source is one.
    pub(super) fn vault(&self) -> Option<&dyn Storage> {
        match self {
            Self::Vault(storage) => Some(&**storage),
            Self::Files(_) => None,
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
            Self::Files(path) => files(path, &mut |bytes| {
                let members = members(bytes);
                let parts = members.iter().filter_map(DirectoryEntry::bytes).chain([bytes]);
                for part in parts {
                    let blob = BlobHash(Digest::from_content(part));
                    if missing.remove(&blob) {
                        give(blob, part)?;
                    }
                }
                Ok(!missing.is_empty())
            })
            .map(drop),
        }
    }

    /// Passes the `missing` captures that the source has to `give`, admitted, and removes them from `missing`.
    pub(super) fn captures(
        &self,
        missing: &mut BTreeMap<(CoreHash, CaptureHash), RecordedCapture>,
        keys: &KeyRing,
        give: &mut dyn FnMut(Admitted) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Vault(storage) => {
                for lost in missing.values().cloned().collect::<Vec<_>>() {
                    if let Some(admitted) = from_vault(&**storage, &lost, keys)? {
                        missing.remove(&lost.key());
                        give(admitted)?;
                    }
                }
                Ok(())
            }
            Self::Files(path) => {
                documents(path, missing, keys, give)?;
                let admit = AdmitOptions {
                    signing_keys: keys.clone(),
                    signature_policy: SignaturePolicy::Record,
                    ..AdmitOptions::default()
                };
                let options = ExamineOptions { admit, ..ExamineOptions::default() };
                for item in Inputs::new(vec![Input::Path(path.clone())]) {
                    if missing.is_empty() {
                        break;
                    }
                    // Unreadable files have nothing to offer.
                    let Ok(DocumentVerdict::Admitted(mut admitted)) =
                        item.and_then(|item| intake::examine(item, &options))
                    else {
                        continue;
                    };
                    let parts = admitted.take_embedded();
                    for admitted in parts.into_iter().chain([admitted]) {
                        if missing.remove(&(admitted.core(), admitted.capture())).is_some() {
                            give(admitted)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// Passes to `give` those of the `missing` captures that are files below `path`. The kind of a document is known from
/// the journal, so that documents which several kinds recognize are also found.
fn documents(
    path: &Path,
    missing: &mut BTreeMap<(CoreHash, CaptureHash), RecordedCapture>,
    keys: &KeyRing,
    give: &mut dyn FnMut(Admitted) -> Result<()>,
) -> Result<()> {
    files(path, &mut |bytes| {
        let capture = CaptureHash(Digest::from_content(bytes));
        let same: Vec<RecordedCapture> =
            missing.values().filter(|lost| lost.capture == capture).cloned().collect();
        for lost in same {
            let files = [StoredMember { name: String::new(), bytes: bytes.to_vec() }];
            if let Some(admitted) = recorded(&lost, false, &files, keys) {
                missing.remove(&lost.key());
                give(admitted)?;
            }
        }
        Ok(!missing.is_empty())
    })
    .map(drop)
}

/// Admits the files of a capture as what the journal records; returns `None` if they are something else.
fn recorded(
    lost: &RecordedCapture,
    is_directory: bool,
    files: &[StoredMember],
    keys: &KeyRing,
) -> Option<Admitted> {
    // The hash proves the kind, which is probably the one that is recorded.
    let named = lost.kind.as_deref().and_then(formats::named);
    let others = formats::ALL.into_iter().filter(|kind| Some(*kind) != named);
    let mut admitted =
        named.into_iter().chain(others).filter_map(|kind| admit_as(kind, is_directory, files, keys).ok());
    admitted.find(|admitted| (admitted.core(), admitted.capture()) == lost.key())
}

/// Admits a capture that a journal records, from the bytes of `store`.
pub(in crate::vault) fn from_vault(
    storage: &dyn Storage,
    lost: &RecordedCapture,
    keys: &KeyRing,
) -> Result<Option<Admitted>> {
    let inspection = storage.maintenance().inspect()?;
    if let Some(bytes) = inspection.bytes_of(BlobHash(lost.capture.0))? {
        let document = recorded(lost, false, &[StoredMember { name: String::new(), bytes }], keys);
        if document.is_some() {
            return Ok(document);
        }
    }
    let files = inspection.files_of(lost.capture)?;
    Ok(files.and_then(|files| recorded(lost, true, &files, keys)))
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
