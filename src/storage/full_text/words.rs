//! The words of a text.

use std::ops::Range;

use super::characters::{folded, is_diacritic, is_of_word, is_word};

/// Words are compared up to this length.
const MAX_WORD_BYTES: usize = 32_768;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct Word {
    /// The form in which it is compared.
    pub(in crate::storage) form: String,
    /// Its place in the text.
    pub(in crate::storage) range: Range<usize>,
}

impl AsRef<[u8]> for Word {
    fn as_ref(&self) -> &[u8] {
        self.form.as_bytes()
    }
}

/// Returns the words of a text, in order.
pub(in crate::storage) fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) =
            characters.find(|(_, character)| is_of_word(*character) || is_word(*character))?;
        let mut word = Word { form: String::new(), range: start..start };
        word.push(start, first);
        let continues = |character: char| {
            is_diacritic(character) || is_of_word(character) && !is_word(first) && !is_word(character)
        };
        while let Some((at, character)) = characters.next_if(|(_, character)| continues(*character)) {
            word.push(at, character);
        }
        Some(word)
    })
}

/// Returns the forms of the words of a text, separated by spaces: the same words for every tokenizer that splits at spaces.
pub(in crate::storage) fn separated(text: &str) -> String {
    let mut separated = String::with_capacity(text.len());
    for word in words(text) {
        separated.push_str(&word.form);
        separated.push(' ');
    }
    separated
}

impl Word {
    fn push(&mut self, at: usize, character: char) {
        if let Some(form) = folded(character)
            && self.form.len() + form.len_utf8() <= MAX_WORD_BYTES
        {
            self.form.push(form);
        }
        self.range.end = at + character.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str) -> Vec<String> {
        words(text).map(|word| word.form).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_without_case_and_accents() {
        assert_eq!(
            forms("label_status don't: Ärger, CAFE\u{301}S Ⅷ 42"),
            ["label", "status", "don", "t", "arger", "cafes", "ⅷ", "42"]
        );
        assert_eq!(forms("\u{301} \0—🎉"), Vec::<String>::new());
        assert_eq!(forms("straße İstanbul"), ["straße", "istanbul"]);
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_words() {
        assert_eq!(forms("日本語text、カード"), ["日", "本", "語", "text", "カ", "ー", "ド"]);
        assert_eq!(forms("重新运行fix-batch后"), ["重", "新", "运", "行", "fix", "batch", "后"]);
        assert_eq!(forms("ที่API"), ["ท", "\u{e35}", "\u{e48}", "api"]);
        assert_eq!(forms("환불을"), ["환", "불", "을"]);
        assert_eq!(forms("ＡＰＩ２"), ["api2"]);
        assert_eq!(separated("(五十, Café)"), "五 十 cafe ");
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
