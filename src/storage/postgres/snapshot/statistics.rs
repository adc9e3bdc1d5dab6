//! The size of the vault.

use crate::storage::interface::EngineStatistics;
use crate::storage::postgres::columns::count;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::PostgresSnapshot;

impl PostgresSnapshot<'_> {
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
