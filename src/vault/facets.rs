//! Counts the runs that match a filter, by the most frequent values of what they state.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::find::{ArtifactFilter, unknown_attribute};
use super::handle::{Vault, limit_of};
use crate::formats;
use crate::storage::{Filter, StorageError};

pub use crate::storage::{RunCounts, RunValueCount};

/// A request for the number of runs that match a filter, and for the most frequent values of some attributes and of labels
/// among them. Recordings that have the same run id, or refer to it, are one run.
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
        let counts = snapshot.count_runs(&filter, &self.attributes, limit_of(self.limit))?;
        Ok(FacetsAnswer { recordings, counts: Some(counts) })
    }
}
