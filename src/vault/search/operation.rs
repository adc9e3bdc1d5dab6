//! Full-text search and its index.

use std::time::Duration;

use crate::storage::{Capability, ErrorKind, Storage, StorageError};
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
    /// second for each batch. Reading must not depend on writing. Builds the index if there is none.
    ///
    /// # Errors
    /// Returns [`SearchError::NoIndex`] if there is no index, and [`SearchError::StaleIndex`] if it must be rebuilt, in a
    /// vault that cannot be written; and [`SearchError::Store`] if the index cannot be read.
    pub fn catch_up_search(
        &self,
        watch: &mut dyn FnMut(IndexingProgress),
    ) -> Result<SearchIndexUpdate, SearchError> {
        match search::sync_index(self.full_text()?, SHORT, watch) {
            Ok(indexed) => Ok(SearchIndexUpdate { indexed, hindrance: None }),
            Err(error) if error.is_transient() => match self.search_index()? {
                Some(index) if index.is_current => {
                    Ok(SearchIndexUpdate { indexed: IndexingResult::default(), hindrance: Some(error) })
                }
                Some(_) if error.kind() == ErrorKind::ReadOnly => Err(SearchError::StaleIndex),
                None if error.kind() == ErrorKind::ReadOnly => Err(SearchError::NoIndex),
                _ => Err(error.into()),
            },
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

    /// Returns the storage, if it has a full-text index.
    pub(super) fn full_text(&self) -> Result<&dyn Storage, StorageError> {
        self.storage.expect(Capability::FullText)?;
        Ok(&*self.storage)
    }
}
