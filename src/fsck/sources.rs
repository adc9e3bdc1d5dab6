//! Where lost and damaged bytes may be found again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use super::reading::admit_as;
use crate::archive::{self, Format};
use crate::artifact::{AdmitOptions, Admitted, Entry, KeyRing, SignaturePolicy};
use crate::canonical::reader::Limits;
use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::kinds;
use crate::open_vaults;
use crate::source::{self, ExamineOptions, Input, Inputs, Verdict};
use crate::store::check::RecordedCapture;
use crate::store::{Result, Store, StoreError, StoredMember};

/// Another vault, or files.
pub(super) enum Source {
    Vault(Store),
    Files(PathBuf),
}

impl Source {
    /// What is at `path`: a directory, or else a vault.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path);
        let metadata = metadata.map_err(|source| StoreError::io(path, source))?;
        if metadata.is_dir() { Ok(Self::Files(path.to_owned())) } else { Store::open(path).map(Self::Vault) }
    }

    /// The vault, if it is one.
    pub(super) fn vault(&self) -> Option<&Store> {
        match self {
            Self::Vault(store) => Some(store),
            Self::Files(_) => None,
        }
    }

    /// Gives those of the `wanted` bytes that are here to `give`, and takes them from `wanted`.
    pub(super) fn blobs(
        &self,
        wanted: &mut BTreeSet<BlobHash>,
        give: &mut dyn FnMut(BlobHash, &[u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Vault(store) => {
                let inspection = store.inspect()?;
                for blob in wanted.clone() {
                    if let Some(bytes) = inspection.bytes_of(blob)? {
                        wanted.remove(&blob);
                        give(blob, &bytes)?;
                    }
                }
                Ok(())
            }
            Self::Files(path) => files(path, &mut |bytes| {
                let members = members(bytes);
                let parts = members.iter().filter_map(Entry::bytes).chain([bytes]);
                for part in parts {
                    let blob = BlobHash(Digest::of(part));
                    if wanted.remove(&blob) {
                        give(blob, part)?;
                    }
                }
                Ok(!wanted.is_empty())
            })
            .map(drop),
        }
    }

    /// Gives those of the `wanted` captures that are here, admitted, to `give`, and takes them from `wanted`.
    pub(super) fn captures(
        &self,
        wanted: &mut BTreeMap<CaptureHash, RecordedCapture>,
        keys: &KeyRing,
        give: &mut dyn FnMut(Admitted) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Vault(store) => {
                for lost in wanted.values().cloned().collect::<Vec<_>>() {
                    if let Some(admitted) = from_vault(store, &lost, keys)? {
                        wanted.remove(&lost.capture);
                        give(admitted)?;
                    }
                }
                Ok(())
            }
            Self::Files(path) => {
                let admit = AdmitOptions {
                    signing_keys: keys.clone(),
                    signature_policy: SignaturePolicy::Record,
                    ..AdmitOptions::default()
                };
                let options = ExamineOptions { admit, ..ExamineOptions::default() };
                for item in Inputs::new(vec![Input::Path(path.clone())]) {
                    if wanted.is_empty() {
                        break;
                    }
                    // What cannot be read has nothing to give.
                    let Ok(Verdict::Admitted(mut admitted)) =
                        item.and_then(|item| source::examine(item, &options))
                    else {
                        continue;
                    };
                    let parts = admitted.take_embedded();
                    for admitted in parts.into_iter().chain([admitted]) {
                        if wanted.remove(&admitted.capture()).is_some() {
                            give(admitted)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// A capture that the journal of another vault says was added, from the bytes of `store`.
pub(super) fn from_vault(store: &Store, lost: &RecordedCapture, keys: &KeyRing) -> Result<Option<Admitted>> {
    let document = store.inspect()?.bytes_of(BlobHash(lost.capture.0))?;
    let (is_directory, files) = match document {
        Some(bytes) => (false, vec![StoredMember { name: String::new(), bytes }]),
        None => match store.snapshot().and_then(|snapshot| snapshot.members(lost.core, lost.capture)) {
            Ok(files) => (true, files),
            Err(_) => return Ok(None),
        },
    };
    let named = lost.kind.as_deref().and_then(kinds::named);
    let kinds = kinds::ALL.into_iter().filter(|kind| named.is_none_or(|named| named == *kind));
    let mut admitted = kinds.filter_map(|kind| admit_as(kind, is_directory, &files, keys).ok());
    Ok(admitted.find(|admitted| admitted.core() == lost.core && admitted.capture() == lost.capture))
}

/// Gives the bytes of every file below `path`, links not followed, until `look` has seen enough. Files that cannot be read
/// have nothing to give.
fn files(path: &Path, look: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(true) };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(file_type) = entry.file_type() else { continue };
        let goes_on = if file_type.is_dir() {
            files(&entry.path(), look)?
        } else if file_type.is_file() && !open_vaults::has_open_by_name(&entry.path()) {
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

/// The bytes of a file that is not larger than any artifact can be.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = File::open(path).ok()?.take(Limits::MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (length as u64 <= Limits::MAX_BYTES).then_some(bytes)
}

/// The files in an archive that may be of an artifact.
fn members(bytes: &[u8]) -> Vec<Entry> {
    let Some(format) = Format::of(bytes) else { return Vec::new() };
    let is_member = |name: &str| {
        kinds::ALL.into_iter().any(|kind| kind.is_of_directories() && kind.members().contains(&name))
    };
    let limits = archive::Limits { bytes: Limits::MAX_BYTES, entries: Limits::default().entries };
    archive::read(format, Cursor::new(bytes), &is_member, limits).entries
}
