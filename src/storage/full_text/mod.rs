//! The words of texts, and which texts match: one tokenizer for all engines, whatever their databases have.

mod characters;
mod query;
mod words;

pub(in crate::storage) use query::{FullTextQuery, Phrase, PhraseOccurrence};
pub(in crate::storage) use words::{separated, words};
