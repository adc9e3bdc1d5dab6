//! Delta bases among the documents that are being added.
//!
//! The thread that stores documents finds delta bases in the vault, for one document at a time. Recordings of the same run
//! that are added together do not have to wait for it: the threads that prepare documents share those that they have
//! prepared recently, and make deltas against them. Whether such a base is stored, and as it was then, is known only when
//! the delta is stored; if it is not, another base is searched for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashSet};
use parking_lot::Mutex;

use super::compress::{PayloadContent, as_bytes};
use super::digest_stripping::StrippedText;
use super::encodings::Encoding;
use super::{compress, mention_index};
use crate::digest::{BlobHash, Digest};

/// Minimum size of a document in bytes for delta encoding.
pub(super) const MIN_SIZE: usize = 512;

/// Maximum size in bytes of the text of a document that is shared between threads.
const MAX_RECENT: usize = 512 << 10;

/// Size in bytes of the shared documents after which those before them are forgotten, except as many of the newest ones.
const GENERATION: usize = 4 << 20;

/// Number of consecutive documents without a recent base after which only one in [`SAMPLE`] is shared: documents that
/// have nothing in common take a twentieth longer to prepare if all of them are kept.
const MAX_MISSES: u32 = 256;
const SAMPLE: u32 = 64;

/// Number of the document's digests that are looked up among recent documents.
const PROBES: usize = 4;

/// The minimum share of the document's digests that a base contains: one in this number.
const SHARED: usize = 4;

/// Maximum size of a delta, in percent of the document's own compressed form.
const WORTH: usize = 60;

/// The same, if the size of the compressed form is an estimate without a dictionary.
const WORTH_OF_ESTIMATE: usize = 45;

/// A document that others can be stored as deltas against.
pub(super) struct DeltaBase {
    pub(super) blob: BlobHash,
    pub(super) content: PayloadContent,
    digests: OnceLock<HashSet<Digest>>,
    /// The size of the compressed text, for estimates.
    compressed: OnceLock<Option<usize>>,
    /// The base against which this document is stored as a delta itself.
    instead: OnceLock<Arc<DeltaBase>>,
}

impl DeltaBase {
    pub(super) fn new(blob: BlobHash, content: PayloadContent) -> Self {
        Self {
            blob,
            content,
            digests: OnceLock::new(),
            compressed: OnceLock::new(),
            instead: OnceLock::new(),
        }
    }

    /// Returns how many of `digests` it contains, or `None` if these are too few for a base.
    pub(super) fn shared(&self, digests: &[Digest]) -> Option<usize> {
        let own = self.digests.get_or_init(|| self.content.digests().collect());
        let shared = digests.iter().filter(|digest| own.contains(digest)).count();
        (shared * SHARED >= digests.len()).then_some(shared)
    }

    /// Records that it is stored as a delta against `base`, which is to be used instead, unless it is much larger: the
    /// memory for these is not limited otherwise.
    pub(super) fn replace_by(&self, base: Arc<Self>) {
        if base.content.text.len() <= self.content.text.len() * 2 {
            // There is one already if this was found out before.
            let _ = self.instead.set(base);
        }
    }

    /// Returns the estimated size of `text` when it is compressed, which assumes that it compresses as well as that of
    /// the base.
    fn estimate(&self, text: &[u8]) -> Option<usize> {
        let compress = || compress::compress(&self.content.text, None).map(|frame| frame.len());
        let compressed = (*self.compressed.get_or_init(compress))?;
        (text.len() * compressed).checked_div(self.content.text.len())
    }
}

/// Returns `count` of a document's digests, evenly spread, or all if there are not more.
pub(super) fn probes(digests: &[Digest], count: usize) -> impl Iterator<Item = &Digest> {
    let last = digests.len().saturating_sub(1);
    let mut probes: Vec<usize> = (0..count).map(|probe| last * probe / (count - 1)).collect();
    probes.dedup();
    probes.into_iter().filter_map(|probe| digests.get(probe))
}

/// Returns whether a delta of `delta` bytes is short enough, if the document has `whole` bytes when compressed.
pub(super) fn is_worth(delta: usize, whole: usize) -> bool {
    delta * 100 < whole * WORTH
}

/// A delta against a document that was prepared recently.
pub(super) struct RecentDelta {
    pub(super) base: Arc<DeltaBase>,
    /// The digests that were stripped from the document.
    pub(super) stripped: Vec<Digest>,
    pub(super) digests: Vec<u8>,
    pub(super) text: Vec<u8>,
    /// The estimated size of the document when compressed.
    pub(super) whole: usize,
}

/// Documents that were prepared recently.
#[derive(Default)]
pub(super) struct RecentBases {
    documents: Mutex<Generations>,
    /// Number of consecutive documents without a base.
    misses: AtomicU32,
}

/// Documents by the keys of their digests.
#[derive(Default)]
struct Generations {
    newer: HashMap<u64, Arc<DeltaBase>>,
    older: HashMap<u64, Arc<DeltaBase>>,
    /// The size of the newer ones in bytes.
    size: usize,
}

/// Returns whether a document can be encoded as a delta, or be the base of others.
fn is_accepted(document: &StrippedText) -> bool {
    !Encoding::Delta.is_off() && (MIN_SIZE..MAX_RECENT).contains(&document.text.len())
}

impl RecentBases {
    /// Returns a document as a delta against a recent one, if that is much shorter than compressing it.
    pub(super) fn delta(&self, document: &StrippedText) -> Option<RecentDelta> {
        if !is_accepted(document) {
            return None;
        }
        let StrippedText { text, digests: stripped } = document;
        let base = self.nearest(stripped)?;
        let whole = base.estimate(text)? + stripped.len() * 32;
        let (digests, text) = base.content.delta(&as_bytes(stripped), text)?;
        let is_worth = (digests.len() + text.len()) * 100 < whole * WORTH_OF_ESTIMATE;
        if !is_worth {
            return None;
        }
        self.misses.store(0, Ordering::Relaxed);
        Some(RecentDelta { base, stripped: stripped.clone(), digests, text, whole })
    }

    /// Shares a document that is probably stored whole.
    pub(super) fn remember(&self, blob: BlobHash, mut document: StrippedText) {
        if !is_accepted(&document) {
            return;
        }
        let misses = self.misses.fetch_add(1, Ordering::Relaxed);
        if misses >= MAX_MISSES && !misses.is_multiple_of(SAMPLE) {
            return;
        }
        document.text.shrink_to_fit();
        let keys: Vec<u64> = document.digests.iter().map(mention_index::key).collect();
        let size = document.text.len() + document.digests.len() * 64;
        let base = Arc::new(DeltaBase::new(blob, document.into()));
        let mut generations = self.documents.lock();
        let forgotten = (generations.size + size > GENERATION).then(|| {
            generations.size = 0;
            let newer = std::mem::take(&mut generations.newer);
            std::mem::replace(&mut generations.older, newer)
        });
        generations.size += size;
        generations.newer.extend(keys.into_iter().map(|key| (key, Arc::clone(&base))));
        drop(generations);
        // Freeing memory takes long enough for others to wait for it.
        drop(forgotten);
    }

    fn nearest(&self, digests: &[Digest]) -> Option<Arc<DeltaBase>> {
        let candidates: Vec<Arc<DeltaBase>> = {
            let generations = self.documents.lock();
            let Generations { newer, older, .. } = &*generations;
            let candidate = |key| newer.get(&key).or_else(|| older.get(&key)).cloned();
            probes(digests, PROBES).filter_map(|digest| candidate(mention_index::key(digest))).collect()
        };
        let candidates = candidates.into_iter().map(|base| base.instead.get().cloned().unwrap_or(base));
        let shared = candidates.filter_map(|base| Some((base.shared(digests)?, base)));
        shared.max_by_key(|(shared, _)| *shared).map(|(_, base)| base)
    }
}

#[cfg(test)]
mod tests {
    use super::super::compress::{FrameDependency, decompress};
    use super::super::digest_stripping::strip;
    use super::*;

    fn blob(text: &str) -> BlobHash {
        BlobHash(Digest::from_content(text.as_bytes()))
    }

    /// A document of 20 lines with a digest each; the lines in `own` are those of recording `take` only.
    fn document(run: usize, take: usize, own: std::ops::Range<usize>) -> String {
        let line = |index: usize| {
            let take = if own.contains(&index) { take } else { 0 };
            let digest =
                |what: &str| Digest::from_content(format!("{what} {run} {take} {index}").as_bytes()).hex();
            format!("{} {}\n", digest("mention"), &digest("words")[1..])
        };
        (0..20).map(line).collect()
    }

    fn remember(bases: &RecentBases, text: &str) {
        bases.remember(blob(text), strip(text.as_bytes()).unwrap());
    }

    fn delta(bases: &RecentBases, text: &str) -> Option<RecentDelta> {
        bases.delta(&strip(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_similar_document_is_a_delta() {
        let bases = RecentBases::default();
        let base = document(1, 0, 0..0);
        remember(&bases, &base);
        remember(&bases, &document(2, 0, 0..0));
        let text = document(1, 7, 5..6);
        let delta = delta(&bases, &text).unwrap();
        assert!(delta.base.blob == blob(&base));
        assert!((delta.text.len() + delta.digests.len()) * 4 < delta.whole);
        let expected: PayloadContent = strip(text.as_bytes()).unwrap().into();
        let restored =
            |frame: &[u8], base: &[u8]| decompress(frame, FrameDependency::Base(base), text.len()).unwrap();
        assert_eq!(restored(&delta.text, &delta.base.content.text), expected.text);
        assert_eq!(restored(&delta.digests, &delta.base.content.digests), expected.digests);
    }

    #[test]
    fn a_document_that_shares_too_little_is_no_delta() {
        let bases = RecentBases::default();
        remember(&bases, &document(1, 0, 0..0));
        assert!(delta(&bases, &document(2, 0, 0..0)).is_none());
        // The first digest is the same.
        assert!(delta(&bases, &document(1, 7, 4..20)).is_none());
        assert!(delta(&bases, &document(1, 7, 5..20)).is_none(), "as a delta, it is not much shorter");
        assert!(delta(&bases, &document(1, 7, 18..20)).is_some());
    }

    #[test]
    fn the_base_of_a_base_is_used_instead() {
        let bases = RecentBases::default();
        remember(&bases, &document(1, 1, 3..4));
        let first = delta(&bases, &document(1, 2, 4..5)).unwrap();
        let whole = document(1, 0, 0..0);
        let stored = DeltaBase::new(blob(&whole), strip(whole.as_bytes()).unwrap().into());
        first.base.replace_by(Arc::new(stored));
        assert!(delta(&bases, &document(1, 3, 5..6)).unwrap().base.blob == blob(&whole));
    }

    #[test]
    fn documents_are_forgotten() {
        let bases = RecentBases::default();
        let of_run = |run| document(run, 0, 0..0);
        let size = strip(of_run(0).as_bytes()).unwrap();
        let size = size.text.len() + size.digests.len() * 64;
        remember(&bases, &of_run(0));
        let fill = |bases: &RecentBases| {
            for run in 1..=GENERATION / size {
                bases.misses.store(0, Ordering::Relaxed);
                remember(bases, &of_run(run));
            }
        };
        fill(&bases);
        assert!(delta(&bases, &document(0, 1, 5..6)).is_some());
        fill(&bases);
        assert!(delta(&bases, &document(0, 1, 5..6)).is_none());
    }

    #[test]
    fn documents_that_have_nothing_in_common_are_sampled() {
        let bases = RecentBases::default();
        let of_run = |run: u32| document(run as usize, 0, 0..0);
        (0..MAX_MISSES + 2).for_each(|run| remember(&bases, &of_run(run)));
        let has = |run: u32| delta(&bases, &document(run as usize, 1, 5..6)).is_some();
        assert!(!has(MAX_MISSES + 1));
        assert!(has(MAX_MISSES - 1));
        // A document that has a base ends that.
        remember(&bases, &of_run(MAX_MISSES + 1));
        assert!(has(MAX_MISSES + 1));
    }
}
