//! Shows the note of an artifact.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{Operation, Timestamp};
use super::handle::Vault;
use crate::digest::CoreHash;
use crate::storage::StorageError;

/// A request for the note of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// The artifact.
    pub artifact: CoreHash,
}

/// The note of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoteAnswer {
    /// The note; `None` if the artifact has none.
    pub note: Option<NoteSummary>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoteSummary {
    /// The core hash of the artifact.
    pub core_hash: CoreHash,
    /// The text.
    pub note: String,
    /// The time at which it was written.
    pub noted_at: Timestamp,
}

impl Operation for NoteRequest {
    type Answer = NoteAnswer;
    type Error = StorageError;

    const NAME: &'static str = "note";
    const SUMMARY: &'static str = "Show the note of an artifact";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<NoteAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let core_hash = snapshot.expect_artifact(self.artifact)?.core;
        let note = snapshot.annotations_of(core_hash)?.note;
        let note = note.map(|note| NoteSummary { core_hash, note: note.text, noted_at: note.at.into() });
        Ok(NoteAnswer { note })
    }
}
