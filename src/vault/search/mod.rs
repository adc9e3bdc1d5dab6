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
use crate::artifact::{ArtifactLocation, Field, Passage};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{
    ArtifactRecord, Capability, ErrorKind, Filter, FoundPassage, Order, Page, Snapshot, Storage,
    StorageError, Terms, TimeBasis,
};

use indexer::capture_passages;

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

/// A full-text query.
#[derive(Clone, Debug)]
struct SearchQuery {
    /// The words.
    words: SearchExpression,
    /// The fields to search; all if empty.
    fields: Vec<Field>,
    /// The artifacts to search; all if `None`.
    among: Option<Filter>,
    /// Whether to return every passage or only the best of each artifact.
    grouping: PassageGrouping,
    /// Maximum number of hits.
    limit: usize,
    /// Approximate number of columns of a snippet.
    width: usize,
}

impl SearchQuery {
    /// Creates a query for `words` in all fields of all artifacts, for the best 20 artifacts.
    fn new(words: SearchExpression) -> Self {
        let grouping = PassageGrouping::Artifact;
        Self { words, fields: Vec::new(), among: None, grouping, limit: 20, width: WIDTH }
    }
}

/// A matching passage.
#[derive(Clone, Debug)]
struct SearchHit {
    /// The artifact.
    artifact: ArtifactRecord,
    /// The capture that the passage was read from.
    capture: CaptureHash,
    /// The field.
    field: Field,
    /// The unit of the location, such as `step`; empty if it is a pointer.
    unit: &'static str,
    /// The location.
    place: ArtifactLocation,
    /// The relevance score; higher is better. Scores of different queries cannot be compared.
    score: f64,
    /// Number of further matching passages of the artifact; 0 if all are listed.
    more: u64,
    /// The matching part of its text.
    snippet: Snippet,
}

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

/// Returns the passages in a snapshot that match, best first.
fn search_in(snapshot: &dyn Snapshot, query: &SearchQuery) -> Result<Vec<SearchHit>, SearchError> {
    let index = snapshot.full_text()?;
    if !index.search_index()?.ok_or(SearchError::NoIndex)?.is_current {
        return Err(SearchError::StaleIndex);
    }
    let among = query.among.as_ref().map(|among| ids(snapshot, among)).transpose()?;
    let terms = Terms { alternatives: query.words.alternatives().to_vec(), fields: query.fields.clone() };
    let found = index.search(&terms, among.as_deref(), query.grouping, query.limit)?;
    SearchHitBuilder { snapshot, terms, width: query.width }.hits(found)
}

fn ids(snapshot: &dyn Snapshot, among: &Filter) -> Result<Vec<CoreHash>, StorageError> {
    let found = snapshot.find(among, Order::Newest(TimeBasis::LastSeen), &Page::all())?.items;
    Ok(found.into_iter().map(|hit| hit.artifact.core).collect())
}

/// The inputs for building the hits.
struct SearchHitBuilder<'s> {
    snapshot: &'s dyn Snapshot,
    terms: Terms,
    width: usize,
}

impl SearchHitBuilder<'_> {
    /// Returns the hits in the order of `found`. Each capture is read once, however many hits it has.
    fn hits(&self, found: Vec<FoundPassage>) -> Result<Vec<SearchHit>, SearchError> {
        let mut by_capture: Vec<(usize, FoundPassage)> = found.into_iter().enumerate().collect();
        by_capture.sort_by_key(|(_, found)| (found.capture, found.artifact));
        let mut hits = Vec::new();
        // Artifacts of different kinds may have captures with the same hash.
        let is_same = |one: &FoundPassage, other: &FoundPassage| {
            (one.capture, one.artifact) == (other.capture, other.artifact)
        };
        for group in by_capture.chunk_by(|(_, one), (_, other)| is_same(one, other)) {
            let Some((_, first)) = group.first() else { continue };
            let artifact = self.snapshot.expect_artifact(first.artifact)?;
            let passages = capture_passages(self.snapshot, &artifact, first.capture)?;
            for (place, found) in group {
                let differs = || SearchError::Differs { core: artifact.core };
                let passage = passages.get(found.number).ok_or_else(differs)?;
                let hit = self.hit(found, &artifact, passage);
                hits.push((*place, hit.ok_or_else(differs)?));
            }
        }
        hits.sort_unstable_by_key(|(place, _)| *place);
        Ok(hits.into_iter().map(|(_, hit)| hit).collect())
    }

    /// Returns a hit if the passage matches its index entry.
    fn hit(&self, found: &FoundPassage, artifact: &ArtifactRecord, passage: &Passage) -> Option<SearchHit> {
        let matches = self.terms.matching_ranges(passage.field, &passage.text);
        matches.map(|matches| SearchHit {
            artifact: artifact.clone(),
            capture: found.capture,
            field: passage.field,
            unit: passage.unit,
            place: passage.place.clone(),
            score: found.score,
            more: found.more,
            snippet: Snippet::new(&passage.text, &matches, self.width),
        })
    }
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
