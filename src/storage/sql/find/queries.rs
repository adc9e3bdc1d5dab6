//! Pages and counts of the artifacts that match a filter.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::super::dialect::{NumberedAttributes, ReadFirst};
use super::super::{Dialect, SqlResult, SqlRow, SqlSession};
use super::conditions::time;
use super::parameters::StatementParameters;
use super::{FindSnapshot, ResolvedQuery};
use crate::artifact::AttributeInfo;
use crate::digest::Digest;
use crate::storage::interface::{
    Condition, Filter, FindQueries, Hit, HitPage, Order, Page, RunCounts, RunValueCount,
};
use crate::storage::{Result, TimeBasis};

impl<S: FindSnapshot> FindQueries for S {
    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>> {
        if page.limit == 0 {
            return Ok(HitPage { items: Vec::new(), next: None });
        }
        if let Some(mention) = only_mention(filter)
            && let Some(found) = self.page_mentioning(mention, order, page)?
        {
            return Ok(found);
        }
        let mut query = ResolvedQuery::new(self, filter, order)?;
        let mut found = query.read(page.after.as_ref(), page.limit.saturating_add(1))?;
        let is_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| is_more).map(|(_, place)| place.clone());
        Ok(HitPage { items: found.into_iter().map(|(hit, _)| hit).collect(), next })
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        let mut query = ResolvedQuery::new(self, filter, Order::Core)?;
        if !query.is_exact() {
            return Ok(query.read(None, usize::MAX)?.len() as u64);
        }
        let mut parameters = StatementParameters::default();
        let matching = query.matching(&mut parameters)?;
        let rows = self.rows_planned_for(&format!("SELECT count(*) FROM {matching}"), &parameters)?;
        self.answer(rows.first().map_or(Ok(0), |row| Ok(row.count(0)?)))
    }

    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>> {
        /// The length of a day in milliseconds.
        const DAY: i64 = 86_400_000;
        let mut query = ResolvedQuery::new(self, filter, Order::Newest(by))?;
        if !query.is_exact() {
            let mut counts: BTreeMap<NaiveDate, u64> = BTreeMap::new();
            for time in query.read(None, usize::MAX)?.into_iter().filter_map(|(_, place)| place.time) {
                *counts.entry(time.date_naive()).or_default() += 1;
            }
            return Ok(counts.into_iter().collect());
        }
        let mut parameters = StatementParameters::default();
        let time = time(S::Session::DIALECT, by, &mut parameters);
        let (matching, none) = (query.matching(&mut parameters)?, S::Session::DIALECT.smallest_number());
        let sql = format!(
            "SELECT t.at - (t.at % {DAY} + {DAY}) % {DAY}, count(*) FROM (SELECT {time} AS at FROM {matching}) t
              WHERE t.at > {none} GROUP BY 1 ORDER BY 1"
        );
        let rows = self.rows_planned_for(&sql, &parameters)?;
        self.answer(rows.iter().map(|row| Ok((row.time(0)?.date_naive(), row.count(1)?))).collect())
    }

    fn count_runs(&self, filter: &Filter, attributes: &[String], limit: usize) -> Result<RunCounts> {
        let mut query = ResolvedQuery::new(self, filter, Order::Core)?;
        if !query.conditions.iter().all(|condition| query.is_stated(condition)) {
            let found = query.read(None, usize::MAX)?.into_iter().map(|(hit, _)| hit.artifact.core);
            let among = Some(found.collect());
            return self.count_runs(&Filter { among, ..Filter::default() }, attributes, limit);
        }
        let mut parameters = StatementParameters::default();
        let matching = query.matching(&mut parameters)?;
        let sql = counts_of_runs(S::Session::DIALECT, &matching, attributes, limit, &mut parameters);
        let rows = self.rows_planned_for(&sql, &parameters)?;
        let count = |row: &SqlRow| {
            let count = RunValueCount { name: row.text(1)?, value: row.text(2)?, runs: row.count(3)? };
            Ok((row.integer(0)?, count))
        };
        let mut counts = RunCounts::default();
        for (part, count) in self.answer(rows.iter().map(count).collect::<SqlResult<Vec<_>, S::Session>>())? {
            match part {
                0 => counts.runs = count.runs,
                1 => counts.failures = count.runs,
                2 => counts.successes = count.runs,
                3 => counts.attributes.push(count),
                _ => counts.labels.push(count),
            }
        }
        counts.sort();
        Ok(counts)
    }
}

/// Returns the expression of the run of the artifact `a`: the first artifact with its name, or with one that it refers to,
/// or itself.
fn run_of(dialect: Dialect) -> String {
    let join = dialect.then_join();
    let named = |table: &str, alias: &str| {
        format!(
            "(SELECT min(j.artifact) FROM {table} {alias} {join} identity j ON {} WHERE {alias}.artifact = a.id)",
            dialect.same_handle("j", alias)
        )
    };
    format!("coalesce({}, {}, a.id)", named("identity", "i"), named("name_mention", "n"))
}

/// Returns the statement for the parts of [`RunCounts`]. What is counted is found by the artifacts that match: there may be
/// very many others.
fn counts_of_runs(
    dialect: Dialect,
    matching: &str,
    attributes: &[String],
    limit: usize,
    parameters: &mut StatementParameters,
) -> String {
    let NumberedAttributes { tables, name, value, number } = dialect.numbers(ReadFirst::Artifact);
    let is_requested = dialect.is_in(name, &parameters.bind(attributes));
    let (errors, limit) = (parameters.bind(AttributeInfo::ERRORS.name), parameters.bind(limit));
    let run = run_of(dialect);
    format!(
        "WITH m AS MATERIALIZED (SELECT a.id AS artifact, {run} AS run FROM {matching})
         SELECT CAST(0 AS bigint) AS part, '' AS name, '' AS value, count(DISTINCT m.run) AS runs FROM m
         UNION ALL
         SELECT CASE WHEN {number} > 0 THEN 1 ELSE 2 END, '', '', count(DISTINCT m.run) FROM m CROSS JOIN {tables}
          WHERE x.artifact = m.artifact AND {name} = {errors} GROUP BY 1
         UNION ALL
         SELECT 3, h.name, h.value, h.runs FROM (
           SELECT g.*, row_number() OVER (PARTITION BY g.name ORDER BY g.runs DESC, g.value) AS place FROM (
             SELECT {name} AS name, {value} AS value, count(DISTINCT m.run) AS runs FROM m CROSS JOIN {tables}
              WHERE x.artifact = m.artifact AND {is_requested} GROUP BY 1, 2) g) h
          WHERE h.place <= {limit}
         UNION ALL
         SELECT 4, k.name, k.value, k.runs FROM (
           SELECT x.key AS name, x.value AS value, count(DISTINCT m.run) AS runs FROM m CROSS JOIN label x
            WHERE x.artifact = m.artifact GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {limit}) k"
    )
}

/// Returns the mention that is all that a filter requires.
fn only_mention(filter: &Filter) -> Option<(Option<&str>, Digest)> {
    let Filter { kinds, conditions, through_members, period, digits, among } = filter;
    let is_alone =
        kinds.is_empty() && !through_members && period.is_none() && digits.is_none() && among.is_none();
    match &conditions[..] {
        [Condition::Mention { group, digest }] if is_alone => Some((group.as_deref(), *digest)),
        _ => None,
    }
}

/// Returns the artifacts `a` that match `filter`, for a statement.
#[cfg(feature = "postgres")]
pub(in crate::storage) fn matching<S: FindSnapshot>(
    snapshot: &S,
    filter: &Filter,
    parameters: &mut StatementParameters,
) -> Result<String> {
    ResolvedQuery::new(snapshot, filter, Order::Core)?.matching(parameters)
}
