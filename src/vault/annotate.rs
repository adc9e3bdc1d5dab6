//! Sets and removes tags, notes, pins, labels and manual links.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Vault, resolve};
use crate::clock;
use crate::digest::CoreHash;
use crate::storage::{Annotation, BUSY_TIMEOUT, StorageError};

/// The result of a change to an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnnotateAnswer {
    /// Whether the vault changed; false if it already was as requested.
    pub changed: bool,
}

/// A request to set a tag on an artifact. A tag that another artifact has is moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetTagRequest {
    /// The artifact.
    pub core_hash: CoreHash,
    /// The tag.
    pub name: String,
}

/// The result of setting a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetTagAnswer {
    /// Whether the vault changed; false if the artifact already has the tag.
    pub changed: bool,
    /// The other artifact that had the tag before, if there was one.
    pub moved_from: Option<CoreHash>,
}

/// A request to remove a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveTagRequest {
    /// The tag.
    pub name: String,
}

/// A request to set the note of an artifact. It replaces any other note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetNoteRequest {
    /// The artifact.
    pub core_hash: CoreHash,
    /// The text.
    pub text: String,
}

/// A request to remove the note of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveNoteRequest {
    /// The artifact.
    pub core_hash: CoreHash,
}

/// A request to protect an artifact from removal. It replaces the note of an existing pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// The artifact.
    pub core_hash: CoreHash,
    /// The reason. A blank one is as none.
    pub note: Option<String>,
}

/// A request to remove the pin of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnpinRequest {
    /// The artifact.
    pub core_hash: CoreHash,
}

/// A request to set labels on artifacts. They replace the values of the same keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLabelsRequest {
    /// The artifacts.
    pub core_hashes: Vec<CoreHash>,
    /// The labels, by key.
    pub labels: BTreeMap<String, String>,
}

/// A request to remove labels from artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveLabelsRequest {
    /// The artifacts.
    pub core_hashes: Vec<CoreHash>,
    /// The keys of the labels.
    pub keys: BTreeSet<String>,
}

/// A request to add a manual link. It replaces the note of an existing link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddLinkRequest {
    /// The source artifact.
    pub source: CoreHash,
    /// The relation.
    pub relation: String,
    /// The target artifact.
    pub target: CoreHash,
    /// The reason. A blank one is as none.
    pub note: Option<String>,
}

/// A request to remove a manual link. Derived links cannot be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveLinkRequest {
    /// The source artifact.
    pub source: CoreHash,
    /// The relation.
    pub relation: String,
    /// The target artifact.
    pub target: CoreHash,
}

impl SetTagRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault,
    /// [`Invalid`](crate::storage::ErrorKind::Invalid) if the tag is not valid, or if it could also be a hash, `latest` or
    /// the id of a run in the vault, and another one if the vault cannot be read or written.
    pub fn run(&self, vault: &Vault) -> Result<SetTagAnswer, StorageError> {
        let mut change = vault.storage.transaction(clock::now(), BUSY_TIMEOUT)?;
        let before = change.snapshot().with_tag(&self.name)?;
        if let Some(reason) = resolve::reserved_for(Some(change.snapshot()), &self.name)? {
            return Err(StorageError::invalid(format!("{} cannot be a tag: {reason}", self.name)));
        }
        let changed = change.annotate(&Annotation::SetTag { core: self.core_hash, name: &self.name })?;
        if changed {
            change.commit()?;
        }
        Ok(SetTagAnswer { changed, moved_from: before.filter(|before| *before != self.core_hash) })
    }
}

/// Implements operations that make a single change.
macro_rules! changes {
    ($($request:ident: |$this:ident| $annotation:expr;)+) => {$(
        impl $request {
            /// Runs the operation.
            ///
            /// # Errors
            /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if an artifact is not in the
            /// vault, [`Invalid`](crate::storage::ErrorKind::Invalid) if the text is not valid, and another one if the
            /// vault cannot be read or written.
            pub fn run(&self, vault: &Vault) -> Result<AnnotateAnswer, StorageError> {
                let $this = self;
                annotate(vault, &$annotation)
            }
        }
    )+};
}

changes! {
    RemoveTagRequest: |it| Annotation::RemoveTag { name: &it.name };
    SetNoteRequest: |it| Annotation::SetNote { core: it.core_hash, text: Some(&it.text) };
    RemoveNoteRequest: |it| Annotation::SetNote { core: it.core_hash, text: None };
    PinRequest: |it| Annotation::Pin { core: it.core_hash, note: unless_blank(it.note.as_ref()) };
    UnpinRequest: |it| Annotation::Unpin { core: it.core_hash };
    SetLabelsRequest: |it| Annotation::SetLabels { cores: &it.core_hashes, labels: &it.labels };
    RemoveLabelsRequest: |it| Annotation::RemoveLabels { cores: &it.core_hashes, keys: &it.keys };
    AddLinkRequest: |it| Annotation::AddLink {
        source: it.source,
        relation: &it.relation,
        target: it.target,
        note: unless_blank(it.note.as_ref()),
    };
    RemoveLinkRequest: |it| Annotation::RemoveLink { source: it.source, relation: &it.relation, target: it.target };
}

/// Returns a note unless it is blank.
fn unless_blank(note: Option<&String>) -> Option<&str> {
    note.map(String::as_str).filter(|note| !note.trim().is_empty())
}

fn annotate(vault: &Vault, annotation: &Annotation<'_>) -> Result<AnnotateAnswer, StorageError> {
    let mut change = vault.storage.transaction(clock::now(), BUSY_TIMEOUT)?;
    let changed = change.annotate(annotation)?;
    if changed {
        change.commit()?;
    }
    Ok(AnnotateAnswer { changed })
}
