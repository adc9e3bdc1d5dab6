//! Merges the annotations that another vault or a bundle has of artifacts into a vault: each is set, unless the vault has
//! another one in its place.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::resolve;
use crate::clock;
use crate::digest::CoreHash;
use crate::storage::{
    Annotation, Annotations, BUSY_TIMEOUT, MAX_LABELS, ManualLink, Result, Snapshot, Storage, Transaction,
};

/// An annotation to merge.
#[derive(Clone, Copy)]
pub(super) enum MergedAnnotation<'a> {
    Tag { core: CoreHash, name: &'a str },
    Note { core: CoreHash, text: &'a str },
    Pin { core: CoreHash, note: Option<&'a str> },
    Label { core: CoreHash, key: &'a str, value: &'a str },
    Link { source: CoreHash, relation: &'a str, target: CoreHash, note: Option<&'a str> },
}

/// What becomes of an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MergeOutcome {
    /// It is set.
    Set,
    /// The vault has it.
    #[default]
    Present,
    /// These artifacts that it is of are not in the vault.
    Missing(Vec<CoreHash>),
    /// The vault has another one in its place, which is kept. If it is a tag, it is that of this artifact.
    Conflict(Option<CoreHash>),
    /// The tag could also be a hash or the id of a run in the vault.
    Reserved,
    /// The artifact has too many labels.
    TooMany,
}

/// Sets annotations in one transaction.
pub(super) fn merge(
    storage: &dyn Storage,
    annotations: &[MergedAnnotation<'_>],
) -> Result<Vec<MergeOutcome>> {
    let plan = |snapshot: &dyn Snapshot| plan(Some(snapshot), &HashSet::new(), annotations);
    // If nothing changes, there is no need to wait for other writers.
    let outcomes = plan(&*storage.snapshot()?)?;
    if !outcomes.contains(&MergeOutcome::Set) {
        return Ok(outcomes);
    }
    let mut change = storage.transaction(clock::now(), BUSY_TIMEOUT)?;
    let outcomes = plan(change.snapshot())?;
    let planned = annotations.iter().zip(&outcomes);
    let to_set = planned.filter(|(_, outcome)| **outcome == MergeOutcome::Set);
    set(&mut *change, to_set.map(|(annotation, _)| annotation))?;
    change.commit()?;
    Ok(outcomes)
}

/// Sets annotations. Artifacts with the same labels are labeled together.
fn set<'a>(
    change: &mut dyn Transaction,
    annotations: impl Iterator<Item = &'a MergedAnnotation<'a>>,
) -> Result<()> {
    let mut by_core: BTreeMap<CoreHash, BTreeMap<String, String>> = BTreeMap::new();
    for annotation in annotations {
        let annotation = match *annotation {
            MergedAnnotation::Tag { core, name } => Annotation::SetTag { core, name },
            MergedAnnotation::Note { core, text } => Annotation::SetNote { core, text: Some(text) },
            MergedAnnotation::Pin { core, note } => Annotation::Pin { core, note },
            MergedAnnotation::Link { source, relation, target, note } => {
                Annotation::AddLink { source, relation, target, note }
            }
            MergedAnnotation::Label { core, key, value } => {
                by_core.entry(core).or_default().insert(key.to_owned(), value.to_owned());
                continue;
            }
        };
        change.annotate(&annotation)?;
    }
    let mut groups: BTreeMap<BTreeMap<String, String>, Vec<CoreHash>> = BTreeMap::new();
    for (core, labels) in by_core {
        groups.entry(labels).or_default().push(core);
    }
    groups
        .iter()
        .try_for_each(|(labels, cores)| change.annotate(&Annotation::SetLabels { cores, labels }).map(drop))
}

/// Returns what would become of annotations in the vault in `snapshot`, or in a new one, if it also contained `cores`.
pub(super) fn plan(
    snapshot: Option<&dyn Snapshot>,
    cores: &HashSet<CoreHash>,
    annotations: &[MergedAnnotation<'_>],
) -> Result<Vec<MergeOutcome>> {
    let mut vault = MergeTarget { snapshot, ..MergeTarget::default() };
    vault.read(annotations)?;
    for core in cores {
        vault.artifacts.entry(*core).or_default();
    }
    annotations.iter().map(|annotation| vault.plan(annotation)).collect()
}

impl MergedAnnotation<'_> {
    /// Returns the artifacts that it is of.
    fn ends(&self) -> Vec<CoreHash> {
        match *self {
            Self::Tag { core, .. }
            | Self::Note { core, .. }
            | Self::Pin { core, .. }
            | Self::Label { core, .. } => vec![core],
            Self::Link { source, target, .. } => vec![source, target],
        }
    }
}

/// What a vault has in the place of annotations, with those that are planned.
#[derive(Default)]
struct MergeTarget<'s> {
    /// The vault; `None` if it does not exist.
    snapshot: Option<&'s dyn Snapshot>,
    /// The artifacts that it has, with their annotations.
    artifacts: HashMap<CoreHash, Annotations>,
    tags: HashMap<String, CoreHash>,
    /// The notes of links, by source, relation and target.
    links: HashMap<(CoreHash, String, CoreHash), Option<String>>,
    /// The number of planned labels of each artifact.
    labels: HashMap<CoreHash, usize>,
}

impl MergeTarget<'_> {
    fn read(&mut self, annotations: &[MergedAnnotation<'_>]) -> Result<()> {
        let Some(snapshot) = self.snapshot.filter(|_| !annotations.is_empty()) else { return Ok(()) };
        let ends: BTreeSet<CoreHash> = annotations.iter().flat_map(MergedAnnotation::ends).collect();
        let stored = snapshot.artifacts(&Vec::from_iter(ends))?.into_iter().flatten();
        let stored: Vec<CoreHash> = stored.map(|artifact| artifact.core).collect();
        self.artifacts = stored.iter().copied().zip(snapshot.annotations(&stored)?).collect();
        let (mut names, mut sources) = (Vec::new(), BTreeSet::new());
        for annotation in annotations {
            match annotation {
                MergedAnnotation::Tag { name, .. } => names.push((*name).to_owned()),
                MergedAnnotation::Link { source, .. } => sources.extend(Some(*source)),
                _ => {}
            }
        }
        let tagged = names.iter().cloned().zip(snapshot.tagged(&names)?);
        self.tags = tagged.filter_map(|(name, core)| Some((name, core?))).collect();
        let links = snapshot.manual_links(&Vec::from_iter(sources))?.into_iter().flatten();
        let keyed =
            links.map(|ManualLink { source, relation, target, note }| ((source, relation, target), note));
        self.links = keyed.collect();
        Ok(())
    }

    /// Returns what becomes of an annotation after those planned before it.
    fn plan(&mut self, annotation: &MergedAnnotation<'_>) -> Result<MergeOutcome> {
        let outcome = self.outcome(annotation)?;
        if outcome != MergeOutcome::Set {
            return Ok(outcome);
        }
        let ends = annotation.ends().into_iter();
        let missing: Vec<CoreHash> = ends.filter(|end| !self.artifacts.contains_key(end)).collect();
        if !missing.is_empty() {
            return Ok(MergeOutcome::Missing(missing));
        }
        match *annotation {
            MergedAnnotation::Tag { core, name } => drop(self.tags.insert(name.to_owned(), core)),
            MergedAnnotation::Label { core, .. } => *self.labels.entry(core).or_default() += 1,
            _ => {}
        }
        Ok(outcome)
    }

    /// Returns what becomes of an annotation of artifacts that the vault has.
    fn outcome(&self, annotation: &MergedAnnotation<'_>) -> Result<MergeOutcome> {
        // Whether there is none, the same one, or another one.
        let compared = |is_same: Option<bool>| match is_same {
            None => MergeOutcome::Set,
            Some(true) => MergeOutcome::Present,
            Some(false) => MergeOutcome::Conflict(None),
        };
        let of = |core: &CoreHash| self.artifacts.get(core);
        Ok(match annotation {
            MergedAnnotation::Tag { core, name } => match self.tags.get(*name) {
                Some(tagged) if tagged == core => MergeOutcome::Present,
                Some(tagged) => MergeOutcome::Conflict(Some(*tagged)),
                None if resolve::reserved_for(self.snapshot, name)?.is_some() => MergeOutcome::Reserved,
                None => MergeOutcome::Set,
            },
            MergedAnnotation::Note { core, text } => {
                compared(of(core).and_then(|known| known.note.as_ref()).map(|note| note.text == *text))
            }
            MergedAnnotation::Pin { core, .. } => {
                compared(of(core).and_then(|known| known.pin.as_ref()).map(|_| true))
            }
            MergedAnnotation::Label { core, key, value } => {
                let labels = of(core).map(|known| known.labels.as_slice()).unwrap_or_default();
                let known = labels.iter().find(|label| label.key == *key);
                let count = labels.len() + self.labels.get(core).copied().unwrap_or_default();
                match known {
                    None if count >= MAX_LABELS => MergeOutcome::TooMany,
                    known => compared(known.map(|known| known.value == *value)),
                }
            }
            MergedAnnotation::Link { source, relation, target, note } => {
                let known = self.links.get(&(*source, (*relation).to_owned(), *target));
                compared(known.map(|known| known.as_deref() == *note))
            }
        })
    }
}
