//! Import of the labels of a bundle into a vault.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::carry_out;
use super::read::Bundle;
use crate::digest::CoreHash;
use crate::storage::{Annotation, MAX_LABELS, Result, Snapshot, Storage, Transaction};

/// A label of a bundle and its import result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedLabel {
    /// The artifact.
    pub core: CoreHash,
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The result.
    pub outcome: LabelOutcome,
}

/// The import result of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelOutcome {
    /// The label was set on the artifact.
    Set,
    /// The artifact already had it.
    Present,
    /// The artifact has another value of the key in the vault, which was kept.
    Other,
    /// The artifact has too many labels.
    TooMany,
    /// The artifact is not in the vault.
    Missing,
}

fn labels(bundle: &Bundle) -> impl Iterator<Item = (CoreHash, &BTreeMap<String, String>)> {
    let artifacts = bundle.manifest().artifacts.iter();
    let labels = artifacts.map(|artifact| (artifact.core_hash, &artifact.labels));
    labels.filter(|(_, labels)| !labels.is_empty())
}

/// Sets the labels of a bundle on the artifacts in the vault.
pub(super) fn give(storage: &dyn Storage, bundle: &Bundle) -> Result<Vec<ImportedLabel>> {
    carry_out(
        storage,
        |snapshot| dry_run(Some(snapshot), bundle, |core| Ok(snapshot.artifact(core)?.is_some())),
        |label| label.outcome == LabelOutcome::Set,
        set,
    )
}

fn set(change: &mut dyn Transaction, imported: Vec<&ImportedLabel>) -> Result<()> {
    // Artifacts with the same labels are labeled together.
    let mut by_core: BTreeMap<CoreHash, BTreeMap<String, String>> = BTreeMap::new();
    for label in imported {
        by_core.entry(label.core).or_default().insert(label.key.clone(), label.value.clone());
    }
    let mut groups: BTreeMap<BTreeMap<String, String>, Vec<CoreHash>> = BTreeMap::new();
    for (core, labels) in by_core {
        groups.entry(labels).or_default().push(core);
    }
    for (labels, cores) in &groups {
        change.annotate(&Annotation::SetLabels { cores, labels })?;
    }
    Ok(())
}

/// Returns what [`give`] would do if `is_there` returned which artifacts are in the vault.
pub(super) fn dry_run(
    snapshot: Option<&dyn Snapshot>,
    bundle: &Bundle,
    is_there: impl Fn(CoreHash) -> Result<bool>,
) -> Result<Vec<ImportedLabel>> {
    let mut planned = Vec::new();
    for (core, labels) in labels(bundle) {
        let known = match snapshot {
            Some(snapshot) => snapshot.annotations_of(core)?.labels,
            None => Vec::new(),
        };
        let known: BTreeMap<String, String> =
            known.into_iter().map(|label| (label.key, label.value)).collect();
        let mut keys: BTreeSet<&String> = known.keys().collect();
        let is_there = is_there(core)?;
        for (key, value) in labels {
            let outcome = match known.get(key) {
                Some(known) if known == value => LabelOutcome::Present,
                Some(_) => LabelOutcome::Other,
                None if !is_there => LabelOutcome::Missing,
                None if keys.len() >= MAX_LABELS => LabelOutcome::TooMany,
                None => LabelOutcome::Set,
            };
            if outcome == LabelOutcome::Set {
                keys.insert(key);
            }
            planned.push(ImportedLabel { core, key: key.clone(), value: value.clone(), outcome });
        }
    }
    Ok(planned)
}
