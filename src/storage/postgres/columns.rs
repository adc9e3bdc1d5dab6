//! Values of rows, and the form in which texts are stored, which cannot contain NUL.
//!
//! U+0000 is stored as U+0001 U+0002 and U+0001 as U+0001 U+0003, so that stored texts are ordered, and begin with each other,
//! as the texts do.

use std::borrow::Cow;

use postgres::Row;
use postgres::types::FromSql;

use crate::digest::Digest;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::sql::SqlRow;

/// Returns the value of a column.
pub(super) fn value<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> PostgresResult<T> {
    row.try_get(index).map_err(PostgresError::from)
}

/// Returns the digests that stand one after the other in a value.
pub(super) fn digests(bytes: &[u8]) -> PostgresResult<Vec<Digest>> {
    let (digests, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(PostgresError::damaged("a list of digests ends within a digest"));
    }
    Ok(digests.iter().map(|digest| Digest::from_bytes(*digest)).collect())
}

/// Returns the name of an object in object storage.
pub(super) fn object_name(row: &SqlRow, column: usize) -> PostgresResult<[u8; 16]> {
    let damaged = |_| PostgresError::damaged("the name of an object does not have 16 bytes");
    row.bytes(column)?.try_into().map_err(damaged)
}

const ESCAPE: char = '\u{1}';

/// Returns the form in which `text` is stored.
pub(super) fn to_stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => stored.push_str("\u{1}\u{2}"),
            ESCAPE => stored.push_str("\u{1}\u{3}"),
            _ => stored.push(character),
        }
    }
    Cow::Owned(stored)
}

/// Returns the text that is stored in this form.
pub(super) fn from_stored(stored: String) -> PostgresResult<String> {
    if !stored.contains(ESCAPE) {
        return Ok(stored);
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            ESCAPE => match characters.next() {
                Some('\u{2}') => '\0',
                Some('\u{3}') => ESCAPE,
                _ => return Err(PostgresError::damaged("a text has an invalid escape")),
            },
            _ => character,
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_come_back_in_their_order(one in "[\0\u{1}\u{2}\u{3}aé]{0,6}", other in "[\0\u{1}\u{2}\u{3}aé]{0,6}") {
            let stored = [&one, &other].map(|text| to_stored(text).into_owned());
            prop_assert!(!stored[0].contains('\0'));
            prop_assert_eq!(one.cmp(&other), stored[0].cmp(&stored[1]));
            prop_assert_eq!(one.starts_with(&other), stored[0].starts_with(&stored[1]));
            prop_assert_eq!(from_stored(stored[0].clone()).unwrap(), one);
        }
    }

    #[test]
    fn invalid_escapes_are_damage() {
        assert!(from_stored("a\u{1}".to_owned()).is_err() && from_stored("\u{1}a".to_owned()).is_err());
    }
}
