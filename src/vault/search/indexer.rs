//! Operations on the index of full-text search, and its synchronization with the vault.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{ArtifactLocation, Field, Passage};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::intake::pipeline::{self, PipelineEvent};
use crate::storage::{
    ArtifactRecord, BUSY_TIMEOUT, CapturePassages, ErrorKind, SearchDifferences, SearchableCapture, Snapshot,
    Storage, StorageError, StoredMember,
};
use crate::vault::Vault;

/// Number of captures read from one snapshot. While a snapshot is open, the write-ahead log grows.
const ROUND: u32 = 10_000;

/// Captures or bytes of text per transaction: others wait no longer than for an addition.
const BATCH_CAPTURES: usize = 2_000;
const BATCH_BYTES: usize = 8 << 20;

/// Maximum number of rounds without progress: concurrent additions and removals can invalidate a round, but not many in
/// a row.
const MOST_ROUNDS_WITHOUT_PROGRESS: u32 = 16;

/// Progress of indexing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexingProgress {
    /// Number of captures indexed.
    pub done: u64,
    /// Total number, as far as it is known.
    pub of: u64,
}

/// The result of indexing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexingResult {
    /// Number of captures.
    pub captures: u64,
    /// The artifacts of captures with damaged bytes, one for each such capture. They are in the index without passages.
    pub damaged: Vec<CoreHash>,
}

/// Rebuilds the index.
///
/// # Errors
/// Returns an error if the vault cannot be read or written. Entries already indexed are kept, and the next call of
/// [`sync_index`] continues.
pub(in crate::vault) fn build(
    storage: &dyn Storage,
    watch: &mut dyn FnMut(IndexingProgress),
) -> Result<IndexingResult, StorageError> {
    storage.full_text()?.begin_index(BUSY_TIMEOUT)?;
    sync_index(storage, BUSY_TIMEOUT, watch)
}

/// Indexes captures added since the last update. Builds the index if there is none, and rebuilds one of another version.
/// Waits at most `busy_timeout` for other writers each time.
///
/// # Errors
/// Same as [`build`]; also [`Busy`](crate::storage::ErrorKind::Busy) if other writers do not finish.
pub(in crate::vault) fn sync_index(
    storage: &dyn Storage,
    busy_timeout: Duration,
    watch: &mut dyn FnMut(IndexingProgress),
) -> Result<IndexingResult, StorageError> {
    match storage.snapshot()?.full_text()?.search_index()?.filter(|index| index.is_current) {
        None => storage.full_text()?.begin_index(busy_timeout)?,
        Some(index) if index.waiting == 0 => return Ok(IndexingResult::default()),
        Some(_) => {}
    }
    let mut keeping = SearchIndexer { busy_timeout, ..SearchIndexer::new(storage, watch) };
    while keeping.round()? {
        if keeping.rounds_without_progress > MOST_ROUNDS_WITHOUT_PROGRESS {
            let message =
                "captures that are not in the search index are never all indexed: the vault is damaged";
            return Err(StorageError::new(ErrorKind::VaultDamaged, message));
        }
    }
    Ok(keeping.indexed)
}

struct SearchIndexer<'k> {
    storage: &'k dyn Storage,
    busy_timeout: Duration,
    watch: &'k mut dyn FnMut(IndexingProgress),
    indexed: IndexingResult,
    batch: Vec<CapturePassages>,
    bytes: usize,
    /// Whether another process changed the index, which makes the data read so far useless.
    is_late: bool,
    of: u64,
    /// Number of captures not in the index when the last round began.
    waiting: u64,
    rounds_without_progress: u32,
}

impl<'k> SearchIndexer<'k> {
    fn new(storage: &'k dyn Storage, watch: &'k mut dyn FnMut(IndexingProgress)) -> Self {
        let indexed = IndexingResult::default();
        Self {
            storage,
            busy_timeout: BUSY_TIMEOUT,
            watch,
            indexed,
            batch: Vec::new(),
            bytes: 0,
            is_late: false,
            of: 0,
            waiting: 0,
            rounds_without_progress: 0,
        }
    }

    /// Indexes the next captures; returns false if there are none.
    fn round(&mut self) -> Result<bool, StorageError> {
        let snapshot = self.storage.snapshot()?;
        let captures = snapshot.full_text()?.unindexed(ROUND)?;
        if captures.is_empty() {
            return Ok(false);
        }
        let waiting = snapshot.full_text()?.search_index()?.map_or(0, |index| index.waiting);
        // If another process was faster, fewer captures are waiting now.
        let is_stuck = self.is_late && waiting == self.waiting;
        self.rounds_without_progress = if is_stuck { self.rounds_without_progress + 1 } else { 0 };
        self.waiting = waiting;
        self.of = self.indexed.captures + waiting;
        self.is_late = false;
        let reading =
            captures.into_iter().map(move |capture| SearchableCaptureData::new(&*snapshot, capture));
        let work = |read: Result<SearchableCaptureData, StorageError>, _: &dyn Fn(u64)| {
            read.map(SearchableCaptureData::passages)
        };
        pipeline::in_order(reading, weighed, work, |event| match event {
            PipelineEvent::Result(read) => {
                let (passages, damaged) = read?;
                self.take(passages, damaged)
            }
            PipelineEvent::Idle => Ok(()),
        })?;
        self.write()?;
        Ok(true)
    }

    fn take(&mut self, passages: CapturePassages, damaged: Option<CoreHash>) -> Result<(), StorageError> {
        if self.is_late {
            return Ok(());
        }
        self.bytes += passages.bytes();
        self.batch.push(passages);
        self.indexed.damaged.extend(damaged);
        if self.batch.len() >= BATCH_CAPTURES || self.bytes >= BATCH_BYTES {
            return self.write();
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), StorageError> {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if self.is_late || batch.is_empty() {
            return Ok(());
        }
        self.is_late = !self.storage.full_text()?.index_passages(&batch, self.busy_timeout)?;
        if !self.is_late {
            self.indexed.captures += batch.len() as u64;
            (self.watch)(IndexingProgress { done: self.indexed.captures, of: self.of });
        }
        Ok(())
    }
}

/// A capture that was read.
pub(super) struct SearchableCaptureData {
    pub(super) capture: SearchableCapture,
    /// Its files; empty if they are damaged.
    members: Vec<StoredMember>,
    /// The files of the artifact's first capture, if this is another one.
    first: Vec<StoredMember>,
    is_damaged: bool,
    is_first_damaged: bool,
}

impl SearchableCaptureData {
    pub(super) fn new(snapshot: &dyn Snapshot, capture: SearchableCapture) -> Result<Self, StorageError> {
        let core = capture.artifact.core;
        let (members, is_damaged) = match snapshot.read_members(core, capture.capture) {
            Err(error) if error.kind() == ErrorKind::Damaged => (Vec::new(), true),
            members => (members?, false),
        };
        let (first, is_first_damaged) = match capture.first.map(|first| snapshot.read_members(core, first)) {
            None => (Vec::new(), false),
            // A damaged capture has no entries in the index.
            Some(Err(error)) if error.kind() == ErrorKind::Damaged => (Vec::new(), true),
            Some(members) => (members?, false),
        };
        Ok(Self { capture, members, first, is_damaged, is_first_damaged })
    }

    /// Returns whether everything was read that determines the index entries of the capture.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_damaged && !self.is_first_damaged
    }

    /// Returns the passages to index, and the artifact if its bytes are damaged.
    pub(super) fn passages(self) -> (CapturePassages, Option<CoreHash>) {
        let Self { capture, members, first, is_damaged, .. } = self;
        let kind = &capture.artifact.kind;
        let passages = indexed_passages(member_passages(kind, &members), &member_passages(kind, &first));
        let damaged = is_damaged.then_some(capture.artifact.core);
        (capture.with(passages), damaged)
    }
}

/// Returns the result with its size in memory, in bytes.
pub(super) fn weighed(
    read: Result<SearchableCaptureData, StorageError>,
) -> (Result<SearchableCaptureData, StorageError>, u64) {
    let files = read.iter().flat_map(|read| read.members.iter().chain(&read.first));
    let bytes = files.map(|file| file.bytes.len() as u64).sum();
    (read, bytes)
}

/// Returns the passages of a capture, from its verified bytes; none if its kind is not supported or it cannot be
/// parsed.
pub(crate) fn capture_passages(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    capture: CaptureHash,
) -> Result<Vec<Passage>, StorageError> {
    Ok(member_passages(&artifact.kind, &snapshot.read_members(artifact.core, capture)?))
}

/// Returns the passages of an artifact of a kind with these files.
pub(crate) fn member_passages(kind: &str, members: &[StoredMember]) -> Vec<Passage> {
    let members = StoredMember::borrowed(members);
    let passages = formats::named(kind).and_then(|kind| kind.passages(&members).ok());
    passages.unwrap_or_default()
}

/// Returns the passages of a capture that are indexed: not those that the artifact's first capture has at the same
/// location.
pub(crate) fn indexed_passages(passages: Vec<Passage>, first: &[Passage]) -> Vec<Option<(Field, String)>> {
    let known: BTreeSet<_> = first.iter().map(identity).collect();
    let text = |passage: Passage| {
        let is_known = known.contains(&identity(&passage));
        (!is_known).then_some((passage.field, passage.text))
    };
    passages.into_iter().map(text).collect()
}

/// Returns the part of a passage by which it is compared with others.
fn identity(passage: &Passage) -> (Field, &ArtifactLocation, &str) {
    (passage.field, &passage.place, &passage.text)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactLocation;

    #[test]
    fn what_the_first_capture_says_in_the_same_place_is_left_out() {
        let passage = |field, index, text: &str| Passage {
            field,
            unit: "step",
            place: ArtifactLocation::Index(index),
            text: text.to_owned(),
        };
        let first =
            [passage(Field::TOOL, 1, "b"), passage(Field::TOOL, 0, "a"), passage(Field::STEP, 0, "c")];
        let second = vec![
            passage(Field::TOOL, 0, "a"),
            passage(Field::TOOL, 1, "a"),
            passage(Field::OUTPUT, 0, "c"),
            passage(Field::STEP, 0, "c"),
        ];
        let text = |field, text: &str| Some((field, text.to_owned()));
        assert_eq!(
            indexed_passages(second, &first),
            [None, text(Field::TOOL, "a"), text(Field::OUTPUT, "c"), None]
        );
    }
}
