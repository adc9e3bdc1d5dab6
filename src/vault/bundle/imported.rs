//! Import of the links, tags, notes and labels of a bundle into a vault.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::BundledLink;
use super::read::Bundle;
use crate::clock;
use crate::digest::CoreHash;
use crate::storage::{
    Annotation, BUSY_TIMEOUT, MAX_LABELS, ManualLink, Result, Snapshot, Storage, Transaction,
};
use crate::vault::resolve;

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

/// The reason that a tag, a note or a label of a bundle was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportObstacle {
    /// The artifact is not in the vault.
    MissingArtifact,
    /// Another artifact has the tag, or the artifact has another note or another value of the key, which was kept.
    Conflict,
    /// The tag could also be a hash or the id of a run in the vault.
    Reserved,
    /// The artifact has too many labels.
    TooMany,
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
    /// Why it was not set. It is not serialized.
    #[serde(skip)]
    pub obstacle: Option<ImportObstacle>,
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
    /// Why it was not set. It is not serialized.
    #[serde(skip)]
    pub obstacle: Option<ImportObstacle>,
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
    /// Why it was not set. It is not serialized.
    #[serde(skip)]
    pub obstacle: Option<ImportObstacle>,
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
        Ok(Self {
            links: carry_out(
                storage,
                bundle,
                planned_links,
                |link| link.outcome == ImportOutcome::Linked,
                |change, links| {
                    links.into_iter().try_for_each(|link| {
                        let ImportedLinkSummary { source, relation, target, note, .. } = link;
                        let (source, target, note) = (*source, *target, note.as_deref());
                        change.annotate(&Annotation::AddLink { source, relation, target, note }).map(drop)
                    })
                },
            )?,
            tags: carry_out(
                storage,
                bundle,
                planned_tags,
                |tag| tag.outcome == ImportOutcome::Tagged,
                |change, tags| {
                    tags.into_iter().try_for_each(|ImportedTagSummary { tag, core_hash, .. }| {
                        change.annotate(&Annotation::SetTag { core: *core_hash, name: tag }).map(drop)
                    })
                },
            )?,
            notes: carry_out(
                storage,
                bundle,
                planned_notes,
                |note| note.outcome == ImportOutcome::Noted,
                |change, notes| {
                    notes.into_iter().try_for_each(|ImportedNoteSummary { note, core_hash, .. }| {
                        let text = Some(note.as_str());
                        change.annotate(&Annotation::SetNote { core: *core_hash, text }).map(drop)
                    })
                },
            )?,
            labels: carry_out(
                storage,
                bundle,
                planned_labels,
                |label| label.outcome == ImportOutcome::Labeled,
                set_labels,
            )?,
        })
    }

    /// Returns what would be done with them in the vault in `snapshot`, or in a new one, if it also contained `cores`.
    pub(super) fn dry_run(
        snapshot: Option<&dyn Snapshot>,
        bundle: &Bundle,
        cores: &HashSet<CoreHash>,
    ) -> Result<Self> {
        let plan = AnnotationPlan { snapshot, bundle, cores };
        Ok(Self {
            links: planned_links(&plan)?,
            tags: planned_tags(&plan)?,
            notes: planned_notes(&plan)?,
            labels: planned_labels(&plan)?,
        })
    }
}

/// Sets labels. Artifacts with the same ones are labeled together.
fn set_labels(change: &mut dyn Transaction, imported: Vec<&ImportedLabelSummary>) -> Result<()> {
    let mut by_core: BTreeMap<CoreHash, BTreeMap<String, String>> = BTreeMap::new();
    for label in imported {
        by_core.entry(label.core_hash).or_default().insert(label.key.clone(), label.value.clone());
    }
    let mut groups: BTreeMap<BTreeMap<String, String>, Vec<CoreHash>> = BTreeMap::new();
    for (core, labels) in by_core {
        groups.entry(labels).or_default().push(core);
    }
    groups
        .iter()
        .try_for_each(|(labels, cores)| change.annotate(&Annotation::SetLabels { cores, labels }).map(drop))
}

/// Makes a plan and does it, in one transaction. Returns the plan, of which only those that satisfy `is_set` are done.
fn carry_out<T>(
    storage: &dyn Storage,
    bundle: &Bundle,
    plan: impl Fn(&AnnotationPlan<'_>) -> Result<Vec<T>>,
    is_set: impl Fn(&T) -> bool,
    set: impl FnOnce(&mut dyn Transaction, Vec<&T>) -> Result<()>,
) -> Result<Vec<T>> {
    let plan = |snapshot: &dyn Snapshot| {
        plan(&AnnotationPlan { snapshot: Some(snapshot), bundle, cores: &HashSet::new() })
    };
    // If nothing changes, there is no need to wait for other writers.
    let planned = plan(&*storage.snapshot()?)?;
    if !planned.iter().any(&is_set) {
        return Ok(planned);
    }
    let mut change = storage.transaction(clock::now(), BUSY_TIMEOUT)?;
    let planned = plan(change.snapshot())?;
    set(&mut *change, planned.iter().filter(|one| is_set(one)).collect())?;
    change.commit()?;
    Ok(planned)
}

/// What is to be done with what a bundle states of artifacts.
struct AnnotationPlan<'p> {
    /// The vault; `None` if it does not exist.
    snapshot: Option<&'p dyn Snapshot>,
    bundle: &'p Bundle,
    /// Artifacts that it is taken to contain as well.
    cores: &'p HashSet<CoreHash>,
}

impl AnnotationPlan<'_> {
    fn has(&self, core: CoreHash) -> Result<bool> {
        let is_stored = |snapshot: &dyn Snapshot| Ok(snapshot.artifact(core)?.is_some());
        if self.cores.contains(&core) { Ok(true) } else { self.snapshot.map_or(Ok(false), is_stored) }
    }
}

fn planned_links(plan: &AnnotationPlan<'_>) -> Result<Vec<ImportedLinkSummary>> {
    plan.bundle.manifest().links.iter().map(|link| planned_link(plan, link)).collect()
}

fn planned_link(plan: &AnnotationPlan<'_>, link: &BundledLink) -> Result<ImportedLinkSummary> {
    let mut missing = Vec::new();
    for end in [link.source, link.target] {
        if !plan.has(end)? {
            missing.push(end);
        }
    }
    let outcome = match (missing.is_empty(), plan.snapshot) {
        (false, _) => ImportOutcome::NotLinked,
        (true, Some(snapshot)) if has_manual_link(snapshot, link)? => ImportOutcome::Present,
        (true, _) => ImportOutcome::Linked,
    };
    let BundledLink { note, relation, source, target } = link.clone();
    Ok(ImportedLinkSummary { outcome, source, relation, target, note, missing })
}

fn planned_tags(plan: &AnnotationPlan<'_>) -> Result<Vec<ImportedTagSummary>> {
    let mut set: HashMap<&str, CoreHash> = HashMap::new();
    let mut planned = Vec::new();
    let artifacts = plan.bundle.manifest().artifacts.iter();
    for (tag, core_hash) in
        artifacts.flat_map(|artifact| artifact.tags.iter().map(|tag| (tag, artifact.core_hash)))
    {
        let tagged = plan.snapshot.map(|snapshot| snapshot.with_tag(tag)).transpose()?.flatten();
        let mut stands_for = None;
        let (outcome, obstacle) = match tagged.or_else(|| set.get(tag.as_str()).copied()) {
            Some(tagged) if tagged == core_hash => (ImportOutcome::Present, None),
            Some(tagged) => {
                stands_for = Some(tagged);
                (ImportOutcome::NotTagged, Some(ImportObstacle::Conflict))
            }
            None if resolve::reserved_for(plan.snapshot, tag)?.is_some() => {
                (ImportOutcome::NotTagged, Some(ImportObstacle::Reserved))
            }
            None if plan.has(core_hash)? => {
                set.insert(tag, core_hash);
                (ImportOutcome::Tagged, None)
            }
            None => (ImportOutcome::NotTagged, Some(ImportObstacle::MissingArtifact)),
        };
        planned.push(ImportedTagSummary { outcome, obstacle, tag: tag.clone(), core_hash, stands_for });
    }
    Ok(planned)
}

fn planned_notes(plan: &AnnotationPlan<'_>) -> Result<Vec<ImportedNoteSummary>> {
    let mut planned = Vec::new();
    for artifact in &plan.bundle.manifest().artifacts {
        let (Some(note), core_hash) = (artifact.note.clone(), artifact.core_hash) else { continue };
        let known = match plan.snapshot {
            Some(snapshot) => snapshot.annotations_of(core_hash)?.note,
            None => None,
        };
        let (outcome, obstacle) = match known {
            Some(known) if known.text == note => (ImportOutcome::Present, None),
            Some(_) => (ImportOutcome::NotNoted, Some(ImportObstacle::Conflict)),
            None if plan.has(core_hash)? => (ImportOutcome::Noted, None),
            None => (ImportOutcome::NotNoted, Some(ImportObstacle::MissingArtifact)),
        };
        planned.push(ImportedNoteSummary { outcome, obstacle, note, core_hash });
    }
    Ok(planned)
}

fn planned_labels(plan: &AnnotationPlan<'_>) -> Result<Vec<ImportedLabelSummary>> {
    let mut planned = Vec::new();
    for artifact in plan.bundle.manifest().artifacts.iter().filter(|artifact| !artifact.labels.is_empty()) {
        let core_hash = artifact.core_hash;
        let known = match plan.snapshot {
            Some(snapshot) => snapshot.annotations_of(core_hash)?.labels,
            None => Vec::new(),
        };
        let known: BTreeMap<String, String> =
            known.into_iter().map(|label| (label.key, label.value)).collect();
        let mut keys: BTreeSet<&String> = known.keys().collect();
        let is_there = plan.has(core_hash)?;
        for (key, value) in &artifact.labels {
            let obstacle = match known.get(key) {
                Some(known) => (known != value).then_some(ImportObstacle::Conflict),
                None if !is_there => Some(ImportObstacle::MissingArtifact),
                None if keys.len() >= MAX_LABELS => Some(ImportObstacle::TooMany),
                None => None,
            };
            let outcome = match obstacle {
                Some(_) => ImportOutcome::NotLabeled,
                None if known.contains_key(key) => ImportOutcome::Present,
                None => ImportOutcome::Labeled,
            };
            keys.extend((outcome == ImportOutcome::Labeled).then_some(key));
            let (key, value) = (key.clone(), value.clone());
            planned.push(ImportedLabelSummary { outcome, obstacle, key, value, core_hash });
        }
    }
    Ok(planned)
}

/// Returns whether the vault has the link, with any note.
fn has_manual_link(snapshot: &dyn Snapshot, link: &BundledLink) -> Result<bool> {
    let is_it = |known: ManualLink| {
        (known.source, known.relation.as_str(), known.target)
            == (link.source, link.relation.as_str(), link.target)
    };
    Ok(snapshot.manual_links_of(link.source)?.into_iter().any(is_it))
}
