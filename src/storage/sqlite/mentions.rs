//! The encoding and the reading of mention lists.
//!
//! A list belongs to a capture and refers to the digests that were stripped from one of its blobs; digests that are not
//! there are in the list itself. After their number and their bytes come the roles, each with its row id and the number of
//! items that follow. An item is a run of places that are numbers, or one place that is a pointer. In a run, places and the
//! positions of their digests advance in equal steps: the prompts of a session are one run.

use rusqlite::OptionalExtension;

use super::error::{ReadFailure, index_damage};
use super::payload::PayloadReader;
use crate::artifact::ArtifactLocation;
use crate::digest::Digest;
use crate::storage::varint;

/// A digest at a place, with the row id of its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MentionListEntry {
    pub(super) role: i64,
    pub(super) place: ArtifactLocation,
    /// The position of the digest among those of the blob followed by those of the list.
    pub(super) position: usize,
}

/// The mentions of a capture.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MentionList {
    /// Digests that the blob does not have.
    pub(super) own: Vec<Digest>,
    /// Ordered by role and place.
    pub(super) entries: Vec<MentionListEntry>,
}

/// The lowest bit of an item's head: set if the other bits are the length of a pointer in bytes, clear if they are the
/// number of places of a run.
const POINTER: u64 = 1;

impl MentionList {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::write(&mut out, self.own.len() as u64);
        for digest in &self.own {
            out.extend_from_slice(digest.as_bytes());
        }
        for entries in self.entries.chunk_by(|one, other| one.role == other.role) {
            let mut writer = MentionListEncoder::default();
            for entry in entries {
                writer.entry(entry);
            }
            writer.end_run();
            varint::write(&mut out, entries.first().map_or(0, |entry| entry.role.cast_unsigned()));
            varint::write(&mut out, writer.items);
            out.append(&mut writer.out);
        }
        out
    }

    /// Decodes the output of [`MentionList::encode`]. Returns `None` if it is damaged, or has more than `most` entries:
    /// a few bytes can encode any number of them.
    pub(super) fn decode(bytes: &[u8], most: usize) -> Option<Self> {
        let mut rest = bytes;
        let mut list = Self::default();
        for _ in 0..varint::read(&mut rest)? {
            let (digest, after) = rest.split_first_chunk::<32>()?;
            rest = after;
            list.own.push(Digest::from_bytes(*digest));
        }
        while !rest.is_empty() {
            let role = varint::read(&mut rest)?.cast_signed();
            let items = varint::read(&mut rest)?;
            let mut cursor = MentionListCursor::default();
            for _ in 0..items {
                list.item(role, &mut cursor, &mut rest, most)?;
            }
        }
        Some(list)
    }

    fn item(
        &mut self,
        role: i64,
        cursor: &mut MentionListCursor,
        rest: &mut &[u8],
        most: usize,
    ) -> Option<()> {
        let head = varint::read(rest)?;
        let length = usize::try_from(head >> 1).ok()?;
        let room = most.checked_sub(self.entries.len())?;
        if head & POINTER == POINTER {
            let step = EntryStride { place: 0, position: varint::read_signed(rest)? };
            let (text, after) = rest.split_at_checked(length).filter(|_| room > 0)?;
            *rest = after;
            cursor.advance(step)?;
            let place = ArtifactLocation::Pointer(String::from_utf8(text.to_vec()).ok()?);
            self.entries.push(MentionListEntry { role, place, position: cursor.position()? });
            return Some(());
        }
        let step = EntryStride { place: varint::read_signed(rest)?, position: varint::read_signed(rest)? };
        if length > room {
            return None;
        }
        for _ in 0..length {
            cursor.advance(step)?;
            let place = ArtifactLocation::Index(u32::try_from(cursor.place).ok()?);
            self.entries.push(MentionListEntry { role, place, position: cursor.position()? });
        }
        Some(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct EntryStride {
    place: i64,
    position: i64,
}

/// The place and position of the last entry, initially before the first ones.
struct MentionListCursor {
    place: i64,
    position: i64,
}

impl Default for MentionListCursor {
    fn default() -> Self {
        Self { place: -1, position: -1 }
    }
}

impl MentionListCursor {
    fn advance(&mut self, step: EntryStride) -> Option<()> {
        self.place = self.place.checked_add(step.place)?;
        self.position = self.position.checked_add(step.position)?;
        Some(())
    }

    fn position(&self) -> Option<usize> {
        usize::try_from(self.position).ok()
    }
}

#[derive(Default)]
struct MentionListEncoder {
    out: Vec<u8>,
    items: u64,
    cursor: MentionListCursor,
    run: Option<(u64, EntryStride)>,
}

impl MentionListEncoder {
    fn entry(&mut self, entry: &MentionListEntry) {
        let position = i64::try_from(entry.position).unwrap_or(i64::MAX);
        let by = position - self.cursor.position;
        self.cursor.position = position;
        match &entry.place {
            ArtifactLocation::Index(index) => {
                let step = EntryStride { place: i64::from(*index) - self.cursor.place, position: by };
                self.cursor.place = i64::from(*index);
                match &mut self.run {
                    Some((length, running)) if *running == step => *length += 1,
                    _ => {
                        self.end_run();
                        self.run = Some((1, step));
                    }
                }
            }
            ArtifactLocation::Pointer(pointer) => {
                self.end_run();
                varint::write(&mut self.out, (pointer.len() as u64) << 1 | POINTER);
                varint::write_signed(&mut self.out, by);
                self.out.extend_from_slice(pointer.as_bytes());
                self.items += 1;
            }
        }
    }

    fn end_run(&mut self) {
        if let Some((length, step)) = self.run.take() {
            varint::write(&mut self.out, length << 1);
            varint::write_signed(&mut self.out, step.place);
            varint::write_signed(&mut self.out, step.position);
            self.items += 1;
        }
    }
}

/// Maximum number of entries of a list, whatever size a damaged vault states for a capture.
const MAX_ENTRIES: usize = 1 << 26;

/// A mention, with the row id of its role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MentionRow {
    pub(super) role: i64,
    pub(super) place: ArtifactLocation,
    pub(super) digest: Digest,
}

/// A reader of mention lists.
#[derive(Clone, Copy)]
pub(super) struct MentionListReader<'c> {
    pub(super) payloads: PayloadReader<'c>,
}

impl MentionListReader<'_> {
    /// Returns the mentions of an artifact's captures, ordered by role, place and digest.
    pub(super) fn for_artifact(&self, artifact: i64) -> rusqlite::Result<Vec<MentionRow>> {
        let mut statement = self
            .payloads
            .connection
            .prepare_cached("SELECT id FROM capture WHERE artifact = ?1 ORDER BY id")?;
        let captures = statement.query_map([artifact], |row| row.get(0))?;
        let mut mentions = Vec::new();
        for capture in captures {
            mentions.append(&mut self.for_capture(capture?)?);
        }
        mentions.sort_unstable();
        mentions.dedup();
        Ok(mentions)
    }

    /// Returns the mentions of some captures of an artifact that are older than `before`, sorted by role, place and
    /// digest: those of the first capture and of the latest ones, at most `most` captures in total.
    pub(super) fn of_older_captures(
        &self,
        artifact: i64,
        before: i64,
        most: usize,
    ) -> rusqlite::Result<Vec<MentionRow>> {
        let captures = |order: &str, limit: usize| -> rusqlite::Result<Vec<i64>> {
            let sql = format!(
                "SELECT id FROM capture WHERE artifact = ?1 AND id < ?2 ORDER BY id {order} LIMIT ?3"
            );
            let mut statement = self.payloads.connection.prepare_cached(&sql)?;
            statement.query_map((artifact, before, limit), |row| row.get(0))?.collect()
        };
        let mut some = captures("ASC", 1)?;
        some.extend(captures("DESC", most.saturating_sub(1))?);
        some.sort_unstable();
        some.dedup();
        let mut mentions = Vec::new();
        for capture in some {
            mentions.append(&mut self.for_capture(capture)?);
        }
        mentions.sort_unstable();
        mentions.dedup();
        Ok(mentions)
    }

    /// Returns the mentions of a capture; empty if it has no list.
    pub(super) fn for_capture(&self, capture: i64) -> rusqlite::Result<Vec<MentionRow>> {
        let Some((list, digests)) = self.read(capture)? else { return Ok(Vec::new()) };
        let mentions = list.entries.into_iter().map(|entry| {
            let digest = digests.get(entry.position).copied();
            Some(MentionRow { role: entry.role, place: entry.place, digest: digest? })
        });
        mentions.collect::<Option<_>>().ok_or_else(|| damaged(capture))
    }

    /// Returns the mentions of a capture whose digests satisfy `is_match`.
    pub(super) fn with(
        &self,
        capture: i64,
        is_match: impl Fn(&Digest) -> bool,
    ) -> rusqlite::Result<Vec<MentionRow>> {
        let Some((list, digests)) = self.read(capture)? else { return Ok(Vec::new()) };
        let found: Vec<usize> =
            (0..).zip(&digests).filter(|(_, digest)| is_match(digest)).map(|(at, _)| at).collect();
        let entries = list.entries.into_iter().filter(|entry| found.binary_search(&entry.position).is_ok());
        let mentions = entries.map(|entry| {
            let digest = digests.get(entry.position).copied();
            Some(MentionRow { role: entry.role, place: entry.place, digest: digest? })
        });
        mentions.collect::<Option<_>>().ok_or_else(|| damaged(capture))
    }

    /// Returns the list of a capture and the digests that it refers to.
    fn read(&self, capture: i64) -> rusqlite::Result<Option<(MentionList, Vec<Digest>)>> {
        let row = self
            .payloads
            .connection
            .prepare_cached(
                "SELECT l.blob, l.bytes, c.size FROM mention_list l LEFT JOIN capture c ON c.id = l.capture
                  WHERE l.capture = ?1",
            )?
            .query_row([capture], |row| {
                // No byte of a capture belongs to two mentions.
                let size = row.get::<_, Option<i64>>(2)?.and_then(|size| usize::try_from(size).ok());
                let list = MentionList::decode(
                    row.get_ref(1)?.as_blob()?,
                    size.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES),
                );
                Ok((row.get::<_, Option<i64>>(0)?, list))
            })
            .optional()?;
        let Some((blob, list)) = row else { return Ok(None) };
        let mut list = list.ok_or_else(|| damaged(capture))?;
        let mut digests = match blob.map(|blob| self.payloads.digests(blob)) {
            None => Vec::new(),
            Some(Ok(digests)) => digests,
            Some(Err(ReadFailure::Database(error))) => return Err(error),
            Some(Err(ReadFailure::Defect(defect))) => return Err(index_damage(defect.to_string())),
        };
        digests.append(&mut list.own);
        Ok(Some((list, digests)))
    }
}

fn damaged(capture: i64) -> rusqlite::Error {
    index_damage(format!("the list of mentions of capture {capture} cannot be read"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_mentions_of_a_session_take_a_few_bytes() {
        let at = |role, index: u32, position| MentionListEntry {
            role,
            place: ArtifactLocation::Index(index),
            position,
        };
        let prompts = (0..1000).map(|index| at(1, index, 2 * index as usize));
        let responses = (0..1000).map(|index| at(2, index, 2 * index as usize + 1));
        let list = MentionList { own: Vec::new(), entries: prompts.chain(responses).collect() };
        let bytes = list.encode();
        assert_eq!(bytes, [0, 1, 2, 2, 2, 2, 0xce, 0x0f, 2, 4, 2, 1, 0xd0, 0x0f, 2, 4]);
        assert_eq!(MentionList::decode(&bytes, list.entries.len()), Some(list));
    }

    fn place() -> impl Strategy<Value = ArtifactLocation> {
        prop_oneof![
            any::<u32>().prop_map(ArtifactLocation::Index),
            "[a-z/é]{0,9}".prop_map(ArtifactLocation::Pointer)
        ]
    }

    proptest! {
        #[test]
        fn lists_come_back(
            own in proptest::collection::vec(any::<[u8; 32]>(), 0..4),
            entries in proptest::collection::vec((1_i64..4, place(), 0_usize..9), 0..40),
        ) {
            let own = own.into_iter().map(Digest::from_bytes).collect();
            let entries = entries.into_iter().map(|(role, place, position)| MentionListEntry { role, place, position });
            let list = MentionList { own, entries: entries.collect() };
            let most = list.entries.len();
            if most > 0 {
                prop_assert_eq!(MentionList::decode(&list.encode(), most - 1), None);
            }
            prop_assert_eq!(MentionList::decode(&list.encode(), most), Some(list));
        }
    }
}
