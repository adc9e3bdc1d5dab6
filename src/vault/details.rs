//! The attributes, the captures and other data of artifacts: what lists return on request, and requests for each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{SignatureName, Timestamp};
use super::{Vault, limit_of};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{
    Annotations, AttributeRecord, CaptureRecord, Snapshot, StorageError, created_at, preference,
};
use crate::validation::Violation;

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

/// A request for the names of the attributes that artifacts have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttributeNamesRequest {}

/// The names of attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeNamesAnswer {
    /// The names, sorted.
    pub names: Vec<String>,
}

/// A request for the values of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttributeValuesRequest {
    /// The name of the attribute.
    pub name: String,
    /// The beginning of the values; all values if it is empty.
    #[serde(default)]
    pub prefix: String,
    /// Maximum number of values; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// The values of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeValuesAnswer {
    /// The values, sorted.
    pub values: Vec<String>,
}

impl AttributeNamesRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<AttributeNamesAnswer, StorageError> {
        Ok(AttributeNamesAnswer { names: vault.snapshot()?.attribute_names()? })
    }
}

impl AttributeValuesRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<AttributeValuesAnswer, StorageError> {
        let limit = limit_of(self.limit);
        Ok(AttributeValuesAnswer {
            values: vault.snapshot()?.attribute_values(&self.name, &self.prefix, limit)?,
        })
    }
}

/// A request for the captures of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CapturesRequest {
    /// The artifact.
    pub artifact: CoreHash,
    /// Maximum number of captures; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The last capture of the previous page; the first page if there is none.
    #[serde(default)]
    pub after: Option<CaptureHash>,
}

/// The captures of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapturesAnswer {
    /// The captures in the order in which they were added.
    pub captures: Vec<CaptureSummary>,
    /// Number of all captures of the artifact.
    pub count: u64,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<CaptureHash>,
}

/// A capture of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CaptureSummary {
    /// Its hash.
    pub capture_hash: CaptureHash,
    /// Whether it is the preferred capture of the artifact.
    pub preferred: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The time at which it was added.
    pub added_at: Timestamp,
    /// The time at which it was last added or seen again.
    pub seen_at: Timestamp,
    /// The path that it was read from when it was first added, if that was recorded.
    #[serde(default)]
    pub source_path: Option<String>,
    /// The state of its signature.
    pub signature: SignatureName,
    /// The key id that it states.
    pub key_id: Option<String>,
    /// The warnings that were reported at its admission.
    pub violations: Vec<Violation>,
}

impl CapturesRequest {
    /// Creates a request for all captures of an artifact.
    #[must_use]
    pub fn new(artifact: CoreHash) -> Self {
        Self { artifact, limit: None, after: None }
    }

    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<CapturesAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        snapshot.expect_artifact(self.artifact)?;
        let mut captures = CaptureSummary::all(snapshot.captures_of(self.artifact)?);
        let count = captures.len() as u64;
        if let Some(after) = self.after {
            let last = captures.iter().position(|capture| capture.capture_hash == after);
            captures.drain(..last.map_or(0, |last| last + 1));
        }
        let limit = limit_of(self.limit);
        let is_cut = captures.len() > limit;
        captures.truncate(limit);
        let next = captures.last().filter(|_| is_cut).map(|capture| capture.capture_hash);
        Ok(CapturesAnswer { captures, count, next })
    }
}

impl Vault {
    /// Reads and hashes all bytes of a capture, and returns whether they are those that it was stored with; `None` if the vault
    /// does not have the capture.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn returns_capture(
        &self,
        artifact: CoreHash,
        capture: CaptureHash,
    ) -> Result<Option<bool>, StorageError> {
        // One state is examined: what is removed meanwhile is not damaged.
        let snapshot = self.snapshot()?;
        if snapshot.capture(artifact, capture)?.is_none() {
            return Ok(None);
        }
        match snapshot.read_members(artifact, capture) {
            Err(error) if error.is_of_damage() => Ok(Some(false)),
            read => read.map(|_| Some(true)),
        }
    }
}

impl CaptureSummary {
    /// Describes all captures of an artifact.
    pub(super) fn all(captures: Vec<CaptureRecord>) -> Vec<Self> {
        let preferred = captures.iter().min_by_key(|capture| preference(capture.signature.as_ref()));
        let Some(preferred) = preferred.map(|capture| capture.capture) else { return Vec::new() };
        captures.into_iter().map(|capture| Self::new(capture, preferred)).collect()
    }

    fn new(record: CaptureRecord, preferred: CaptureHash) -> Self {
        let CaptureRecord { capture, size, added_at, seen_at, warnings, signature, source_path, .. } = record;
        Self {
            capture_hash: capture,
            preferred: capture == preferred,
            size,
            added_at: added_at.into(),
            seen_at: seen_at.into(),
            source_path,
            signature: signature.as_ref().map(|signature| signature.state).into(),
            key_id: signature.and_then(|signature| signature.key_id),
            violations: warnings,
        }
    }
}
