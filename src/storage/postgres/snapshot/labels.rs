//! Keys and values of labels, with their use.

use postgres::Row;

use crate::storage::interface::{LabelKey, LabelValue};
use crate::storage::postgres::columns::{count, limit as limit_of, text};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::PostgresSnapshot;

impl PostgresSnapshot<'_> {
    pub(super) fn label_keys(&self) -> PostgresResult<Vec<LabelKey>> {
        let sql = "SELECT key, count(*), count(DISTINCT value) FROM label GROUP BY key ORDER BY key";
        let key = |row: &Row| {
            Ok(LabelKey { key: text(row, 0)?, artifacts: count(row, 1)?, values: count(row, 2)? })
        };
        self.session.rows(sql, &[])?.iter().map(key).collect()
    }

    pub(super) fn label_values(
        &self,
        key: &str,
        start: &str,
        limit: usize,
    ) -> PostgresResult<Vec<LabelValue>> {
        let sql = "SELECT l.value, count(DISTINCT l.artifact), count(c.id), coalesce(sum(c.size), 0)::bigint
                     FROM label l LEFT JOIN capture c ON c.artifact = l.artifact
                    WHERE l.key = $1 AND l.value >= $2 AND starts_with(l.value, $2)
                    GROUP BY l.value ORDER BY l.value LIMIT $3";
        let value = |row: &Row| {
            Ok(LabelValue {
                value: text(row, 0)?,
                artifacts: count(row, 1)?,
                captures: count(row, 2)?,
                bytes: count(row, 3)?,
            })
        };
        self.session
            .rows(sql, &[&to_stored(key), &to_stored(start), &limit_of(limit)])?
            .iter()
            .map(value)
            .collect()
    }
}
