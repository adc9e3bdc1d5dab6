//! Queries of the index, and search terms as a `tsquery`.

use super::vector::{MAX_LEXEME_BYTES, lexeme};
use crate::digest::CoreHash;
use crate::storage::full_text::{FullTextQuery, Phrase};
use crate::storage::interface::{FoundPassage, PassageGrouping, Terms};
use crate::storage::postgres::columns::{capture, core, count, limit as at_most, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::{Result, StorageError};

/// The matching passages with their scores: those that a complete vector shows, and those that were found by their words.
/// Scores are those of `ts_rank`, divided by one plus the logarithm of the length.
const HITS: &str = "
    WITH hit AS (
      SELECT p.capture, p.number, p.words FROM search_passage p
       WHERE p.rest IS NULL AND p.words @@ $1::tsquery AND ($3::text[] IS NULL OR p.field = ANY($3))
       UNION ALL
      SELECT p.capture, p.number, p.words FROM search_passage p
        JOIN unnest($4::bigint[], $5::integer[]) AS w (capture, number)
          ON p.capture = w.capture AND p.number = w.number
    ), scored AS (
      SELECT c.artifact, c.digest, h.capture, h.number,
             coalesce(ts_rank(h.words, $2::tsquery, 1), 0)::double precision AS score
        FROM hit h JOIN capture c ON c.id = h.capture
       WHERE $6::bytea[] IS NULL OR c.artifact IN (SELECT id FROM artifact WHERE core = ANY($6))
    )";

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
        let fields = (!fields.is_empty()).then_some(fields);
        let (captures, numbers) = self.passages_by_words(&query, &expressions, fields.as_ref())?;
        let chosen = match grouping {
            PassageGrouping::Passage => "SELECT *, 0::bigint AS more FROM scored",
            PassageGrouping::Artifact => {
                "SELECT DISTINCT ON (artifact) *, count(*) OVER (PARTITION BY artifact) - 1 AS more FROM scored
                  ORDER BY artifact, score DESC, capture, number"
            }
        };
        let sql = format!(
            "{HITS} SELECT a.core, b.digest, b.number::bigint, b.score, b.more
               FROM ({chosen}) AS b JOIN artifact a ON a.id = b.artifact
              ORDER BY b.score DESC, a.arrival DESC, a.core, b.capture, b.number LIMIT $7"
        );
        self.session
            .rows_planned_for(
                &sql,
                &[
                    &expressions.exact,
                    &expressions.loose,
                    &fields,
                    &captures,
                    &numbers,
                    &among,
                    &at_most(limit),
                ],
            )?
            .iter()
            .map(found)
            .collect()
    }

    /// Returns the passages that match by their words, of those whose vectors are not complete.
    fn passages_by_words(
        &self,
        query: &FullTextQuery,
        expressions: &Expressions,
        fields: Option<&Vec<&str>>,
    ) -> PostgresResult<(Vec<i64>, Vec<i32>)> {
        let sql = "SELECT p.capture, p.number, p.rest FROM search_passage p
                    WHERE p.rest IS NOT NULL AND (p.words IS NULL OR p.words @@ $1::tsquery)
                      AND ($2::text[] IS NULL OR p.field = ANY($2))";
        let (mut captures, mut numbers) = (Vec::new(), Vec::new());
        self.session.each(sql, &[&expressions.loose, &fields], &mut |row| {
            let words: Vec<&[u8]> = value::<&[u8]>(row, 2)?.split(|byte| *byte == b' ').collect();
            if query.occurrences(&words).is_some() {
                captures.push(value(row, 0)?);
                numbers.push(value(row, 1)?);
            }
            Ok(())
        })?;
        Ok((captures, numbers))
    }
}

fn found(row: &postgres::Row) -> PostgresResult<FoundPassage> {
    let number =
        usize::try_from(count(row, 2)?).map_err(|_| PostgresError::damaged("a number is too large"))?;
    Ok(FoundPassage {
        artifact: core(row, 0)?,
        capture: capture(row, 1)?,
        number,
        score: value(row, 3)?,
        more: count(row, 4)?,
    })
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
