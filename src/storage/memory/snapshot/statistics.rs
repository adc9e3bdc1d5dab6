//! Statistics.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};

use super::super::state::{MemoryArtifact, MemoryCapture, MemoryState};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::TimeBasis;
use crate::storage::interface::{
    ArtifactSize, ArtifactTime, BlobCounts, Day, Extremes, KindTotals, Statistics,
};

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
