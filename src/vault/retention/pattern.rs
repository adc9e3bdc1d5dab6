//! Tag patterns of retention rules.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::storage::is_tag;

/// A tag, or a prefix of tags: `release/1`, `release/*`, `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TagPattern {
    /// The tag or the prefix.
    text: String,
    is_prefix: bool,
}

/// The error for an invalid tag pattern, which no tag could match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is empty.
    #[error("it is empty, but tags are not")]
    Empty,
    /// A `*` is not at the end.
    #[error("a * can only be the last character, where it matches any suffix")]
    Star,
    /// No tag contains such characters or is this long.
    #[error("no tag can match it: a tag consists of 1 to 100 characters of a-z, A-Z, 0-9, - _ . /")]
    NotATag,
}

impl TagPattern {
    /// Returns whether `tag` matches.
    #[must_use]
    pub fn matches(&self, tag: &str) -> bool {
        if self.is_prefix { tag.starts_with(&self.text) } else { tag == self.text }
    }

    /// Returns whether it is a prefix pattern.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.is_prefix
    }
}

impl FromStr for TagPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (name, is_prefix) = text.strip_suffix('*').map_or((text, false), |prefix| (prefix, true));
        match name {
            "" if !is_prefix => Err(PatternError::Empty),
            name if name.contains('*') => Err(PatternError::Star),
            name if !name.is_empty() && !is_tag(name) => Err(PatternError::NotATag),
            name => Ok(Self { text: name.to_owned(), is_prefix }),
        }
    }
}

impl TryFrom<String> for TagPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<TagPattern> for String {
    fn from(pattern: TagPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for TagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_can_match_nothing_is_not_a_pattern() {
        for (text, error) in [
            ("", PatternError::Empty),
            ("**", PatternError::Star),
            ("a*b", PatternError::Star),
            ("*a", PatternError::Star),
            (" base", PatternError::NotATag),
            ("base ", PatternError::NotATag),
            ("release/?", PatternError::NotATag),
            ("@base", PatternError::NotATag),
            (&"a".repeat(101), PatternError::NotATag),
        ] {
            assert_eq!(text.parse::<TagPattern>(), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_pattern_matches_a_tag_and_is_written_as_it_is_read(text in "[a-c/.*@ ]{0,6}") {
            if let Ok(pattern) = text.parse::<TagPattern>() {
                let tag = text.replace('*', "x");
                prop_assert!(is_tag(&tag) && pattern.matches(&tag), "{}", tag);
                prop_assert_eq!(pattern.to_string(), text);
            }
        }
    }
}
