//! Finding similar stored documents, such as recordings of the same run, to store new ones as deltas.
//!
//! Two recordings of a run share most of their mentions. So the most similar document is found through the mention
//! index, and if the new document is short as a delta against it, it is stored as one. Delta bases are always stored
//! whole: reading a delta requires one other payload, however often a run was recorded.

use std::sync::Arc;

use foldhash::{HashMap, HashSet, HashSetExt};
use rusqlite::{Connection, OptionalExtension};

use super::compress::PayloadContent;
use super::delta_bases::{DeltaBase, MIN_SIZE, is_worth, probes};
use super::dictionaries::DecompressionDictionaryCache;
use super::encodings::Encoding;
use super::mention_index::{self, MentionIndexReader};
use super::payload::{PayloadDelta, PayloadReader};
use super::rows::blob_id;
use crate::digest::{BlobHash, Digest};

/// Maximum size of a document in bytes for delta encoding: both documents have to be in memory.
const MAX_SIZE: usize = 4 << 20;

/// Number of the document's digests that are looked up in the index.
const PROBES: usize = 2;

/// Maximum number of candidates that are read for each digest, the newest first.
const CANDIDATES: usize = 8;

/// Maximum size of the delta bases in the cache, in bytes.
const AT_HAND: usize = 16 << 20;

/// Maximum number of digests of documents that were added in this transaction and are not in the index yet.
const RECENT: usize = 1 << 18;

/// Number of consecutive documents without a base after which the index is queried only for one in [`SAMPLE`]: a lookup
/// in a large vault costs as much as storing a document.
const MAX_MISSES: u32 = 64;
const SAMPLE: u32 = 32;

/// A finder of delta bases, for one transaction.
#[derive(Default)]
pub(super) struct DeltaBaseFinder {
    /// Blobs that were stored whole in this transaction, by the keys of their digests.
    recent: HashMap<u64, i64>,
    /// The index at the beginning of the transaction.
    index: Option<MentionIndexReader>,
    /// Number of consecutive documents without a base.
    without: u32,
    cache: HashMap<i64, Arc<DeltaBase>>,
    cached_bytes: usize,
    /// Blobs that are stored whole, with the digests that were stripped from them, according to this transaction.
    whole: HashSet<i64>,
    pub(super) readers: DecompressionDictionaryCache,
}

impl DeltaBaseFinder {
    /// Returns the document as a delta against the most similar one, if that is much shorter than `whole`. `known` is a
    /// blob of the same artifact, if there is one.
    pub(super) fn difference(
        &mut self,
        connection: &Connection,
        bytes: &[u8],
        digests: &[Digest],
        known: Option<i64>,
        whole: usize,
    ) -> rusqlite::Result<Option<PayloadDelta>> {
        if Encoding::Delta.is_off() || !(MIN_SIZE..MAX_SIZE).contains(&bytes.len()) {
            return Ok(None);
        }
        let Some(base) = self.nearest(connection, digests, known)? else {
            self.without = self.without.saturating_add(1);
            return Ok(None);
        };
        self.without = 0;
        let Some(theirs) = self.base(connection, base)? else { return Ok(None) };
        let difference =
            PayloadContent::parse(bytes).and_then(|ours| theirs.content.delta(&ours.digests, &ours.text));
        Ok(difference
            .filter(|(digests, text)| is_worth(digests.len() + text.len(), whole))
            .map(|(digests, text)| PayloadDelta { base, digests, text }))
    }

    /// Returns the row id of the blob of a recent document if it is stored whole, with the same content.
    pub(super) fn stored(
        &mut self,
        connection: &Connection,
        recent: &DeltaBase,
    ) -> rusqlite::Result<Option<i64>> {
        let Some(blob) = blob_id(connection, recent.blob)? else { return Ok(None) };
        if !self.whole.contains(&blob) {
            let stored = base_of(connection, blob)?;
            let Some(base) = self.base(connection, stored)? else { return Ok(None) };
            if stored != blob {
                recent.replace_by(base);
                return Ok(None);
            }
            if base.content != recent.content {
                return Ok(None);
            }
            self.whole.insert(blob);
        }
        self.without = 0;
        Ok(Some(blob))
    }

    /// Records a blob that was stored whole, and from which these digests were stripped.
    pub(super) fn remember(&mut self, blob: i64, digests: &[Digest]) {
        if !digests.is_empty() {
            self.whole.insert(blob);
        }
        if self.recent.len() + digests.len() <= RECENT {
            self.recent.extend(digests.iter().map(|digest| (mention_index::key(digest), blob)));
        }
    }

    /// Records that a blob is not stored whole any more.
    pub(super) fn shortened(&mut self, blob: i64) {
        self.whole.remove(&blob);
    }

    fn nearest(
        &mut self,
        connection: &Connection,
        digests: &[Digest],
        known: Option<i64>,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some(known) = known {
            return base_of(connection, known).map(Some);
        }
        let mut tried = HashSet::new();
        let mut best = None;
        for digest in probes(digests, PROBES) {
            for candidate in self.candidates(connection, mention_index::key(digest))? {
                if !tried.insert(candidate) {
                    continue;
                }
                let Some(base) = self.base(connection, candidate)? else { continue };
                if let Some(shared) = base.shared(digests)
                    && best.is_none_or(|(most, _)| shared > most)
                {
                    best = Some((shared, candidate));
                }
            }
            // A good base shares most digests, so one found with the first digest would be found with the others too.
            if best.is_some_and(|(shared, _)| shared * 2 > digests.len()) {
                break;
            }
        }
        Ok(best.map(|(_, blob)| blob))
    }

    /// Returns blobs that are stored whole and may contain a digest with this key, or are the bases of blobs that may.
    fn candidates(&mut self, connection: &Connection, key: u64) -> rusqlite::Result<Vec<i64>> {
        // What was stored whole in this transaction can have become the beginning of something longer.
        let recent = self.recent.get(&key).map(|blob| base_of(connection, *blob)).transpose()?;
        let mut candidates: Vec<i64> = recent.into_iter().collect();
        if self.without >= MAX_MISSES && !self.without.is_multiple_of(SAMPLE) {
            return Ok(candidates);
        }
        let index = match &mut self.index {
            Some(index) => index,
            none => none.insert(MentionIndexReader::load(connection)?),
        };
        let captures = index.captures(connection, key)?;
        for capture in captures.into_iter().rev().take(CANDIDATES) {
            let blob: Option<i64> = connection
                .prepare_cached("SELECT blob FROM mention_list WHERE capture = ?1")?
                .query_row([capture], |row| row.get(0))
                .optional()?
                .flatten();
            if let Some(blob) = blob {
                candidates.push(base_of(connection, blob)?);
            }
        }
        Ok(candidates)
    }

    /// Returns the blob with this row id, or `None` if it cannot be read or is too large.
    fn base(&mut self, connection: &Connection, blob: i64) -> rusqlite::Result<Option<Arc<DeltaBase>>> {
        if let Some(base) = self.cache.get(&blob) {
            return Ok(Some(base.clone()));
        }
        let row = connection
            .prepare_cached("SELECT size, digest FROM blob WHERE id = ?1")?
            .query_row([blob], |row| Ok((row.get::<_, usize>(0)?, BlobHash(row.get(1)?))))
            .optional()?;
        let Some((size, hash)) = row.filter(|(size, _)| *size < MAX_SIZE) else { return Ok(None) };
        // Reads of that blob report the damage. It does not prevent storing another one whole.
        let payloads = PayloadReader { connection, readers: &self.readers };
        let Ok(content) = payloads.verified_content(blob) else { return Ok(None) };
        let base = Arc::new(DeltaBase::new(hash, content));
        if self.cached_bytes + size > AT_HAND {
            self.cache.clear();
            self.cached_bytes = 0;
        }
        self.cached_bytes += size;
        self.cache.insert(blob, base.clone());
        Ok(Some(base))
    }
}

/// Returns the delta base of `blob`, or `blob` itself if it is stored whole.
fn base_of(connection: &Connection, blob: i64) -> rusqlite::Result<i64> {
    let base = connection
        .prepare_cached("SELECT base FROM payload WHERE blob = ?1")?
        .query_row([blob], |row| row.get::<_, Option<i64>>(0))
        .optional()?;
    Ok(base.flatten().unwrap_or(blob))
}
