//! Queries of the index, as FTS5 expressions.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Error, OptionalExtension};

use super::{ArtifactId, SqliteSnapshot, hash_of, index_damage};
use crate::digest::CoreHash;
use crate::storage::full_text::{FullTextQuery, Phrase};
use crate::storage::interface::{FoundPassage, PassageGrouping, Terms};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::rows::artifact_id;

/// Maximum number of matching passages that are ranked. Ranking reads the length of every one, and says little about common
/// words.
const RANKED: u32 = 100_000;

/// A passage, identified by row.
#[derive(Clone, Copy)]
struct RankedPassage {
    artifact: ArtifactId,
    capture: i64,
    number: usize,
    score: f64,
    more: u64,
}

/// The rows of `search_text` that belong to one capture.
struct CaptureRowRange {
    first: i64,
    passages: i64,
    capture: i64,
    artifact: ArtifactId,
}

impl CaptureRowRange {
    fn end(&self) -> i64 {
        self.first.saturating_add(self.passages)
    }

    fn has(&self, row: i64) -> bool {
        (self.first..self.end()).contains(&row)
    }

    fn passage(&self, row: i64, score: f64) -> RankedPassage {
        let number = usize::try_from(row - self.first).unwrap_or(usize::MAX);
        RankedPassage { artifact: self.artifact, capture: self.capture, number, score, more: 0 }
    }
}

impl SqliteSnapshot<'_> {
    /// Returns up to `limit` matching passages, the best first; only those of `among`, if it is given. Equal scores are
    /// ordered by arrival, newest artifact first, and then by the order within the artifact. If too many passages match to
    /// rank them, all scores are 0, and the passages of the captures that were added last are first.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read or the vault has no index.
    pub(crate) fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> Result<Vec<FoundPassage>> {
        let query = FullTextQuery::new(terms);
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let connection = self.connection();
        let ids = |among: &[CoreHash]| {
            let ids = among.iter().map(|core| artifact_id(connection, *core));
            ids.filter_map(rusqlite::Result::transpose).map(|id| id.map(ArtifactId)).collect()
        };
        let among = among.map(ids).transpose().map_err(|error| self.failed(error))?;
        let query = PassageQuery { connection, expression: expression(&query), among, grouping };
        let found = if query.is_common().map_err(|error| self.failed(error))? {
            query.newest(limit).map_err(|error| self.failed(error))?
        } else {
            self.best(query.scored().map_err(|error| self.failed(error))?, limit)?
        };
        found.into_iter().map(|row| self.found(row)).collect()
    }

    /// Returns the `limit` passages with the highest scores.
    fn best(&self, mut rows: Vec<RankedPassage>, limit: usize) -> Result<Vec<RankedPassage>> {
        rows.sort_by(by_score);
        // Ties in score are broken by artifact.
        if let Some(last) = limit.checked_sub(1).and_then(|last| rows.get(last)).copied() {
            let end = rows.partition_point(|row| by_score(row, &last) != Ordering::Greater);
            rows.truncate(end);
        }
        let mut ranked = Vec::new();
        for row in rows {
            ranked.push((self.artifact_by_id(row.artifact)?, row));
        }
        ranked.sort_by(|(one, first), (other, second)| {
            let place = |row: &RankedPassage| (row.capture, row.number);
            by_score(first, second)
                .then_with(|| other.arrival.cmp(&one.arrival))
                .then_with(|| one.core.cmp(&other.core))
                .then_with(|| place(first).cmp(&place(second)))
        });
        ranked.truncate(limit);
        Ok(ranked.into_iter().map(|(_, row)| row).collect())
    }

    fn found(&self, row: RankedPassage) -> Result<FoundPassage> {
        let hash = || hash_of(self.connection(), row.capture)?.ok_or(Error::QueryReturnedNoRows);
        let capture = hash().map_err(|error| self.failed(error))?;
        let RankedPassage { artifact, number, score, more, .. } = row;
        let artifact = self.core_of(artifact)?;
        Ok(FoundPassage { artifact, capture, number, score, more })
    }
}

fn by_score(one: &RankedPassage, other: &RankedPassage) -> Ordering {
    other.score.total_cmp(&one.score)
}

/// A query of the index.
struct PassageQuery<'c> {
    connection: &'c Connection,
    /// The expression of FTS5.
    expression: String,
    among: Option<BTreeSet<ArtifactId>>,
    grouping: PassageGrouping,
}

impl PassageQuery<'_> {
    /// Returns whether more than [`RANKED`] passages match, of any artifact.
    fn is_common(&self) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM search_text WHERE search_text MATCH ?1 LIMIT 1 OFFSET ?2")?
            .exists((&self.expression, RANKED))
    }

    fn includes(&self, artifact: ArtifactId) -> bool {
        self.among.as_ref().is_none_or(|among| among.contains(&artifact))
    }

    /// Returns the first passage of each artifact in its newest matching capture, or every passage, without scores: those of
    /// the newest captures first, up to `limit`.
    fn newest(&self, limit: usize) -> rusqlite::Result<Vec<RankedPassage>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT rowid FROM search_text WHERE search_text MATCH ?1 ORDER BY rowid DESC")?;
        let mut rows = statement.query([&self.expression])?;
        let mut range: Option<CaptureRowRange> = None;
        let mut is_shown = false;
        let mut artifacts = BTreeSet::new();
        let mut found: Vec<RankedPassage> = Vec::new();
        while let Some(row) = rows.next()? {
            let row: i64 = row.get(0)?;
            if !range.as_ref().is_some_and(|range| range.has(row)) {
                if found.len() >= limit {
                    break;
                }
                let next = range_of(self.connection, row)?;
                let is_new = artifacts.insert(next.artifact);
                is_shown =
                    self.includes(next.artifact) && (is_new || self.grouping == PassageGrouping::Passage);
                range = Some(next);
            }
            if let Some(range) = range.as_ref().filter(|_| is_shown) {
                // The last row of a capture that is read is its first passage.
                if self.grouping == PassageGrouping::Artifact {
                    found.pop_if(|last| last.capture == range.capture);
                }
                found.push(range.passage(row, 0.0));
            }
        }
        found.sort_by_key(|passage| (Reverse(passage.capture), passage.number));
        found.truncate(limit);
        if self.grouping == PassageGrouping::Artifact {
            for passage in &mut found {
                passage.more = self.count(passage.artifact)?.saturating_sub(1);
            }
        }
        Ok(found)
    }

    /// Returns the number of matching passages of an artifact.
    fn count(&self, artifact: ArtifactId) -> rusqlite::Result<u64> {
        let sql = "SELECT s.first, s.passages, s.capture, c.artifact
                     FROM capture c JOIN search_capture s ON s.capture = c.id WHERE c.artifact = ?1";
        let mut ranges = self.connection.prepare_cached(sql)?;
        let mut count = 0;
        for range in ranges.query_map([artifact.0], row_range)? {
            let range = range?;
            let sql =
                "SELECT count(*) FROM search_text WHERE search_text MATCH ?1 AND rowid >= ?2 AND rowid < ?3";
            let mut matching = self.connection.prepare_cached(sql)?;
            let parameters = (&self.expression, range.first, range.end());
            count += matching.query_row(parameters, |row| row.get::<_, u64>(0))?;
        }
        Ok(count)
    }

    /// Returns the best passage of each artifact, or every passage, in any order.
    fn scored(&self) -> rusqlite::Result<Vec<RankedPassage>> {
        let sql = "SELECT rowid, bm25(search_text) FROM search_text WHERE search_text MATCH ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([&self.expression])?;
        let mut range: Option<CaptureRowRange> = None;
        let mut best: BTreeMap<ArtifactId, RankedPassage> = BTreeMap::new();
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let (number, score): (i64, f64) = (row.get(0)?, row.get(1)?);
            if !range.as_ref().is_some_and(|range| range.has(number)) {
                range = Some(range_of(self.connection, number)?);
            }
            let Some(range) = range.as_ref().filter(|range| self.includes(range.artifact)) else { continue };
            // FTS5 assigns lower scores to better matches.
            let passage = range.passage(number, -score);
            match self.grouping {
                PassageGrouping::Passage => all.push(passage),
                PassageGrouping::Artifact => {
                    let best = best.entry(range.artifact);
                    best.and_modify(|best| *best = better(*best, passage)).or_insert(passage);
                }
            }
        }
        all.extend(best.into_values());
        Ok(all)
    }
}

/// Returns the better of two passages of an artifact, the first if their scores are equal, and counts the other one.
fn better(one: RankedPassage, other: RankedPassage) -> RankedPassage {
    let more = one.more + 1;
    if by_score(&one, &other) == Ordering::Greater {
        RankedPassage { more, ..other }
    } else {
        RankedPassage { more, ..one }
    }
}

fn row_range(row: &rusqlite::Row<'_>) -> rusqlite::Result<CaptureRowRange> {
    Ok(CaptureRowRange {
        first: row.get(0)?,
        passages: row.get(1)?,
        capture: row.get(2)?,
        artifact: row.get(3)?,
    })
}

fn range_of(connection: &Connection, row: i64) -> rusqlite::Result<CaptureRowRange> {
    let range = connection
        .prepare_cached(
            "SELECT s.first, s.passages, s.capture, c.artifact
               FROM search_capture s JOIN capture c ON c.id = s.capture
              WHERE s.first = (SELECT max(first) FROM search_capture WHERE first <= ?1)",
        )?
        .query_row([row], row_range)
        .optional()?;
    let range = range.filter(|range| range.has(row));
    range.ok_or_else(|| index_damage(format!("row {row} of the search index belongs to no capture")))
}

/// Returns the FTS5 expression of a query that is not empty. The forms of words consist of letters and digits, so that
/// nothing in them has a meaning in it.
pub(super) fn expression(query: &FullTextQuery) -> String {
    let alternative = |phrases: &Vec<Phrase>| {
        let phrases: Vec<String> = phrases.iter().map(phrase).collect();
        format!("({})", phrases.join(" "))
    };
    let alternatives: Vec<String> = query.alternatives.iter().map(alternative).collect();
    let any = alternatives.join(" OR ");
    match query.fields() {
        [] => any,
        fields => {
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            format!("{{{}}} : ({any})", names.join(" "))
        }
    }
}

fn phrase(phrase: &Phrase) -> String {
    format!("\"{}\"{}", phrase.words.join(" "), if phrase.is_prefix { "*" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::{Connection, OpenFlags};

    use super::*;
    use crate::artifact::Field;
    use crate::storage::full_text::{self, separated};
    use crate::storage::interface::{Term, Terms};

    /// Returns an index of two captures of an artifact and, between them, one of another. Every passage has a word.
    fn index() -> Connection {
        let connection = Connection::open_with_flags("", OpenFlags::default()).unwrap();
        connection
            .execute_batch("CREATE TABLE capture (id INTEGER PRIMARY KEY, artifact INTEGER NOT NULL)")
            .unwrap();
        connection.execute_batch(super::super::SEARCH).unwrap();
        connection
            .execute_batch(
                "BEGIN;
                 INSERT INTO capture VALUES (1, 1), (2, 2), (3, 1);
                 INSERT INTO search_capture VALUES (1, 1, 60000), (60001, 2, 40000), (100001, 3, 3);
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100003)
                 INSERT INTO search_text (rowid, tool) SELECT i, iif(i % 2, 'word', 'word even') FROM n;
                 COMMIT",
            )
            .unwrap();
        connection
    }

    fn found(query: &PassageQuery<'_>, limit: usize) -> Vec<(i64, i64, usize, u64)> {
        let row = |row: RankedPassage| {
            assert!(row.score.abs() < f64::EPSILON);
            (row.artifact.0, row.capture, row.number, row.more)
        };
        query.newest(limit).unwrap().into_iter().map(row).collect()
    }

    #[test]
    fn the_newest_of_too_many_passages_are_first() {
        let connection = index();
        let query = |word: &str, grouping| PassageQuery {
            connection: &connection,
            expression: format!("\"{word}\""),
            among: None,
            grouping,
        };
        assert!(!query("even", PassageGrouping::Artifact).is_common().unwrap());
        let mut artifacts = query("word", PassageGrouping::Artifact);
        assert!(artifacts.is_common().unwrap());
        assert_eq!(found(&artifacts, 9), [(1, 3, 0, 60_002), (2, 2, 0, 39_999)]);
        assert_eq!(found(&artifacts, 1), [(1, 3, 0, 60_002)]);
        artifacts.among = Some(BTreeSet::from([ArtifactId(2)]));
        assert_eq!(found(&artifacts, 9), [(2, 2, 0, 39_999)]);
        let passages = query("word", PassageGrouping::Passage);
        assert_eq!(found(&passages, 4), [(1, 3, 0, 0), (1, 3, 1, 0), (1, 3, 2, 0), (2, 2, 0, 0)]);
    }

    fn term(text: &str, is_prefix: bool) -> Term {
        Term { text: text.to_owned(), is_prefix }
    }

    fn expression_of(alternatives: Vec<Vec<Term>>, fields: Vec<Field>) -> String {
        expression(&FullTextQuery::new(&Terms { alternatives, fields }))
    }

    #[test]
    fn only_the_words_of_a_query_are_in_its_expression() {
        let alternatives = vec![
            vec![term("a\" OR b", false), term("五十c", true)],
            Vec::new(),
            vec![term("NEAR(\0", false)],
        ];
        assert_eq!(
            expression_of(alternatives.clone(), Vec::new()),
            "(\"a or b\" \"五 十 c\"*) OR (\"near\")"
        );
        assert_eq!(
            expression_of(alternatives, vec![Field::TOOL, Field::STEP]),
            "{tool step} : ((\"a or b\" \"五 十 c\"*) OR (\"near\"))"
        );
    }

    /// Returns the words of texts as a tokenizer of SQLite finds them.
    fn words_in_sqlite(tokenizer: &str, texts: &[String]) -> Vec<Vec<String>> {
        let connection =
            Connection::open_with_flags("", OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX).unwrap();
        let schema = format!(
            "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = '{tokenizer}');
             CREATE VIRTUAL TABLE v USING fts5vocab (t, instance); BEGIN"
        );
        connection.execute_batch(&schema).unwrap();
        let mut insert = connection.prepare("INSERT INTO t (rowid, x) VALUES (?1, ?2)").unwrap();
        for (row, text) in texts.iter().enumerate() {
            insert.execute((i64::try_from(row).unwrap(), text)).unwrap();
        }
        let mut found = vec![Vec::new(); texts.len()];
        let mut select = connection.prepare("SELECT doc, offset, term FROM v ORDER BY doc, offset").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            found[row.get::<_, usize>(0).unwrap()].push(row.get(2).unwrap());
        }
        found
    }

    fn ours(text: &str) -> Vec<String> {
        full_text::words(text).map(|word| word.form).collect()
    }

    /// Texts with every character, between letters and beside itself. Where nothing is assigned, some have to do.
    fn texts_of_all_characters(is_included: impl Fn(char) -> bool) -> Vec<String> {
        let blocks = [
            '\0'..='\u{32fff}',
            '\u{e0000}'..='\u{e0fff}',
            '\u{f0000}'..='\u{f0fff}',
            '\u{10ff00}'..=char::MAX,
        ];
        let all: Vec<char> = blocks.into_iter().flatten().filter(|it| is_included(*it)).collect();
        let text =
            |chunk: &[char]| chunk.iter().map(|it| format!("x{it}y {it}{it}z ")).collect::<Vec<_>>().concat();
        all.chunks(64).map(text).collect()
    }

    #[test]
    fn characters_of_other_scripts_are_treated_as_by_the_tokenizer_of_sqlite() {
        let is_compared = |character: char| {
            let is_word = full_text::words(&format!("x{character}y")).count() == 3;
            !is_word && !('\u{ff10}'..='\u{ff5a}').contains(&character)
        };
        let texts = texts_of_all_characters(is_compared);
        let found = words_in_sqlite("unicode61 remove_diacritics 2", &texts);
        for (found, text) in found.iter().zip(&texts) {
            assert_eq!(*found, ours(text), "{text:?}");
        }
    }

    #[test]
    fn sqlite_indexes_the_words_of_every_character() {
        let texts = texts_of_all_characters(|_| true);
        let separated: Vec<String> = texts.iter().map(|text| separated(text)).collect();
        for (found, text) in words_in_sqlite("ascii", &separated).iter().zip(&texts) {
            assert_eq!(*found, ours(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn sqlite_indexes_the_words_of_any_text(text in any::<String>()) {
            prop_assert_eq!(words_in_sqlite("ascii", &[separated(&text)]).remove(0), ours(&text));
        }
    }
}
