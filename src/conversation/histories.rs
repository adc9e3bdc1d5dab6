//! The messages of threads, by which requests find the thread that they continue.

use std::collections::HashMap;

use super::message::ConversationMessage;

/// A list of messages, as a number for each that stands for it and all messages before it. Two lists have as many first
/// messages in common as they have first numbers in common, which are found without comparing all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageHistory(Vec<u64>);

impl MessageHistory {
    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a history of the first messages.
    pub(super) fn first(&self, count: usize) -> Self {
        Self(self.0.iter().take(count).copied().collect())
    }

    /// Adds messages.
    pub(super) fn extend(&mut self, messages: &[ConversationMessage]) {
        for message in messages {
            self.push(message.key());
        }
    }

    fn push(&mut self, key: i64) {
        let before = self.0.last().copied().unwrap_or(FIRST);
        let mixed = (before ^ key.cast_unsigned()).wrapping_mul(MULTIPLIER);
        self.0.push(mixed ^ (mixed >> 32));
    }

    /// Returns the number of first messages that both have.
    pub(super) fn common(&self, other: &Self) -> usize {
        let most = self.len().min(other.len());
        first_without(most, |index| self.0.get(index) == other.0.get(index))
    }
}

/// The number that stands for no messages, and the one by which numbers are multiplied, so that their order matters: the
/// golden ratio times 2 to the power of 64, which is odd.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const MULTIPLIER: u64 = FIRST;

/// Returns the first index below `most` that does not have what all before it have, or `most`.
fn first_without(most: usize, has: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, most);
    while from < to {
        let middle = usize::midpoint(from, to);
        if has(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Finds the thread that has the most first messages of a request. To compare a request with each of many threads would take
/// a time that grows with the square of their number.
#[derive(Default)]
pub(super) struct HistoryIndex {
    /// The last thread that had these messages at its beginning. It may have been continued without them.
    threads: HashMap<u64, usize>,
}

impl HistoryIndex {
    /// Adds the history of a thread, which had another one `before`.
    pub(super) fn add(&mut self, thread: usize, before: &MessageHistory, history: &MessageHistory) {
        for beginning in history.0.iter().skip(before.common(history)) {
            let last = self.threads.entry(*beginning).or_insert(thread);
            *last = thread.max(*last);
        }
    }

    /// Returns the last thread that had the most first messages of a history, and how many; no thread had more.
    pub(super) fn nearest(&self, history: &MessageHistory) -> (usize, usize) {
        let of = |index: usize| self.threads.get(history.0.get(index)?).copied();
        let count = first_without(history.len(), |index| of(index).is_some());
        (count.checked_sub(1).and_then(of).unwrap_or(0), count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn history(keys: &[i64]) -> MessageHistory {
        let mut history = MessageHistory::default();
        for key in keys {
            history.push(*key);
        }
        history
    }

    proptest! {
        #[test]
        fn the_nearest_thread_is_the_one_that_has_most_in_common(
            steps in proptest::collection::vec((0..6_usize, proptest::collection::vec(0..3_i64, 0..6)), 1..20),
            asked in proptest::collection::vec(0..3_i64, 0..8),
        ) {
            let (mut index, mut threads) = (HistoryIndex::default(), vec![Vec::new(); 6]);
            for (thread, keys) in steps {
                // Most threads are continued.
                let keys = if keys.len() % 2 == 0 { [threads[thread].clone(), keys].concat() } else { keys };
                index.add(thread, &history(&threads[thread]), &history(&keys));
                threads[thread] = keys;
            }
            let common = |keys: &Vec<i64>| keys.iter().zip(&asked).take_while(|(one, other)| one == other).count();
            let candidates = threads.iter().enumerate().map(|(thread, keys)| (common(keys), thread));
            let (most, last) = candidates.max().unwrap();
            let (thread, count) = index.nearest(&history(&asked));
            prop_assert!(count >= most);
            for keys in &threads {
                prop_assert_eq!(history(keys).common(&history(&asked)), common(keys));
            }
            if count == most && most > 0 && common(&threads[thread]) == most {
                prop_assert_eq!(thread, last);
            }
        }
    }
}
