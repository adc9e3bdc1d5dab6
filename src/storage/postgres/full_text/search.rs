//! Queries of the index: the words of a passage as a `tsvector`, and search terms as a `tsquery`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::digest::CoreHash;
use crate::storage::full_text::{self, FullTextQuery, Phrase};
use crate::storage::interface::{FoundPassage, PassageGrouping, Terms};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{SqlRow, SqlSession as _, StatementParameters};
use crate::storage::{Result, StorageError};

/// The passages that match by their words: the row ids of their captures, and their numbers in these.
#[derive(Default)]
struct FoundByWords {
    captures: Vec<i64>,
    numbers: Vec<i64>,
}

/// Returns the query for the matching passages with their scores: those that a complete vector shows, and those that were
/// found by their words. Scores are those of `ts_rank`, divided by one plus the logarithm of the length.
fn hits(
    expressions: &Expressions,
    fields: &[&str],
    found: &FoundByWords,
    among: Option<&[CoreHash]>,
    parameters: &mut StatementParameters,
) -> String {
    let exact = parameters.bind(expressions.exact.as_deref());
    let loose = parameters.bind(expressions.loose.as_str());
    let of_fields = of_fields(fields, parameters);
    let (captures, numbers) = (parameters.bind(&found.captures[..]), parameters.bind(&found.numbers[..]));
    let is_among = among.map(|among| {
        format!("WHERE c.artifact IN (SELECT id FROM artifact WHERE core = ANY({}))", parameters.bind(among))
    });
    format!(
        "WITH hit AS (
          SELECT p.capture, p.number, p.words FROM search_passage p
           WHERE p.rest IS NULL AND p.words @@ {exact}::tsquery AND {of_fields}
          UNION ALL
          SELECT p.capture, p.number, p.words FROM search_passage p
            JOIN unnest({captures}, {numbers}) AS w (capture, number)
              ON p.capture = w.capture AND p.number = w.number
         ), scored AS (
          SELECT c.artifact, c.digest, h.capture, h.number,
                 coalesce(ts_rank(h.words, {loose}::tsquery, 1), 0)::double precision AS score
            FROM hit h JOIN capture c ON c.id = h.capture {}
         )",
        is_among.unwrap_or_default()
    )
}

/// Returns the condition that the passage `p` is in one of some fields, or in any if there are none.
fn of_fields(fields: &[&str], parameters: &mut StatementParameters) -> String {
    if fields.is_empty() {
        return "true".to_owned();
    }
    format!("p.field = ANY({})", parameters.bind(fields))
}

impl PostgresSnapshot<'_> {
    pub(super) fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> PostgresResult<Vec<FoundPassage>> {
        let query = FullTextQuery::new(terms);
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let expressions = Expressions::new(&query)?;
        let fields: Vec<&str> = query.fields().iter().map(|field| field.name()).collect();
        let found = self.passages_by_words(&query, &expressions, &fields)?;
        let chosen = match grouping {
            PassageGrouping::Passage => "SELECT *, 0::bigint AS more FROM scored",
            PassageGrouping::Artifact => {
                "SELECT DISTINCT ON (artifact) *, count(*) OVER (PARTITION BY artifact) - 1 AS more FROM scored
                  ORDER BY artifact, score DESC, capture, number"
            }
        };
        let mut parameters = StatementParameters::default();
        let hits = hits(&expressions, &fields, &found, among, &mut parameters);
        let limit = parameters.bind(limit);
        let sql = format!(
            "{hits} SELECT a.core, b.digest, b.number, b.score::text, b.more
               FROM ({chosen}) AS b JOIN artifact a ON a.id = b.artifact
              ORDER BY b.score DESC, a.arrival DESC, a.core, b.capture, b.number LIMIT {limit}"
        );
        self.session.rows_planned_for(&sql, parameters.values())?.iter().map(found_passage).collect()
    }

    /// Returns the passages that match by their words, of those whose vectors are not complete.
    fn passages_by_words(
        &self,
        query: &FullTextQuery,
        expressions: &Expressions,
        fields: &[&str],
    ) -> PostgresResult<FoundByWords> {
        let mut parameters = StatementParameters::default();
        let loose = parameters.bind(expressions.loose.as_str());
        let of_fields = of_fields(fields, &mut parameters);
        let sql = format!(
            "SELECT p.capture, p.number, p.rest FROM search_passage p
              WHERE p.rest IS NOT NULL AND (p.words IS NULL OR p.words @@ {loose}::tsquery) AND {of_fields}"
        );
        let mut found = FoundByWords::default();
        self.session.each(&sql, parameters.values(), &mut |row| {
            let words: Vec<&[u8]> = row.bytes(2)?.split(|byte| *byte == b' ').collect();
            if query.occurrences(&words).is_some() {
                found.captures.push(row.integer(0)?);
                found.numbers.push(row.integer(1)?);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn found_passage(row: &SqlRow) -> PostgresResult<FoundPassage> {
    let number =
        usize::try_from(row.count(2)?).map_err(|_| PostgresError::damaged("a number is too large"))?;
    let score = row.text(3)?.parse().map_err(|_| PostgresError::damaged("a score is no number"))?;
    Ok(FoundPassage { artifact: row.core(0)?, capture: row.capture(1)?, number, score, more: row.count(4)? })
}

/// The number of words of a query. The server evaluates longer ones recursively, until its stack is full.
const MAX_WORDS: usize = 5_000;

/// The number of bytes of a query; PostgreSQL's limit is 1 MiB.
const MAX_BYTES: usize = 500_000;

/// Expressions for a query.
struct Expressions {
    /// Selects those passages that match among those whose vectors are complete; nothing if there are none.
    exact: Option<String>,
    /// Selects those that match, and others, among all passages with vectors.
    loose: String,
}

impl Expressions {
    /// # Errors
    /// Returns an error of the kind `Invalid` if the query is too long.
    fn new(query: &FullTextQuery) -> Result<Self> {
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

/// The longest word that a vector has, in bytes; PostgreSQL's limit is 2,046.
pub(super) const MAX_LEXEME_BYTES: usize = 2_000;

/// The last place that a vector has, and the number of places of one word; PostgreSQL's limits are 16,383 and 255.
const MAX_PLACE: u16 = 16_000;
const MAX_PLACES: usize = 200;

/// The size of a vector; PostgreSQL's limit is 1 MiB.
const MAX_VECTOR_BYTES: usize = 1_000_000;

/// The words of a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vector {
    /// In the text form of `tsvector`, sorted; nothing if they are too many.
    pub(super) words: Option<String>,
    /// All words, separated by spaces, if they are not exactly those of the vector.
    pub(super) rest: Option<Vec<u8>>,
}

/// The places of each word.
type LexemePositions = BTreeMap<String, Vec<u16>>;

impl Vector {
    /// Returns the words of a text, or `None` if it has none.
    pub(super) fn new(text: &str) -> Option<Self> {
        let all: Vec<String> = full_text::words(text).map(|word| word.form).collect();
        if all.is_empty() {
            return None;
        }
        let mut places = LexemePositions::new();
        let mut is_exact = all.len() <= usize::from(MAX_PLACE);
        for (place, word) in (1..).zip(&all) {
            let lexeme = lexeme(word);
            is_exact &= lexeme.len() == word.len();
            let known = places.entry(lexeme.to_owned()).or_default();
            match u16::try_from(place) {
                Ok(place) if place <= MAX_PLACE && known.len() < MAX_PLACES => known.push(place),
                _ => is_exact = false,
            }
        }
        let size: usize = places.iter().map(|(lexeme, places)| lexeme.len() + 8 + 2 * places.len()).sum();
        let fits = size <= MAX_VECTOR_BYTES;
        let rest = (!is_exact || !fits).then(|| all.join(" ").into_bytes());
        Some(Self { words: fits.then(|| written(&places)), rest })
    }

    /// Returns a stored vector, in the form of [`Vector::new`]. The server sorts the words in another order.
    pub(super) fn from_stored(words: Option<&str>, rest: Option<Vec<u8>>) -> Self {
        Self { words: words.map(|words| written(&read(words))), rest }
    }
}

/// Returns the part of a word that is in a vector.
pub(super) fn lexeme(word: &str) -> &str {
    let end = word.floor_char_boundary(MAX_LEXEME_BYTES);
    word.get(..end).unwrap_or(word)
}

/// Words have no quotation marks and no backslashes.
fn written(places: &LexemePositions) -> String {
    let mut text = String::new();
    for (lexeme, places) in places {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{separator}'{lexeme}'");
        for (number, place) in places.iter().enumerate() {
            let _ = write!(text, "{}{place}", if number == 0 { ':' } else { ',' });
        }
    }
    text
}

fn read(text: &str) -> LexemePositions {
    let word = |word: &str| {
        let (lexeme, places) = word.split_once(':').unwrap_or((word, ""));
        let places = places.split(',').filter_map(|place| place.parse().ok()).collect();
        (lexeme.trim_matches('\'').to_owned(), places)
    };
    text.split(' ').filter(|word| !word.is_empty()).map(word).collect()
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

    #[test]
    fn vectors_have_words_with_their_places() {
        let vector = Vector::new("To the card, to THE bank").unwrap();
        assert_eq!(vector.words.as_deref(), Some("'bank':6 'card':3 'the':2,5 'to':1,4"));
        assert_eq!(vector.rest, None);
        assert_eq!(Vector::from_stored(Some("'to':1,4 'the':2,5 'bank':6 'card':3"), None), vector);
        assert_eq!(Vector::new("… — !"), None);
    }

    #[test]
    fn what_has_no_room_in_a_vector_is_stored_beside_it() {
        for text in ["ж".repeat(MAX_LEXEME_BYTES), "a ".repeat(MAX_PLACES + 1)] {
            let vector = Vector::new(&text).unwrap();
            assert!(vector.words.is_some() && vector.rest.is_some());
            assert_eq!(Vector::from_stored(vector.words.as_deref(), vector.rest.clone()), vector);
        }
        let numbers =
            |count: usize| (0..count).map(|number| format!("{number} ")).collect::<Vec<_>>().concat();
        let exact = Vector::new(&numbers(usize::from(MAX_PLACE))).unwrap();
        assert!(exact.words.is_some() && exact.rest.is_none());
        let long = Vector::new(&numbers(usize::from(MAX_PLACE) + 1)).unwrap();
        assert!(long.words.is_some() && long.rest.is_some());
        let longest = Vector::new(&numbers(200_000)).unwrap();
        assert!(longest.words.is_none() && longest.rest.is_some());
    }
}
