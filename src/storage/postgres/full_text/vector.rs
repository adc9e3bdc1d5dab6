//! The words of a passage as a `tsvector`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::storage::full_text::words;

/// The longest word that a vector has, in bytes; PostgreSQL's limit is 2,046.
pub(super) const MAX_LEXEME_BYTES: usize = 2_000;

/// The last place that a vector has, and the number of places of one word; PostgreSQL's limits are 16,383 and 255.
const MAX_PLACE: u16 = 16_000;
const MAX_PLACES: usize = 200;

/// The size of a vector; PostgreSQL's limit is 1 MiB.
const MAX_VECTOR_BYTES: usize = 1_000_000;

/// The words of a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vector {
    /// In the text form of `tsvector`, sorted; nothing if they are too many.
    pub(super) words: Option<String>,
    /// All words, separated by spaces, if they are not exactly those of the vector.
    pub(super) rest: Option<Vec<u8>>,
}

/// The places of each word.
type LexemePositions = BTreeMap<String, Vec<u16>>;

impl Vector {
    /// Returns the words of a text, or `None` if it has none.
    pub(super) fn new(text: &str) -> Option<Self> {
        let all: Vec<String> = words(text).map(|word| word.form).collect();
        if all.is_empty() {
            return None;
        }
        let mut places = LexemePositions::new();
        let mut is_exact = all.len() <= usize::from(MAX_PLACE);
        for (place, word) in (1..).zip(&all) {
            let lexeme = lexeme(word);
            is_exact &= lexeme.len() == word.len();
            let known = places.entry(lexeme.to_owned()).or_default();
            match u16::try_from(place) {
                Ok(place) if place <= MAX_PLACE && known.len() < MAX_PLACES => known.push(place),
                _ => is_exact = false,
            }
        }
        let size: usize = places.iter().map(|(lexeme, places)| lexeme.len() + 8 + 2 * places.len()).sum();
        let fits = size <= MAX_VECTOR_BYTES;
        let rest = (!is_exact || !fits).then(|| all.join(" ").into_bytes());
        Some(Self { words: fits.then(|| written(&places)), rest })
    }

    /// Returns a stored vector, in the form of [`Vector::new`]. The server sorts the words in another order.
    pub(super) fn from_stored(words: Option<&str>, rest: Option<Vec<u8>>) -> Self {
        Self { words: words.map(|words| written(&read(words))), rest }
    }
}

/// Returns the part of a word that is in a vector.
pub(super) fn lexeme(word: &str) -> &str {
    let end = word.floor_char_boundary(MAX_LEXEME_BYTES);
    word.get(..end).unwrap_or(word)
}

/// Words have no quotation marks and no backslashes.
fn written(places: &LexemePositions) -> String {
    let mut text = String::new();
    for (lexeme, places) in places {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{separator}'{lexeme}'");
        for (number, place) in places.iter().enumerate() {
            let _ = write!(text, "{}{place}", if number == 0 { ':' } else { ',' });
        }
    }
    text
}

fn read(text: &str) -> LexemePositions {
    let word = |word: &str| {
        let (lexeme, places) = word.split_once(':').unwrap_or((word, ""));
        let places = places.split(',').filter_map(|place| place.parse().ok()).collect();
        (lexeme.trim_matches('\'').to_owned(), places)
    };
    text.split(' ').filter(|word| !word.is_empty()).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_words_with_their_places() {
        let vector = Vector::new("To the card, to THE bank").unwrap();
        assert_eq!(vector.words.as_deref(), Some("'bank':6 'card':3 'the':2,5 'to':1,4"));
        assert_eq!(vector.rest, None);
        assert_eq!(Vector::from_stored(Some("'to':1,4 'the':2,5 'bank':6 'card':3"), None), vector);
        assert_eq!(Vector::new("… — !"), None);
    }

    #[test]
    fn what_has_no_room_in_a_vector_is_stored_beside_it() {
        for text in ["ж".repeat(MAX_LEXEME_BYTES), "a ".repeat(MAX_PLACES + 1)] {
            let vector = Vector::new(&text).unwrap();
            assert!(vector.words.is_some() && vector.rest.is_some());
            assert_eq!(Vector::from_stored(vector.words.as_deref(), vector.rest.clone()), vector);
        }
        let numbers =
            |count: usize| (0..count).map(|number| format!("{number} ")).collect::<Vec<_>>().concat();
        let exact = Vector::new(&numbers(usize::from(MAX_PLACE))).unwrap();
        assert!(exact.words.is_some() && exact.rest.is_none());
        let long = Vector::new(&numbers(usize::from(MAX_PLACE) + 1)).unwrap();
        assert!(long.words.is_some() && long.rest.is_some());
        let longest = Vector::new(&numbers(200_000)).unwrap();
        assert!(longest.words.is_none() && longest.rest.is_some());
    }
}
