//! Documents that are nearly the same as one that is stored already: recordings of the same run.
//!
//! Two recordings share most of what they mention. So the nearest sibling of a new document is found through the index of
//! mentions, and if the document is short as a difference to it, that is how it is stored. What differences refer to is
//! always stored whole: reading one takes one other payload, however often a run was recorded.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rusqlite::{Connection, OptionalExtension};

use super::dictionaries::Readers;
use super::payload::{Content, DIFFERENCE, Payloads};
use super::segments::{self, Segments};
use crate::digest::Digest;

/// Larger documents are not compared: both would have to be in memory.
const MAX_SIZE: usize = 4 << 20;

/// Smaller ones are not worth it.
const MIN_SIZE: usize = 512;

/// So many of the document's digests are looked up, evenly spread.
const PROBES: usize = 2;

/// So many candidates are looked at for each, the newest first.
const CANDIDATES: usize = 8;

/// A sibling has at least one in so many of the document's digests.
const SHARED: usize = 4;

/// Differences must be shorter than so many hundredths of the document's own compressed form.
const WORTH: usize = 60;

/// So many bytes of documents that others are differences to are kept at hand.
const AT_HAND: usize = 16 << 20;

/// What was added in this transaction and is not in the index yet may have so many digests.
const RECENT: usize = 1 << 18;

/// After so many documents in a row without a sibling, the index is asked for one in so many only: a look-up in a large
/// vault costs as much as a document.
const PATIENCE: u32 = 64;
const SAMPLE: u32 = 32;

/// How a payload is stored as a difference to another.
pub(super) struct Difference {
    pub(super) base: i64,
    pub(super) digests: Vec<u8>,
    pub(super) text: Vec<u8>,
}

/// Finds siblings, within one transaction.
#[derive(Default)]
pub(super) struct Siblings {
    /// Blobs that were stored whole in this transaction, by the keys of their digests.
    recent: HashMap<u64, i64>,
    /// The index as it was when the transaction began.
    index: Option<Segments>,
    /// So many documents in a row had no sibling.
    without: u32,
    at_hand: HashMap<i64, Rc<Base>>,
    bytes_at_hand: usize,
    pub(super) readers: Readers,
}

struct Base {
    content: Content,
    digests: HashSet<Digest>,
}

impl Siblings {
    /// The document as a difference to its nearest sibling, if that is much shorter than `whole`. `known` is a blob of
    /// the same artifact, if there is one.
    pub(super) fn difference(
        &mut self,
        connection: &Connection,
        bytes: &[u8],
        digests: &[Digest],
        known: Option<i64>,
        whole: usize,
    ) -> rusqlite::Result<Option<Difference>> {
        if !(MIN_SIZE..MAX_SIZE).contains(&bytes.len()) {
            return Ok(None);
        }
        let Some(base) = self.nearest(connection, digests, known)? else {
            self.without = self.without.saturating_add(1);
            return Ok(None);
        };
        self.without = 0;
        let Some(theirs) = self.base(connection, base)? else { return Ok(None) };
        let difference = Content::of(bytes).and_then(|ours| ours.difference(&theirs.content));
        Ok(difference
            .filter(|(digests, text)| (digests.len() + text.len()) * 100 < whole * WORTH)
            .map(|(digests, text)| Difference { base, digests, text }))
    }

    /// Remembers a blob that was stored whole and has these digests.
    pub(super) fn remember(&mut self, blob: i64, digests: &[Digest]) {
        if self.recent.len() + digests.len() <= RECENT {
            self.recent.extend(digests.iter().map(|digest| (segments::key(digest), blob)));
        }
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
        let last = digests.len().saturating_sub(1);
        let mut probes: Vec<usize> = (0..PROBES).map(|probe| last * probe / (PROBES - 1)).collect();
        probes.dedup();
        for digest in probes.into_iter().filter_map(|probe| digests.get(probe)) {
            for candidate in self.candidates(connection, segments::key(digest))? {
                if !tried.insert(candidate) {
                    continue;
                }
                let Some(base) = self.base(connection, candidate)? else { continue };
                let shared = digests.iter().filter(|digest| base.digests.contains(digest)).count();
                if shared * SHARED >= digests.len() && best.is_none_or(|(most, _)| shared > most) {
                    best = Some((shared, candidate));
                }
            }
            // Siblings share most digests, so one that was found with the first is found with the others as well.
            if best.is_some_and(|(shared, _)| shared * 2 > digests.len()) {
                break;
            }
        }
        Ok(best.map(|(_, blob)| blob))
    }

    /// Blobs that are stored whole and may have a digest with this key, or are the bases of such.
    fn candidates(&mut self, connection: &Connection, key: u64) -> rusqlite::Result<Vec<i64>> {
        let mut candidates: Vec<i64> = self.recent.get(&key).copied().into_iter().collect();
        if self.without >= PATIENCE && !self.without.is_multiple_of(SAMPLE) {
            return Ok(candidates);
        }
        let index = match &mut self.index {
            Some(index) => index,
            none => none.insert(Segments::of(connection)?),
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

    /// The blob with this number; nothing if it cannot be read, or is too large.
    fn base(&mut self, connection: &Connection, blob: i64) -> rusqlite::Result<Option<Rc<Base>>> {
        if let Some(base) = self.at_hand.get(&blob) {
            return Ok(Some(base.clone()));
        }
        let size: usize = connection
            .prepare_cached("SELECT size FROM blob WHERE id = ?1")?
            .query_row([blob], |row| row.get(0))?;
        if size >= MAX_SIZE {
            return Ok(None);
        }
        // Whoever reads that blob will hear of damage. It is no reason not to store another one whole.
        let payloads = Payloads { connection, readers: &self.readers };
        let Ok(content) = payloads.verified_content(blob) else { return Ok(None) };
        let digests = content.digests().collect();
        let base = Rc::new(Base { content, digests });
        if self.bytes_at_hand + size > AT_HAND {
            self.at_hand.clear();
            self.bytes_at_hand = 0;
        }
        self.bytes_at_hand += size;
        self.at_hand.insert(blob, base.clone());
        Ok(Some(base))
    }
}

/// The blob that `blob` is stored as a difference to, or `blob` itself.
fn base_of(connection: &Connection, blob: i64) -> rusqlite::Result<i64> {
    let row = connection
        .prepare_cached("SELECT encoding, base FROM payload WHERE blob = ?1")?
        .query_row([blob], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))
        .optional()?;
    Ok(match row {
        Some((DIFFERENCE, Some(base))) => base,
        _ => blob,
    })
}
