//! Describes an artifact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{ArtifactSummary, Timestamp};
use super::details::{ArtifactDetails, AttributeSummary, CaptureSummary, run_id};
use super::links::LinkSummary;
use super::{Vault, query};
use crate::artifact::{CREATED_AT, Kind, SuccessorCriteria};
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{ArtifactRecord, AttributeRecord, Pin, Snapshot, StorageError, created_at};

pub use crate::storage::RoleCount;

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
    pub mentions: Vec<RoleCount>,
    /// Its captures in the order in which they were added.
    pub captures: Vec<CaptureSummary>,
    /// The files of the preferred capture, if the kind has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberSummary>,
    /// Its links, outgoing ones first, by relation and target.
    pub links: Vec<LinkSummary>,
    /// The longest artifacts that extend it.
    pub extended_by: Vec<CoreHash>,
    /// Their lengths, in the same order.
    pub extensions: Vec<ExtensionSummary>,
    /// Its tags, by name.
    pub tags: Vec<String>,
    /// Its note.
    pub note: Option<String>,
    /// Its labels, by key.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Its pin.
    pub pin: Option<ArtifactPin>,
}

/// An artifact that extends another one of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExtensionSummary {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// Its length, if it is known.
    pub length: Option<u64>,
    /// The unit of the length, such as `record`.
    pub unit: String,
}

/// The pin of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactPin {
    /// The reason, if one was given.
    pub note: Option<String>,
    /// The time at which it was pinned.
    pub pinned_at: Timestamp,
}

/// A file of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberSummary {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

impl ShowRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ShowAnswer, StorageError> {
        self.answer(&*vault.snapshot()?)
    }

    fn answer(&self, snapshot: &dyn Snapshot) -> Result<ShowAnswer, StorageError> {
        let core = self.artifact;
        let artifact = snapshot.expect_artifact(core)?;
        let links = query::links(snapshot, &artifact)?;
        let extensions = match formats::named(&artifact.kind).and_then(|kind| kind.info().versions) {
            Some(versions) => query::longest_extensions(snapshot, &artifact, &links, versions)?
                .into_iter()
                .map(|extension| ExtensionSummary::new(&extension, versions))
                .collect(),
            None => Vec::new(),
        };
        let attributes = snapshot.attributes_of(core)?;
        let annotations = snapshot.annotations_of(core)?;
        let captures = CaptureSummary::all(snapshot.captures_of(core)?);
        Ok(ShowAnswer {
            artifact: (&artifact).into(),
            // They are sorted, and their order is chronological.
            created_at: attributes.iter().rfind(|one| one.name == CREATED_AT).map(|one| one.value.clone()),
            attributes: attributes.into_iter().map(AttributeSummary::from).collect(),
            mentions: snapshot.mention_counts(&[core])?.into_iter().flatten().collect(),
            members: members(snapshot, &artifact, &captures)?,
            captures,
            links: links.into_iter().map(LinkSummary::from).collect(),
            extended_by: extensions.iter().map(|extension| extension.core_hash).collect(),
            extensions,
            tags: annotations.tags.into_iter().map(|tag| tag.name).collect(),
            note: annotations.note.map(|note| note.text),
            labels: annotations.labels.into_iter().map(|label| (label.key, label.value)).collect(),
            pinned: annotations.pin.is_some(),
            pin: annotations.pin.map(ArtifactPin::from),
        })
    }
}

impl ShowAnswer {
    /// Returns the artifact with its details as in a list.
    #[must_use]
    pub fn into_details(self) -> (ArtifactSummary, ArtifactDetails) {
        let records: Vec<AttributeRecord> = self
            .attributes
            .iter()
            .cloned()
            .map(|AttributeSummary { name, value }| AttributeRecord { name, value, number: None })
            .collect();
        let details = ArtifactDetails {
            created_at: created_at(&records).map(Timestamp),
            run_id: run_id(&records).map(str::to_owned),
            attributes: Some(self.attributes),
            captures: Some(self.captures),
            tags: Some(self.tags),
            note: self.note,
            labels: Some(self.labels),
            pinned: Some(self.pinned),
        };
        (self.artifact, details)
    }
}

impl ExtensionSummary {
    fn new(extension: &query::Extension, versions: SuccessorCriteria) -> Self {
        let (attribute, unit) = versions.length;
        let length = extension.attributes.iter().find(|one| one.name == attribute);
        Self {
            core_hash: extension.artifact.core,
            length: length.and_then(|length| length.value.parse().ok()),
            unit: unit.to_owned(),
        }
    }
}

impl From<Pin> for ArtifactPin {
    fn from(Pin { note, at }: Pin) -> Self {
        Self { note, pinned_at: at.into() }
    }
}

/// Returns the files of the preferred capture, if the kind has several.
fn members(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    captures: &[CaptureSummary],
) -> Result<Vec<MemberSummary>, StorageError> {
    let has_several = formats::named(&artifact.kind).is_some_and(Kind::is_of_directories);
    let preferred = captures.iter().find(|capture| capture.preferred && has_several);
    let Some(preferred) = preferred else { return Ok(Vec::new()) };
    let members = snapshot.members(artifact.core, preferred.capture_hash)?.into_iter();
    Ok(members.map(|member| MemberSummary { name: member.name, size: member.size }).collect())
}
