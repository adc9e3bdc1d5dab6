//! Counts the runs that match a filter, by the most frequent values of what they state.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::find::{ArtifactFilter, unknown_attribute};
use super::handle::{Vault, limit_of};
use crate::formats;
use crate::storage::{Filter, RunCounts, RunValue, StorageError};

pub use crate::storage::RunValueCount;

/// A request for the number of runs that match a filter, and for the most frequent values of some attributes and of labels
/// among them. Recordings that have the same run id, or refer to it, are one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FacetsRequest {
    /// What the recordings must match. If it names no kinds, they are all that record what an agent or a model did.
    pub filter: ArtifactFilter,
    /// The names of the attributes whose values are counted.
    pub attributes: Vec<String>,
    /// Whether labels are counted.
    pub labels: bool,
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
    pub counts: Option<FacetCounts>,
}

/// The counts of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FacetCounts {
    /// Number of runs.
    pub runs: u64,
    /// Number of runs with errors.
    pub failures: u64,
    /// Number of runs with a recording that states that there were none.
    pub successes: u64,
    /// The values of the requested attributes, in the order of the request, each with the most runs first. A run with several
    /// values counts for each.
    pub attributes: Vec<Vec<RunValueCount>>,
    /// The labels with the most runs; empty if they were not requested.
    pub labels: Vec<RunValueCount>,
}

impl Operation for FacetsRequest {
    type Answer = FacetsAnswer;
    type Error = StorageError;

    const NAME: &'static str = "facets";
    const SUMMARY: &'static str = "Count runs by the most frequent values of attributes and labels";

    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if no kind has one of the attributes, and
    /// another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<FacetsAnswer, StorageError> {
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
        let attributes = self.attributes.iter().map(|name| RunValue::Attribute(name.clone()));
        let by: Vec<RunValue> = attributes.chain(self.labels.then_some(RunValue::Label)).collect();
        let RunCounts { runs, failures, successes, values: mut attributes } =
            snapshot.count_runs(&filter, &by, limit_of(self.limit))?;
        let labels = if self.labels { attributes.pop().unwrap_or_default() } else { Vec::new() };
        let counts = Some(FacetCounts { runs, failures, successes, attributes, labels });
        Ok(FacetsAnswer { recordings, counts })
    }
}
