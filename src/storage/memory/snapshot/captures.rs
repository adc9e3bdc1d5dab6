//! Captures, their files and their bytes.

use std::collections::BTreeSet;

use super::{MemorySnapshot, each};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::interface::{
    CaptureQueries, CaptureRecord, CaptureTarget, FileRecord, MemberRecord, SharedFile,
};
use crate::storage::memory::state::{MemoryArtifact, MemoryCapture, MemoryState};
use crate::storage::{PayloadDefect, Result, StorageError};

impl CaptureQueries for MemorySnapshot {
    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>> {
        Ok(each(of, |core| {
            let captures = self.0.artifact(core).into_iter().flat_map(|artifact| &artifact.captures);
            captures.map(|capture| capture.record(core)).collect()
        }))
    }

    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>> {
        Ok(each(targets, |CaptureTarget { capture, artifact }| {
            Some(self.0.capture(artifact, capture)?.record(artifact))
        }))
    }

    fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let stored = self.0.capture(core, capture).ok_or_else(|| damaged(PayloadDefect::NoMembers))?;
        let files = if stored.manifest.is_some() {
            let manifest = parse_manifest(&self.read(core, capture, BlobHash(capture.0))?);
            manifest.ok_or_else(|| damaged(PayloadDefect::NotItsOwn))?
        } else {
            stored.members.iter().map(|member| (member.name.clone(), member.blob)).collect()
        };
        let record = |(name, blob)| {
            let member = stored.members.iter().find(|member| member.blob == blob);
            let member = member.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
            Ok(MemberRecord { name, blob, size: member.bytes.len() as u64 })
        };
        files.into_iter().map(record).collect()
    }

    fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let mut members = self.0.capture(core, capture).into_iter().flat_map(MemoryCapture::stored);
        let member = members.find(|member| member.blob == blob);
        let member = member.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
        let actual = BlobHash(Digest::from_content(&member.bytes));
        if actual == blob {
            Ok(member.bytes.to_vec())
        } else {
            Err(damaged(PayloadDefect::Hash { blob, actual }))
        }
    }

    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>> {
        Ok(each(blobs, |blob| self.0.file(blob)))
    }

    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>> {
        Ok(each(of, |core| self.0.shared_files(core, of)))
    }

    fn artifacts_with_bytes(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>> {
        Ok(each(of, |core| {
            let Some(contained) = self.0.artifact(core) else { return BTreeSet::new() };
            if contained.kind.document_member().is_none() {
                return BTreeSet::new();
            }
            let documents: Vec<_> = contained.captures.iter().flat_map(|capture| &capture.members).collect();
            let has_one = |other: &&MemoryArtifact| {
                let is_in = |blob| other.captures.iter().any(|capture| capture.has_blob(blob));
                other.core != core && documents.iter().any(|document| is_in(document.blob))
            };
            self.0.all().filter(has_one).map(|other| other.core).collect()
        }))
    }
}

impl MemoryState {
    fn file(&self, blob: BlobHash) -> Option<FileRecord> {
        let captures = self.captures().filter(|(artifact, _)| artifact.kind.is_of_directories());
        let captures = captures.filter(|(_, capture)| capture.has_blob(blob));
        let (artifact, first) = captures.min_by_key(|(_, capture)| capture.addition)?;
        let member = first.members.iter().find(|member| member.blob == blob)?;
        Some(FileRecord { artifact: artifact.core, capture: first.capture, name: member.name.clone() })
    }

    /// Returns the files of an artifact whose bytes artifacts other than `of` also have.
    fn shared_files(&self, core: CoreHash, of: &[CoreHash]) -> Vec<SharedFile> {
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        let members = artifact.captures.iter().flat_map(|capture| &capture.members);
        let files: BTreeSet<_> = members.map(|member| (member.name.as_str(), member.blob)).collect();
        let mut shared = Vec::new();
        for (name, blob) in files {
            let others = self.all().filter(|other| !of.contains(&other.core));
            let others = others.filter(|other| other.captures.iter().any(|capture| capture.has_blob(blob)));
            let mut dependents: Vec<CoreHash> = others.map(|other| other.core).collect();
            let count = dependents.len() as u64;
            dependents.truncate(SharedFile::LISTED);
            if count > 0 {
                shared.push(SharedFile { name: name.to_owned(), dependents, count });
            }
        }
        shared
    }
}
