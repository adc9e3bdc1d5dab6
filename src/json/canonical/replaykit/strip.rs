//! White space around texts.

/// Returns `text` without surrounding white space, like Python's `str.strip`.
#[must_use]
pub fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}
