//! Comparison of the index with the documents.

use std::collections::VecDeque;

use super::indexer::{SearchableCaptureData, weighed};
use crate::digest::CoreHash;
use crate::intake::pipeline::{self, PipelineEvent};
use crate::storage::{
    CapturePassages, SearchDifferences, SearchableCapture, Snapshot, Storage, StorageError,
};

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
