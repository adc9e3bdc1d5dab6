//! Counts, disk usage and growth.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::{ArtifactSummary, TimeBasis, Timestamp};
use super::find::ArtifactFilter;
use crate::storage::{self, Filter, LabelValue, StorageError, TimePeriod};

pub use crate::storage::{Day, EngineStatistics, KindTotals};

/// A request for statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StatsRequest {
    /// The time that determines the oldest, the newest and the day of an artifact.
    pub by: TimeBasis,
    /// The key of labels by whose values artifacts are counted; no values are listed if there is none.
    pub label: Option<String>,
}

/// Statistics of a vault. Stored bytes are measured and not read; removed artifacts are not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatsAnswer {
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of captures.
    pub captures: u64,
    /// The size of the captures in bytes, as they were received.
    pub bytes: u64,
    /// The content of each kind that has any, by id.
    pub kinds: Vec<KindTotals>,
    /// Number of blobs: each distinct file of a capture.
    pub blobs: u64,
    /// Their size in bytes before compression.
    pub blob_bytes: u64,
    /// Number of blobs that several captures share.
    pub shared_blobs: u64,
    /// What the storage engine reports about itself; absent for a vault in memory.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineStatistics>,
    /// Number of manual links.
    #[serde(rename = "stated_links")]
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
    /// The time that determines the members below.
    pub by: TimeBasis,
    /// Number of artifacts without this time.
    pub undated: u64,
    /// The oldest artifact.
    pub oldest: Option<DatedArtifact>,
    /// The newest artifact.
    pub newest: Option<DatedArtifact>,
    /// The largest artifacts, largest first.
    pub largest: Vec<SizedArtifact>,
    /// The content of each day that has any, in UTC, oldest first.
    pub days: Vec<Day>,
    /// The content by the values of the requested key of labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_label: Option<LabelStats>,
}

/// The content by the values of a key of labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelStats {
    /// The key.
    pub key: String,
    /// The values, sorted.
    pub values: Vec<LabelValue>,
    /// Number of artifacts without this key.
    pub unlabeled: u64,
}

/// An artifact with a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatedArtifact {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// The time.
    pub at: Timestamp,
}

/// An artifact with its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizedArtifact {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// The size of its captures in bytes.
    pub bytes: u64,
    /// Number of its captures.
    pub captures: u64,
}

impl StatsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<StatsAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let answer = StatsAnswer::new(snapshot.statistics(self.by)?, snapshot.engine_statistics()?);
        let Some(key) = &self.label else { return Ok(answer) };
        let values = snapshot.label_values(key, "", usize::MAX)?;
        let labeled: u64 = values.iter().map(|value| value.artifacts).sum();
        let by_label =
            LabelStats { key: key.clone(), values, unlabeled: answer.artifacts.saturating_sub(labeled) };
        Ok(StatsAnswer { by_label: Some(by_label), ..answer })
    }
}

impl StatsAnswer {
    fn new(stats: storage::Statistics, engine: Option<EngineStatistics>) -> Self {
        Self {
            artifacts: stats.artifacts(),
            captures: stats.captures(),
            bytes: stats.bytes(),
            kinds: stats.kinds,
            blobs: stats.blobs.blobs,
            blob_bytes: stats.blobs.bytes,
            shared_blobs: stats.blobs.shared,
            engine,
            manual_links: stats.manual_links,
            tags: stats.tags,
            pins: stats.pins,
            notes: stats.notes,
            labels: stats.labels,
            journal_entries: stats.journal_entries,
            by: stats.by,
            undated: stats.undated,
            oldest: stats.extremes.oldest.as_ref().map(DatedArtifact::from),
            newest: stats.extremes.newest.as_ref().map(DatedArtifact::from),
            largest: stats.extremes.largest.iter().map(SizedArtifact::from).collect(),
            days: stats.days,
            by_label: None,
        }
    }
}

impl From<&storage::ArtifactTime> for DatedArtifact {
    fn from(dated: &storage::ArtifactTime) -> Self {
        Self { artifact: (&dated.artifact).into(), at: dated.at.into() }
    }
}

impl From<&storage::ArtifactSize> for SizedArtifact {
    fn from(sized: &storage::ArtifactSize) -> Self {
        Self { artifact: (&sized.artifact).into(), bytes: sized.bytes, captures: sized.captures }
    }
}

/// A request for the number of artifacts on each of some days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DaysRequest {
    /// What the artifacts must match. Its period is not used.
    #[serde(default)]
    pub filter: ArtifactFilter,
    /// The time that determines the day of an artifact, in UTC.
    #[serde(default)]
    pub by: TimeBasis,
    /// The last day.
    #[schema(value_type = String, format = Date)]
    pub last: NaiveDate,
    /// Number of days; at most 366 are counted.
    pub days: u32,
}

/// The number of artifacts on each day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DaysAnswer {
    /// The days, oldest first, without gaps.
    pub days: Vec<DayCount>,
}

/// The number of artifacts on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayCount {
    /// The day.
    #[schema(value_type = String, format = Date)]
    pub date: NaiveDate,
    /// Number of artifacts.
    pub artifacts: u64,
}

/// Maximum number of days.
const MAX_DAYS: u32 = 366;

impl DaysRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<DaysAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let basis = self.by;
        let back = Days::new(self.days.clamp(1, MAX_DAYS).saturating_sub(1).into());
        let first = self.last.checked_sub_days(back).unwrap_or(self.last);
        let (since, until) = (Some(midnight(first)), self.last.succ_opt().map(midnight));
        let filter =
            Filter { period: Some(TimePeriod { basis, since, until }), ..Filter::from(&self.filter) };
        let counts: BTreeMap<NaiveDate, u64> = snapshot.count_by_day(&filter, basis)?.into_iter().collect();
        let dates = first.iter_days().take_while(|date| *date <= self.last);
        let count = |date| DayCount { date, artifacts: counts.get(&date).copied().unwrap_or_default() };
        let days = dates.map(count).collect();
        Ok(DaysAnswer { days })
    }
}

fn midnight(date: NaiveDate) -> DateTime<Utc> {
    date.and_time(NaiveTime::MIN).and_utc()
}
