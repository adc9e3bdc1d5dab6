//! Sequence alignment: a patience diff that stays nearly linear for all inputs.
//!
//! Common prefixes and suffixes are removed. The rest is split at elements that occur once on both sides, as far as
//! they are in the same order, and the parts are aligned recursively. If no element is unique, the n-th occurrences on
//! both sides are paired. Short lists are aligned exactly.

use std::collections::HashMap;
use std::hash::Hash;

/// Maximum product of the lengths of two lists that are aligned exactly.
const EXACT_CELLS: usize = 4096;

/// Maximum recursion depth.
const MAX_CUTS: usize = 12;

/// Returns the pairs of indices of equal elements, ascending on both sides.
pub(super) fn align<T: Copy + Eq + Hash>(one: &[T], other: &[T]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    Sublists { one, other, at: (0, 0) }.cut(0, &mut pairs);
    pairs
}

/// Two sublists that start at the indices `at` of the whole lists.
struct Sublists<'l, T> {
    one: &'l [T],
    other: &'l [T],
    at: (usize, usize),
}

impl<T: Copy + Eq + Hash> Sublists<'_, T> {
    /// Aligns the sublists.
    fn cut(&self, cuts: usize, pairs: &mut Vec<(usize, usize)>) {
        let Self { one, other, at } = *self;
        let ends = |(one, other): &(&T, &T)| one == other;
        let before = one.iter().zip(other).take_while(ends).count();
        pairs.extend((0..before).map(|index| (at.0 + index, at.1 + index)));
        let (one, other) = (one.get(before..).unwrap_or_default(), other.get(before..).unwrap_or_default());
        let after = one.iter().rev().zip(other.iter().rev()).take_while(ends).count();
        let (inner_one, inner_other) = (one.len() - after, other.len() - after);
        let inner = (one.get(..inner_one).unwrap_or_default(), other.get(..inner_other).unwrap_or_default());
        let inner = Sublists { one: inner.0, other: inner.1, at: (at.0 + before, at.1 + before) };
        inner.between(cuts, pairs);
        let end = (at.0 + before + inner_one, at.1 + before + inner_other);
        pairs.extend((0..after).map(|index| (end.0 + index, end.1 + index)));
    }

    /// Aligns sublists without a common prefix or suffix.
    fn between(&self, cuts: usize, pairs: &mut Vec<(usize, usize)>) {
        let Self { one, other, at } = *self;
        if one.is_empty() || other.is_empty() {
            return;
        }
        if one.len().saturating_mul(other.len()) <= EXACT_CELLS {
            let found = exact(one, other);
            return pairs.extend(found.into_iter().map(|(index, other)| (at.0 + index, at.1 + other)));
        }
        if cuts == MAX_CUTS {
            return;
        }
        let mut anchors = ascending(&unique(one, other));
        if anchors.is_empty() {
            anchors = ascending(&by_occurrence(one, other));
        }
        let mut begin = (0, 0);
        for anchor in anchors.iter().copied().chain((!anchors.is_empty()).then_some((one.len(), other.len())))
        {
            let slices = (one.get(begin.0..anchor.0), other.get(begin.1..anchor.1));
            if let (Some(one), Some(other)) = slices {
                let inner = Sublists { one, other, at: (at.0 + begin.0, at.1 + begin.1) };
                inner.cut(cuts + 1, pairs);
            }
            if anchor.0 < one.len() {
                pairs.push((at.0 + anchor.0, at.1 + anchor.1));
            }
            begin = (anchor.0 + 1, anchor.1 + 1);
        }
    }
}

/// Returns the elements that occur once on both sides.
fn unique<T: Copy + Eq + Hash>(one: &[T], other: &[T]) -> Vec<(usize, usize)> {
    let (one_places, other_places) = (places(one), places(other));
    let only = |places: Option<&Vec<usize>>| match places.map(Vec::as_slice) {
        Some([only]) => Some(*only),
        _ => None,
    };
    let pair = |(index, element): (usize, &T)| {
        only(one_places.get(element)).and_then(|_| Some((index, only(other_places.get(element))?)))
    };
    one.iter().enumerate().filter_map(pair).collect()
}

/// Returns the n-th occurrence of each element on one side paired with its n-th on the other.
fn by_occurrence<T: Copy + Eq + Hash>(one: &[T], other: &[T]) -> Vec<(usize, usize)> {
    let other_places = places(other);
    let mut seen: HashMap<T, usize> = HashMap::new();
    let pair = |(index, element): (usize, &T)| {
        let nth = seen.entry(*element).or_default();
        let place = other_places.get(element)?.get(*nth)?;
        *nth += 1;
        Some((index, *place))
    };
    one.iter().enumerate().filter_map(pair).collect()
}

fn places<T: Copy + Eq + Hash>(list: &[T]) -> HashMap<T, Vec<usize>> {
    let mut places: HashMap<T, Vec<usize>> = HashMap::new();
    for (index, element) in list.iter().enumerate() {
        places.entry(*element).or_default().push(index);
    }
    places
}

/// Returns the longest subsequence of `pairs`, which ascend on one side, that also ascends on the other side.
fn ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair that ends the best sequence; for each pair, its predecessor.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let other_of = |index: usize| pairs.get(index).map_or(0, |pair| pair.1);
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| other_of(*end) < pair.1);
        before.push(length.checked_sub(1).and_then(|last| ends.get(last).copied()));
        ends.truncate(ends.len().max(length + 1));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let next = |index: &usize| before.get(*index).copied().flatten();
    let chain = std::iter::successors(ends.last().copied(), next);
    let mut chosen: Vec<_> = chain.filter_map(|index| pairs.get(index).copied()).collect();
    chosen.reverse();
    chosen
}

/// Returns a longest common subsequence.
fn exact<T: Eq>(one: &[T], other: &[T]) -> Vec<(usize, usize)> {
    // Row by row from the end: the length of the longest common subsequence of the remaining elements.
    let mut rows = vec![vec![0_usize; other.len() + 1]];
    for element in one.iter().rev() {
        let below = rows.last().cloned().unwrap_or_default();
        let mut row = vec![0; other.len() + 1];
        for index in (0..other.len()).rev() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(0);
            let best = if other.get(index) == Some(element) {
                cell(&below, index + 1) + 1
            } else {
                cell(&below, index).max(cell(&row, index + 1))
            };
            if let Some(here) = row.get_mut(index) {
                *here = best;
            }
        }
        rows.push(row);
    }
    rows.reverse();
    let length = |at: (usize, usize)| rows.get(at.0).and_then(|row| row.get(at.1)).copied().unwrap_or(0);
    let (mut at, mut pairs) = ((0, 0), Vec::new());
    while at.0 < one.len() && at.1 < other.len() {
        if one.get(at.0) == other.get(at.1) {
            pairs.push(at);
            at = (at.0 + 1, at.1 + 1);
        } else if length((at.0 + 1, at.1)) >= length((at.0, at.1 + 1)) {
            at.0 += 1;
        } else {
            at.1 += 1;
        }
    }
    pairs
}

/// A span of two compared texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextDiffSpan<'t> {
    /// In both.
    Same(&'t str),
    /// Only in the first.
    Removed(&'t str),
    /// Only in the second.
    Added(&'t str),
}

/// Returns the spans that turn `one` into `other`: without the added spans they form `one`, and without the removed
/// spans `other`.
#[must_use]
pub fn words<'t>(one: &'t str, other: &'t str) -> Vec<TextDiffSpan<'t>> {
    let (one_words, other_words) = (split(one), split(other));
    let (one_texts, other_texts) = (texts(one, &one_words), texts(other, &other_words));
    let pairs = align(&one_texts, &other_texts);
    let end_of = |words: &[usize], index: usize| words.get(index).copied().unwrap_or_default();
    let (mut spans, mut at) = (Vec::new(), (0, 0));
    let mut pairs = pairs.into_iter().peekable();
    loop {
        let next = pairs.peek().copied().unwrap_or((one_texts.len(), other_texts.len()));
        let (one_end, other_end) = (end_of(&one_words, next.0), end_of(&other_words, next.1));
        spans.push(TextDiffSpan::Removed(one.get(end_of(&one_words, at.0)..one_end).unwrap_or_default()));
        spans.push(TextDiffSpan::Added(other.get(end_of(&other_words, at.1)..other_end).unwrap_or_default()));
        let mut end = next;
        while pairs.next_if_eq(&end).is_some() {
            end = (end.0 + 1, end.1 + 1);
        }
        spans.push(TextDiffSpan::Same(one.get(one_end..end_of(&one_words, end.0)).unwrap_or_default()));
        at = end;
        if next == (one_texts.len(), other_texts.len()) {
            break;
        }
    }
    spans.retain(|span| {
        !matches!(span, TextDiffSpan::Same("") | TextDiffSpan::Removed("") | TextDiffSpan::Added(""))
    });
    spans
}

/// Returns the start of each word, and the end of the text. A word is a run of letters and digits, or of white space.
fn split(text: &str) -> Vec<usize> {
    let sort = |character: char| match character {
        character if character.is_alphanumeric() || character == '_' => Some(true),
        character if character.is_whitespace() => Some(false),
        _ => None,
    };
    let mut begins = Vec::new();
    let mut last = None;
    for (at, character) in text.char_indices() {
        let this = sort(character);
        if at == 0 || this.is_none() || this != last {
            begins.push(at);
        }
        last = this;
    }
    begins.push(text.len());
    begins
}

fn texts<'t>(text: &'t str, begins: &[usize]) -> Vec<&'t str> {
    begins.windows(2).filter_map(|ends| text.get(*ends.first()?..*ends.last()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(one: &[u32], other: &[u32]) -> usize {
        let pairs = align(one, other);
        assert!(pairs.iter().all(|(index, place)| one[*index] == other[*place]));
        assert!(pairs.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1));
        pairs.len()
    }

    #[test]
    fn what_is_common_is_found() {
        assert_eq!(valid(&[1, 2, 3, 4], &[1, 3, 4, 5]), 3);
        assert_eq!(valid(&[1, 1, 2, 1], &[2, 1, 1]), 2);
        assert_eq!(valid(&[], &[1]), 0);
        let long: Vec<u32> = (0..1000).collect();
        let without: Vec<u32> = long.iter().copied().filter(|element| element % 10 != 3).collect();
        assert_eq!(valid(&long, &without), 900);
        let repeating: Vec<u32> = long.iter().map(|element| element % 7).collect();
        let shorter: Vec<u32> = repeating.iter().copied().skip(1).take(990).collect();
        assert!(valid(&repeating, &shorter) > 900);
    }

    #[test]
    fn the_worst_lists_stay_cheap() {
        let count: u32 = 100_000;
        let ascending: Vec<u32> = (0..count).collect();
        let descending: Vec<u32> = (0..count).rev().collect();
        let others: Vec<u32> = (count..2 * count).collect();
        let same = vec![7; 100_000];
        assert_eq!(valid(&ascending, &descending), 1);
        assert_eq!(valid(&ascending, &others), 0);
        assert_eq!(valid(&same, &same[..99_000]), 99_000);
        let noisy = |step: u32| -> Vec<u32> { (0..count).map(|at| at.wrapping_mul(step) % 11).collect() };
        assert!(valid(&noisy(7), &noisy(5)) > 10_000);
    }

    #[test]
    fn pieces_make_both_texts() {
        for (one, other) in [
            ("", ""),
            ("", "a b"),
            ("a fix is on its way", "a fix will come"),
            ("é😀, x", "é😁; x y"),
            ("same", "same"),
        ] {
            let spans = words(one, other);
            let put = |skip: fn(&TextDiffSpan<'_>) -> bool| -> String {
                let left = spans.iter().filter(|span| !skip(span));
                left.map(|span| match span {
                    TextDiffSpan::Same(text) | TextDiffSpan::Removed(text) | TextDiffSpan::Added(text) => {
                        *text
                    }
                })
                .collect()
            };
            assert_eq!(put(|span| matches!(span, TextDiffSpan::Added(_))), one);
            assert_eq!(put(|span| matches!(span, TextDiffSpan::Removed(_))), other);
        }
        assert_eq!(
            words("one two", "one 2"),
            [TextDiffSpan::Same("one "), TextDiffSpan::Removed("two"), TextDiffSpan::Added("2")]
        );
    }
}
