//! Comparison of the index with the documents.

use std::collections::VecDeque;

use super::indexer::{Read, weighed};
use crate::digest::CoreHash;
use crate::intake::pipeline::{self, Event};
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
    let reading = Reading { snapshot, chunk: VecDeque::new(), last: None };
    pipeline::in_order(
        reading,
        weighed,
        |read, _| compared(read),
        |event| {
            let Event::Result(compared) = event else { return Ok(()) };
            let Compared { core, passages, is_whole } = compared?;
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
struct Compared {
    core: CoreHash,
    passages: CapturePassages,
    /// Whether its bytes are intact.
    is_whole: bool,
}

fn compared(read: Result<Read, StorageError>) -> Result<Compared, StorageError> {
    let read = read?;
    let (core, is_whole) = (read.capture.artifact.core, read.is_whole());
    Ok(Compared { core, passages: read.passages().0, is_whole })
}

/// A reader of the captures that should be in the index.
struct Reading<'s> {
    snapshot: Box<dyn Snapshot + 's>,
    chunk: VecDeque<SearchableCapture>,
    last: Option<SearchableCapture>,
}

impl Reading<'_> {
    fn read(&mut self) -> Result<Option<Read>, StorageError> {
        if self.chunk.is_empty() {
            self.chunk = self.snapshot.full_text()?.indexed(self.last.as_ref(), CHUNK)?.into();
            self.last = self.chunk.back().cloned();
        }
        self.chunk.pop_front().map(|capture| Read::new(&*self.snapshot, capture)).transpose()
    }
}

impl Iterator for Reading<'_> {
    type Item = Result<Read, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
