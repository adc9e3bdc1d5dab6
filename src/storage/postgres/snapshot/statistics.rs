//! Counts of artifacts by day, and the size of the vault.

use chrono::NaiveDate;

use super::conditions::StatementParameters;
use super::times::column;
use crate::storage::TimeBasis;
use crate::storage::interface::{EngineStatistics, Filter};
use crate::storage::postgres::columns::{count, from_millis, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::PostgresSnapshot;

/// The length of a day in milliseconds.
const DAY: i64 = 86_400_000;

impl PostgresSnapshot<'_> {
    /// Returns the number of artifacts that match on each day that has any.
    pub(super) fn count_by_day(
        &self,
        filter: &Filter,
        by: TimeBasis,
    ) -> PostgresResult<Vec<(NaiveDate, u64)>> {
        let mut selection = StatementParameters::default();
        let (at, matching) = (column(by), selection.matching(filter));
        let sql = format!(
            "SELECT floor({at} / {DAY}.0)::bigint * {DAY}, count(*) FROM artifact a
              WHERE {at} IS NOT NULL AND {matching} GROUP BY 1 ORDER BY 1"
        );
        let rows = self.session.rows_planned_for(&sql, &selection.parameters())?;
        rows.iter().map(|row| Ok((from_millis(value(row, 0)?)?.date_naive(), count(row, 1)?))).collect()
    }

    /// Returns the size of the tables, and of the bytes wherever they are.
    pub(super) fn engine_statistics(&self) -> PostgresResult<EngineStatistics> {
        let sql = "SELECT (SELECT coalesce(sum(coalesce(length, octet_length(bytes))), 0)::bigint FROM blob),
                    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                      WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
                    (SELECT count(*) FROM mention_key)";
        let row = self.session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("a count has no row"))?;
        Ok(EngineStatistics {
            stored_bytes: count(&row, 0)?,
            file_bytes: count(&row, 1)?,
            mentions: count(&row, 2)?,
            ..EngineStatistics::default()
        })
    }
}
