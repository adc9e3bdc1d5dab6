//! Import of the notes of a bundle into a vault.

use super::read::Bundle;
use crate::clock;
use crate::digest::CoreHash;
use crate::storage::{Result, Snapshot, Store};

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
pub(super) fn give(store: &Store, bundle: &Bundle) -> Result<Vec<ImportedNote>> {
    if notes(bundle).next().is_none() {
        return Ok(Vec::new());
    }
    // Who changes nothing need not wait for those who write.
    let snapshot = store.snapshot()?;
    let planned = dry_run(Some(&snapshot), bundle, |core| Ok(snapshot.artifact(core)?.is_some()))?;
    if !planned.iter().any(|note| note.outcome == NoteOutcome::Set) {
        return Ok(planned);
    }
    drop(snapshot);
    let mut edit = store.edit(clock::now())?;
    let mut given = Vec::new();
    for (core, note) in notes(bundle) {
        let artifact = edit.snapshot().artifact(core)?;
        let outcome = outcome(Some(edit.snapshot()), core, note, artifact.is_some())?;
        if let (NoteOutcome::Set, Some(artifact)) = (outcome, artifact) {
            edit.set_note(&artifact, note)?;
        }
        given.push(ImportedNote { core, note: note.to_owned(), outcome });
    }
    edit.commit()?;
    Ok(given)
}

/// Returns what [`give`] would do if `is_there` returned which artifacts are in the vault.
pub(super) fn dry_run(
    snapshot: Option<&Snapshot<'_>>,
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
    snapshot: Option<&Snapshot<'_>>,
    core: CoreHash,
    note: &str,
    is_there: bool,
) -> Result<NoteOutcome> {
    let artifact = snapshot.map(|snapshot| snapshot.artifact(core)).transpose()?.flatten();
    let known = match (snapshot, artifact) {
        (Some(snapshot), Some(artifact)) => snapshot.note_of(artifact.id)?,
        _ => None,
    };
    Ok(match known {
        Some(known) if known.text == note => NoteOutcome::Present,
        Some(_) => NoteOutcome::Other,
        None if is_there => NoteOutcome::Set,
        None => NoteOutcome::Missing,
    })
}
