//! Operations on the index of full-text search.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::indexer::{IndexingProgress, IndexingResult, SearchableCaptureData, build, weighed};
use crate::digest::CoreHash;
use crate::intake::pipeline::{self, PipelineEvent};
use crate::storage::{
    CapturePassages, SearchDifferences, SearchableCapture, Snapshot, Storage, StorageError,
};
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

impl SearchIndexRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read, or if its engine has no full-text search.
    pub fn run(&self, vault: &Vault) -> Result<SearchIndexAnswer, StorageError> {
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

impl BuildSearchIndexRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written, or if its engine has no full-text search.
    pub fn run(&self, vault: &Vault) -> Result<BuildSearchIndexAnswer, StorageError> {
        self.run_watched(vault, &mut |_| {})
    }

    /// Runs the operation, and calls `watch` with its progress.
    ///
    /// # Errors
    /// Same as [`Self::run`].
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

/// A request to remove the search index. [`ReclaimRequest`](crate::vault::maintenance::ReclaimRequest) frees the space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DropSearchIndexRequest {}

/// The result of removing the search index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropSearchIndexAnswer {
    /// Whether there was an index.
    pub changed: bool,
}

impl DropSearchIndexRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written, or if its engine has no full-text search.
    pub fn run(&self, vault: &Vault) -> Result<DropSearchIndexAnswer, StorageError> {
        Ok(DropSearchIndexAnswer { changed: vault.full_text()?.full_text()?.drop_index()? })
    }
}

/// Captures looked up per step.
const CHUNK: u32 = 1_000;

/// Compares the index entries of the indexed captures with the documents, and returns the differences; `None` if there
/// is no index, or it has another version. Calls `watch` with a description, the count so far and the total.
pub(in crate::vault) fn compare(
    storage: &dyn Storage,
    watch: &mut dyn FnMut(&'static str, u64, u64),
) -> Result<Option<SearchDifferences>, StorageError> {
    let snapshot = storage.snapshot()?;
    let begun =
        snapshot.full_text()?.compare_search_index(&mut |done, of| watch("search index read", done, of))?;
    let Some(mut comparison) = begun else { return Ok(None) };
    let (mut done, of) = (0, comparison.captures());
    let reading = SearchableCaptureReader { snapshot, chunk: VecDeque::new(), last: None };
    pipeline::in_order(
        reading,
        weighed,
        |read, _| compared(read),
        |event| {
            let PipelineEvent::Result(compared) = event else { return Ok(()) };
            let ExpectedIndexEntry { core, passages, is_whole } = compared?;
            if is_whole {
                comparison.take(core, &passages)?;
            } else {
                // Damage is a separate finding, and the index entries of the capture may be right.
                comparison.pass_over(&passages);
            }
            done += 1;
            watch("search index compared", done, of);
            Ok(())
        },
    )?;
    comparison.finish().map(Some)
}

/// The expected index entry of a capture.
struct ExpectedIndexEntry {
    core: CoreHash,
    passages: CapturePassages,
    /// Whether its bytes are intact.
    is_whole: bool,
}

fn compared(read: Result<SearchableCaptureData, StorageError>) -> Result<ExpectedIndexEntry, StorageError> {
    let read = read?;
    let (core, is_whole) = (read.capture.artifact.core, read.is_whole());
    Ok(ExpectedIndexEntry { core, passages: read.passages().0, is_whole })
}

/// A reader of the captures that should be in the index.
struct SearchableCaptureReader<'s> {
    snapshot: Box<dyn Snapshot + 's>,
    chunk: VecDeque<SearchableCapture>,
    last: Option<SearchableCapture>,
}

impl SearchableCaptureReader<'_> {
    fn read(&mut self) -> Result<Option<SearchableCaptureData>, StorageError> {
        if self.chunk.is_empty() {
            self.chunk = self.snapshot.full_text()?.indexed(self.last.as_ref(), CHUNK)?.into();
            self.last = self.chunk.back().cloned();
        }
        self.chunk.pop_front().map(|capture| SearchableCaptureData::new(&*self.snapshot, capture)).transpose()
    }
}

impl Iterator for SearchableCaptureReader<'_> {
    type Item = Result<SearchableCaptureData, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
