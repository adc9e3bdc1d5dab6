//! Describes an artifact.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::{ArtifactSummary, Operation, SignatureName, Timestamp};
use super::links::LinkSummary;
use super::query;
use crate::artifact::{CREATED_AT, Kind};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::storage::{Attribute, CaptureRecord, RoleCount, Snapshot, StorageError, preference};
use crate::validation::Violation;

/// A request for everything that a vault contains about an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowRequest {
    /// The artifact.
    pub artifact: CoreHash,
}

/// Everything that a vault contains about an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShowAnswer {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// The latest creation time that it states, as it is stored.
    pub created_at: Option<String>,
    /// Its attributes, sorted by name and value.
    pub attributes: Vec<AttributeSummary>,
    /// Number of digests that it mentions, by role.
    pub mentions: Vec<MentionCount>,
    /// Its captures in the order in which they were added.
    pub captures: Vec<CaptureSummary>,
    /// Its links, outgoing ones first, by relation and target.
    pub links: Vec<LinkSummary>,
    /// The longest artifacts that extend it.
    pub extended_by: Vec<CoreHash>,
    /// Its tags, by name.
    pub tags: Vec<String>,
    /// Its note.
    pub note: Option<String>,
    /// Whether it is pinned.
    pub pinned: bool,
}

/// A named value that is derived from an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeSummary {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// Number of the mentions of an artifact in one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MentionCount {
    /// The role.
    pub role: String,
    /// The number of mentions.
    pub count: u64,
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
    /// The state of its signature.
    pub signature: SignatureName,
    /// The key id that it states.
    pub key_id: Option<String>,
    /// The warnings that were reported at its admission.
    pub violations: Vec<Violation>,
}

impl Operation for ShowRequest {
    type Answer = ShowAnswer;
    type Error = StorageError;

    const NAME: &'static str = "show";
    const SUMMARY: &'static str = "Describe an artifact";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<ShowAnswer, StorageError> {
        self.answer(&*vault.snapshot()?)
    }
}

impl ShowRequest {
    fn answer(&self, snapshot: &dyn Snapshot) -> Result<ShowAnswer, StorageError> {
        let core = self.artifact;
        let artifact = snapshot.expect_artifact(core)?;
        let links = query::links(snapshot, &artifact)?;
        let extended_by = match formats::named(&artifact.kind).and_then(Kind::versions) {
            Some(versions) => query::longest_extensions(snapshot, &artifact, &links, versions)?,
            None => Vec::new(),
        };
        let attributes = snapshot.attributes_of(core)?;
        let annotations = snapshot.annotations_of(core)?;
        let captures = snapshot.captures_of(core)?;
        let preferred = captures.iter().min_by_key(|capture| preference(capture.signature.as_ref()));
        let preferred = preferred.ok_or_else(|| StorageError::gone(core))?.capture;
        Ok(ShowAnswer {
            artifact: (&artifact).into(),
            // They are sorted, and their order is chronological.
            created_at: attributes.iter().rfind(|one| one.name == CREATED_AT).map(|one| one.value.clone()),
            attributes: attributes.into_iter().map(AttributeSummary::from).collect(),
            mentions: snapshot
                .mention_counts(&[core])?
                .into_iter()
                .flatten()
                .map(|RoleCount { role, count }| MentionCount { role, count })
                .collect(),
            captures: captures.into_iter().map(|capture| CaptureSummary::new(capture, preferred)).collect(),
            links: links.into_iter().map(LinkSummary::from).collect(),
            extended_by: extended_by.iter().map(|extension| extension.artifact.core).collect(),
            tags: annotations.tags.into_iter().map(|tag| tag.name).collect(),
            note: annotations.note.map(|note| note.text),
            pinned: annotations.pin.is_some(),
        })
    }
}

impl From<Attribute> for AttributeSummary {
    fn from(attribute: Attribute) -> Self {
        let Attribute { name, value } = attribute;
        Self { name, value }
    }
}

impl CaptureSummary {
    fn new(record: CaptureRecord, preferred: CaptureHash) -> Self {
        let CaptureRecord { capture, size, added_at, seen_at, warnings, signature, .. } = record;
        Self {
            capture_hash: capture,
            preferred: capture == preferred,
            size,
            added_at: added_at.into(),
            seen_at: seen_at.into(),
            signature: signature.as_ref().map(|signature| signature.state).into(),
            key_id: signature.and_then(|signature| signature.key_id),
            violations: warnings,
        }
    }
}
