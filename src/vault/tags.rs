//! Lists tags.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{Operation, Timestamp};
use super::handle::Vault;
use crate::digest::CoreHash;
use crate::storage::StorageError;

/// A request for all tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TagsRequest {}

/// All tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagsAnswer {
    /// The tags, by name.
    pub tags: Vec<TagSummary>,
}

/// A tag and its artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagSummary {
    /// The tag.
    pub name: String,
    /// The core hash of the artifact.
    pub core_hash: CoreHash,
    /// The time at which the tag was set.
    pub tagged_at: Timestamp,
}

impl Operation for TagsRequest {
    type Answer = TagsAnswer;
    type Error = StorageError;

    const NAME: &'static str = "tags";
    const SUMMARY: &'static str = "List tags";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<TagsAnswer, StorageError> {
        let tags = vault.snapshot()?.tags()?.into_iter();
        let tags = tags.map(|(tag, artifact)| TagSummary {
            name: tag.name,
            core_hash: artifact.core,
            tagged_at: tag.at.into(),
        });
        Ok(TagsAnswer { tags: tags.collect() })
    }
}
