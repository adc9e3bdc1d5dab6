//! Search terms as a `tsquery`.

use super::vector::{MAX_LEXEME_BYTES, lexeme};
use crate::storage::full_text::{FullTextQuery, Phrase};
use crate::storage::{Result, StorageError};

/// The number of words of a query. The server evaluates longer ones recursively, until its stack is full.
const MAX_WORDS: usize = 5_000;

/// The number of bytes of a query; PostgreSQL's limit is 1 MiB.
const MAX_BYTES: usize = 500_000;

/// Expressions for a query.
pub(super) struct Expressions {
    /// Selects those passages that match among those whose vectors are complete; nothing if there are none.
    pub(super) exact: Option<String>,
    /// Selects those that match, and others, among all passages with vectors.
    pub(super) loose: String,
}

impl Expressions {
    /// # Errors
    /// Returns an error of the kind `Invalid` if the query is too long.
    pub(super) fn new(query: &FullTextQuery) -> Result<Self> {
        let words = || query.phrases().flat_map(|phrase| &phrase.words);
        if words().count() > MAX_WORDS || words().map(String::len).sum::<usize>() > MAX_BYTES {
            let message = format!("a query of more than {MAX_WORDS} words or {MAX_BYTES} bytes is too long");
            return Err(StorageError::invalid(message));
        }
        let exact = query.alternatives.iter().filter(|phrases| phrases.iter().all(is_complete));
        let exact =
            joined(exact.map(|phrases| joined(phrases.iter().map(|it| phrase(it, " <-> ")), " & ")), " | ");
        let loose = query.alternatives.iter();
        let loose =
            joined(loose.map(|phrases| joined(phrases.iter().map(|it| phrase(it, " & ")), " & ")), " | ");
        Ok(Self { exact: (!exact.is_empty()).then_some(exact), loose })
    }
}

/// Returns whether the words of a phrase can be in a complete vector.
fn is_complete(phrase: &Phrase) -> bool {
    phrase.words.iter().all(|word| word.len() <= MAX_LEXEME_BYTES)
}

fn phrase(phrase: &Phrase, operator: &str) -> String {
    let last = phrase.words.len() - 1;
    let word = |(number, word): (usize, &String)| {
        let prefix = if phrase.is_prefix && number == last { ":*" } else { "" };
        format!("'{}'{prefix}", lexeme(word))
    };
    joined(phrase.words.iter().enumerate().map(word), operator)
}

/// Returns the expressions with an operator between them, in parentheses if there are several.
fn joined(parts: impl Iterator<Item = String>, operator: &str) -> String {
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [part] => part.clone(),
        [] => String::new(),
        parts => format!("({})", parts.join(operator)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::interface::{Term, Terms};

    fn expressions(alternatives: &[&[&str]]) -> Result<(Option<String>, String)> {
        let term = |text: &&str| Term {
            text: text.trim_end_matches('*').to_owned(),
            is_prefix: text.ends_with('*'),
        };
        let alternatives = alternatives.iter().map(|terms| terms.iter().map(term).collect()).collect();
        let query = FullTextQuery::new(&Terms { alternatives, fields: Vec::new() });
        Expressions::new(&query).map(|found| (found.exact, found.loose))
    }

    #[test]
    fn words_phrases_prefixes_and_alternatives_are_operators() {
        let (exact, loose) = expressions(&[&["Refund*", "to the card*"], &["—", "voucher"]]).unwrap();
        assert_eq!(exact.unwrap(), "(('refund':* & ('to' <-> 'the' <-> 'card':*)) | 'voucher')");
        assert_eq!(loose, "(('refund':* & ('to' & 'the' & 'card':*)) | 'voucher')");
    }

    #[test]
    fn words_that_no_vector_has_are_looked_for_by_their_beginning() {
        let long = "x".repeat(MAX_LEXEME_BYTES + 1);
        let (exact, loose) = expressions(&[&[&long], &["a"]]).unwrap();
        assert_eq!(exact.unwrap(), "'a'");
        assert_eq!(loose, format!("('{}' | 'a')", &long[1..]));
        assert_eq!(expressions(&[&[&long]]).unwrap().0, None);
    }

    #[test]
    fn queries_that_the_server_cannot_evaluate_are_rejected() {
        let long = "a ".repeat(MAX_WORDS);
        assert!(expressions(&[&[&long]]).is_ok());
        assert!(expressions(&[&[&long, "a"]]).is_err());
        assert!(expressions(&[&["x".repeat(MAX_BYTES + 1).as_str()]]).is_ok(), "only its beginning counts");
    }
}
