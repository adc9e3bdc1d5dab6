//! The encoding of mention lists.
//!
//! A list has the mentions of a capture in the roles of one group: its digests, sorted and distinct, and its entries. An
//! entry is the number of a role, a place, and the position of the digest among those of the list. The lowest bit of a
//! place is set if the other bits are the length of a pointer, which follows, and clear if they are an index.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{PostgresError, PostgresResult};
use super::parameters;
use crate::artifact::ArtifactLocation;
use crate::digest::Digest;
use crate::storage::varint;

/// A mention in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedMention {
    pub(super) role: i64,
    pub(super) place: ArtifactLocation,
    pub(super) digest: Digest,
}

/// A list of the mentions of a capture in the roles of one group, as it is stored.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredList {
    /// The number of the group.
    pub(super) group: i64,
    pub(super) digests: Vec<u8>,
    pub(super) entries: Vec<u8>,
    /// The digests at place 0, sorted and distinct; nothing if there are none.
    pub(super) firsts: Option<Vec<u8>>,
}

/// Returns the lists of the mentions of a capture, each of which is given with the number of its group.
pub(super) fn by_group(mentions: impl IntoIterator<Item = (i64, ListedMention)>) -> Vec<StoredList> {
    let mut groups: BTreeMap<i64, BTreeSet<ListedMention>> = BTreeMap::new();
    for (group, mention) in mentions {
        groups.entry(group).or_default().insert(mention);
    }
    groups.into_iter().map(|(group, mentions)| encode(group, &mentions)).collect()
}

/// Encodes the mentions of a capture in the roles of one group.
fn encode(group: i64, mentions: &BTreeSet<ListedMention>) -> StoredList {
    let mut positions: BTreeMap<Digest, u64> = mentions.iter().map(|entry| (entry.digest, 0)).collect();
    positions.values_mut().zip(0..).for_each(|(position, number)| *position = number);
    let mut entries = Vec::new();
    for entry in mentions {
        varint::write(&mut entries, entry.role.cast_unsigned());
        match &entry.place {
            ArtifactLocation::Index(index) => varint::write(&mut entries, u64::from(*index) << 1),
            ArtifactLocation::Pointer(pointer) => {
                varint::write(&mut entries, (pointer.len() as u64) << 1 | 1);
                entries.extend_from_slice(pointer.as_bytes());
            }
        }
        varint::write(&mut entries, positions.get(&entry.digest).copied().unwrap_or(u64::MAX));
    }
    let is_first = |entry: &&ListedMention| entry.place == ArtifactLocation::Index(0);
    let firsts: BTreeSet<Digest> = mentions.iter().filter(is_first).map(|entry| entry.digest).collect();
    let firsts = (!firsts.is_empty()).then(|| joined(firsts));
    StoredList { group, digests: joined(positions.into_keys()), entries, firsts }
}

/// Decodes a list.
pub(super) fn decode(digests: &[u8], entries: &[u8]) -> PostgresResult<Vec<ListedMention>> {
    let digests = parameters::digests(digests)?;
    let mut rest = entries;
    let mut decoded = Vec::new();
    while !rest.is_empty() {
        let entry = entry(&digests, &mut rest);
        decoded.push(entry.ok_or_else(|| PostgresError::damaged("a list of mentions cannot be decoded"))?);
    }
    Ok(decoded)
}

fn entry(digests: &[Digest], rest: &mut &[u8]) -> Option<ListedMention> {
    let role = u32::try_from(varint::read(rest)?).ok()?.into();
    let head = varint::read(rest)?;
    let place = if head & 1 == 0 {
        ArtifactLocation::Index(u32::try_from(head >> 1).ok()?)
    } else {
        let (pointer, after) = rest.split_at_checked(usize::try_from(head >> 1).ok()?)?;
        *rest = after;
        ArtifactLocation::Pointer(std::str::from_utf8(pointer).ok()?.to_owned())
    };
    let digest = *digests.get(usize::try_from(varint::read(rest)?).ok()?)?;
    Some(ListedMention { role, place, digest })
}

/// Returns digests one after the other.
fn joined(digests: impl IntoIterator<Item = Digest>) -> Vec<u8> {
    digests.into_iter().flat_map(|digest| *digest.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> impl Strategy<Value = ArtifactLocation> {
        prop_oneof![
            any::<u32>().prop_map(ArtifactLocation::Index),
            Just(ArtifactLocation::Index(0)),
            "[a-z/é\0]{0,9}".prop_map(ArtifactLocation::Pointer)
        ]
    }

    proptest! {
        #[test]
        fn lists_come_back(entries in proptest::collection::vec((1..4_i64, place(), 0..5_u8), 0..30)) {
            let entry = |(role, place, digest): (i64, ArtifactLocation, u8)| {
                ListedMention { role, place, digest: Digest::from_content(&[digest]) }
            };
            let mut entries: Vec<ListedMention> = entries.into_iter().map(entry).collect();
            let list = encode(1, &entries.iter().cloned().collect());
            entries.sort_unstable();
            entries.dedup();
            let digests = parameters::digests(&list.digests).unwrap();
            prop_assert!(digests.is_sorted_by(|one, other| one < other));
            prop_assert_eq!(decode(&list.digests, &list.entries).unwrap(), entries);
            if !list.entries.is_empty() {
                prop_assert!(decode(&[], &list.entries).is_err());
            }
        }
    }
}
