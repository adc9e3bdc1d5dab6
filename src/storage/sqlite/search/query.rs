//! Queries of the index.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Error, OptionalExtension};

use super::{ArtifactId, SqliteSnapshot, hash_of, index_damage, terms};
use crate::digest::CoreHash;
use crate::storage::full_text::FullTextQuery;
use crate::storage::interface::{FoundPassage, PassageGrouping, Terms};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::ids::artifact_id;

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
    fn has(&self, row: i64) -> bool {
        (self.first..self.first.saturating_add(self.passages)).contains(&row)
    }
}

impl SqliteSnapshot<'_> {
    /// Returns up to `limit` matching passages, the best first; only those of `among`, if it is given. Equal scores are
    /// ordered by arrival, newest artifact first, and then by the order within the artifact.
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
        let ids = |among: &[CoreHash]| {
            let ids = among.iter().map(|core| artifact_id(self.connection(), *core));
            ids.filter_map(rusqlite::Result::transpose).map(|id| id.map(ArtifactId)).collect()
        };
        let among: rusqlite::Result<Option<BTreeSet<ArtifactId>>> = among.map(ids).transpose();
        let rows = among.and_then(|among| {
            matches(self.connection(), &terms::expression(&query), among.as_ref(), grouping)
        });
        let mut rows = rows.map_err(|error| self.failed(error))?;
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
        ranked.into_iter().map(|(_, row)| self.found(row)).collect()
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

/// Returns the best passage of each artifact, or every passage.
fn matches(
    connection: &Connection,
    expression: &str,
    among: Option<&BTreeSet<ArtifactId>>,
    grouping: PassageGrouping,
) -> rusqlite::Result<Vec<RankedPassage>> {
    let mut statement = connection
        .prepare_cached("SELECT rowid, bm25(search_text) FROM search_text WHERE search_text MATCH ?1")?;
    let mut found = statement.query([expression])?;
    let mut range: Option<CaptureRowRange> = None;
    let mut best: BTreeMap<ArtifactId, RankedPassage> = BTreeMap::new();
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        let (number, score): (i64, f64) = (row.get(0)?, row.get(1)?);
        if !range.as_ref().is_some_and(|range| range.has(number)) {
            range = Some(range_of(connection, number)?);
        }
        let Some(CaptureRowRange { first, capture, artifact, .. }) = range else { continue };
        if among.is_some_and(|among| !among.contains(&artifact)) {
            continue;
        }
        let number = usize::try_from(number - first).unwrap_or(usize::MAX);
        // FTS5 assigns lower scores to better matches.
        let row = RankedPassage { artifact, capture, number, score: -score, more: 0 };
        match grouping {
            PassageGrouping::Passage => all.push(row),
            PassageGrouping::Artifact => {
                best.entry(artifact).and_modify(|best| *best = better(*best, row)).or_insert(row);
            }
        }
    }
    all.extend(best.into_values());
    Ok(all)
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

fn range_of(connection: &Connection, row: i64) -> rusqlite::Result<CaptureRowRange> {
    let range = connection
        .prepare_cached(
            "SELECT s.first, s.passages, s.capture, c.artifact
               FROM search_capture s JOIN capture c ON c.id = s.capture
              WHERE s.first = (SELECT max(first) FROM search_capture WHERE first <= ?1)",
        )?
        .query_row([row], |row| {
            Ok(CaptureRowRange {
                first: row.get(0)?,
                passages: row.get(1)?,
                capture: row.get(2)?,
                artifact: row.get(3)?,
            })
        })
        .optional()?;
    let range = range.filter(|range| range.has(row));
    range.ok_or_else(|| index_damage(format!("row {row} of the search index belongs to no capture")))
}
