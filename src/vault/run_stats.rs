//! Counts runs, their failures, tokens, latency and costs by what they state.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::find::{ArtifactFilter, FindOrder};
use super::list::{ListRequest, ListRow, usd};
use super::prices::ModelPrice;
use crate::artifact::AttributeInfo;
use crate::formats;
use crate::storage::StorageError;

/// A request for statistics of runs by what they state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunStatsRequest {
    /// What the runs must match. If it names no kinds, it is of all that record what an agent or a model did.
    pub filter: ArtifactFilter,
    /// What runs are grouped by.
    pub by: RunGrouping,
    /// The prices by which the costs of runs that state none are computed.
    pub prices: Vec<ModelPrice>,
    /// Whether to count the runs of each day too.
    pub with_days: bool,
}

/// What runs are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RunGrouping {
    /// The day of the latest creation time, in UTC.
    Day,
    /// The values of a label.
    Label {
        /// The key.
        key: String,
    },
    /// The values of an attribute, such as `model_id`.
    Attribute {
        /// The name.
        name: String,
    },
}

impl Default for RunGrouping {
    fn default() -> Self {
        Self::Attribute { name: AttributeInfo::MODEL_ID.name.to_owned() }
    }
}

/// Statistics of runs by what they state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunStatsAnswer {
    /// The runs with each value: days in their order, other values by the number of runs, most first, and by value.
    pub groups: Vec<RunGroup>,
    /// The days in their order, if they were requested too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<RunGroup>,
    /// All runs.
    pub total: RunTotals,
    /// Number of runs without a value.
    pub without: u64,
}

/// The runs with one value. A run with several values is in the group of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunGroup {
    /// The value.
    pub value: String,
    /// What these runs state.
    #[serde(flatten)]
    pub totals: RunTotals,
}

/// What some runs state together. What none of them states is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTotals {
    /// Number of runs.
    pub runs: u64,
    /// Number of runs with errors.
    pub failures: u64,
    /// Number of input tokens.
    pub tokens_input: Option<u64>,
    /// Number of output tokens.
    pub tokens_output: Option<u64>,
    /// Half of the runs took at most this number of milliseconds: the latency that they state, otherwise the time from
    /// beginning to end. Rounded down to three digits.
    pub latency_p50_ms: Option<i64>,
    /// Of 100 runs, 95 took at most this number of milliseconds.
    pub latency_p95_ms: Option<i64>,
    /// The costs in US dollars of the runs of which they are known.
    pub cost_usd: Option<f64>,
    /// Number of runs of which the costs are known.
    pub runs_with_cost: u64,
}

impl RunStatsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if no kind has the attribute, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<RunStatsAnswer, StorageError> {
        let mut filter = self.filter.clone();
        if filter.kinds.is_empty() {
            filter.kinds = formats::recordings().map(|kind| kind.name().to_owned()).collect();
        }
        let attributes = match &self.by {
            RunGrouping::Attribute { name } => vec![name.clone()],
            RunGrouping::Day | RunGrouping::Label { .. } => Vec::new(),
        };
        let runs = ListRequest {
            filter,
            order: FindOrder::LastSeen,
            attributes,
            prices: self.prices.clone(),
            ..ListRequest::default()
        };
        let (mut total, mut without) = (RunTally::default(), 0);
        let mut groups: BTreeMap<String, RunTally> = BTreeMap::new();
        let mut days: BTreeMap<String, RunTally> = BTreeMap::new();
        runs.visit::<StorageError>(vault, &mut |row| {
            total.add(&row);
            let values = self.by.values(&row);
            without += u64::from(values.is_empty());
            for value in values {
                groups.entry(value).or_default().add(&row);
            }
            for day in RunGrouping::Day.values(&row).into_iter().filter(|_| self.with_days) {
                days.entry(day).or_default().add(&row);
            }
            Ok(true)
        })?;
        let group = |(value, tally): (String, RunTally)| RunGroup { value, totals: tally.totals() };
        let days = days.into_iter().map(group).collect();
        let mut groups: Vec<RunGroup> = groups.into_iter().map(group).collect();
        if self.by != RunGrouping::Day {
            groups.sort_by_key(|group| Reverse(group.totals.runs));
        }
        Ok(RunStatsAnswer { groups, days, total: total.totals(), without })
    }
}

impl RunGrouping {
    /// Returns the different values of a run.
    fn values(&self, row: &ListRow) -> BTreeSet<String> {
        match self {
            Self::Day => row.created_at.iter().map(|at| at.0.date_naive().to_string()).collect(),
            Self::Label { key } => row.labels.get(key).cloned().unwrap_or_default(),
            Self::Attribute { name } => row.values(name).into_iter().collect(),
        }
    }
}

/// The sums of some runs.
#[derive(Default)]
struct RunTally {
    runs: u64,
    failures: u64,
    tokens_input: Option<u64>,
    tokens_output: Option<u64>,
    latencies: LatencyCounts,
    /// In millionths of a US dollar.
    cost: Option<i64>,
    runs_with_cost: u64,
}

impl RunTally {
    fn add(&mut self, row: &ListRow) {
        self.runs += 1;
        self.failures += u64::from(row.errors.is_some_and(|errors| errors > 0));
        add_to(&mut self.tokens_input, row.tokens_input);
        add_to(&mut self.tokens_output, row.tokens_output);
        self.latencies.add(row.latency_ms.or(row.duration_ms));
        if let Some(cost) = row.number(AttributeInfo::COST_USD) {
            self.cost = Some(self.cost.unwrap_or_default().saturating_add(cost));
            self.runs_with_cost += 1;
        }
    }

    fn totals(self) -> RunTotals {
        RunTotals {
            runs: self.runs,
            failures: self.failures,
            tokens_input: self.tokens_input,
            tokens_output: self.tokens_output,
            latency_p50_ms: self.latencies.percentile(50),
            latency_p95_ms: self.latencies.percentile(95),
            cost_usd: self.cost.map(usd),
            runs_with_cost: self.runs_with_cost,
        }
    }
}

fn add_to(sum: &mut Option<u64>, number: Option<i64>) {
    if let Some(number) = number.and_then(|number| u64::try_from(number).ok()) {
        *sum = Some(sum.unwrap_or_default().saturating_add(number));
    }
}

/// The number of runs that took each number of milliseconds, rounded down to three digits: the memory needed does not
/// grow with the number of runs.
#[derive(Default)]
struct LatencyCounts(BTreeMap<i64, u64>);

/// The least number that has too many digits.
const FOUR_DIGITS: i64 = 1_000;

impl LatencyCounts {
    fn add(&mut self, milliseconds: Option<i64>) {
        let Some(milliseconds) = milliseconds else { return };
        let mut unit = 1;
        while milliseconds / unit >= FOUR_DIGITS {
            unit *= 10;
        }
        *self.0.entry(milliseconds / unit * unit).or_default() += 1;
    }

    /// Returns the least number of milliseconds that this percentage of the runs did not exceed.
    fn percentile(&self, percent: u64) -> Option<i64> {
        let rank = self.0.values().sum::<u64>().saturating_mul(percent).div_ceil(100);
        let mut before = 0;
        let reaches = |(_, runs): &(&i64, &u64)| {
            before += **runs;
            before >= rank
        };
        self.0.iter().find(reaches).map(|(milliseconds, _)| *milliseconds)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn percentiles(latencies: impl IntoIterator<Item = i64>) -> [Option<i64>; 2] {
        let mut counts = LatencyCounts::default();
        latencies.into_iter().for_each(|latency| counts.add(Some(latency)));
        [50, 95].map(|percent| counts.percentile(percent))
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        assert_eq!(percentiles([]), [None, None]);
        assert_eq!(percentiles([7]), [Some(7), Some(7)]);
        assert_eq!(percentiles([3, 1]), [Some(1), Some(3)]);
        assert_eq!(percentiles(1..=100), [Some(50), Some(95)]);
        assert_eq!(percentiles([12_345, 12_399]), [Some(12_300), Some(12_300)]);
        let mut none = LatencyCounts::default();
        none.add(None);
        assert_eq!(none.percentile(50), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_exact_to_three_digits(mut latencies in proptest::collection::vec(0..1_i64 << 45, 1..200)) {
            let found = percentiles(latencies.clone());
            latencies.sort_unstable();
            for (percent, found) in [50, 95].into_iter().zip(found) {
                let exact = latencies[(latencies.len() * percent).div_ceil(100) - 1];
                let found = found.unwrap();
                prop_assert!(found <= exact && exact - found <= found / 100, "{found} of {exact}");
            }
        }
    }
}
