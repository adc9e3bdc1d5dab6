//! Full-text search: the index, which maps words to passages.
//!
//! An engine is given passages and knows no formats. Its index contains no texts: an answer is the number of a matching
//! passage of a capture, and the caller reads the capture again.

use std::collections::BTreeSet;
use std::time::Duration;

use super::records::ArtifactRecord;
use crate::artifact::Field;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::Result;

/// Changes of the index, of an engine that has [`Capability::FullText`](super::Capability::FullText).
///
/// Every method returns an error if the vault cannot be read or written, and one of the kind
/// [`Busy`](crate::storage::ErrorKind::Busy) if other writers do not finish within `busy_timeout`.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait FullText: Send + Sync {
    /// Creates an empty index, replacing any existing one.
    fn begin_index(&self, busy_timeout: Duration) -> Result<()>;

    /// Adds the passages of `batch` to the index, in one transaction. They must be those of the captures that come
    /// next; returns false and changes nothing if another process has already indexed them.
    fn index_passages(&self, batch: &[CapturePassages], busy_timeout: Duration) -> Result<bool>;

    /// Removes the index; returns false if there is none.
    fn drop_index(&self) -> Result<bool>;

    /// Returns whether there is any part of an index, complete or not.
    fn has_index_parts(&self) -> Result<bool>;
}

/// Queries of the index, in a snapshot of a vault.
///
/// Every method returns an error if the vault cannot be read.
#[expect(clippy::missing_errors_doc, reason = "the errors are those above")]
pub trait FullTextSnapshot {
    /// Returns the state of the index, or `None` if the vault has none.
    fn search_index(&self) -> Result<Option<SearchIndex>>;

    /// Returns the number of bytes that the index takes; 0 if there is none.
    fn search_index_size(&self) -> Result<u64>;

    /// Returns up to `limit` next captures that are not in the index, in the order in which they were added. Returns
    /// none if there is no index, or one of another version.
    fn unindexed(&self, limit: u32) -> Result<Vec<SearchableCapture>>;

    /// Returns up to `limit` captures that should be in the index, after `after` if it is given, in the order in which
    /// they were added.
    fn indexed(&self, after: Option<&SearchableCapture>, limit: u32) -> Result<Vec<SearchableCapture>>;

    /// Returns up to `limit` matching passages, the best first; only those of `among`, if it is given. Equal scores are
    /// ordered by arrival, newest artifact first, and then by the order within the artifact. An engine need not rank very
    /// many matches: then all scores are 0, and the passages of the captures that were added last are first.
    fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> Result<Vec<FoundPassage>>;

    /// Begins to compare the index with the captures that are in it. Returns `None` if there is no index, or one of
    /// another version. Calls `watch` with the number of index rows that were read, and their total.
    fn compare_search_index(
        &self,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Box<dyn IndexComparison>>>;
}

/// A comparison of the index with the captures, in progress.
pub trait IndexComparison {
    /// Returns the number of captures that the index lists and that were not compared yet.
    fn captures(&self) -> u64;

    /// Adds the passages of a capture of the artifact `core`.
    ///
    /// # Errors
    /// Returns an error if the expected index cannot be written.
    fn take(&mut self, core: CoreHash, capture: &CapturePassages) -> Result<()>;

    /// Skips a capture that cannot be read.
    fn pass_over(&mut self, capture: &CapturePassages);

    /// Compares the index with the captures that were added.
    ///
    /// # Errors
    /// Returns an error if the index cannot be read.
    fn finish(self: Box<Self>) -> Result<SearchDifferences>;
}

/// The state of a search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchIndex {
    /// Number of captures that are not indexed yet.
    pub waiting: u64,
    /// Whether its version is that of this program; an index of another version is rebuilt.
    pub is_current: bool,
}

/// A capture whose passages are or should be in the index.
#[derive(Clone, Debug)]
pub struct SearchableCapture {
    /// The number of the capture in the engine.
    pub(in crate::storage) id: i64,
    /// Its hash.
    pub capture: CaptureHash,
    /// Its artifact.
    pub artifact: ArtifactRecord,
    /// The artifact's first capture, if this is not the first.
    pub first: Option<CaptureHash>,
}

/// The passages of a capture, in the form in which they are indexed.
#[derive(Clone, Debug)]
pub struct CapturePassages {
    /// The number of the capture in the engine.
    pub(in crate::storage) id: i64,
    pub(in crate::storage) core: CoreHash,
    pub(in crate::storage) hash: CaptureHash,
    /// The texts in the order of the passages; `None` for those that are not indexed.
    pub(in crate::storage) passages: Vec<Option<(Field, String)>>,
}

impl SearchableCapture {
    /// Combines the capture with its passages, `None` for those that are not indexed.
    #[must_use]
    pub fn with(&self, passages: Vec<Option<(Field, String)>>) -> CapturePassages {
        CapturePassages { id: self.id, core: self.artifact.core, hash: self.capture, passages }
    }
}

impl CapturePassages {
    /// Returns the number of bytes of text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.passages.iter().flatten().map(|(_, text)| text.len()).sum()
    }

    pub(in crate::storage) fn passages(&self) -> &[Option<(Field, String)>] {
        &self.passages
    }

    pub(in crate::storage) fn id(&self) -> i64 {
        self.id
    }
}

/// The differences between an index and its expected content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchDifferences {
    /// Artifacts whose index content differs.
    pub artifacts: BTreeSet<CoreHash>,
    /// Number of parts of the index that belong to no capture that should be in it.
    pub strays: u64,
    /// Number of pages of the index with words that lookups do not find, and of entries that lead to wrong pages.
    pub unreachable: u64,
    /// Number of rows of the index with words that would stay in it after the row is removed.
    pub undeletable: u64,
}

/// The grouping of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PassageGrouping {
    /// The best passage of each artifact.
    #[default]
    Artifact,
    /// Every passage.
    Passage,
}

/// A matching passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundPassage {
    /// Its artifact.
    pub artifact: CoreHash,
    /// The capture that contains it.
    pub capture: CaptureHash,
    /// Its number among the passages of the capture, from 0.
    pub number: usize,
    /// Its score: higher is better. Scores of different queries are not comparable.
    pub score: f64,
    /// Number of further matching passages of the artifact; 0 if all are listed.
    pub more: u64,
}

/// A word or phrase to search for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// Its text. Characters other than letters and digits separate words; several words are a phrase.
    pub text: String,
    /// Whether words that begin with its last word also match.
    pub is_prefix: bool,
}

/// A search condition on passages: all terms of one of the alternatives, in one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The alternatives. An empty one is skipped.
    pub alternatives: Vec<Vec<Term>>,
    /// The fields; all if empty.
    pub fields: Vec<Field>,
}
