//! Counts artifacts by day.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::find::ArtifactFilter;
use super::handle::Vault;
use crate::storage::{Filter, StorageError, TimeBasis, TimePeriod};

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

impl Operation for DaysRequest {
    type Answer = DaysAnswer;
    type Error = StorageError;

    const NAME: &'static str = "days";
    const SUMMARY: &'static str = "Count artifacts by day";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<DaysAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let basis = TimeBasis::from(self.by);
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
