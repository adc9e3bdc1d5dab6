//! The statements that vaults in PostgreSQL share with those in files.

use super::error::{PostgresError, PostgresResult};
use super::parameters::{ParameterRows, numbered, shared_row, typed};
use super::session::DatabaseTransaction;
use crate::storage::sql::{Dialect, SqlParameter, SqlRow, SqlSession, SqlTable, SqlType, SqlValue, text_key};

/// Returns the condition that the rows `x` and `n` have the same key. Without a key, no row has that of another one.
fn same_key(table: &SqlTable) -> String {
    if table.key == 0 {
        return "false".to_owned();
    }
    let key = table.columns.iter().take(table.key);
    let same: Vec<String> = key.map(|(column, _)| format!("x.{column} = n.{column}")).collect();
    same.join(" AND ")
}

impl SqlSession for DatabaseTransaction<'_> {
    type Error = PostgresError;
    const DIALECT: Dialect = Dialect::Postgres;

    fn rows(&self, sql: &str, parameters: &[SqlParameter]) -> PostgresResult<Vec<SqlRow>> {
        self.query(&numbered(sql), &typed(parameters))?.iter().map(shared_row).collect()
    }

    fn each(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
        take: &mut dyn FnMut(SqlRow) -> PostgresResult<()>,
    ) -> PostgresResult<()> {
        self.stream(&numbered(sql), &typed(parameters), &mut |row| take(shared_row(row)?))
    }

    fn execute(&self, sql: &str, parameters: &[SqlParameter]) -> PostgresResult<u64> {
        self.run(&numbered(sql), &typed(parameters))
    }

    fn insert(&self, table: &SqlTable, mut rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut columns = table.columns.to_vec();
        if let Some(hashed) = table.hashed {
            for row in &mut rows {
                let key = match row.get(hashed) {
                    Some(SqlValue::Text(text)) => text_key(text).into(),
                    _ => SqlValue::Null,
                };
                row.push(key);
            }
            columns.push(("key", SqlType::Integer));
        }
        let rows = ParameterRows::new(&columns, rows);
        let (name, names) = (table.name, rows.names());
        let sql = format!(
            "INSERT INTO {name} ({names}) SELECT * FROM {} WHERE NOT EXISTS (SELECT 1 FROM {name} x WHERE {})",
            rows.source(),
            same_key(table)
        );
        self.execute(&sql, rows.parameters()).map(drop)
    }

    fn delete(&self, table: &SqlTable, keys: &[Vec<SqlValue>]) -> PostgresResult<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let key = table.columns.get(..table.key).unwrap_or_default();
        let rows = ParameterRows::new(key, keys.to_vec());
        let sql = format!("DELETE FROM {} x USING {} WHERE {}", table.name, rows.source(), same_key(table));
        self.execute(&sql, rows.parameters()).map(drop)
    }
}
