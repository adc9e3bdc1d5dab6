//! Parameters of statements, the rows that they return, and the form in which texts are stored, which cannot contain NUL.
//!
//! U+0000 is stored as U+0001 U+0002 and U+0001 as U+0001 U+0003, so that stored texts are ordered, and begin with each
//! other, as the texts do.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use postgres::Row;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::error::{PostgresError, PostgresResult};
use crate::digest::Digest;
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

/// Returns the value of a column.
pub(super) fn value<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> PostgresResult<T> {
    row.try_get(index).map_err(PostgresError::from)
}

/// Returns the digests that stand one after the other in a value.
pub(super) fn digests(bytes: &[u8]) -> PostgresResult<Vec<Digest>> {
    let (digests, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(PostgresError::damaged("a list of digests ends within a digest"));
    }
    Ok(digests.iter().map(|digest| Digest::from_bytes(*digest)).collect())
}

/// Returns the name of an object in object storage.
pub(super) fn object_name(row: &SqlRow, column: usize) -> PostgresResult<[u8; 16]> {
    let damaged = |_| PostgresError::damaged("the name of an object does not have 16 bytes");
    row.bytes(column)?.try_into().map_err(damaged)
}

const ESCAPE: char = '\u{1}';

/// Returns the form in which `text` is stored.
pub(super) fn to_stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => stored.push_str("\u{1}\u{2}"),
            ESCAPE => stored.push_str("\u{1}\u{3}"),
            _ => stored.push(character),
        }
    }
    Cow::Owned(stored)
}

/// Returns the text that is stored in this form.
pub(super) fn from_stored(stored: String) -> PostgresResult<String> {
    if !stored.contains(ESCAPE) {
        return Ok(stored);
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            ESCAPE => match characters.next() {
                Some('\u{2}') => '\0',
                Some('\u{3}') => ESCAPE,
                _ => return Err(PostgresError::damaged("a text has an invalid escape")),
            },
            _ => character,
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_come_back_in_their_order(one in "[\0\u{1}\u{2}\u{3}aé]{0,6}", other in "[\0\u{1}\u{2}\u{3}aé]{0,6}") {
            let stored = [&one, &other].map(|text| to_stored(text).into_owned());
            prop_assert!(!stored[0].contains('\0'));
            prop_assert_eq!(one.cmp(&other), stored[0].cmp(&stored[1]));
            prop_assert_eq!(one.starts_with(&other), stored[0].starts_with(&stored[1]));
            prop_assert_eq!(from_stored(stored[0].clone()).unwrap(), one);
        }
    }

    #[test]
    fn invalid_escapes_are_damage() {
        assert!(from_stored("a\u{1}".to_owned()).is_err() && from_stored("\u{1}a".to_owned()).is_err());
    }
}
