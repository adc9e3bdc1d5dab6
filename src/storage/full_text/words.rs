//! The words of a text.

use std::ops::Range;

use super::characters::{folded, is_diacritic, is_of_word};

/// Words are compared up to this length.
const MAX_WORD_BYTES: usize = 32_768;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct Word {
    /// The form in which it is compared, in UTF-8, possibly truncated within a character.
    pub(in crate::storage) form: Vec<u8>,
    /// Its place in the text.
    pub(in crate::storage) range: Range<usize>,
}

impl AsRef<[u8]> for Word {
    fn as_ref(&self) -> &[u8] {
        &self.form
    }
}

/// Returns the words of a text, in order.
pub(in crate::storage) fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = characters.find(|(_, character)| is_of_word(*character))?;
        let mut word = Word { form: Vec::new(), range: start..start };
        word.push(start, first);
        while let Some((at, character)) =
            characters.next_if(|(_, character)| is_of_word(*character) || is_diacritic(*character))
        {
            word.push(at, character);
        }
        word.form.truncate(MAX_WORD_BYTES);
        Some(word)
    })
}

impl Word {
    fn push(&mut self, at: usize, character: char) {
        if let Some(form) = folded(character) {
            self.form.extend_from_slice(form.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.range.end = at + character.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str) -> Vec<String> {
        words(text).map(|word| String::from_utf8(word.form).unwrap()).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_without_case_and_accents() {
        assert_eq!(
            forms("label_status don't: Ärger, CAFE\u{301}S Ⅷ 42"),
            ["label", "status", "don", "t", "arger", "cafes", "ⅷ", "42"]
        );
        assert_eq!(forms("\u{301} \0—🎉"), Vec::<String>::new());
        assert_eq!(forms("日本語 text"), ["日本語", "text"]);
    }

    #[test]
    fn places_include_the_accents_after_a_letter() {
        let text = "(E\u{301}te\u{301})";
        let found: Vec<&str> = words(text).map(|word| &text[word.range]).collect();
        assert_eq!(found, ["E\u{301}te\u{301}"]);
    }

    #[test]
    fn only_the_beginning_of_a_long_word_counts() {
        let long = "ä".repeat(MAX_WORD_BYTES + 10);
        assert_eq!(
            words(&long).map(|word| (word.form.len(), word.range.len())).collect::<Vec<_>>(),
            [(MAX_WORD_BYTES, long.len())]
        );
    }
}
