//! Pages of artifacts that match a filter.
//!
//! The server cannot know how many artifacts match conditions together, and reads all that match one of them to fill a page
//! of ten. So the conditions are counted first, up to a limit. If few artifacts can match one of them, these are read and
//! sorted. Otherwise artifacts are examined in the order of the page, by an index, until it is full. If very many are
//! examined before that, the server decides after all.

use postgres::Row;

use super::conditions::StatementParameters;
use super::mentioned::only_mention;
use super::sorting::{SortExpression, cursor, key_of};
use crate::artifact::FINISHED_AT;
use crate::storage::TimeBasis;
use crate::storage::interface::{ArtifactRecord, Filter, Hit, HitPage, Order, Page};
use crate::storage::postgres::columns::{count, limit as limit_of};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::{ARTIFACT, PostgresSnapshot};

/// Maximum number of artifacts that are all read for one page.
const FEW: u64 = 2_000;

/// Maximum number of artifacts that are examined in the order of the page.
const BUDGET: usize = 50_000;

/// Maximum number of numbers of an attribute that are read for one page.
const NUMBERS: usize = 10_000;

/// Maximum number of artifacts on a page that is filled by examining artifacts in its order.
const MAX_PAGE: usize = 1_000;

/// The artifacts among which a statement looks for a page.
#[derive(Clone, Copy)]
enum SearchedArtifacts {
    /// Those that can match the condition at this position, which are few.
    Few(usize),
    /// The first ones in the order of the page.
    First,
    /// All that match, in whatever way the server finds them.
    All,
}

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
        let mut rows = self.page_rows(filter, order, page)?;
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

    /// Returns the rows of a page, and one more if there are more.
    fn page_rows(&self, filter: &Filter, order: Order, page: &Page) -> PostgresResult<Vec<Row>> {
        let all = || self.rows_among(SearchedArtifacts::All, filter, order, page);
        let is_by_number = number_of(order).is_some();
        if filter.through_members || page.limit > MAX_PAGE || filter.conditions.is_empty() && !is_by_number {
            return all();
        }
        let counts = self.counts(filter)?;
        let fewest = (0..).zip(counts).min_by_key(|(_, count)| *count);
        if let Some((position, _)) = fewest.filter(|(_, count)| *count <= FEW) {
            return self.rows_among(SearchedArtifacts::Few(position), filter, order, page);
        }
        let is_after_numbers = page.after.as_ref().is_some_and(|after| key_of(after, order).is_none());
        if !has_index(order) || is_by_number && is_after_numbers {
            return all();
        }
        let rows = self.rows_among(SearchedArtifacts::First, filter, order, page)?;
        if rows.len() > page.limit { Ok(rows) } else { all() }
    }

    /// Returns how many rows each condition has, up to one more than [`FEW`].
    fn counts(&self, filter: &Filter) -> PostgresResult<Vec<u64>> {
        if filter.conditions.is_empty() {
            return Ok(Vec::new());
        }
        let mut selection = StatementParameters::default();
        let counts = filter.conditions.iter().map(|condition| {
            let artifacts = selection.with(condition);
            format!("(SELECT count(*) FROM (SELECT 1 FROM ({artifacts}) x LIMIT {FEW} + 1) y)")
        });
        let sql = format!("SELECT {}", counts.collect::<Vec<_>>().join(", "));
        let row = self.session.rows_planned_for(&sql, &selection.parameters())?.into_iter().next();
        let row = row.ok_or_else(|| PostgresError::damaged("a count has no row"))?;
        (0..filter.conditions.len()).map(|column| count(&row, column)).collect()
    }

    fn rows_among(
        &self,
        among: SearchedArtifacts,
        filter: &Filter,
        order: Order,
        page: &Page,
    ) -> PostgresResult<Vec<Row>> {
        let mut selection = StatementParameters::default();
        let number = number_of(order).filter(|_| matches!(among, SearchedArtifacts::First));
        let sorting = if number.is_some() {
            SortExpression::by_number()
        } else {
            SortExpression::new(order, &mut selection)
        };
        let after = page.after.as_ref().map(|after| sorting.after(after, order, &mut selection));
        let after = after.unwrap_or_else(|| "true".to_owned());
        let (value, order_by) = (sorting.value(), sorting.order_by());
        let kinds = "JOIN kind k ON k.id = a.kind";
        // `OFFSET 0` keeps the server from reading all artifacts that match a condition.
        let rows = match among {
            SearchedArtifacts::All => {
                let condition = selection.matching(filter);
                format!(
                    "{value} AS sort_value, k.name AS kind_name FROM artifact a {kinds} WHERE {condition} AND {after}"
                )
            }
            SearchedArtifacts::Few(position) => {
                let few = filter.conditions.get(position).map(|condition| selection.with(condition));
                let few = few.unwrap_or_else(|| "SELECT id AS artifact FROM artifact".to_owned());
                let condition = selection.matching_each(filter);
                format!(
                    "{value} AS sort_value, k.name AS kind_name FROM (SELECT DISTINCT f.artifact FROM ({few}) f OFFSET 0) f
                       JOIN artifact a ON a.id = f.artifact {kinds} WHERE {condition} AND {after}"
                )
            }
            SearchedArtifacts::First => {
                let from = match number {
                    None => "artifact a WHERE true".to_owned(),
                    Some(name) => {
                        let first = page.after.as_ref().and_then(|after| key_of(after, order));
                        largest_numbers(&selection.bind(name), &selection.bind(first.unwrap_or(i64::MAX)))
                    }
                };
                let (selected, condition) =
                    (selection.selecting(filter).join(" AND "), selection.examined(filter));
                // The order is that of the columns of the result, so that nothing is sorted. A join could lose it.
                format!(
                    "a.sort_value FROM (SELECT a.*, {value} AS sort_value FROM {from} AND {selected} AND {after}
                                         ORDER BY {order_by} LIMIT {BUDGET}) a WHERE {condition}"
                )
            }
        };
        let limit = selection.bind(limit_of(page.limit.saturating_add(1)));
        let sql = format!("SELECT {ARTIFACT}, {rows} ORDER BY {order_by} LIMIT {limit}");
        self.session.rows_planned_for(&sql, &selection.parameters())
    }
}

/// Returns the attribute whose numbers an order is by.
fn number_of(order: Order) -> Option<&'static str> {
    match order {
        Order::Largest(name) => Some(name),
        Order::Newest(TimeBasis::Finished) => Some(FINISHED_AT),
        _ => None,
    }
}

/// Returns the artifacts `a` with the largest numbers of an attribute, each with its largest one as `t.number`, from the
/// number `first` on. The last numbers are left out if there are more: not all artifacts with the same one may be there.
fn largest_numbers(name: &str, first: &str) -> String {
    format!(
        "(SELECT n.artifact, n.number FROM
            (SELECT t.*, min(t.number) OVER () AS least, count(*) OVER () AS count FROM
               (SELECT t.artifact, t.number FROM attribute t
                 WHERE t.name = {name} AND t.number <= {first} AND NOT EXISTS
                         (SELECT 1 FROM attribute l WHERE l.artifact = t.artifact AND l.name || '' = {name}
                             AND (l.number > t.number OR l.number = t.number AND l.value < t.value) OFFSET 0)
                 ORDER BY t.number DESC LIMIT {NUMBERS}) t) n
           WHERE n.number > n.least OR n.count < {NUMBERS}) t
            CROSS JOIN LATERAL (SELECT * FROM artifact a WHERE a.id = t.artifact OFFSET 0) a WHERE true"
    )
}

/// Returns whether an index has artifacts in an order.
fn has_index(order: Order) -> bool {
    !matches!(order, Order::Kind)
}
