//! Names and values of attributes.

use crate::storage::postgres::columns::limit as limit_of;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::{PostgresSnapshot, texts};

impl PostgresSnapshot<'_> {
    pub(super) fn attribute_names(&self) -> PostgresResult<Vec<String>> {
        texts(&self.session.rows("SELECT DISTINCT name FROM attribute ORDER BY name", &[])?, 0)
    }

    pub(super) fn attribute_values(
        &self,
        name: &str,
        start: &str,
        limit: usize,
    ) -> PostgresResult<Vec<String>> {
        let sql = "SELECT DISTINCT value FROM attribute
                    WHERE name = $1 AND left(value, 200) >= left($2, 200) AND starts_with(value, $2)
                    ORDER BY value LIMIT $3";
        texts(&self.session.rows(sql, &[&to_stored(name), &to_stored(start), &limit_of(limit)])?, 0)
    }
}
