//! Artifacts, their attributes, annotations, manual links and statistics.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};

use super::{MemorySnapshot, each};
use crate::digest::{BlobHash, CaptureHash, CoreHash, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, ArtifactSize, ArtifactTime, AttributeRecord, BlobCounts,
    Day, Extremes, KindTotals, LabelKey, LabelValue, ManualLink, Resolution, Statistics,
};
use crate::storage::memory::state::{MemoryArtifact, MemoryCapture, MemoryLinkKey, MemoryState};
use crate::storage::{Result, TimeBasis};

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
