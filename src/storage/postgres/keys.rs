//! Keys of texts in indexes, which cannot contain long ones.

use crate::digest::Digest;

/// Returns the key of a text. Keys are not unique: also compare the text.
pub(super) fn text_key(text: &str) -> i64 {
    Digest::from_content(text.as_bytes()).key()
}
