//! The words of texts, and which texts match, by the rules of SQLite's FTS5: for engines whose database has others.

mod characters;
mod query;
mod words;

#[cfg(feature = "postgres")]
pub(in crate::storage) use query::Phrase;
pub(in crate::storage) use query::{FullTextQuery, Matcher, PhraseOccurrence};
pub(in crate::storage) use words::words;
