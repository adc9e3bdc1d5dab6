//! Statistics of a vault. Stored bytes are measured and not read.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::records::ArtifactRecord;
use crate::storage::TimeBasis;

/// The statistics of a vault that follow from its content, and are the same for every engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The content of each kind that has any, by name.
    pub kinds: Vec<KindTotals>,
    /// The stored blobs.
    pub blobs: BlobCounts,
    /// Number of manual links.
    pub manual_links: u64,
    /// Number of tags.
    pub tags: u64,
    /// Number of pinned artifacts.
    pub pins: u64,
    /// Number of artifacts with a note.
    pub notes: u64,
    /// Number of labels; one that several artifacts have counts for each of them.
    pub labels: u64,
    /// Number of journal entries.
    pub journal_entries: u64,
    /// The largest, the oldest and the newest artifacts.
    pub extremes: Extremes,
    /// The time that determines which artifacts are oldest and newest, and the day of each.
    pub by: TimeBasis,
    /// Number of artifacts without this time; only of times that artifacts state can there be any.
    pub undated: u64,
    /// The content of each day that has any, oldest first.
    pub days: Vec<Day>,
}

/// The content of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KindTotals {
    /// The name of the kind.
    pub kind: String,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of their captures.
    pub captures: u64,
    /// The size of the captures in bytes, as they were received.
    pub bytes: u64,
}

/// The stored blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounts {
    /// Number of blobs: each distinct file of a capture.
    pub blobs: u64,
    /// Their size in bytes before compression.
    pub bytes: u64,
    /// Number of blobs that several captures share.
    pub shared: u64,
}

/// The size of what an engine stores, and of its indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineStatistics {
    /// The size of the blobs in bytes after compression, with the digests that were stripped from them and without the dictionaries.
    pub stored_bytes: u64,
    /// Number of blobs that are stored as deltas.
    pub differences: u64,
    /// Number of dictionaries.
    pub dictionaries: u64,
    /// Their size in bytes.
    pub dictionary_bytes: u64,
    /// The size of the full-text search index in bytes; `None` if there is none.
    pub search_bytes: Option<u64>,
    /// The size of the vault's file in bytes.
    pub file_bytes: u64,
    /// The free part of that, in bytes.
    pub free_bytes: u64,
    /// Number of mentioned digests in the index; the same digest in two captures counts twice.
    pub mentions: u64,
}

/// The artifacts with extreme sizes and times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// The largest artifacts, at most [`Extremes::LARGEST`], largest first; those of equal size in the order in which
    /// they were added.
    pub largest: Vec<ArtifactSize>,
    /// The oldest artifact, if any has a time.
    pub oldest: Option<ArtifactTime>,
    /// The newest artifact, if any has a time.
    pub newest: Option<ArtifactTime>,
}

impl Extremes {
    /// Maximum number of largest artifacts that are listed.
    pub const LARGEST: usize = 5;
}

/// An artifact with one of its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactTime {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The time.
    pub at: DateTime<Utc>,
}

/// An artifact with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactSize {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The size of its captures in bytes.
    pub bytes: u64,
    /// Number of its captures.
    pub captures: u64,
}

/// The content of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Day {
    /// The day, in UTC.
    #[schema(value_type = String, format = Date)]
    pub date: NaiveDate,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of captures. Of times that artifacts state, those of these artifacts; otherwise, a capture belongs to the
    /// day on which it was itself added or last seen.
    pub captures: u64,
    /// The size of the captures in bytes.
    pub bytes: u64,
}

impl Statistics {
    /// Returns the number of artifacts.
    #[must_use]
    pub fn artifacts(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.artifacts).sum()
    }

    /// Returns the number of captures.
    #[must_use]
    pub fn captures(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.captures).sum()
    }

    /// Returns the size of all captures in bytes, as they were received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.bytes).sum()
    }
}
