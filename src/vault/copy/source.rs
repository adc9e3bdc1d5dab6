//! The journal of the vault that is copied, entry by entry, with the bytes of the captures that it adds.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;

use super::outcome::CopyError;
use crate::storage::{
    CaptureTarget, JournalQuery, JournalRecord, RecordedEntry, Result, Snapshot, SourcePath, StoredMember,
};

/// The number of entries that are read together. One of captures that were seen again may have 150 KB.
const PAGE: usize = 200;

/// An entry, with the files of the capture that it adds unless they were removed later or are not wanted.
pub(super) struct CopyEntry {
    pub(super) entry: RecordedEntry,
    pub(super) files: Option<Vec<StoredMember>>,
}

impl CopyEntry {
    /// Returns its size in memory, in bytes.
    pub(super) fn size(&self) -> u64 {
        let files = self.files.iter().flatten().map(|file| file.bytes.len() as u64);
        files.sum::<u64>() + self.entry.text().len() as u64
    }
}

/// Returns the path that the capture was read from which an entry adds, if that was recorded.
pub(super) fn source_path(entry: &RecordedEntry) -> Option<SourcePath> {
    SourcePath::new(OsStr::new(entry.addition()?.source_path?))
}

/// A function that returns which captures are wanted.
type CopyCaptureFilter<'s> = dyn FnMut(&[CaptureTarget]) -> Result<Vec<bool>> + Send + 's;

/// A reader of the entries of a journal.
pub(super) struct CopyEntryReader<'s> {
    snapshot: &'s mut dyn Snapshot,
    /// The number of the next entry to be read.
    next: u64,
    /// The last removal of each capture that was removed. Its memory grows with their number.
    removals: HashMap<CaptureTarget, u64>,
    waiting: VecDeque<RecordedEntry>,
    /// Returns which captures are wanted.
    capture_filter: Box<CopyCaptureFilter<'s>>,
    /// Whether the captures that the waiting entries add are wanted, and whether the vault has them.
    selection: VecDeque<(bool, bool)>,
    has_failed: bool,
}

impl<'s> CopyEntryReader<'s> {
    /// Creates a reader of the entries from the number `first` on.
    pub(super) fn new(
        snapshot: &'s mut dyn Snapshot,
        first: u64,
        capture_filter: impl FnMut(&[CaptureTarget]) -> Result<Vec<bool>> + Send + 's,
    ) -> Result<Self> {
        let mut removals = HashMap::new();
        let query = JournalQuery { action: Some("remove".to_owned()), ..JournalQuery::default() };
        let mut from = 0;
        loop {
            let page = snapshot.journal(&query, from, PAGE)?;
            let Some(last) = page.last() else { break };
            from = last.seq + 1;
            for record in page {
                let entry = RecordedEntry::parse(record)?;
                removals.extend(entry.removed().map(|target| (target, entry.head().seq)));
            }
        }
        Ok(Self {
            snapshot,
            next: first,
            removals,
            waiting: VecDeque::new(),
            capture_filter: Box::new(capture_filter),
            selection: VecDeque::new(),
            has_failed: false,
        })
    }

    /// Returns the capture that an entry adds, unless it was removed later.
    fn target(&self, entry: &RecordedEntry) -> Option<CaptureTarget> {
        let target = entry.addition()?.target;
        let is_removed = self.removals.get(&target).is_some_and(|removal| *removal > entry.head().seq);
        (!is_removed).then_some(target)
    }

    fn read(&mut self) -> std::result::Result<Option<CopyEntry>, CopyError> {
        if self.waiting.is_empty() {
            let page: Vec<JournalRecord> =
                self.snapshot.journal(&JournalQuery::default(), self.next, PAGE)?;
            let Some(last) = page.last() else { return Ok(None) };
            self.next = last.seq + 1;
            self.waiting = page.into_iter().map(RecordedEntry::parse).collect::<Result<_>>()?;
            let targets: Vec<CaptureTarget> =
                self.waiting.iter().filter_map(|entry| self.target(entry)).collect();
            let known = self.snapshot.captures_with(&targets)?;
            let selected = (self.capture_filter)(&targets)?.into_iter();
            self.selection = selected.zip(known.iter().map(Option::is_some)).collect();
        }
        let Some(entry) = self.waiting.pop_front() else { return Ok(None) };
        let Some(target) = self.target(&entry) else { return Ok(Some(CopyEntry { entry, files: None })) };
        let (core, capture) = (target.artifact, target.capture);
        match self.selection.pop_front() {
            Some((true, true)) => {}
            Some((true, false)) => return Err(CopyError::Missing { entry: entry.head().seq, core, capture }),
            _ => return Ok(Some(CopyEntry { entry, files: None })),
        }
        let files = self.snapshot.read_members(core, capture)?;
        Ok(Some(CopyEntry { entry, files: Some(files) }))
    }
}

impl Iterator for CopyEntryReader<'_> {
    type Item = std::result::Result<CopyEntry, CopyError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.read();
        self.has_failed = next.is_err();
        next.transpose()
    }
}
