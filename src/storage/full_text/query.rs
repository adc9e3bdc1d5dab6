//! Search terms, and where they occur in the words of a text.

use std::ops::Range;

use super::words::{Word, words};
use crate::artifact::Field;
use crate::storage::interface::{Term, Terms};

/// Words that stand one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct Phrase {
    /// The forms of the words; at least one.
    pub(in crate::storage) words: Vec<String>,
    /// Whether words that begin with the last one also match.
    pub(in crate::storage) is_prefix: bool,
}

/// Search terms as words. Terms without words are left out, and so are alternatives without terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct FullTextQuery {
    pub(in crate::storage) alternatives: Vec<Vec<Phrase>>,
    fields: Vec<Field>,
}

/// An occurrence of a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct PhraseOccurrence {
    /// The numbers of the words, from 0.
    pub(in crate::storage) words: Range<usize>,
    /// The number of the phrase among those of all alternatives.
    pub(in crate::storage) phrase: usize,
}

impl Phrase {
    /// Returns `None` for a term without words.
    fn new(term: &Term) -> Option<Self> {
        let words: Vec<String> = words(&term.text).map(|word| word.form).collect();
        (!words.is_empty()).then_some(Self { words, is_prefix: term.is_prefix })
    }

    /// Returns the numbers of the words at which the phrase begins.
    pub(in crate::storage) fn occurrences<'s, W: AsRef<[u8]>>(
        &'s self,
        text: &'s [W],
    ) -> impl Iterator<Item = usize> + 's {
        let windows = text.windows(self.words.len()).enumerate();
        windows.filter(|(_, window)| self.is_at(window)).map(|(at, _)| at)
    }

    fn is_at<W: AsRef<[u8]>>(&self, window: &[W]) -> bool {
        let (Some((last, first)), Some((found, before))) = (self.words.split_last(), window.split_last())
        else {
            return false;
        };
        let found = found.as_ref();
        let is_last =
            if self.is_prefix { found.starts_with(last.as_bytes()) } else { found == last.as_bytes() };
        is_last && first.iter().zip(before).all(|(expected, found)| expected.as_bytes() == found.as_ref())
    }
}

impl FullTextQuery {
    pub(in crate::storage) fn new(terms: &Terms) -> Self {
        let phrases = |terms: &Vec<Term>| terms.iter().filter_map(Phrase::new).collect();
        let alternatives = terms.alternatives.iter().map(phrases);
        let alternatives = alternatives.filter(|phrases: &Vec<Phrase>| !phrases.is_empty()).collect();
        Self { alternatives, fields: terms.fields.clone() }
    }

    /// Returns whether nothing can match.
    pub(in crate::storage) fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }

    /// Returns the phrases of all alternatives.
    pub(in crate::storage) fn phrases(&self) -> impl Iterator<Item = &Phrase> {
        self.alternatives.iter().flatten()
    }

    /// Returns whether passages of a field are searched.
    pub(in crate::storage) fn has_field(&self, field: Field) -> bool {
        self.fields.is_empty() || self.fields.contains(&field)
    }

    /// Returns the fields, all if there are none.
    pub(in crate::storage) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the occurrences of the phrases of those alternatives that match, in order, or `None` if no alternative
    /// does.
    pub(in crate::storage) fn occurrences<W: AsRef<[u8]>>(
        &self,
        text: &[W],
    ) -> Option<Vec<PhraseOccurrence>> {
        let mut occurrences = Vec::new();
        let (mut number, mut is_match) = (0, false);
        for phrases in &self.alternatives {
            let found: Vec<Vec<usize>> =
                phrases.iter().map(|phrase| phrase.occurrences(text).collect()).collect();
            if found.iter().all(|found| !found.is_empty()) {
                is_match = true;
                for (at, (phrase, starts)) in phrases.iter().zip(found).enumerate() {
                    let occurrence = |start| PhraseOccurrence {
                        words: start..start + phrase.words.len(),
                        phrase: number + at,
                    };
                    occurrences.extend(starts.into_iter().map(occurrence));
                }
            }
            number += phrases.len();
        }
        occurrences.sort_unstable_by_key(|occurrence| (occurrence.words.start, occurrence.phrase));
        is_match.then_some(occurrences)
    }
}

impl Terms {
    /// Returns the byte ranges of `text`, a passage of `field`, that match, in order, or `None` if the text as a whole does
    /// not match.
    #[must_use]
    pub fn matching_ranges(&self, field: Field, text: &str) -> Option<Vec<Range<usize>>> {
        let query = FullTextQuery::new(self);
        if !query.has_field(field) {
            return None;
        }
        let words: Vec<Word> = words(text).collect();
        query.occurrences(&words).map(|occurrences| ranges(&occurrences, &words))
    }
}

/// Returns the places of the occurrences. Those that have words in common are one.
fn ranges(occurrences: &[PhraseOccurrence], words: &[Word]) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for PhraseOccurrence { words, .. } in occurrences {
        match joined.last_mut() {
            Some(last) if words.start < last.end => last.end = last.end.max(words.end),
            _ => joined.push(words.clone()),
        }
    }
    let place = |range: Range<usize>| {
        let first = words.get(range.start)?;
        Some(first.range.start..words.get(range.end.checked_sub(1)?)?.range.end)
    };
    joined.into_iter().filter_map(place).collect()
}
