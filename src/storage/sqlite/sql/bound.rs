//! Values of parameters.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::artifact::Cell;

/// A cell to be bound to a statement.
pub(super) struct BoundCell<'c>(pub(super) &'c Cell);

impl ToSql for BoundCell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Cell::Null => ValueRef::Null,
            Cell::Integer(integer) => ValueRef::Integer(*integer),
            Cell::Real(real) => ValueRef::Real(*real),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
