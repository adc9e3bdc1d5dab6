//! Captures, their bytes, annotations, and the journal.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::super::state::{MemoryCapture, MemoryJournalEntry, MemoryState};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::interface::{
    Annotations, AttributeRecord, CaptureRecord, FileRecord, JournalRecord, MemberRecord, Resolution,
    SharedFile,
};
use crate::storage::{
    JournalCheck, JournalQuery, PayloadDefect, Result, StorageError, Tombstone, preference,
};

impl MemoryState {
    pub(super) fn captures_of(&self, core: CoreHash) -> Vec<CaptureRecord> {
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        artifact.captures.iter().map(|capture| capture.record(core)).collect()
    }

    /// Returns the preferred capture of an artifact.
    pub(super) fn preferred_capture(&self, core: CoreHash) -> Option<CaptureRecord> {
        // Of equal ones, this is the first.
        self.captures_of(core).into_iter().min_by_key(|capture| preference(capture.signature.as_ref()))
    }

    pub(super) fn attributes_of(&self, core: CoreHash) -> Vec<AttributeRecord> {
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        artifact.attributes().into_iter().cloned().collect()
    }

    pub(super) fn annotations_of(&self, core: CoreHash) -> Annotations {
        Annotations {
            tags: self.tags_of(core),
            note: self.notes.get(&core).cloned(),
            pin: self.pins.get(&core).cloned(),
            labels: self.labels_of(core),
        }
    }

    pub(super) fn attribute_names(&self) -> Vec<String> {
        let names =
            self.all().flat_map(|artifact| artifact.attributes()).map(|attribute| attribute.name.clone());
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(super) fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Vec<String> {
        let attributes = self.all().flat_map(|artifact| artifact.attributes());
        let values =
            attributes.filter(|attribute| attribute.name == name && attribute.value.starts_with(text));
        let values: BTreeSet<&String> = values.map(|attribute| &attribute.value).collect();
        values.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Resolution {
        let artifacts = self.artifacts.keys().copied().filter(|core| prefix.matches(&core.0));
        let captures = self.captures().map(|(artifact, capture)| capture.target(artifact.core));
        let captures = captures.filter(|target| prefix.matches(&target.capture.0)).collect::<BTreeSet<_>>();
        let artifacts = artifacts.take(limit).collect::<Vec<_>>();
        let captures = captures.into_iter().take(limit).collect::<Vec<_>>();
        let mut tombstones = Vec::new();
        if artifacts.is_empty() && captures.is_empty() {
            tombstones.extend(
                self.tombstones.values().filter(|tombstone| prefix.matches(&tombstone.digest)).cloned(),
            );
            tombstones.sort_unstable_by_key(|tombstone| (Reverse(tombstone.entry), tombstone.digest));
            // Several removed artifacts may have had a capture with the same hash.
            let mut known = BTreeSet::new();
            tombstones.retain(|tombstone| known.insert(tombstone.digest));
            tombstones.truncate(limit);
        }
        Resolution { artifacts, captures, tombstones }
    }

    pub(super) fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let stored = self.capture(core, capture).ok_or_else(|| damaged(PayloadDefect::NoMembers))?;
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

    pub(super) fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let mut members = self.capture(core, capture).into_iter().flat_map(MemoryCapture::stored);
        let member = members.find(|member| member.blob == blob);
        let member = member.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
        let actual = BlobHash(Digest::from_content(&member.bytes));
        if actual == blob {
            Ok(member.bytes.to_vec())
        } else {
            Err(damaged(PayloadDefect::Hash { blob, actual }))
        }
    }

    pub(super) fn file(&self, blob: BlobHash) -> Option<FileRecord> {
        let captures = self.captures().filter(|(artifact, _)| artifact.kind.is_of_directories());
        let captures = captures.filter(|(_, capture)| capture.has_blob(blob));
        let (artifact, first) = captures.min_by_key(|(_, capture)| capture.addition)?;
        let member = first.members.iter().find(|member| member.blob == blob)?;
        Some(FileRecord { artifact: artifact.core, capture: first.capture, name: member.name.clone() })
    }

    /// Returns the files of an artifact whose bytes artifacts other than `of` also have.
    pub(super) fn shared_files(&self, core: CoreHash, of: &[CoreHash]) -> Vec<SharedFile> {
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

    pub(super) fn entries(&self, query: &JournalQuery, from: u64, limit: usize) -> Vec<JournalRecord> {
        let is_match = |entry: &MemoryJournalEntry| {
            query.since.is_none_or(|since| entry.record.at >= since)
                && query.until.is_none_or(|until| entry.record.at < until)
                && query.action.as_ref().is_none_or(|action| entry.action == **action)
        };
        let matching: Vec<_> = self.journal.iter().filter(|entry| is_match(entry)).collect();
        let last = query.limit.map_or(usize::MAX, |limit| limit as usize);
        let skipped = matching.len().saturating_sub(last);
        let entries = matching.into_iter().skip(skipped).map(|entry| &entry.record);
        entries.filter(|entry| entry.seq >= from).take(limit).cloned().collect()
    }

    pub(super) fn check_journal(&self, since: Option<Digest>) -> JournalCheck {
        let mut check = JournalCheck::begin(since);
        for entry in &self.journal {
            check.take(entry.record.seq, Some(&entry.record.entry), entry.record.chain, since);
        }
        check
    }

    pub(super) fn removed(&self, kind: Option<&str>, after: u64, limit: usize) -> Vec<Tombstone> {
        let tombstones = self.tombstones.values().filter(|tombstone| {
            tombstone.digest == tombstone.core.0
                && tombstone.entry > after
                && kind.is_none_or(|kind| kind == tombstone.kind)
                && self.artifact(tombstone.core).is_none()
        });
        let mut tombstones: Vec<Tombstone> = tombstones.cloned().collect();
        tombstones.sort_unstable_by_key(|tombstone| tombstone.entry);
        tombstones.truncate(limit);
        tombstones
    }
}
