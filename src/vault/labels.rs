//! Lists the labels of an artifact, and the keys and values of labels.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{Operation, Timestamp};
use super::handle::Vault;
use super::limit::limit_of;
use crate::digest::CoreHash;
use crate::storage::{Label, StorageError};

pub use crate::storage::{LabelKey, LabelValue};

/// A request for the labels of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelsRequest {
    /// The artifact.
    pub artifact: CoreHash,
}

/// The labels of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelsAnswer {
    /// The labels, by key.
    pub labels: Vec<LabelSummary>,
}

/// A label of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelSummary {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The time at which the artifact got this value.
    pub labeled_at: Timestamp,
}

/// A request for the keys of the labels that artifacts have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabelKeysRequest {}

/// The keys of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelKeysAnswer {
    /// The keys, sorted.
    pub keys: Vec<LabelKey>,
}

/// A request for the values of a key of labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelValuesRequest {
    /// The key.
    pub key: String,
    /// The beginning of the values; all values if it is empty.
    #[serde(default)]
    pub prefix: String,
    /// Maximum number of values; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// The values of a key of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelValuesAnswer {
    /// The values, sorted.
    pub values: Vec<LabelValue>,
}

impl Operation for LabelsRequest {
    type Answer = LabelsAnswer;
    type Error = StorageError;

    const NAME: &'static str = "labels";
    const SUMMARY: &'static str = "List the labels of an artifact";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<LabelsAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        snapshot.expect_artifact(self.artifact)?;
        let labels = snapshot.annotations_of(self.artifact)?.labels.into_iter();
        Ok(LabelsAnswer { labels: labels.map(LabelSummary::from).collect() })
    }
}

impl Operation for LabelKeysRequest {
    type Answer = LabelKeysAnswer;
    type Error = StorageError;

    const NAME: &'static str = "label-keys";
    const SUMMARY: &'static str = "List the keys of labels";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<LabelKeysAnswer, StorageError> {
        Ok(LabelKeysAnswer { keys: vault.snapshot()?.label_keys()? })
    }
}

impl Operation for LabelValuesRequest {
    type Answer = LabelValuesAnswer;
    type Error = StorageError;

    const NAME: &'static str = "label-values";
    const SUMMARY: &'static str = "List the values of a key of labels";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<LabelValuesAnswer, StorageError> {
        let limit = limit_of(self.limit);
        Ok(LabelValuesAnswer { values: vault.snapshot()?.label_values(&self.key, &self.prefix, limit)? })
    }
}

impl From<Label> for LabelSummary {
    fn from(Label { key, value, at }: Label) -> Self {
        Self { key, value, labeled_at: at.into() }
    }
}
