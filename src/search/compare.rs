//! The index held against the documents.

use std::collections::VecDeque;

use super::keep::{Read, weighed};
use crate::digest::CoreHash;
use crate::pipeline::{self, Event};
use crate::store::{CapturePassages, SearchDifferences, SearchableCapture, Snapshot, Store, StoreError};

/// So many captures are looked up at once.
const CHUNK: u32 = 1_000;

/// What the index has otherwise than the documents say, of those captures that are in it. Nothing if there is no index, or
/// one of another version.
///
/// # Errors
/// What the store says.
pub fn compare(store: &Store) -> Result<Option<SearchDifferences>, StoreError> {
    let snapshot = store.snapshot()?;
    let Some(mut comparison) = snapshot.compare_search_index()? else { return Ok(None) };
    let reading = Reading { snapshot, chunk: VecDeque::new(), last: None };
    pipeline::in_order(reading, weighed, passages, |event| match event {
        Event::Result(read) => {
            let (core, passages) = read?;
            comparison.take(core, &passages)
        }
        Event::Idle => Ok(()),
    })?;
    comparison.finish().map(Some)
}

fn passages(read: Result<Read, StoreError>) -> Result<(CoreHash, CapturePassages), StoreError> {
    let read = read?;
    Ok((read.capture.artifact.core, read.passages().0))
}

/// Reads the captures that should be in the index.
struct Reading<'s> {
    snapshot: Snapshot<'s>,
    chunk: VecDeque<SearchableCapture>,
    last: Option<SearchableCapture>,
}

impl Reading<'_> {
    fn read(&mut self) -> Result<Option<Read>, StoreError> {
        if self.chunk.is_empty() {
            self.chunk = self.snapshot.indexed(self.last.as_ref(), CHUNK)?.into();
            self.last = self.chunk.back().cloned();
        }
        self.chunk.pop_front().map(|capture| Read::of(&self.snapshot, capture)).transpose()
    }
}

impl Iterator for Reading<'_> {
    type Item = Result<Read, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
