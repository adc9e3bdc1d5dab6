//! Import of the notes of a bundle into a vault.

use super::plan::carry_out;
use super::read::Bundle;
use crate::digest::CoreHash;
use crate::storage::{Annotation, Result, Snapshot, Storage};

/// A note of a bundle and its import result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedNote {
    /// The artifact.
    pub core: CoreHash,
    /// The text.
    pub note: String,
    /// The result.
    pub outcome: NoteOutcome,
}

/// The import result of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteOutcome {
    /// The note was set on the artifact.
    Set,
    /// The artifact already had it.
    Present,
    /// The artifact has another note in the vault, which was kept.
    Other,
    /// The artifact is not in the vault.
    Missing,
}

fn notes(bundle: &Bundle) -> impl Iterator<Item = (CoreHash, &str)> {
    let artifacts = bundle.manifest().artifacts.iter();
    artifacts.filter_map(|artifact| Some((artifact.core_hash, artifact.note.as_deref()?)))
}

/// Sets the notes of a bundle on the artifacts in the vault.
pub(super) fn give(storage: &dyn Storage, bundle: &Bundle) -> Result<Vec<ImportedNote>> {
    carry_out(
        storage,
        |snapshot| dry_run(Some(snapshot), bundle, |core| Ok(snapshot.artifact(core)?.is_some())),
        |note| note.outcome == NoteOutcome::Set,
        |change, notes| {
            notes.into_iter().try_for_each(|ImportedNote { core, note, .. }| {
                change.annotate(&Annotation::SetNote { core: *core, text: Some(note) }).map(drop)
            })
        },
    )
}

/// Returns what [`give`] would do if `is_there` returned which artifacts are in the vault.
pub(super) fn dry_run(
    snapshot: Option<&dyn Snapshot>,
    bundle: &Bundle,
    is_there: impl Fn(CoreHash) -> Result<bool>,
) -> Result<Vec<ImportedNote>> {
    let would = notes(bundle).map(|(core, note)| {
        let outcome = outcome(snapshot, core, note, is_there(core)?)?;
        Ok(ImportedNote { core, note: note.to_owned(), outcome })
    });
    would.collect()
}

fn outcome(
    snapshot: Option<&dyn Snapshot>,
    core: CoreHash,
    note: &str,
    is_there: bool,
) -> Result<NoteOutcome> {
    let known = match snapshot {
        Some(snapshot) => snapshot.annotations_of(core)?.note,
        None => None,
    };
    Ok(match known {
        Some(known) if known.text == note => NoteOutcome::Present,
        Some(_) => NoteOutcome::Other,
        None if is_there => NoteOutcome::Set,
        None => NoteOutcome::Missing,
    })
}
