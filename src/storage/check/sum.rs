//! Comparison of collections that may be too large for memory.

use crate::digest::Digest;

/// An order-independent fingerprint of a collection of index entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::storage) struct IndexFingerprint {
    count: u64,
    sum: u128,
}

impl IndexFingerprint {
    /// Adds an entry: a key and the list that it leads to, given by its capture and its group.
    pub(in crate::storage) fn add(&mut self, key: u64, capture: i64, group: i32) {
        let mut bytes = [0; 20];
        let fields = key.to_le_bytes().into_iter().chain(capture.to_le_bytes()).chain(group.to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        let digest = Digest::from_content(&bytes);
        let number = digest.as_bytes().first_chunk::<16>().map_or(0, |first| u128::from_le_bytes(*first));
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
    }

    /// Returns the number of entries.
    pub(in crate::storage) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let of = |entries: &[(u64, i64, i32)]| {
            let mut sum = IndexFingerprint::default();
            for (key, capture, group) in entries {
                sum.add(*key, *capture, *group);
            }
            sum
        };
        let both = of(&[(1, 2, 3), (4, 5, 6)]);
        assert_eq!(both, of(&[(4, 5, 6), (1, 2, 3)]));
        for other in [(1, 2, 4), (1, 3, 3), (2, 2, 3)] {
            assert_ne!(both, of(&[other, (4, 5, 6)]));
        }
        assert_ne!(of(&[(1, 2, 3)]), of(&[(1, 2, 3), (1, 2, 3)]));
    }
}
