//! Queries of the index.

use super::expression::Expressions;
use crate::digest::CoreHash;
use crate::storage::full_text::FullTextQuery;
use crate::storage::interface::{FoundPassage, PassageGrouping, Terms};
use crate::storage::postgres::columns::{capture, core, count, limit as at_most, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::PostgresSnapshot;

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
