//! Queries of users: what they begin with, and their parameters.

use std::fmt::Write as _;

use super::cells::CellParameter;
use crate::artifact::Cell;
use crate::storage::interface::SqlError;

/// A query in the form that the server takes.
#[derive(Debug, PartialEq)]
pub(super) struct PostgresQuery {
    /// The text, with `$1` and a type for `:name`.
    pub(super) sql: String,
    /// The values of the parameters.
    pub(super) values: Vec<CellParameter>,
    /// Whether it shows how another query would be executed.
    pub(super) is_explanation: bool,
}

impl PostgresQuery {
    /// # Errors
    /// Returns an error if it does not begin as a query, or its parameters are not those that are given.
    pub(super) fn new(text: &str, parameters: &[(&str, Cell)]) -> Result<Self, SqlError> {
        if text.contains('\0') {
            return Err(SqlError::Query("the query has a NUL character".to_owned()));
        }
        let first = first_word(text).ok_or(SqlError::Empty)?.to_ascii_uppercase();
        if !["SELECT", "VALUES", "WITH", "EXPLAIN"].contains(&first.as_str()) {
            return Err(SqlError::Refused(format!("{first} is not a query")));
        }
        let mut names: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[one, other]| one == other) {
            return Err(SqlError::Parameter(format!("the parameter :{name} has two values")));
        }
        let mut query = Self { sql: String::new(), values: Vec::new(), is_explanation: first == "EXPLAIN" };
        let mut used: Vec<&str> = Vec::new();
        for part in parts(text) {
            let SqlFragment { sort: SqlFragmentKind::Parameter, text: name } = part else {
                query.sql.push_str(part.text);
                continue;
            };
            let name = name.trim_start_matches(':');
            let value = parameters.iter().find(|(known, _)| *known == name);
            let Some(value) = value.map(|(_, value)| CellParameter(value.clone())) else {
                return Err(SqlError::Parameter(format!("the parameter :{name} has no value")));
            };
            let of = value.type_of();
            let number = used.iter().position(|known| *known == name).unwrap_or_else(|| {
                used.push(name);
                query.values.push(value);
                used.len() - 1
            });
            // Writing to a string cannot fail.
            let _ = write!(query.sql, "(${}::{})", number + 1, of.name());
        }
        match names.into_iter().find(|name| !used.contains(name)) {
            Some(name) => Err(SqlError::Parameter(format!("the query has no parameter :{name}"))),
            None => Ok(query),
        }
    }

    /// Adds definitions of a `WITH` clause to the query.
    pub(super) fn define(&mut self, definitions: &[String]) {
        if definitions.is_empty() {
            return;
        }
        let definitions = definitions.join(", ");
        let mut words = WordCursor { text: &self.sql, at: 0 };
        if self.is_explanation {
            words.skip_explanation();
        }
        let begin = words.begin();
        let (at, clause) = if words.take("WITH") {
            let with = words.at;
            let at = if words.take("RECURSIVE") { words.at } else { with };
            (at, format!(" {definitions},"))
        } else {
            (begin, format!("WITH {definitions} "))
        };
        self.sql.insert_str(at, &clause);
    }
}

/// A position in a query, outside of texts and comments.
struct WordCursor<'q> {
    text: &'q str,
    at: usize,
}

impl<'q> WordCursor<'q> {
    fn rest(&self) -> &'q str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips spaces and comments, and returns the position.
    fn begin(&mut self) -> usize {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\x0c', ';']).len();
            let comment = match special(rest.get(blank..).unwrap_or_default()) {
                Some((length, SqlFragmentKind::Comment)) => length,
                _ => 0,
            };
            self.at += blank + comment;
            if comment == 0 {
                return self.at;
            }
        }
    }

    /// Skips a word, in any case, if it is the next one.
    fn take(&mut self, word: &str) -> bool {
        let begin = self.begin();
        let is_next = first_word(self.rest()).is_some_and(|next| next.eq_ignore_ascii_case(word))
            && self.rest().get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word));
        self.at = if is_next { begin + word.len() } else { begin };
        is_next
    }

    /// Skips `EXPLAIN` and its options.
    fn skip_explanation(&mut self) {
        self.take("EXPLAIN");
        self.begin();
        let is_query = first_word(self.rest()).is_some_and(|word| {
            ["SELECT", "VALUES", "WITH"].iter().any(|known| word.eq_ignore_ascii_case(known))
        });
        if self.rest().starts_with('(') && !is_query {
            self.at += self.rest().find(')').map_or(0, |end| end + 1);
        }
        while self.take("ANALYZE") || self.take("ANALYSE") || self.take("VERBOSE") {}
    }
}

/// A part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SqlFragment<'q> {
    sort: SqlFragmentKind,
    text: &'q str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SqlFragmentKind {
    /// A colon and the name of a parameter.
    Parameter,
    Comment,
    Other,
}

fn first_word(text: &str) -> Option<&str> {
    let other = parts(text).into_iter().filter(|part| part.sort != SqlFragmentKind::Comment);
    let mut texts = other.map(|part| part.text.trim_start_matches([' ', '\t', '\r', '\n', '\x0c', '(', ';']));
    let text = texts.find(|text| !text.is_empty())?;
    Some(
        text.split(|character: char| !character.is_alphanumeric() && character != '_').next().unwrap_or(text),
    )
}

/// Divides a query at comments, quoted texts and parameters.
fn parts(text: &str) -> Vec<SqlFragment<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (length, sort) = special(rest).unwrap_or_else(|| (plain(rest), SqlFragmentKind::Other));
        let (text, after) = rest.split_at_checked(length.max(1)).unwrap_or((rest, ""));
        parts.push(SqlFragment { sort, text });
        rest = after;
    }
    parts
}

/// Returns the length of the text up to the next special part.
fn plain(text: &str) -> usize {
    let mut before = None;
    for (at, character) in text.char_indices() {
        let follows_word = before.is_some_and(|before: char| before.is_alphanumeric() || before == '_');
        // A quotation mark after the letter of an escaped text belongs to it, and $ can be in a name.
        let is_boundary = match character {
            '$' => !follows_word,
            ':' => before != Some(':'),
            _ => true,
        };
        if at > 0 && is_boundary && special(text.get(at..).unwrap_or_default()).is_some() {
            return at;
        }
        before = Some(character);
    }
    text.len()
}

/// Returns the length and the type of the special part with which a text begins.
fn special(text: &str) -> Option<(usize, SqlFragmentKind)> {
    let until = |end: &str, from: usize| {
        text.get(from..).and_then(|rest| rest.find(end)).map_or(text.len(), |at| from + at + end.len())
    };
    if text.starts_with("--") {
        return Some((until("\n", 2), SqlFragmentKind::Comment));
    }
    if text.starts_with("/*") {
        return Some((comment(text), SqlFragmentKind::Comment));
    }
    if let Some(rest) = text.strip_prefix(':') {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let is_name = rest.starts_with(|c: char| c.is_alphabetic() || c == '_');
        return is_name.then_some((1 + length, SqlFragmentKind::Parameter));
    }
    if text.starts_with(['e', 'E']) && text.get(1..2) == Some("'") {
        return Some((escaped(text), SqlFragmentKind::Other));
    }
    if text.starts_with('\'') {
        return Some((until("'", 1), SqlFragmentKind::Other));
    }
    if text.starts_with('"') {
        return Some((until("\"", 1), SqlFragmentKind::Other));
    }
    let tag = text.strip_prefix('$')?;
    let (tag, _) = tag.split_once('$')?;
    let is_tag = tag.chars().all(|c| c.is_alphanumeric() || c == '_') && !tag.starts_with(char::is_numeric);
    is_tag.then(|| (until(&format!("${tag}$"), tag.len() + 2), SqlFragmentKind::Other))
}

/// Returns the length of the comment with which a text begins. Comments can be nested.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the length of the text with backslashes with which a text begins, from its letter on.
fn escaped(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(2) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Result<String, String> {
        PostgresQuery::new(text, &[("a", Cell::Text("x".to_owned())), ("b_1", Cell::Integer(2))])
            .map(|query| query.sql)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_are_numbered_and_have_types() {
        assert_eq!(
            sql("SELECT :a, :b_1::text, :a FROM x").unwrap(),
            "SELECT ($1::text), ($2::int8)::text, ($1::text) FROM x"
        );
        assert_eq!(
            sql("SELECT ':a', \":a\", E'\\':a', $$:a$$, $t$ :a $t$, x::a, /* :a /* :a */ :a */ :a || :b_1 -- :a").unwrap(),
            "SELECT ':a', \":a\", E'\\':a', $$:a$$, $t$ :a $t$, x::a, /* :a /* :a */ :a */ ($1::text) || ($2::int8) -- :a"
        );
    }

    #[test]
    fn parameters_and_values_must_agree() {
        assert_eq!(sql("SELECT :a, :c").unwrap_err(), "the parameter :c has no value");
        assert_eq!(sql("SELECT :a").unwrap_err(), "the query has no parameter :b_1");
        let twice = PostgresQuery::new("SELECT :a", &[("a", Cell::Null), ("a", Cell::Null)]).unwrap_err();
        assert_eq!(twice.to_string(), "the parameter :a has two values");
    }

    #[test]
    fn definitions_stand_before_the_query_or_its_own_ones() {
        let defined = |text: &str| {
            let mut query = PostgresQuery::new(text, &[]).unwrap();
            query.define(&["d AS (SELECT 1)".to_owned()]);
            query.sql.replace("d AS (SELECT 1)", "D")
        };
        for (text, expected) in [
            ("SELECT 1", "WITH D SELECT 1"),
            (" -- WITH\n(SELECT 1)", " -- WITH\nWITH D (SELECT 1)"),
            ("with x AS (SELECT 1) TABLE x", "with D, x AS (SELECT 1) TABLE x"),
            (
                "WITH /* a */ recursive x AS (SELECT 1) TABLE x",
                "WITH /* a */ recursive D, x AS (SELECT 1) TABLE x",
            ),
            ("EXPLAIN ANALYZE verbose VALUES (1)", "EXPLAIN ANALYZE verbose WITH D VALUES (1)"),
            ("EXPLAIN (FORMAT json, ANALYZE) SELECT 1", "EXPLAIN (FORMAT json, ANALYZE) WITH D SELECT 1"),
            ("EXPLAIN (SELECT 1)", "EXPLAIN WITH D (SELECT 1)"),
        ] {
            assert_eq!(defined(text), expected);
        }
    }

    #[test]
    fn what_is_not_a_query_is_refused() {
        let first = |text: &str| PostgresQuery::new(text, &[]);
        for query in ["select 1", " /* x */ (SELECT 1)", "-- x\nVALUES (1)", "with x AS (SELECT 1) TABLE x"] {
            assert!(!first(query).unwrap().is_explanation, "{query}");
        }
        assert!(first("explain SELECT 1").unwrap().is_explanation);
        for refused in ["DELETE FROM artifact", "COMMIT", "set x = 1", "COPY artifact TO STDOUT", "1"] {
            assert!(matches!(first(refused), Err(SqlError::Refused(_))), "{refused}");
        }
        for empty in ["", " ;", "-- SELECT 1", "/* x"] {
            assert!(matches!(first(empty), Err(SqlError::Empty)), "{empty}");
        }
        assert!(first("SELECT 'a\0'").is_err());
    }

    #[test]
    fn unfinished_texts_are_left_to_the_server() {
        for text in ["SELECT 'a", "SELECT \"a", "SELECT $a$ x", "SELECT E'\\", "SELECT :", "SELECT $1 é:"] {
            assert_eq!(PostgresQuery::new(text, &[]).unwrap().sql, text);
        }
    }
}
