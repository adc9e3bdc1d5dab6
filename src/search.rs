//! Full-text search: words in, passages out.
//!
//! Kinds say which texts their artifacts have, and the store keeps which words are where. Here, the index is brought in step
//! with the vault, questions are understood, and the texts of the answers are read from the documents again.

mod compare;
mod keep;
mod passages;
mod snippet;
mod words;

use std::collections::BTreeSet;

use crate::artifact::{Field, Passage, Place};
use crate::digest::{CaptureHash, CoreHash};
use crate::query::{self, Query};
use crate::store::{ArtifactId, ArtifactRow, FoundPassage, Matcher, Snapshot, Store, StoreError, Terms};

pub use crate::store::{Grouping, SearchIndex};
pub use compare::compare;
pub use keep::{Indexed, Progress, bring_in_step, bring_in_step_within, build};
use passages::of_capture;
pub use snippet::{Snippet, WIDTH};
pub use words::{MAX_TERMS, Words, WordsError};

/// What to look for.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The words.
    pub words: Words,
    /// In which fields; in any if there are none.
    pub fields: Vec<Field>,
    /// Among which artifacts; among all if not given. Its order and limit do not count.
    pub among: Option<Query>,
    /// Whether every passage counts or only the best of each artifact.
    pub grouping: Grouping,
    /// How many hits at most.
    pub limit: usize,
    /// About so many characters of a passage are given.
    pub width: usize,
}

impl SearchQuery {
    /// Looks for `words` everywhere; the best 20 artifacts.
    #[must_use]
    pub fn new(words: Words) -> Self {
        let grouping = Grouping::Artifact;
        Self { words, fields: Vec::new(), among: None, grouping, limit: 20, width: WIDTH }
    }
}

/// A passage that matches.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// The capture that the passage was read from.
    pub capture: CaptureHash,
    /// What sort of text it is.
    pub field: Field,
    /// What the place counts, such as `step`; empty where it is a pointer.
    pub unit: &'static str,
    /// Where it stands.
    pub place: Place,
    /// How well it matches: more is better. Scores of different questions cannot be compared.
    pub score: f64,
    /// How many more passages of the artifact match; 0 if all are listed.
    pub more: u64,
    /// What it says where it matches.
    pub snippet: Snippet,
}

/// Why nothing could be looked for.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The vault has no index.
    #[error("the vault has no search index")]
    NoIndex,
    /// The index and a document say different things.
    #[error("the search index does not match {core}: its document does not contain what the index has")]
    Differs {
        /// The artifact.
        core: CoreHash,
    },
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The passages that match, the best first.
///
/// # Errors
/// [`SearchError::NoIndex`], [`SearchError::Differs`], or what the store says.
pub fn search(store: &Store, query: &SearchQuery) -> Result<Vec<SearchHit>, SearchError> {
    let snapshot = store.snapshot()?;
    if !snapshot.search_index()?.is_some_and(|index| index.is_current) {
        return Err(SearchError::NoIndex);
    }
    let among = query.among.as_ref().map(|among| ids(&snapshot, among)).transpose()?;
    let terms = Terms { alternatives: query.words.alternatives().to_vec(), fields: query.fields.clone() };
    let found = snapshot.search(&terms, among.as_ref(), query.grouping, query.limit)?;
    Answer { snapshot, matcher: store.matcher()?, terms, width: query.width }.hits(found)
}

fn ids(snapshot: &Snapshot<'_>, among: &Query) -> Result<BTreeSet<ArtifactId>, StoreError> {
    let all = Query { limit: None, ..among.clone() };
    Ok(query::find(snapshot, &all)?.into_iter().map(|hit| hit.artifact.id).collect())
}

/// What hits are made with.
struct Answer<'s> {
    snapshot: Snapshot<'s>,
    matcher: Matcher,
    terms: Terms,
    width: usize,
}

impl Answer<'_> {
    /// The hits, in the order of what was found. Each capture is read once, however many hits it has.
    fn hits(&self, found: Vec<FoundPassage>) -> Result<Vec<SearchHit>, SearchError> {
        let mut by_capture: Vec<(usize, FoundPassage)> = found.into_iter().enumerate().collect();
        by_capture.sort_by_key(|(_, found)| (found.capture, found.artifact));
        let mut hits = Vec::new();
        // Artifacts of different kinds may have captures with one hash.
        let is_same = |one: &FoundPassage, other: &FoundPassage| {
            (one.capture, one.artifact) == (other.capture, other.artifact)
        };
        for group in by_capture.chunk_by(|(_, one), (_, other)| is_same(one, other)) {
            let Some((_, first)) = group.first() else { continue };
            let artifact = self.snapshot.artifact_by_id(first.artifact)?;
            let passages = of_capture(&self.snapshot, &artifact, first.capture)?;
            for (place, found) in group {
                let differs = || SearchError::Differs { core: artifact.core };
                let passage = passages.get(found.number).ok_or_else(differs)?;
                let hit = self.hit(found, &artifact, passage)?;
                hits.push((*place, hit.ok_or_else(differs)?));
            }
        }
        hits.sort_by_key(|(place, _)| *place);
        Ok(hits.into_iter().map(|(_, hit)| hit).collect())
    }

    /// A hit, if the passage says what the index has of it.
    fn hit(
        &self,
        found: &FoundPassage,
        artifact: &ArtifactRow,
        passage: &Passage,
    ) -> Result<Option<SearchHit>, StoreError> {
        let matches = self.matcher.matches(&self.terms, passage.field, &passage.text)?;
        Ok(matches.map(|matches| SearchHit {
            artifact: artifact.clone(),
            capture: found.capture,
            field: passage.field,
            unit: passage.unit,
            place: passage.place.clone(),
            score: found.score,
            more: found.more,
            snippet: Snippet::of(&passage.text, &matches, self.width),
        }))
    }
}
