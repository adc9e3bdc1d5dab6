//! Operations on the index of full-text search.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::indexer::{IndexingProgress, IndexingResult, build};
use crate::digest::CoreHash;
use crate::storage::StorageError;
use crate::vault::api::Operation;
use crate::vault::handle::Vault;

/// A request for the state of the search index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchIndexRequest {}

/// The state of the search index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchIndexAnswer {
    /// Whether its version is that of this program, which otherwise rebuilds it; `None` if there is no index.
    pub current: Option<bool>,
    /// Number of captures that are not indexed yet; `None` if there is no index.
    pub waiting: Option<u64>,
    /// Number of bytes that it takes in the vault, which depends on the engine; 0 if there is no index.
    pub bytes: u64,
}

impl Operation for SearchIndexRequest {
    type Answer = SearchIndexAnswer;
    type Error = StorageError;

    const NAME: &'static str = "search-index";
    const SUMMARY: &'static str = "Return the state of the search index";

    /// # Errors
    /// Returns an error if the vault cannot be read, or if its engine has no full-text search.
    fn run(&self, vault: &Vault) -> Result<SearchIndexAnswer, StorageError> {
        let snapshot = vault.full_text()?.snapshot()?;
        let snapshot = snapshot.full_text()?;
        let index = snapshot.search_index()?;
        Ok(SearchIndexAnswer {
            current: index.map(|index| index.is_current),
            waiting: index.map(|index| index.waiting),
            bytes: snapshot.search_index_size()?,
        })
    }
}

/// A request to build the search index, or to rebuild it. Others can use the vault during this. If it is interrupted, the
/// next search completes the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BuildSearchIndexRequest {}

/// A search index that was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BuildSearchIndexAnswer {
    /// Number of captures.
    pub captures: u64,
    /// The artifacts of captures with damaged bytes, which are in the index without passages.
    pub damaged: BTreeSet<CoreHash>,
    /// Number of damaged captures.
    pub damaged_captures: u64,
    /// Number of bytes that the index takes in the vault, which depends on the engine.
    pub bytes: u64,
}

impl Operation for BuildSearchIndexRequest {
    type Answer = BuildSearchIndexAnswer;
    type Error = StorageError;

    const NAME: &'static str = "build-search-index";
    const SUMMARY: &'static str = "Build the search index, or rebuild it";

    /// # Errors
    /// Returns an error if the vault cannot be read or written, or if its engine has no full-text search.
    fn run(&self, vault: &Vault) -> Result<BuildSearchIndexAnswer, StorageError> {
        self.run_watched(vault, &mut |_| {})
    }
}

impl BuildSearchIndexRequest {
    /// Runs the operation, and calls `watch` with its progress.
    ///
    /// # Errors
    /// Same as [`Operation::run`].
    pub fn run_watched(
        &self,
        vault: &Vault,
        watch: &mut dyn FnMut(IndexingProgress),
    ) -> Result<BuildSearchIndexAnswer, StorageError> {
        let IndexingResult { captures, damaged } = build(vault.full_text()?, watch)?;
        let SearchIndexAnswer { bytes, .. } = SearchIndexRequest {}.run(vault)?;
        let damaged_captures = damaged.len() as u64;
        Ok(BuildSearchIndexAnswer {
            captures,
            damaged: damaged.into_iter().collect(),
            damaged_captures,
            bytes,
        })
    }
}

/// A request to remove the search index. [`ReclaimRequest`](crate::vault::reclaim::ReclaimRequest) frees the space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DropSearchIndexRequest {}

/// The result of removing the search index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropSearchIndexAnswer {
    /// Whether there was an index.
    pub changed: bool,
}

impl Operation for DropSearchIndexRequest {
    type Answer = DropSearchIndexAnswer;
    type Error = StorageError;

    const NAME: &'static str = "drop-search-index";
    const SUMMARY: &'static str = "Remove the search index";

    /// # Errors
    /// Returns an error if the vault cannot be read or written, or if its engine has no full-text search.
    fn run(&self, vault: &Vault) -> Result<DropSearchIndexAnswer, StorageError> {
        Ok(DropSearchIndexAnswer { changed: vault.full_text()?.full_text()?.drop_index()? })
    }
}
