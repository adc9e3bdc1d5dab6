//! Full-text search and its index.

use std::time::Duration;

use crate::storage::{Capability, Storage, StorageError};
use crate::vault::handle::Vault;
use crate::vault::search::{self, IndexingProgress, IndexingResult, SearchError, SearchIndex};

/// How long a search waits for writers.
const SHORT: Duration = Duration::from_secs(1);

/// The state of the search index after an update.
#[derive(Debug)]
pub struct SearchIndexUpdate {
    /// Counts of what was indexed; zero if there was a hindrance.
    pub indexed: IndexingResult,
    /// The reason why the index does not contain everything in the vault, if any.
    pub hindrance: Option<StorageError>,
}

impl Vault {
    /// Adds new captures to the search index as far as possible without waiting for other writers: at most about a
    /// second for each batch. Reading must not depend on writing.
    ///
    /// # Errors
    /// Returns [`SearchError::NoIndex`] if there is no index, and [`SearchError::Store`] if the index cannot be read.
    pub fn catch_up_search(
        &self,
        watch: &mut dyn FnMut(IndexingProgress),
    ) -> Result<SearchIndexUpdate, SearchError> {
        match search::sync_index(self.full_text()?, SHORT, watch) {
            Ok(indexed) => {
                Ok(SearchIndexUpdate { indexed: indexed.ok_or(SearchError::NoIndex)?, hindrance: None })
            }
            Err(error)
                if error.is_transient() && self.search_index()?.is_some_and(|index| index.is_current) =>
            {
                Ok(SearchIndexUpdate { indexed: IndexingResult::default(), hindrance: Some(error) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the search index; `None` if the vault has none.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn search_index(&self) -> Result<Option<SearchIndex>, StorageError> {
        self.full_text()?.snapshot()?.full_text()?.search_index()
    }

    /// Returns the search index, `None` if the vault has none, and the number of bytes that it takes in the vault's file.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn search_index_with_size(&self) -> Result<(Option<SearchIndex>, u64), StorageError> {
        let snapshot = self.full_text()?.snapshot()?;
        let snapshot = snapshot.full_text()?;
        Ok((snapshot.search_index()?, snapshot.search_index_size()?))
    }

    /// Returns the number of bytes that the search index takes in the vault's file; 0 if there is none.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn search_index_size(&self) -> Result<u64, StorageError> {
        self.search_index_with_size().map(|(_, bytes)| bytes)
    }

    /// Builds the search index, replacing any existing one. Others can use the vault during this. If it is interrupted,
    /// the next search completes the index.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn build_search(
        &self,
        watch: &mut dyn FnMut(IndexingProgress),
    ) -> Result<IndexingResult, StorageError> {
        search::build(self.full_text()?, watch)
    }

    /// Returns the storage, if it has a full-text index.
    pub(super) fn full_text(&self) -> Result<&dyn Storage, StorageError> {
        self.storage.expect(Capability::FullText)?;
        Ok(&*self.storage)
    }

    /// Removes the search index; returns false if there is none. [`ReclaimRequest`](crate::vault::reclaim::ReclaimRequest) frees the space.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn drop_search(&self) -> Result<bool, StorageError> {
        self.full_text()?.full_text()?.drop_index()
    }
}
