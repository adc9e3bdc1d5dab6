//! Pages of artifacts that match a filter.

use super::conditions::Selection;
use super::mentioned::only_mention;
use super::sorting::{Sorting, cursor};
use crate::storage::interface::{ArtifactRecord, Filter, Hit, Order, Page, Paged};
use crate::storage::postgres::columns::{count, limit as limit_of};
use crate::storage::postgres::error::{Failure, Outcome};
use crate::storage::postgres::view::{ARTIFACT, View};

impl View<'_> {
    pub(super) fn count(&self, filter: &Filter) -> Outcome<u64> {
        let mut selection = Selection::default();
        let sql = format!("SELECT count(*) FROM artifact a WHERE {}", selection.matching(filter));
        let row = self.session.rows_planned_for(&sql, &selection.parameters())?.into_iter().next();
        count(&row.ok_or_else(|| Failure::damaged("a count has no row"))?, 0)
    }

    pub(super) fn find(&self, filter: &Filter, order: Order, page: &Page) -> Outcome<Paged<Hit>> {
        if page.limit == 0 {
            return Ok(Paged { items: Vec::new(), next: None });
        }
        if let Some(mention) = only_mention(filter, order)
            && let Some(found) = self.page_mentioning(mention, order, page)?
        {
            return Ok(found);
        }
        let mut selection = Selection::default();
        let sorting = Sorting::new(order, &mut selection);
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
            rows.iter().map(|row| self.artifact_record(row, 0)).collect::<Outcome<_>>()?;
        let next = match rows.last().zip(artifacts.last()).filter(|_| is_more) {
            Some((row, artifact)) => Some(cursor(row, 6, artifact, order)?),
            None => None,
        };
        let matches = self.matches(&artifacts, filter)?;
        let items = artifacts.into_iter().zip(matches).map(|(artifact, matches)| Hit { artifact, matches });
        Ok(Paged { items: items.collect(), next })
    }
}
