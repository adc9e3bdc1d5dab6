//! Artifacts, their attributes, annotations, manual links and statistics, and captures with their files and their bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};

use super::{MemorySnapshot, each};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, ArtifactSize, ArtifactTime, AttributeRecord, BlobCounts,
    CaptureQueries, CaptureRecord, CaptureTarget, Day, Extremes, FileRecord, KindTotals, LabelKey,
    LabelValue, ManualLink, MemberRecord, Resolution, SharedFile, Statistics,
};
use crate::storage::memory::state::{MemoryArtifact, MemoryCapture, MemoryLinkKey, MemoryState};
use crate::storage::{PayloadDefect, Result, StorageError, TimeBasis};

impl ArtifactQueries for MemorySnapshot {
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        Ok(each(of, |core| Some(self.0.artifact(core)?.record())))
    }

    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>> {
        Ok(self.0.kinds_with_group(group).into_iter().map(str::to_owned).collect())
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>> {
        Ok(each(of, |core| {
            let attributes = self.0.artifact(core).into_iter().flat_map(|artifact| artifact.attributes());
            attributes.cloned().collect()
        }))
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        Ok(each(of, |core| self.0.annotations_of(core)))
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        let link = |key: MemoryLinkKey| {
            let note = self.0.links.get(&key).cloned().flatten();
            ManualLink { source: key.source, relation: key.relation, target: key.target, note }
        };
        Ok(each(of, |core| self.0.links_of(core).into_iter().map(link).collect()))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        Ok(names.iter().map(|name| self.0.tags.get(name).map(|(core, _)| *core)).collect())
    }

    fn attribute_names(&self) -> Result<Vec<String>> {
        let names =
            self.0.all().flat_map(|artifact| artifact.attributes()).map(|attribute| attribute.name.clone());
        Ok(names.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        let attributes = self.0.all().flat_map(|artifact| artifact.attributes());
        let values =
            attributes.filter(|attribute| attribute.name == name && attribute.value.starts_with(text));
        let values: BTreeSet<&String> = values.map(|attribute| &attribute.value).collect();
        Ok(values.into_iter().take(limit).cloned().collect())
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((_, key), (value, _)) in &self.0.labels {
            keys.entry(key).or_default().push(value);
        }
        let counted = |(key, values): (&str, Vec<&str>)| LabelKey {
            key: key.to_owned(),
            artifacts: values.len() as u64,
            values: values.into_iter().collect::<BTreeSet<_>>().len() as u64,
        };
        Ok(keys.into_iter().map(counted).collect())
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        let mut values: BTreeMap<&str, Vec<CoreHash>> = BTreeMap::new();
        for ((core, known), (value, _)) in &self.0.labels {
            if known == key && value.starts_with(text) {
                values.entry(value).or_default().push(*core);
            }
        }
        let values = values.into_iter().take(limit);
        Ok(values.map(|(value, cores)| self.0.label_value(value, &cores)).collect())
    }

    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        let artifacts = self.0.artifacts.keys().copied().filter(|core| prefix.matches(&core.0));
        let captures = self.0.captures().map(|(artifact, capture)| capture.target(artifact.core));
        let captures = captures.filter(|target| prefix.matches(&target.capture.0)).collect::<BTreeSet<_>>();
        let artifacts = artifacts.take(limit).collect::<Vec<_>>();
        let captures = captures.into_iter().take(limit).collect::<Vec<_>>();
        let mut tombstones = Vec::new();
        if artifacts.is_empty() && captures.is_empty() {
            tombstones.extend(
                self.0.tombstones.values().filter(|tombstone| prefix.matches(&tombstone.digest)).cloned(),
            );
            tombstones.sort_unstable_by_key(|tombstone| (Reverse(tombstone.entry), tombstone.digest));
            // Several removed artifacts may have had a capture with the same hash.
            let mut known = BTreeSet::new();
            tombstones.retain(|tombstone| known.insert(tombstone.digest));
            tombstones.truncate(limit);
        }
        Ok(Resolution { artifacts, captures, tombstones })
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        Ok(self.0.statistics(by))
    }
}

impl MemoryState {
    pub(super) fn annotations_of(&self, core: CoreHash) -> Annotations {
        Annotations {
            tags: self.tags_of(core),
            note: self.notes.get(&core).cloned(),
            pin: self.pins.get(&core).cloned(),
            labels: self.labels_of(core),
        }
    }

    fn label_value(&self, value: &str, cores: &[CoreHash]) -> LabelValue {
        let captures: Vec<&MemoryCapture> =
            cores.iter().filter_map(|core| self.artifact(*core)).flat_map(|known| &known.captures).collect();
        LabelValue {
            value: value.to_owned(),
            artifacts: cores.len() as u64,
            captures: captures.len() as u64,
            bytes: captures.into_iter().map(MemoryCapture::size).sum(),
        }
    }
}

impl MemoryState {
    pub(super) fn statistics(&self, by: TimeBasis) -> Statistics {
        Statistics {
            kinds: self.kinds(),
            blobs: self.blobs(),
            manual_links: self.links.len() as u64,
            tags: self.tags.len() as u64,
            pins: self.pins.len() as u64,
            notes: self.notes.len() as u64,
            labels: self.labels.len() as u64,
            journal_entries: self.journal.len() as u64,
            extremes: self.extremes(by),
            by,
            undated: self.all().filter(|artifact| artifact.time(by).is_none()).count() as u64,
            days: self.days(by),
        }
    }

    fn kinds(&self) -> Vec<KindTotals> {
        let mut kinds: BTreeMap<&str, KindTotals> = BTreeMap::new();
        for artifact in self.all() {
            let kind = artifact.kind.name();
            let stats = kinds.entry(kind).or_insert_with(|| KindTotals {
                kind: kind.to_owned(),
                artifacts: 0,
                captures: 0,
                bytes: 0,
            });
            stats.artifacts += 1;
            stats.captures += artifact.captures.len() as u64;
            stats.bytes += size(artifact);
        }
        kinds.into_values().collect()
    }

    fn blobs(&self) -> BlobCounts {
        let mut blobs: BTreeMap<BlobHash, (u64, BTreeSet<(CoreHash, CaptureHash)>)> = BTreeMap::new();
        for (artifact, capture) in self.captures() {
            for member in capture.stored() {
                let (bytes, captures) = blobs.entry(member.blob).or_default();
                *bytes = member.bytes.len() as u64;
                captures.insert((artifact.core, capture.capture));
            }
        }
        BlobCounts {
            blobs: blobs.len() as u64,
            bytes: blobs.values().map(|(bytes, _)| bytes).sum(),
            shared: blobs.values().filter(|(_, captures)| captures.len() > 1).count() as u64,
        }
    }

    fn extremes(&self, by: TimeBasis) -> Extremes {
        let mut largest = self.by_addition();
        largest.sort_by_key(|artifact| Reverse(size(artifact)));
        let largest = largest.into_iter().take(Extremes::LARGEST).map(|artifact| ArtifactSize {
            artifact: artifact.record(),
            bytes: size(artifact),
            captures: artifact.captures.len() as u64,
        });
        let mut dated: Vec<(DateTime<Utc>, &MemoryArtifact)> =
            self.all().filter_map(|artifact| Some((artifact.time(by)?, artifact))).collect();
        dated.sort_by_key(|(at, artifact)| match by {
            TimeBasis::LastSeen => (None, artifact.arrival),
            TimeBasis::FirstSeen => (Some(*at), artifact.addition),
            TimeBasis::Created | TimeBasis::Finished => (Some(*at), artifact.arrival),
        });
        let one = |(at, artifact): &(DateTime<Utc>, &MemoryArtifact)| ArtifactTime {
            artifact: artifact.record(),
            at: *at,
        };
        Extremes { largest: largest.collect(), oldest: dated.first().map(one), newest: dated.last().map(one) }
    }

    fn days(&self, by: TimeBasis) -> Vec<Day> {
        let mut days: BTreeMap<NaiveDate, Day> = BTreeMap::new();
        let empty = |date| Day { date, artifacts: 0, captures: 0, bytes: 0 };
        for artifact in self.all() {
            if let Some(date) = artifact.time(by).map(|at| at.date_naive()) {
                days.entry(date).or_insert_with(|| empty(date)).artifacts += 1;
            }
        }
        for (artifact, capture) in self.captures() {
            if let Some(date) = time_of(artifact, capture, by).map(|at| at.date_naive()) {
                let day = days.entry(date).or_insert_with(|| empty(date));
                day.captures += 1;
                day.bytes += capture.size();
            }
        }
        days.into_values().collect()
    }
}

/// Returns the size of all captures of an artifact.
fn size(artifact: &MemoryArtifact) -> u64 {
    artifact.captures.iter().map(MemoryCapture::size).sum()
}

/// Returns the time that determines the day of a capture.
fn time_of(artifact: &MemoryArtifact, capture: &MemoryCapture, by: TimeBasis) -> Option<DateTime<Utc>> {
    match by {
        TimeBasis::FirstSeen => Some(capture.added_at),
        TimeBasis::LastSeen => Some(capture.seen_at),
        TimeBasis::Created | TimeBasis::Finished => artifact.time(by),
    }
}

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
