//! The outcome of an import for the links, tags, notes and labels of a bundle.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::import::{ImportedLink, ImportedTag, LinkOutcome, TagOutcome};
use super::labels::{ImportedLabel, LabelOutcome};
use super::manifest::BundledLink;
use super::notes::{ImportedNote, NoteOutcome};
use crate::digest::CoreHash;

/// What was done with a link, tag, note or label of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    /// It existed.
    Present,
    /// The link was added.
    Linked,
    /// The link was not added: an end of it is not in the vault.
    NotLinked,
    /// The tag was set.
    Tagged,
    /// The tag was not set: another artifact has it, it could also be a hash or a run id, or the artifact is not
    /// in the vault.
    NotTagged,
    /// The note was set.
    Noted,
    /// The note was not set: the artifact has another one, or is not in the vault.
    NotNoted,
    /// The label was set.
    Labeled,
    /// The label was not set: the artifact has another value of the key or too many labels, or is not in the vault.
    NotLabeled,
}

/// A link of a bundle, and what was done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedLinkSummary {
    /// What was done.
    pub outcome: ImportOutcome,
    /// The artifact that the link is from.
    pub source: CoreHash,
    /// The relation.
    pub relation: String,
    /// The artifact that the link is to.
    pub target: CoreHash,
    /// Its note.
    pub note: Option<String>,
    /// The ends that are not in the vault, if it was not added.
    pub missing: Vec<CoreHash>,
}

/// A tag of a bundle, and what was done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedTagSummary {
    /// What was done.
    pub outcome: ImportOutcome,
    /// The tag.
    pub tag: String,
    /// The artifact that it names in the bundle.
    pub core_hash: CoreHash,
    /// The other artifact that has the tag in the vault.
    pub stands_for: Option<CoreHash>,
}

/// A note of a bundle, and what was done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedNoteSummary {
    /// What was done.
    pub outcome: ImportOutcome,
    /// The text.
    pub note: String,
    /// The artifact.
    pub core_hash: CoreHash,
}

/// A label of a bundle, and what was done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedLabelSummary {
    /// What was done.
    pub outcome: ImportOutcome,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The artifact.
    pub core_hash: CoreHash,
}

impl From<&ImportedLink> for ImportedLinkSummary {
    fn from(link: &ImportedLink) -> Self {
        let (outcome, missing) = match &link.outcome {
            LinkOutcome::Added => (ImportOutcome::Linked, Vec::new()),
            LinkOutcome::Present => (ImportOutcome::Present, Vec::new()),
            LinkOutcome::Missing(ends) => (ImportOutcome::NotLinked, ends.clone()),
        };
        let BundledLink { note, relation, source, target } = link.link.clone();
        Self { outcome, source, relation, target, note, missing }
    }
}

impl From<&ImportedTag> for ImportedTagSummary {
    fn from(tag: &ImportedTag) -> Self {
        let (outcome, stands_for) = match tag.outcome {
            TagOutcome::Set => (ImportOutcome::Tagged, None),
            TagOutcome::Present => (ImportOutcome::Present, None),
            TagOutcome::Conflict(tagged) => (ImportOutcome::NotTagged, Some(tagged)),
            TagOutcome::Reserved | TagOutcome::Missing => (ImportOutcome::NotTagged, None),
        };
        Self { outcome, tag: tag.name.clone(), core_hash: tag.core, stands_for }
    }
}

impl From<&ImportedNote> for ImportedNoteSummary {
    fn from(note: &ImportedNote) -> Self {
        let outcome = match note.outcome {
            NoteOutcome::Set => ImportOutcome::Noted,
            NoteOutcome::Present => ImportOutcome::Present,
            NoteOutcome::Other | NoteOutcome::Missing => ImportOutcome::NotNoted,
        };
        Self { outcome, note: note.note.clone(), core_hash: note.core }
    }
}

impl From<&ImportedLabel> for ImportedLabelSummary {
    fn from(label: &ImportedLabel) -> Self {
        let outcome = match label.outcome {
            LabelOutcome::Set => ImportOutcome::Labeled,
            LabelOutcome::Present => ImportOutcome::Present,
            LabelOutcome::Other | LabelOutcome::TooMany | LabelOutcome::Missing => ImportOutcome::NotLabeled,
        };
        let ImportedLabel { core, key, value, .. } = label.clone();
        Self { outcome, key, value, core_hash: core }
    }
}
