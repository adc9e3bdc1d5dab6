//! Import of a bundle into a vault: its artifacts, and their links, tags, notes and labels.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::{BundledArtifact, BundledCapture, BundledLink, Manifest};
use super::read::Bundle;
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::{ExamineOptions, SourceError};
use crate::storage::{Result, Snapshot, SourcePath, Storage};
use crate::vault::Vault;
use crate::vault::merging::{MergeOutcome, MergedAnnotation};
use crate::vault::{
    add::{
        self, AddMonitor, CommonAnnotations, DocumentOutcome, ExaminedDocument, Recorded, SourcePaths,
        Summary,
    },
    merging,
};

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImportResult {
    /// The summary of the captures.
    pub summary: Summary,
    /// What was done with its links, tags, notes and labels.
    pub annotations: ImportedAnnotations,
    /// Whether the import was interrupted before the last capture. Links, tags, notes and labels were then not imported.
    pub is_interrupted: bool,
}

/// The options of an import.
#[derive(Clone, Copy)]
pub struct BundleImportOptions<'o> {
    /// The options for examining its captures.
    pub examine: &'o ExamineOptions,
    /// Annotations that are set on every artifact.
    pub annotations: &'o CommonAnnotations,
    /// Returns whether to stop. It is called before each capture, by any thread.
    pub is_stopped: &'o (dyn Fn() -> bool + Sync),
}

/// Examines everything in `bundle` without storing it, and returns what an import would do to the vault in `snapshot`, or to
/// a new one.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub fn dry_run(
    snapshot: Option<&dyn Snapshot>,
    bundle: &Bundle,
    options: &ExamineOptions,
    monitor: &mut dyn AddMonitor,
) -> Result<BundleImportResult> {
    let mut witness = BundleImportMonitor { monitor, cores: HashSet::new() };
    let summary = add::dry_run(snapshot, bundle.items(), options, &mut witness)?;
    let annotations = ImportedAnnotations::dry_run(snapshot, bundle, &witness.cores)?;
    Ok(BundleImportResult { summary, annotations, is_interrupted: false })
}

/// Returns the source paths that a bundle states.
fn source_paths(bundle: &Bundle) -> HashMap<(CoreHash, CaptureHash), SourcePath> {
    let artifacts = bundle.manifest().artifacts.iter();
    let captures =
        artifacts.flat_map(|artifact| artifact.captures.iter().map(|capture| (artifact.core_hash, capture)));
    let path = |(core, capture): (CoreHash, &BundledCapture)| {
        let path = SourcePath::new(OsStr::new(capture.source_path.as_deref()?))?;
        Some(((core, capture.capture_hash), path))
    };
    captures.filter_map(path).collect()
}

/// A monitor that collects what would be in the vault, and forwards all events.
struct BundleImportMonitor<'m> {
    monitor: &'m mut dyn AddMonitor,
    cores: HashSet<CoreHash>,
}

impl AddMonitor for BundleImportMonitor<'_> {
    fn examined(&mut self, examined: &ExaminedDocument) {
        if examined.outcome != DocumentOutcome::Rejected {
            self.cores.extend(examined.core_hash);
        }
        self.monitor.examined(examined);
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.monitor.unreadable(error);
    }
}

impl Vault {
    /// Adds the contents of a bundle, verified like all other artifacts, and its manual links.
    ///
    /// ```
    /// # use runvault::{Vault, vault::bundle, vault::add::{AddMonitor, ExaminedDocument}, intake::{ExamineOptions, SourceError}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Silent;
    /// # impl AddMonitor for Silent {
    /// #     fn examined(&mut self, _: &ExaminedDocument) {}
    /// #     fn unreadable(&mut self, _: &SourceError) {}
    /// # }
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let mut packed = Vec::new();
    /// vault.export(&bundle::BundleRequest::default(), &mut packed)?;
    ///
    /// let other = Vault::open_or_create(&directory.path().join("other.vault"))?;
    /// let options = ExamineOptions::default();
    /// let bundle = bundle::read(packed.as_slice(), "runs.rvz", options.admit.limits.bytes)?;
    /// let imported = other.import(&bundle, &options, &mut Silent)?;
    /// assert_eq!(imported.summary.added, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
    pub fn import(
        &self,
        bundle: &Bundle,
        options: &ExamineOptions,
        monitor: &mut dyn AddMonitor,
    ) -> Result<BundleImportResult> {
        let annotations = &CommonAnnotations::NONE;
        let options = BundleImportOptions { examine: options, annotations, is_stopped: &|| false };
        self.import_until(bundle, &options, monitor)
    }

    /// Adds the artifacts in `bundle` like [`Vault::import`], and then its links, tags, notes and labels, until it is
    /// stopped. What was stored until then stays; importing the bundle again continues.
    ///
    /// # Errors
    /// Same as [`Vault::import`].
    pub fn import_until(
        &self,
        bundle: &Bundle,
        options: &BundleImportOptions<'_>,
        monitor: &mut dyn AddMonitor,
    ) -> Result<BundleImportResult> {
        let (storage, is_interrupted) = (&*self.storage, AtomicBool::new(false));
        let BundleImportOptions { examine, annotations, is_stopped } = *options;
        let items = bundle.items().take_while(|_| {
            is_interrupted.fetch_or(is_stopped(), Ordering::Relaxed);
            !is_interrupted.load(Ordering::Relaxed)
        });
        let source_paths = if examine.without_source_path { HashMap::new() } else { source_paths(bundle) };
        let recorded = Recorded { annotations, source_paths: SourcePaths::Of(&source_paths) };
        let summary = add::add(storage, items, examine, recorded, monitor)?;
        let is_interrupted = is_interrupted.into_inner();
        let annotations = if is_interrupted {
            ImportedAnnotations::default()
        } else if storage.is_created() {
            ImportedAnnotations::set(storage, bundle)?
        } else {
            // Nothing was admitted, so there is nothing to link or tag.
            ImportedAnnotations::dry_run(None, bundle, &HashSet::new())?
        };
        Ok(BundleImportResult { summary, annotations, is_interrupted })
    }
}

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
