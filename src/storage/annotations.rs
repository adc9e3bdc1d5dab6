//! Annotations of artifacts: valid tags, notes and manual links.

use crate::digest::CoreHash;

/// Maximum length of a tag in bytes.
pub const MAX_TAG_BYTES: usize = 100;

/// Maximum length of a note in bytes: about a page.
pub const MAX_NOTE_BYTES: usize = 4096;

/// Maximum length in bytes of the note of a manual link.
pub const MAX_LINK_NOTE_BYTES: usize = 1 << 20;

/// Maximum length in bytes of the relation of a manual link.
pub const MAX_RELATION_BYTES: usize = 40;

/// The tables of annotations, with the columns that refer to artifacts.
pub(in crate::storage) const ENDS: [(&str, &str); 6] = [
    ("tag", "artifact"),
    ("note", "artifact"),
    ("pin", "artifact"),
    ("label", "artifact"),
    ("link", "source"),
    ("link", "target"),
];

/// Returns whether `name` is a valid tag: 1 to 100 of the letters a-z and A-Z, digits, and `-`, `_`, `.`, `/`.
#[must_use]
pub fn is_tag(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    (1..=MAX_TAG_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns whether `text` is a valid note: not only white space, and at most 4,096 bytes.
#[must_use]
pub fn is_note(text: &str) -> bool {
    text.len() <= MAX_NOTE_BYTES && !text.trim().is_empty()
}

/// Returns whether `text` is a valid relation of a manual link: a lowercase letter, followed by at most 39 of a-z, 0-9
/// and `-`.
#[must_use]
pub fn is_relation(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= MAX_RELATION_BYTES
        && text.bytes().all(fits)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns why `name` is not a valid tag, or `None` if it is.
pub(super) fn tag_defect(name: &str) -> Option<String> {
    (!is_tag(name)).then(|| format!("{name:?} cannot be a tag"))
}

/// Returns why `text` is not a valid note, or `None` if it is.
pub(super) fn note_defect(text: &str) -> Option<String> {
    (!is_note(text)).then(|| format!("a note must not be blank, and has at most {MAX_NOTE_BYTES} bytes"))
}

/// Returns why a manual link is not valid, or `None` if it is.
pub(super) fn link_defect(
    source: CoreHash,
    relation: &str,
    target: CoreHash,
    note: Option<&str>,
) -> Option<String> {
    if !is_relation(relation) {
        return Some(format!("{relation:?} cannot be the relation of a link"));
    }
    if source == target {
        return Some(format!("{source} cannot be linked to itself"));
    }
    let bytes = note.map_or(0, str::len);
    let is_too_long = bytes > MAX_LINK_NOTE_BYTES;
    is_too_long
        .then(|| format!("the note of a link has at most {MAX_LINK_NOTE_BYTES} bytes, this one has {bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_something_to_say_and_an_end() {
        assert!(is_note("a") && is_note(&"a".repeat(MAX_NOTE_BYTES)) && is_note("two\nlines"));
        assert!(!is_note("") && !is_note(" \n\t") && !is_note(&"a".repeat(MAX_NOTE_BYTES + 1)));
    }
}
