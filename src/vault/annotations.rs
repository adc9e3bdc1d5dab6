//! Lists labels, tags, pinned artifacts and notes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Timestamp;
use super::{Vault, limit_of};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Condition, Label, Pin, Snapshot, StorageError};

pub use crate::storage::{LabelKey, LabelValue};

/// A pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedArtifact {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// Its pin.
    pub pin: Pin,
}

/// Returns all pinned artifacts of a snapshot in the order in which they were pinned.
pub(super) fn pins(snapshot: &dyn Snapshot) -> Result<Vec<PinnedArtifact>, StorageError> {
    let mut pins = Vec::new();
    for (artifact, annotations) in snapshot.annotated(Condition::Pinned)? {
        pins.extend(annotations.pin.map(|pin| PinnedArtifact { artifact, pin }));
    }
    pins.sort_unstable_by_key(|pinned| (pinned.pin.at, pinned.artifact.core));
    Ok(pins)
}

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

impl LabelsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<LabelsAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        snapshot.expect_artifact(self.artifact)?;
        let labels = snapshot.annotations_of(self.artifact)?.labels.into_iter();
        Ok(LabelsAnswer { labels: labels.map(LabelSummary::from).collect() })
    }
}

impl LabelKeysRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<LabelKeysAnswer, StorageError> {
        Ok(LabelKeysAnswer { keys: vault.snapshot()?.label_keys()? })
    }
}

impl LabelValuesRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<LabelValuesAnswer, StorageError> {
        let limit = limit_of(self.limit);
        Ok(LabelValuesAnswer { values: vault.snapshot()?.label_values(&self.key, &self.prefix, limit)? })
    }
}

impl From<Label> for LabelSummary {
    fn from(Label { key, value, at }: Label) -> Self {
        Self { key, value, labeled_at: at.into() }
    }
}

/// A request for the note of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// The artifact.
    pub artifact: CoreHash,
}

/// The note of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoteAnswer {
    /// The note; `None` if the artifact has none.
    pub note: Option<NoteSummary>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoteSummary {
    /// The core hash of the artifact.
    pub core_hash: CoreHash,
    /// The text.
    pub note: String,
    /// The time at which it was written.
    pub noted_at: Timestamp,
}

impl NoteRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<NoteAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let core_hash = snapshot.expect_artifact(self.artifact)?.core;
        let note = snapshot.annotations_of(core_hash)?.note;
        let note = note.map(|note| NoteSummary { core_hash, note: note.text, noted_at: note.at.into() });
        Ok(NoteAnswer { note })
    }
}

/// A request for all pinned artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PinsRequest {}

/// All pinned artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinsAnswer {
    /// The artifacts in the order in which they were pinned.
    pub pins: Vec<PinSummary>,
}

/// A pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinSummary {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The reason, if one was given.
    pub note: Option<String>,
    /// The time at which it was pinned.
    pub pinned_at: Timestamp,
}

impl PinsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<PinsAnswer, StorageError> {
        let pins = pins(&*vault.snapshot()?)?.into_iter();
        let pins = pins.map(|pinned| PinSummary {
            core_hash: pinned.artifact.core,
            kind: pinned.artifact.kind,
            note: pinned.pin.note,
            pinned_at: pinned.pin.at.into(),
        });
        Ok(PinsAnswer { pins: pins.collect() })
    }
}

/// A request for all tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TagsRequest {}

/// All tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagsAnswer {
    /// The tags, by name.
    pub tags: Vec<TagSummary>,
}

/// A tag and its artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagSummary {
    /// The tag.
    pub name: String,
    /// The core hash of the artifact.
    pub core_hash: CoreHash,
    /// The time at which the tag was set.
    pub tagged_at: Timestamp,
}

impl TagsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<TagsAnswer, StorageError> {
        let tags = vault.snapshot()?.tags()?.into_iter();
        let tags = tags.map(|(tag, artifact)| TagSummary {
            name: tag.name,
            core_hash: artifact.core,
            tagged_at: tag.at.into(),
        });
        Ok(TagsAnswer { tags: tags.collect() })
    }
}
