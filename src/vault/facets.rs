//! Counts the runs that match a filter, by the most frequent values of what they state.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::find::{ArtifactFilter, unknown_attribute};
use super::handle::{Vault, limit_of};
use super::query::RunGroups;
use crate::artifact::AttributeInfo;
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{Filter, Order, Page, Snapshot, StorageError};

/// A request for the number of runs that match a filter, and for the most frequent values of some attributes and of labels
/// among them. The recordings of a row of a list are one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FacetsRequest {
    /// What the recordings must match. If it names no kinds, they are all that record what an agent or a model did.
    pub filter: ArtifactFilter,
    /// The names of the attributes whose values are counted.
    pub attributes: Vec<String>,
    /// Maximum number of values of each attribute, and of labels; unlimited if there is none.
    pub limit: Option<u64>,
    /// If more recordings match, their runs are not counted, which takes long: the answer then has the number of recordings
    /// alone.
    pub max_recordings: Option<u64>,
}

/// The number of runs that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FacetsAnswer {
    /// Number of recordings: a run can have several.
    pub recordings: u64,
    /// The counts of the runs; missing if there are more recordings than the request permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<RunCounts>,
}

/// The number of runs that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCounts {
    /// Number of runs.
    pub runs: u64,
    /// Number of runs with errors.
    pub failures: u64,
    /// Number of runs with a recording that states that there were none.
    pub successes: u64,
    /// The most frequent values of the requested attributes: by name, each with the most runs first. A run with several
    /// values counts for each.
    pub attributes: Vec<RunValueCount>,
    /// The most frequent labels, most runs first.
    pub labels: Vec<RunValueCount>,
}

/// The number of runs with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunValueCount {
    /// The name of the attribute, or the key of the label.
    pub name: String,
    /// The value.
    pub value: String,
    /// Number of runs.
    pub runs: u64,
}

impl FacetsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if no kind has one of the attributes, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<FacetsAnswer, StorageError> {
        for name in &self.attributes {
            formats::attribute(name).ok_or_else(|| unknown_attribute(name))?;
        }
        let mut filter = Filter::from(&self.filter);
        if filter.kinds.is_empty() {
            filter.kinds = formats::recordings().map(|kind| kind.name().to_owned()).collect();
        }
        let snapshot = vault.snapshot()?;
        let recordings = snapshot.count(&filter)?;
        if self.max_recordings.is_some_and(|most| recordings > most) {
            return Ok(FacetsAnswer { recordings, counts: None });
        }
        let found = snapshot.find(&filter, Order::Core, &Page::all())?.items;
        let cores: Vec<CoreHash> = found.into_iter().map(|hit| hit.artifact.core).collect();
        let mut tally = FacetTally::default();
        let groups = RunGroups::find(&*snapshot, &cores)?;
        for batch in cores.chunks(BATCH) {
            tally.add(&*snapshot, batch, &groups, &self.attributes)?;
        }
        Ok(FacetsAnswer { recordings, counts: Some(tally.counts(limit_of(self.limit))) })
    }
}

/// Number of artifacts whose values are read at a time.
const BATCH: usize = 1_000;

/// The runs with each value, by the numbers of their groups.
#[derive(Default)]
struct FacetTally {
    runs: HashSet<Option<usize>>,
    failures: HashSet<Option<usize>>,
    successes: HashSet<Option<usize>>,
    attributes: ValueTally,
    labels: ValueTally,
}

type ValueTally = HashMap<(String, String), HashSet<Option<usize>>>;

impl FacetTally {
    fn add(
        &mut self,
        snapshot: &dyn Snapshot,
        artifacts: &[CoreHash],
        groups: &RunGroups,
        names: &[String],
    ) -> Result<(), StorageError> {
        let attributes = snapshot.attributes(artifacts)?;
        let annotations = snapshot.annotations(artifacts)?;
        for ((core, attributes), annotations) in artifacts.iter().zip(attributes).zip(annotations) {
            let run = groups.number_of(*core);
            self.runs.insert(run);
            for attribute in attributes {
                if attribute.name == AttributeInfo::ERRORS.name {
                    let has_errors = attribute.number.is_some_and(|errors| errors > 0);
                    if has_errors { &mut self.failures } else { &mut self.successes }.insert(run);
                }
                if names.contains(&attribute.name) {
                    self.attributes.entry((attribute.name, attribute.value)).or_default().insert(run);
                }
            }
            for label in annotations.labels {
                self.labels.entry((label.key, label.value)).or_default().insert(run);
            }
        }
        Ok(())
    }

    /// Returns the counts, with up to `limit` values of each attribute, and labels.
    fn counts(self, limit: usize) -> RunCounts {
        let mut attributes = counted(self.attributes);
        attributes.sort_by(|one, other| one.name.cmp(&other.name));
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        attributes.retain(|count| {
            let place = places.entry(count.name.clone()).or_default();
            *place += 1;
            *place <= limit
        });
        let mut labels = counted(self.labels);
        labels.truncate(limit);
        RunCounts {
            runs: self.runs.len() as u64,
            failures: self.failures.len() as u64,
            successes: self.successes.len() as u64,
            attributes,
            labels,
        }
    }
}

/// Returns the number of runs with each value, most runs first.
fn counted(runs: ValueTally) -> Vec<RunValueCount> {
    let count =
        |((name, value), runs): (_, HashSet<_>)| RunValueCount { name, value, runs: runs.len() as u64 };
    let mut counts: Vec<RunValueCount> = runs.into_iter().map(count).collect();
    counts.sort_by(|one, other| {
        (Reverse(one.runs), &one.name, &one.value).cmp(&(Reverse(other.runs), &other.name, &other.value))
    });
    counts
}
