//! Counts the runs that match a filter, by the most frequent values of what they state.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::find::{ArtifactFilter, Condition, unknown_attribute};
use super::query::RunGroups;
use super::{Vault, limit_of};
use crate::artifact::AttributeInfo;
use crate::formats;
use crate::storage::{
    Annotations, AttributeRecord, Filter, Order, Page, Snapshot, StorageError, ValueCount, ValueCounts,
};

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
        if filter.through_members {
            // What is counted is stated by the recordings themselves.
            let found = snapshot.find(&filter, Order::Core, &Page::all())?.items;
            let among = found.into_iter().map(|hit| hit.artifact.core).collect();
            filter = Filter { among: Some(among), ..Filter::default() };
        }
        let mut tally = FacetTally::of_recordings(&*snapshot, &filter, recordings, &self.attributes)?;
        tally.join_recordings(&*snapshot, &filter, &self.attributes)?;
        Ok(FacetsAnswer { recordings, counts: Some(tally.counts(limit_of(self.limit))) })
    }
}

/// Number of artifacts whose values are read at a time.
const BATCH: usize = 1_000;

/// A property of runs that is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum RunProperty {
    Any,
    Failed,
    Succeeded,
    /// An attribute with a value.
    Attribute(String, String),
    /// A label.
    Label(String, String),
}

/// The number of runs with each property.
struct FacetTally(BTreeMap<RunProperty, u64>);

impl FacetTally {
    /// Counts the recordings that match `filter`, each as a run.
    fn of_recordings(
        snapshot: &dyn Snapshot,
        filter: &Filter,
        recordings: u64,
        names: &[String],
    ) -> Result<Self, StorageError> {
        let with_errors = |least, most| {
            let mut filter = filter.clone();
            let name = AttributeInfo::ERRORS.name.to_owned();
            filter.conditions.push(Condition::Range { name, least, most });
            snapshot.count(&filter)
        };
        let mut tally = BTreeMap::from([
            (RunProperty::Any, recordings),
            (RunProperty::Failed, with_errors(Some(1), None)?),
            (RunProperty::Succeeded, with_errors(None, Some(0))?),
        ]);
        let ValueCounts { attributes, labels } = snapshot.count_by_value(filter, names)?;
        let attribute =
            |ValueCount { name, value, artifacts }| (RunProperty::Attribute(name, value), artifacts);
        let label = |ValueCount { name, value, artifacts }| (RunProperty::Label(name, value), artifacts);
        tally.extend(attributes.into_iter().map(attribute).chain(labels.into_iter().map(label)));
        Ok(Self(tally))
    }

    /// Counts the recordings of one run once.
    fn join_recordings(
        &mut self,
        snapshot: &dyn Snapshot,
        filter: &Filter,
        names: &[String],
    ) -> Result<(), StorageError> {
        let containers = formats::ALL.into_iter().filter(|kind| kind.is_of_directories());
        let containers: Vec<String> = containers.map(|kind| kind.name().to_owned()).collect();
        let mut cores = snapshot.not_alone(filter, &containers)?;
        let groups = RunGroups::find(snapshot, &cores)?;
        let mut sizes: HashMap<Option<usize>, u64> = HashMap::new();
        for core in &cores {
            *sizes.entry(groups.number_of(*core)).or_default() += 1;
        }
        cores.retain(|core| sizes.get(&groups.number_of(*core)).is_some_and(|size| *size > 1));
        // The number of recordings with each property, and their runs.
        let mut counted: HashMap<RunProperty, (u64, HashSet<Option<usize>>)> = HashMap::new();
        for batch in cores.chunks(BATCH) {
            let (attributes, annotations) = (snapshot.attributes(batch)?, snapshot.annotations(batch)?);
            for ((core, attributes), annotations) in batch.iter().zip(attributes).zip(annotations) {
                for property in RunProperty::of_recording(attributes, annotations, names) {
                    let (recordings, runs) = counted.entry(property).or_default();
                    *recordings += 1;
                    runs.insert(groups.number_of(*core));
                }
            }
        }
        for (property, (recordings, runs)) in counted {
            if let Some(count) = self.0.get_mut(&property) {
                *count = count.saturating_sub(recordings - runs.len() as u64);
            }
        }
        Ok(())
    }

    /// Returns the counts, with up to `limit` values of each attribute, and labels.
    fn counts(self, limit: usize) -> RunCounts {
        let mut counts = RunCounts::default();
        for (property, runs) in self.0 {
            match property {
                RunProperty::Any => counts.runs = runs,
                RunProperty::Failed => counts.failures = runs,
                RunProperty::Succeeded => counts.successes = runs,
                RunProperty::Attribute(name, value) => {
                    counts.attributes.push(RunValueCount { name, value, runs });
                }
                RunProperty::Label(name, value) => counts.labels.push(RunValueCount { name, value, runs }),
            }
        }
        // Equal counts stay in the order of the values.
        counts.attributes.sort_by(|one, other| (&one.name, other.runs).cmp(&(&other.name, one.runs)));
        let of_names = counts.attributes.chunk_by(|one, other| one.name == other.name);
        counts.attributes = of_names.flat_map(|values| values.iter().take(limit)).cloned().collect();
        counts.labels.sort_by_key(|count| Reverse(count.runs));
        counts.labels.truncate(limit);
        counts
    }
}

impl RunProperty {
    /// Returns what is counted of a recording.
    fn of_recording(
        attributes: Vec<AttributeRecord>,
        annotations: Annotations,
        names: &[String],
    ) -> BTreeSet<Self> {
        let mut all = BTreeSet::from([Self::Any]);
        for AttributeRecord { name, value, number } in attributes {
            if let Some(errors) = number.filter(|_| name == AttributeInfo::ERRORS.name) {
                all.insert(if errors > 0 { Self::Failed } else { Self::Succeeded });
            }
            if names.contains(&name) {
                all.insert(Self::Attribute(name, value));
            }
        }
        all.extend(annotations.labels.into_iter().map(|label| Self::Label(label.key, label.value)));
        all
    }
}
