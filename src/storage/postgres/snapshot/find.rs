//! Pages of artifacts that match a filter.

use super::conditions::StatementParameters;
use super::mentioned::only_mention;
use super::sorting::{SortExpression, cursor};
use crate::storage::interface::{ArtifactRecord, Filter, Hit, HitPage, Order, Page};
use crate::storage::postgres::columns::{count, limit as limit_of};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::{ARTIFACT, PostgresSnapshot};

impl PostgresSnapshot<'_> {
    pub(super) fn count(&self, filter: &Filter) -> PostgresResult<u64> {
        let mut selection = StatementParameters::default();
        let sql = format!("SELECT count(*) FROM artifact a WHERE {}", selection.matching(filter));
        let row = self.session.rows_planned_for(&sql, &selection.parameters())?.into_iter().next();
        count(&row.ok_or_else(|| PostgresError::damaged("a count has no row"))?, 0)
    }

    pub(super) fn find(&self, filter: &Filter, order: Order, page: &Page) -> PostgresResult<HitPage<Hit>> {
        if page.limit == 0 {
            return Ok(HitPage { items: Vec::new(), next: None });
        }
        if let Some(mention) = only_mention(filter, order)
            && let Some(found) = self.page_mentioning(mention, order, page)?
        {
            return Ok(found);
        }
        let mut selection = StatementParameters::default();
        let sorting = SortExpression::new(order, &mut selection);
        let mut condition = selection.matching(filter);
        if let Some(after) = &page.after {
            let after = sorting.after(after, order, &mut selection);
            condition = format!("{condition} AND {after}");
        }
        let limit = selection.bind(limit_of(page.limit.saturating_add(1)));
        let sql = format!(
            "SELECT {ARTIFACT}, {} AS sort_value, k.name AS kind_name
               FROM artifact a JOIN kind k ON k.id = a.kind WHERE {condition} ORDER BY {} LIMIT {limit}",
            sorting.value(),
            sorting.order_by()
        );
        let mut rows = self.session.rows_planned_for(&sql, &selection.parameters())?;
        let is_more = rows.len() > page.limit;
        rows.truncate(page.limit);
        let artifacts: Vec<ArtifactRecord> =
            rows.iter().map(|row| self.artifact_record(row, 0)).collect::<PostgresResult<_>>()?;
        let next = match rows.last().zip(artifacts.last()).filter(|_| is_more) {
            Some((row, artifact)) => Some(cursor(row, 6, artifact, order)?),
            None => None,
        };
        let matches = self.matches(&artifacts, filter)?;
        let items = artifacts.into_iter().zip(matches).map(|(artifact, matches)| Hit { artifact, matches });
        Ok(HitPage { items: items.collect(), next })
    }
}
