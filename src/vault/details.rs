//! Data of artifacts that lists return on request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Timestamp;
use super::captures::CaptureSummary;
use crate::digest::CoreHash;
use crate::storage::{Annotations, AttributeRecord, Snapshot, StorageError, created_at};

/// The attributes that are ids of runs, in the order in which a name is looked up in them.
pub const RUN_IDS: [&str; 2] = ["run_id", "trace_id"];

/// Returns the id of the run that an artifact with these attributes records, if it states one.
pub(super) fn run_id(attributes: &[AttributeRecord]) -> Option<&str> {
    let named = |name: &str| attributes.iter().find(|attribute| attribute.name == name);
    RUN_IDS.into_iter().find_map(named).map(|attribute| attribute.value.as_str())
}

/// Data of an artifact that a list contains on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// Its attributes.
    Attributes,
    /// Its captures.
    Captures,
    /// Its tags, its note, its labels, and whether it is pinned.
    Annotations,
}

impl Detail {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Attributes, Self::Captures, Self::Annotations];
}

/// Data of an artifact in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactDetails {
    /// The latest creation time that it states.
    pub created_at: Option<Timestamp>,
    /// The id of the run that it records, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Its attributes, sorted by name and value; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<AttributeSummary>>,
    /// Its captures in the order in which they were added; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captures: Option<Vec<CaptureSummary>>,
    /// Its tags, by name; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Its note; only on request, and if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its labels, by key; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Whether it is pinned; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

impl ArtifactDetails {
    /// Returns the details of each artifact.
    pub(super) fn read(
        snapshot: &dyn Snapshot,
        of: &[CoreHash],
        requested: &[Detail],
    ) -> Result<Vec<Self>, StorageError> {
        let mut all = Vec::with_capacity(of.len());
        for attributes in snapshot.attributes(of)? {
            let mut details = Self {
                created_at: created_at(&attributes).map(Timestamp),
                run_id: run_id(&attributes).map(str::to_owned),
                ..Self::default()
            };
            if requested.contains(&Detail::Attributes) {
                details.attributes = Some(attributes.into_iter().map(AttributeSummary::from).collect());
            }
            all.push(details);
        }
        if requested.contains(&Detail::Captures) {
            for (details, captures) in all.iter_mut().zip(snapshot.captures(of)?) {
                details.captures = Some(CaptureSummary::all(captures));
            }
        }
        if requested.contains(&Detail::Annotations) {
            for (details, annotations) in all.iter_mut().zip(snapshot.annotations(of)?) {
                details.annotate(annotations);
            }
        }
        Ok(all)
    }

    fn annotate(&mut self, Annotations { tags, note, pin, labels }: Annotations) {
        self.tags = Some(tags.into_iter().map(|tag| tag.name).collect());
        self.note = note.map(|note| note.text);
        self.labels = Some(labels.into_iter().map(|label| (label.key, label.value)).collect());
        self.pinned = Some(pin.is_some());
    }
}

/// A named value that is derived from an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeSummary {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl From<AttributeRecord> for AttributeSummary {
    fn from(attribute: AttributeRecord) -> Self {
        let AttributeRecord { name, value, .. } = attribute;
        Self { name, value }
    }
}
