//! Import of the links, tags, notes and labels of a bundle into a vault.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::{BundledArtifact, BundledLink, Manifest};
use super::read::Bundle;
use crate::digest::CoreHash;
use crate::storage::{Result, Snapshot, Storage};
use crate::vault::merging::{self, MergeOutcome, MergedAnnotation};

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
    /// The same in more detail. It is not serialized.
    #[serde(skip)]
    pub merged: MergeOutcome,
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
    /// The same in more detail. It is not serialized.
    #[serde(skip)]
    pub merged: MergeOutcome,
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
    /// The same in more detail. It is not serialized.
    #[serde(skip)]
    pub merged: MergeOutcome,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The artifact.
    pub core_hash: CoreHash,
}

/// What was done with the links, tags, notes and labels of a bundle, in the order of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedAnnotations {
    /// The links.
    pub links: Vec<ImportedLinkSummary>,
    /// The tags.
    pub tags: Vec<ImportedTagSummary>,
    /// The notes.
    pub notes: Vec<ImportedNoteSummary>,
    /// The labels.
    pub labels: Vec<ImportedLabelSummary>,
}

impl ImportedAnnotations {
    /// Sets them in the vault, unless it has others in their place.
    pub(super) fn set(storage: &dyn Storage, bundle: &Bundle) -> Result<Self> {
        Self::new(bundle, &|annotations| merging::merge(storage, annotations))
    }

    /// Returns what would be done with them in the vault in `snapshot`, or in a new one, if it also contained `cores`.
    pub(super) fn dry_run(
        snapshot: Option<&dyn Snapshot>,
        bundle: &Bundle,
        cores: &HashSet<CoreHash>,
    ) -> Result<Self> {
        Self::new(bundle, &|annotations| merging::plan(snapshot, cores, annotations))
    }

    fn new(
        bundle: &Bundle,
        merge: &dyn Fn(&[MergedAnnotation<'_>]) -> Result<Vec<MergeOutcome>>,
    ) -> Result<Self> {
        let Manifest { artifacts, links, .. } = bundle.manifest();
        let links = links.iter().map(|link| {
            let BundledLink { note, relation, source, target } = link;
            MergedAnnotation::Link { source: *source, relation, target: *target, note: note.as_deref() }
        });
        let tags = artifacts.iter().flat_map(|BundledArtifact { core_hash, tags, .. }| {
            tags.iter().map(|name| MergedAnnotation::Tag { core: *core_hash, name })
        });
        let notes = artifacts.iter().flat_map(|BundledArtifact { core_hash, note, .. }| {
            note.iter().map(|text| MergedAnnotation::Note { core: *core_hash, text })
        });
        let labels = artifacts.iter().flat_map(|BundledArtifact { core_hash, labels, .. }| {
            labels.iter().map(|(key, value)| MergedAnnotation::Label { core: *core_hash, key, value })
        });
        let mut imported = Self::default();
        // In this order, each in a transaction of its own.
        let annotations: [Vec<_>; 4] = [links.collect(), tags.collect(), notes.collect(), labels.collect()];
        for annotations in annotations {
            for (annotation, outcome) in annotations.iter().zip(merge(&annotations)?) {
                imported.add(annotation, outcome);
            }
        }
        Ok(imported)
    }

    fn add(&mut self, annotation: &MergedAnnotation<'_>, merged: MergeOutcome) {
        let done = |set: ImportOutcome, not_set: ImportOutcome| match merged {
            MergeOutcome::Set => set,
            MergeOutcome::Present => ImportOutcome::Present,
            _ => not_set,
        };
        match *annotation {
            MergedAnnotation::Link { source, relation, target, note } => {
                let (relation, note) = (relation.to_owned(), note.map(str::to_owned));
                let (outcome, missing) = match merged {
                    MergeOutcome::Set => (ImportOutcome::Linked, Vec::new()),
                    MergeOutcome::Missing(ends) => (ImportOutcome::NotLinked, ends),
                    // It may have another note.
                    _ => (ImportOutcome::Present, Vec::new()),
                };
                self.links.push(ImportedLinkSummary { outcome, source, relation, target, note, missing });
            }
            MergedAnnotation::Tag { core: core_hash, name } => {
                let stands_for = if let MergeOutcome::Conflict(other) = merged { other } else { None };
                let (outcome, tag) = (done(ImportOutcome::Tagged, ImportOutcome::NotTagged), name.to_owned());
                self.tags.push(ImportedTagSummary { outcome, merged, tag, core_hash, stands_for });
            }
            MergedAnnotation::Note { core: core_hash, text } => {
                let (outcome, note) = (done(ImportOutcome::Noted, ImportOutcome::NotNoted), text.to_owned());
                self.notes.push(ImportedNoteSummary { outcome, merged, note, core_hash });
            }
            MergedAnnotation::Label { core: core_hash, key, value } => {
                let outcome = done(ImportOutcome::Labeled, ImportOutcome::NotLabeled);
                let (key, value) = (key.to_owned(), value.to_owned());
                self.labels.push(ImportedLabelSummary { outcome, merged, key, value, core_hash });
            }
            // Bundles have no pins.
            MergedAnnotation::Pin { .. } => {}
        }
    }
}
