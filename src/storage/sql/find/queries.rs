//! Pages and counts of the artifacts that match a filter.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::super::artifacts::shares_name_condition;
use super::super::{SqlSession, StatementParameters};
use super::conditions::{of_kinds, time};
use super::{FindSnapshot, ResolvedQuery};
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{
    Condition, Filter, FindQueries, Hit, HitPage, Order, Page, ValueCount, ValueCounts,
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

    fn count_by_value(&self, filter: &Filter, attributes: &[String]) -> Result<ValueCounts> {
        let mut parameters = StatementParameters::default();
        let matching = matching_exactly(self, filter, &mut parameters)?;
        let names = parameters.bind(attributes);
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "WITH matching AS (SELECT a.id AS artifact FROM {matching})
             SELECT 0 AS is_label, v.name, v.value, v.artifacts FROM ({}) v
             UNION ALL
             SELECT 1, l.key, l.value, count(*) FROM matching m {} label l ON l.artifact = m.artifact GROUP BY 2, 3
             ORDER BY 1, 2, 3",
            dialect.counted_values("matching", &names),
            dialect.then_join()
        );
        let mut counts = ValueCounts::default();
        let rows = self.rows_planned_for(&sql, &parameters)?;
        let read = rows.iter().try_for_each(|row| {
            let count = ValueCount { name: row.text(1)?, value: row.text(2)?, artifacts: row.count(3)? };
            if row.flag(0)? { &mut counts.labels } else { &mut counts.attributes }.push(count);
            Ok(())
        });
        self.answer(read)?;
        Ok(counts)
    }

    fn not_alone(&self, filter: &Filter, containers: &[String]) -> Result<Vec<CoreHash>> {
        let mut parameters = StatementParameters::default();
        let matching = matching_exactly(self, filter, &mut parameters)?;
        let dialect = S::Session::DIALECT;
        let is_container = of_kinds(dialect, containers, &mut parameters);
        let sql = format!(
            "SELECT a.core FROM {matching}
                AND ({} OR {is_container}
                  OR EXISTS (SELECT 1 FROM artifact a WHERE {is_container})
                     AND (SELECT count(*) FROM identity i WHERE i.artifact = a.id) <> 1)
              ORDER BY 1",
            shares_name_condition(dialect)
        );
        let rows = self.rows_planned_for(&sql, &parameters)?;
        self.answer(rows.iter().map(|row| Ok(row.core(0)?)).collect())
    }
}

/// Returns the artifacts `a` that match `filter`, for a statement that reads all of them.
fn matching_exactly<S: FindSnapshot>(
    snapshot: &S,
    filter: &Filter,
    parameters: &mut StatementParameters,
) -> Result<String> {
    let mut query = ResolvedQuery::new(snapshot, filter, Order::Core)?;
    if query.is_exact() {
        return query.matching(parameters);
    }
    let found = query.read(None, usize::MAX)?;
    let among = found.into_iter().map(|(hit, _)| hit.artifact.core).collect();
    let filter = Filter { among: Some(among), ..Filter::default() };
    ResolvedQuery::new(snapshot, &filter, Order::Core)?.matching(parameters)
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
