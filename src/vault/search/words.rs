//! The query syntax: words, phrases and prefixes.

use std::str::FromStr;

use crate::storage::Term;

/// Maximum number of words and phrases of a query.
pub const MAX_TERMS: usize = 100;

/// A parsed query: words that must all be in one passage, `"phrases"`, `beginnings*`, and `OR` between alternatives.
/// Everything else is text: the only invalid query is one without words.
///
/// ```
/// use runvault::vault::search::SearchExpression;
///
/// let words: SearchExpression = r#"refund* "export to CSV" OR AND NOT (:"#.parse()?;
/// assert_eq!(words.alternatives().len(), 2);
/// assert!("???".parse::<SearchExpression>().is_err());
/// # Ok::<(), runvault::vault::search::SearchExpressionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchExpression {
    alternatives: Vec<Vec<Term>>,
}

/// The reason that a query is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchExpressionError {
    /// It contains no word.
    #[error("there is no word to search for: only letters and digits are searched")]
    NoWords,
    /// It contains too many words.
    #[error("too many search terms: at most {MAX_TERMS} words and phrases")]
    TooMany,
}

impl SearchExpression {
    /// Returns the alternatives: a passage must match all terms of one of them.
    #[must_use]
    pub fn alternatives(&self) -> &[Vec<Term>] {
        &self.alternatives
    }
}

impl FromStr for SearchExpression {
    type Err = SearchExpressionError;

    fn from_str(text: &str) -> Result<Self, SearchExpressionError> {
        let mut alternatives = vec![Vec::new()];
        let mut count = 0;
        for piece in pieces(text) {
            let term = match piece {
                SearchToken::Word("OR") => {
                    alternatives.push(Vec::new());
                    continue;
                }
                SearchToken::Word(word) => term(word.trim_end_matches('*'), word.ends_with('*')),
                SearchToken::Phrase(phrase, is_prefix) => term(phrase, is_prefix),
            };
            let Some(term) = term else { continue };
            count += 1;
            if count > MAX_TERMS {
                return Err(SearchExpressionError::TooMany);
            }
            if let Some(alternative) = alternatives.last_mut() {
                alternative.push(term);
            }
        }
        alternatives.retain(|terms| !terms.is_empty());
        if alternatives.is_empty() { Err(SearchExpressionError::NoWords) } else { Ok(Self { alternatives }) }
    }
}

/// Returns `None` for text without letters and digits, which matches no passage and does not exclude any.
fn term(text: &str, is_prefix: bool) -> Option<Term> {
    text.contains(char::is_alphanumeric).then(|| Term { text: text.to_owned(), is_prefix })
}

#[derive(Debug, PartialEq)]
enum SearchToken<'t> {
    Word(&'t str),
    /// The text between quotation marks, and whether an asterisk follows. The last phrase need not be closed.
    Phrase(&'t str, bool),
}

fn pieces(text: &str) -> Vec<SearchToken<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (phrase, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            let unstarred = after.strip_prefix('*');
            pieces.push(SearchToken::Phrase(phrase, unstarred.is_some()));
            rest = unstarred.unwrap_or(after).trim_start();
        } else {
            let end = rest.find(|character: char| character.is_whitespace() || character == '"');
            let (word, after) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
            pieces.push(SearchToken::Word(word));
            rest = after.trim_start();
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_terms(text: &str) -> Vec<Vec<String>> {
        let words: SearchExpression = text.parse().unwrap();
        let term_text = |term: &Term| format!("{}{}", term.text, if term.is_prefix { "*" } else { "" });
        words.alternatives.iter().map(|terms| terms.iter().map(term_text).collect()).collect()
    }

    #[test]
    fn words_phrases_and_beginnings_are_told_apart() {
        assert_eq!(parsed_terms("refund policy"), [["refund", "policy"]]);
        assert_eq!(
            parsed_terms("refund* \"to the\tcard\" \"of or\"*"),
            [["refund*", "to the\tcard", "of or*"]]
        );
        assert_eq!(parsed_terms("a b OR c"), [vec!["a", "b"], vec!["c"]]);
        assert_eq!(parsed_terms("OR a OR OR \"OR\" OR"), [vec!["a"], vec!["OR"]]);
        assert_eq!(
            parsed_terms("don't (a) NOT b:c -d * ?? ^e"),
            [["don't", "(a)", "NOT", "b:c", "-d", "^e"]]
        );
        assert_eq!(parsed_terms("a\"b c"), [["a", "b c"]]);
        assert_eq!(parsed_terms("or and"), [["or", "and"]]);
    }

    #[test]
    fn something_must_be_looked_for_and_not_too_much() {
        for nothing in ["", " \t", "?", "\"\"", "* ** OR", "\"-\" OR 🎉"] {
            assert_eq!(nothing.parse::<SearchExpression>(), Err(SearchExpressionError::NoWords), "{nothing}");
        }
        assert!("a ".repeat(MAX_TERMS).parse::<SearchExpression>().is_ok());
        assert_eq!(
            "a ".repeat(MAX_TERMS + 1).parse::<SearchExpression>(),
            Err(SearchExpressionError::TooMany)
        );
    }
}
