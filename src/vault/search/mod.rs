//! Full-text search, and snippets: the part of a passage that matches.
//!
//! Kinds define the texts of their artifacts, and the store keeps the index. This module keeps the index in sync with the
//! vault, parses queries, and reads the texts of the results from the documents.

mod indexer;
mod request;

pub use crate::storage::{PassageGrouping, SearchIndex};
pub use indexer::{
    BuildSearchIndexAnswer, BuildSearchIndexRequest, DropSearchIndexAnswer, DropSearchIndexRequest,
    IndexingProgress, IndexingResult, SearchIndexAnswer, SearchIndexRequest,
};
pub(super) use indexer::{build, compare, sync_index};
pub use request::{
    FieldMatch, MAX_TERMS, SearchAnswer, SearchExpression, SearchExpressionError, SearchRequest,
};

use std::ops::Range;
use std::time::Duration;

use super::Vault;
use crate::digest::CoreHash;
use crate::display::columns;
use crate::storage::{Capability, ErrorKind, Storage, StorageError};

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

/// Default width of a snippet, in columns (approximate).
pub const WIDTH: usize = 160;

/// Maximum part of the width before the first match, as a divisor: the text that follows is more relevant.
const LEAD: usize = 4;

/// A word that crosses the edge is dropped completely, unless it is longer than this.
const LONGEST_WORD: usize = 24;

/// A part of a passage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text, as in the passage.
    pub text: String,
    /// The matches in the text, as character ranges in order.
    pub highlights: Vec<Range<usize>>,
    /// Whether the passage continues before it.
    pub is_cut_before: bool,
    /// Whether the passage continues after it.
    pub is_cut_after: bool,
}

impl Snippet {
    /// Returns the part of `text` with the most of `matches`, which are byte ranges in order: `width` columns of a
    /// terminal, or slightly fewer to keep words whole.
    #[must_use]
    pub fn new(text: &str, matches: &[Range<usize>], width: usize) -> Self {
        let characters: Vec<(usize, char)> = text.char_indices().collect();
        let at = |byte: usize| characters.partition_point(|(start, _)| *start < byte);
        let matches: Vec<Range<usize>> = matches.iter().map(|range| at(range.start)..at(range.end)).collect();
        let window = window(&characters, &matches, width.max(1));
        let highlights = matches.iter().filter_map(|range| {
            let inside = range.start.max(window.start)..range.end.min(window.end);
            (inside.start < inside.end).then(|| inside.start - window.start..inside.end - window.start)
        });
        let shown = characters.get(window.clone()).unwrap_or_default();
        Self {
            text: shown.iter().map(|(_, character)| character).collect(),
            highlights: highlights.collect(),
            is_cut_before: window.start > 0,
            is_cut_after: window.end < characters.len(),
        }
    }
}

/// Returns the range of characters to show.
fn window(characters: &[(usize, char)], matches: &[Range<usize>], width: usize) -> Range<usize> {
    let all = characters.len();
    let layout = ColumnLayout::new(characters);
    if layout.before(all) <= width {
        return 0..all;
    }
    let best = densest(matches, &layout, width - width / LEAD);
    let mut start = layout.first_within(width / LEAD, best).min(layout.first_within(width, all));
    let last = layout.last_within(width, start);
    // A character can be wider than the snippet.
    let mut end = last.max(start + 1).min(all);
    // The best match stays, even if words at the edges are cut off.
    let is_word = |at: usize| characters.get(at).is_some_and(|(_, character)| !character.is_whitespace());
    if start > 0 && is_word(start - 1) {
        let limit = best.min(start + LONGEST_WORD);
        let next = (start..limit).find(|at| !is_word(*at)).map(|at| at + 1);
        start = next.unwrap_or(start);
    }
    if end < all && is_word(end) {
        let last = matches.iter().rfind(|range| range.end <= end).map_or(0, |range| range.end);
        let limit = last.max(end.saturating_sub(LONGEST_WORD)).max(start + 1).max(best + 1);
        end = (limit..end).rfind(|at| !is_word(*at)).unwrap_or(end);
    }
    start..end
}

/// The columns before each character of a text, and those of all.
struct ColumnLayout(Vec<usize>);

impl ColumnLayout {
    fn new(characters: &[(usize, char)]) -> Self {
        let mut used = 0;
        let ends = characters.iter().map(|(_, character)| {
            used += columns(*character);
            used
        });
        Self(std::iter::once(0).chain(ends).collect())
    }

    /// Returns the number of columns before the character `at`.
    fn before(&self, at: usize) -> usize {
        self.0.get(at).or(self.0.last()).copied().unwrap_or_default()
    }

    /// Returns the first character from which there are at most `most` columns to the character `to`.
    fn first_within(&self, most: usize, to: usize) -> usize {
        self.0.partition_point(|columns| columns + most < self.before(to))
    }

    /// Returns the last character to which there are at most `most` columns from the character `from`.
    fn last_within(&self, most: usize, from: usize) -> usize {
        self.0.partition_point(|columns| *columns <= self.before(from) + most).saturating_sub(1)
    }
}

/// Returns the start of the first match that has the most others within `width` columns after it.
fn densest(matches: &[Range<usize>], layout: &ColumnLayout, width: usize) -> usize {
    let mut best = (0, 0);
    for (number, first) in matches.iter().enumerate() {
        let within =
            matches.partition_point(|range| layout.before(range.end) <= layout.before(first.start) + width);
        let count = within.saturating_sub(number);
        if count > best.0 || number == 0 {
            best = (count, first.start);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn highlighted_snippet(text: &str, words: &[&str], width: usize) -> String {
        let mut matches: Vec<Range<usize>> = words
            .iter()
            .flat_map(|word| text.match_indices(word))
            .map(|(at, word)| at..at + word.len())
            .collect();
        matches.sort_by_key(|range| range.start);
        let snippet = Snippet::new(text, &matches, width);
        let mut marked = String::new();
        for (at, character) in snippet.text.chars().enumerate() {
            marked.extend(snippet.highlights.iter().any(|range| range.start == at).then_some('['));
            marked.push(character);
            marked.extend(snippet.highlights.iter().any(|range| range.end == at + 1).then_some(']'));
        }
        let mark = |is_cut: bool| if is_cut { "…" } else { "" };
        format!("{}{marked}{}", mark(snippet.is_cut_before), mark(snippet.is_cut_after))
    }

    #[test]
    fn the_part_with_the_most_matches_is_shown_in_whole_words() {
        assert_eq!(highlighted_snippet("a refund is due", &["refund"], 40), "a [refund] is due");
        let text = "First the refund was denied. Then, much later and after many calls, the refund was \
                    approved, and the refund was paid to the card that was charged.";
        assert_eq!(
            highlighted_snippet(text, &["refund"], 60),
            "…calls, the [refund] was approved, and the [refund] was paid…"
        );
        assert_eq!(highlighted_snippet(text, &["First"], 24), "[First] the refund was…");
        assert_eq!(highlighted_snippet(text, &["charged"], 24), "…card that was [charged].");
        assert_eq!(
            highlighted_snippet("a refund, and one refund more", &["refund"], 20),
            "a [refund], and one…"
        );
        assert_eq!(
            highlighted_snippet(&"x".repeat(100), &["xx"], 10).chars().filter(|c| *c == 'x').count(),
            10
        );
        assert_eq!(highlighted_snippet("", &[], 10), "");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let text = format!("{}退款{}", "订单".repeat(20), "已经处理".repeat(20));
        let snippet = highlighted_snippet(&text, &["退款"], 40);
        assert_eq!(snippet, "…单订单订单[退款]已经处理已经处理已经处理已…");
        assert_eq!(highlighted_snippet("退款", &["退"], 1), "[退]…");
    }

    proptest! {
        #[test]
        fn a_snippet_is_a_part_of_the_text_with_its_matches(
            text in "\\PC{0,80}", first in 0..80_usize, length in 1..9_usize, width in 1..50_usize
        ) {
            let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let last = bytes.len() - 1;
            let (start, end) = (first.min(last), (first + length).min(last));
            let matches: Vec<Range<usize>> = (start < end).then(|| bytes[start]..bytes[end]).into_iter().collect();
            let snippet = Snippet::new(&text, &matches, width);
            prop_assert!(text.contains(&snippet.text));
            prop_assert!(snippet.text.chars().count() <= width);
            prop_assert_eq!(snippet.highlights.len(), matches.len());
            for range in &snippet.highlights {
                let shown: String = snippet.text.chars().skip(range.start).take(range.len()).collect();
                prop_assert!(!shown.is_empty() && text[matches[0].clone()].contains(&shown));
            }
        }
    }
}
