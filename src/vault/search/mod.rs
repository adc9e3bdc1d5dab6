//! Full-text search.
//!
//! Kinds define the texts of their artifacts, and the store keeps the index. This module keeps the index in sync with
//! the vault, parses queries, and reads the texts of the results from the documents.

mod index;
mod indexer;
mod request;
mod snippet;

use std::time::Duration;

use super::handle::Vault;
use crate::digest::CoreHash;
use crate::storage::{Capability, ErrorKind, Storage, StorageError};

pub use crate::storage::{PassageGrouping, SearchIndex};
pub(super) use index::compare;
pub use index::{
    BuildSearchIndexAnswer, BuildSearchIndexRequest, DropSearchIndexAnswer, DropSearchIndexRequest,
    SearchIndexAnswer, SearchIndexRequest,
};
pub use indexer::{IndexingProgress, IndexingResult};
pub(super) use indexer::{build, sync_index};
pub use request::{
    FieldMatch, MAX_TERMS, SearchAnswer, SearchExpression, SearchExpressionError, SearchRequest,
};
pub use snippet::{Snippet, WIDTH};

/// The reason that a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The vault has no index.
    #[error("the vault has no search index")]
    NoIndex,
    /// The index has another version than this program, and must be rebuilt.
    #[error("the search index was made by another version of this program, and must be rebuilt")]
    StaleIndex,
    /// The index does not match a document.
    #[error("the search index does not match {core}: its document does not contain the indexed text")]
    Differs {
        /// The artifact.
        core: CoreHash,
    },
    /// The words cannot be searched for.
    #[error(transparent)]
    Words(#[from] SearchExpressionError),
    /// No kind has a field with this name.
    #[error("there is no field {0}")]
    NoSuchField(String),
    /// A store error.
    #[error(transparent)]
    Store(#[from] StorageError),
}

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
        match sync_index(self.full_text()?, SHORT, watch) {
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
    fn full_text(&self) -> Result<&dyn Storage, StorageError> {
        self.storage.expect(Capability::FullText)?;
        Ok(&*self.storage)
    }
}
