//! The encoding of mention lists.
//!
//! A list belongs to a capture and refers to the digests that were stripped from one of its blobs; digests that are not
//! there are in the list itself. After their number and their bytes come the roles, each with its row id and the number
//! of items that follow. An item is a run of places that are numbers, or one place that is a pointer. In a run, places
//! and the positions of their digests advance in equal steps: the prompts of a session are one run.

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
