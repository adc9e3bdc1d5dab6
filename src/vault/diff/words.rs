//! Word-level differences between two texts.

use super::align::align;

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
