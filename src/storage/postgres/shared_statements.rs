//! The statements that vaults in PostgreSQL share with those in files.

use std::error::Error;

use bytes::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::columns::{from_stored, to_stored, value};
use super::error::{PostgresError, PostgresResult};
use super::parameter::Parameter;
use super::session::DatabaseTransaction;
use crate::storage::sql::{
    DamagedValue, Dialect, SqlParameter, SqlRow, SqlSession, SqlTable, SqlType, SqlValue, text_key,
};

impl From<DamagedValue> for PostgresError {
    fn from(damaged: DamagedValue) -> Self {
        Self::damaged(damaged)
    }
}

impl ToSql for SqlParameter<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Integer(number) => number.to_sql(of, out),
            Self::Text(text) => text.map(to_stored).to_sql(of, out),
            Self::Bytes(bytes) => bytes.to_sql(of, out),
            Self::Integers(numbers) => numbers.to_sql(of, out),
            Self::Texts(texts) => {
                texts.iter().map(|text| to_stored(text)).collect::<Vec<_>>().to_sql(of, out)
            }
            Self::Digests(digests) => digests.to_sql(of, out),
            Self::Blobs(blobs) => blobs.to_sql(of, out),
            Self::Cores(cores) => cores.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Each is sent with its own type.
        true
    }

    to_sql_checked!();
}

impl Parameter for SqlParameter<'_> {
    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }

    fn type_of(&self) -> Type {
        match self {
            Self::Integer(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
            Self::Integers(_) => Type::INT8_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Digests(_) | Self::Blobs(_) | Self::Cores(_) => Type::BYTEA_ARRAY,
        }
    }
}

/// Returns a row of a query.
pub(super) fn shared_row(row: &postgres::Row) -> PostgresResult<SqlRow> {
    let number = |number: Option<i64>| number.map_or(SqlValue::Null, SqlValue::Integer);
    let column = |(column, of): (usize, &postgres::Column)| {
        Ok(match *of.type_() {
            Type::BOOL => number(value::<Option<bool>>(row, column)?.map(i64::from)),
            Type::INT2 => number(value::<Option<i16>>(row, column)?.map(i64::from)),
            Type::INT4 => number(value::<Option<i32>>(row, column)?.map(i64::from)),
            Type::INT8 => number(value(row, column)?),
            Type::BYTEA => value::<Option<Vec<u8>>>(row, column)?.map_or(SqlValue::Null, SqlValue::Bytes),
            _ => match value::<Option<String>>(row, column)?.map(from_stored) {
                None => SqlValue::Null,
                Some(Ok(text)) => SqlValue::Text(text),
                // An invalid escape is damage where a text is expected.
                Some(Err(_)) => SqlValue::Bytes(Vec::new()),
            },
        })
    };
    row.columns().iter().enumerate().map(column).collect::<PostgresResult<_>>().map(SqlRow)
}

/// The values of a column of several rows.
enum ColumnValues {
    Integers(Vec<Option<i64>>),
    Flags(Vec<Option<bool>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl ColumnValues {
    /// Returns the column `index` of rows. A value of another type is none.
    fn new(of: SqlType, rows: &mut [Vec<SqlValue>], index: usize) -> Self {
        let values = rows.iter_mut().map(|row| {
            row.get_mut(index).map_or(SqlValue::Null, |value| std::mem::replace(value, SqlValue::Null))
        });
        let integers = |value| if let SqlValue::Integer(number) = value { Some(number) } else { None };
        match of {
            SqlType::Integer => Self::Integers(values.map(integers).collect()),
            SqlType::Flag => {
                Self::Flags(values.map(|value| integers(value).map(|number| number != 0)).collect())
            }
            SqlType::Text => Self::Texts(
                values
                    .map(|value| match value {
                        SqlValue::Text(text) => Some(to_stored(&text).into_owned()),
                        _ => None,
                    })
                    .collect(),
            ),
            SqlType::Bytes => Self::Bytes(
                values
                    .map(|value| if let SqlValue::Bytes(bytes) = value { Some(bytes) } else { None })
                    .collect(),
            ),
        }
    }

    fn parameter(&self) -> &dyn Parameter {
        match self {
            Self::Integers(values) => values,
            Self::Flags(values) => values,
            Self::Texts(values) => values,
            Self::Bytes(values) => values,
        }
    }
}

/// Returns the rows `n` with the columns `names`, whose values are the parameters of a statement.
fn parameter_rows(names: &[&str], columns: &[ColumnValues]) -> String {
    let arrays: Vec<String> = (1..)
        .zip(columns)
        .map(|(number, column)| match column {
            ColumnValues::Integers(_) => format!("${number}::bigint[]"),
            ColumnValues::Flags(_) => format!("${number}::boolean[]"),
            ColumnValues::Texts(_) => format!("${number}::text[]"),
            ColumnValues::Bytes(_) => format!("${number}::bytea[]"),
        })
        .collect();
    format!("unnest({}) AS n ({})", arrays.join(", "), names.join(", "))
}

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

    fn rows(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> PostgresResult<Vec<SqlRow>> {
        let parameters: Vec<&dyn Parameter> =
            parameters.iter().map(|value| value as &dyn Parameter).collect();
        let rows = Self::rows(self, &sql.replace('?', "$"), &parameters)?;
        rows.iter().map(shared_row).collect()
    }

    fn each(
        &self,
        sql: &str,
        take: &mut dyn FnMut(&SqlRow) -> Result<(), DamagedValue>,
    ) -> PostgresResult<()> {
        Self::each(self, sql, &[], &mut |row| Ok(take(&shared_row(row)?)?))
    }

    fn execute(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> PostgresResult<u64> {
        let parameters: Vec<&dyn Parameter> =
            parameters.iter().map(|value| value as &dyn Parameter).collect();
        Self::execute(self, &sql.replace('?', "$"), &parameters)
    }

    fn insert(&self, table: &SqlTable, mut rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let mut columns = Vec::new();
        if let Some(hashed) = table.hashed {
            let key = |row: &Vec<SqlValue>| match row.get(hashed) {
                Some(SqlValue::Text(text)) => Some(text_key(text)),
                _ => None,
            };
            columns.push(ColumnValues::Integers(rows.iter().map(key).collect()));
            names.insert(0, "key");
        }
        let own = table.columns.iter().enumerate();
        columns.extend(own.map(|(index, (_, of))| ColumnValues::new(*of, &mut rows, index)));
        let (name, listed, values) = (table.name, names.join(", "), parameter_rows(&names, &columns));
        let sql = format!(
            "INSERT INTO {name} ({listed}) SELECT * FROM {values} WHERE NOT EXISTS (SELECT 1 FROM {name} x WHERE {})",
            same_key(table)
        );
        Self::execute(self, &sql, &columns.iter().map(ColumnValues::parameter).collect::<Vec<_>>()).map(drop)
    }

    fn delete(&self, table: &SqlTable, keys: &[Vec<SqlValue>]) -> PostgresResult<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let (mut keys, key) = (keys.to_vec(), table.columns.iter().take(table.key));
        let names: Vec<&str> = key.clone().map(|(name, _)| *name).collect();
        let columns: Vec<ColumnValues> =
            key.enumerate().map(|(index, (_, of))| ColumnValues::new(*of, &mut keys, index)).collect();
        let (name, values) = (table.name, parameter_rows(&names, &columns));
        let sql = format!("DELETE FROM {name} x USING {values} WHERE {}", same_key(table));
        Self::execute(self, &sql, &columns.iter().map(ColumnValues::parameter).collect::<Vec<_>>()).map(drop)
    }
}
