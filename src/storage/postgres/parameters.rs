//! Parameters of statements, and the rows that they return.

use std::error::Error;

use bytes::BytesMut;
use postgres::Row;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::columns::{from_stored, to_stored, value};
use super::error::{PostgresError, PostgresResult};
use crate::storage::sql::{DamagedValue, SqlParameter, SqlRow, SqlType, SqlValue};

/// A parameter of a statement with its type in the database, so that no round trip asks the server for it.
pub(super) type TypedParameter<'p> = (&'p (dyn ToSql + Sync), Type);

impl From<DamagedValue> for PostgresError {
    fn from(damaged: DamagedValue) -> Self {
        Self::damaged(damaged)
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) if *of == Type::BOOL => (*number != 0).to_sql(of, out),
            Self::Integer(number) => number.to_sql(of, out),
            Self::Text(text) => to_stored(text).to_sql(of, out),
            Self::Bytes(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Each is sent with its own type.
        true
    }

    to_sql_checked!();
}

/// Returns parameters with their types.
pub(super) fn typed(parameters: &[SqlParameter]) -> Vec<TypedParameter<'_>> {
    let mut all: Vec<TypedParameter<'_>> = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        all.push(match parameter {
            SqlParameter::Value(of, value) => (value, type_of(*of)),
            SqlParameter::List(of, values) => (values, array_of(*of)),
        });
    }
    all
}

fn type_of(of: SqlType) -> Type {
    match of {
        SqlType::Integer => Type::INT8,
        SqlType::Flag => Type::BOOL,
        SqlType::Text => Type::TEXT,
        SqlType::Bytes => Type::BYTEA,
    }
}

fn array_of(of: SqlType) -> Type {
    match of {
        SqlType::Integer => Type::INT8_ARRAY,
        SqlType::Flag => Type::BOOL_ARRAY,
        SqlType::Text => Type::TEXT_ARRAY,
        SqlType::Bytes => Type::BYTEA_ARRAY,
    }
}

/// Returns a statement with its parameters as the server names them.
pub(super) fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}

/// Returns a row of a query.
pub(super) fn shared_row(row: &Row) -> PostgresResult<SqlRow> {
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

/// Rows that are the parameters of a statement, with the types of their columns.
pub(super) struct ParameterRows {
    names: Vec<&'static str>,
    columns: Vec<SqlParameter>,
}

impl ParameterRows {
    /// Creates rows with these columns; further values are left out.
    pub(super) fn new(columns: &[(&'static str, SqlType)], rows: Vec<Vec<SqlValue>>) -> Self {
        let mut lists: Vec<Vec<SqlValue>> = columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            lists.iter_mut().zip(row).for_each(|(list, value)| list.push(value));
        }
        let names = columns.iter().map(|(name, _)| *name).collect();
        let columns =
            columns.iter().zip(lists).map(|((_, of), values)| SqlParameter::List(*of, values)).collect();
        Self { names, columns }
    }

    /// Returns the parameters, which are the first ones of the statement.
    pub(super) fn parameters(&self) -> &[SqlParameter] {
        &self.columns
    }

    /// Returns the names of the columns.
    pub(super) fn names(&self) -> String {
        self.names.join(", ")
    }

    /// Returns the rows `n`, for a statement.
    pub(super) fn source(&self) -> String {
        let array = |number, of| format!("${number}::{}[]", type_of(of).name());
        let arrays = (1..).zip(&self.columns).map(|(number, column)| match column {
            SqlParameter::Value(of, _) | SqlParameter::List(of, _) => array(number, *of),
        });
        format!("unnest({}) AS n ({})", arrays.collect::<Vec<String>>().join(", "), self.names())
    }
}
