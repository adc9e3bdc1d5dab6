//! Tables that have the same columns in both databases.

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::storage) struct SqlTable {
    /// Its name.
    pub(in crate::storage) name: &'static str,
    /// Its columns. Those of the key come first.
    pub(in crate::storage) columns: &'static [(&'static str, SqlType)],
    /// The number of columns that the key has.
    pub(in crate::storage) key: usize,
    /// The column whose texts PostgreSQL finds by a hash, which it has in a further column `key`.
    pub(in crate::storage) hashed: Option<usize>,
}

impl SqlTable {
    /// Creates a table whose first `key` columns are its key.
    pub(in crate::storage) const fn new(
        name: &'static str,
        key: usize,
        columns: &'static [(&'static str, SqlType)],
    ) -> Self {
        Self { name, columns, key, hashed: None }
    }

    /// Returns the table with the hash of a column.
    #[cfg(feature = "postgres")]
    pub(in crate::storage) const fn hashing(self, column: usize) -> Self {
        Self { hashed: Some(column), ..self }
    }
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum SqlType {
    Integer,
    Flag,
    Text,
    Bytes,
}

use SqlType::{Bytes, Integer, Text};

/// Names that people give to artifacts.
pub(super) const TAG: SqlTable =
    SqlTable::new("tag", 1, &[("name", Text), ("artifact", Integer), ("at", Integer)]);

/// What people want to remember of artifacts.
pub(super) const NOTE: SqlTable =
    SqlTable::new("note", 1, &[("artifact", Integer), ("text", Text), ("folded", Bytes), ("at", Integer)]);

/// Artifacts that must not be removed.
pub(super) const PIN: SqlTable =
    SqlTable::new("pin", 1, &[("artifact", Integer), ("note", Text), ("at", Integer)]);

/// Labels, which many artifacts share.
pub(super) const LABEL: SqlTable =
    SqlTable::new("label", 2, &[("artifact", Integer), ("key", Text), ("value", Text), ("at", Integer)]);

/// Links that people state.
pub(super) const LINK: SqlTable = SqlTable::new(
    "link",
    3,
    &[("source", Integer), ("relation", Text), ("target", Integer), ("note", Text), ("at", Integer)],
);

/// What was removed.
pub(super) const TOMBSTONE: SqlTable = SqlTable::new(
    "tombstone",
    2,
    &[
        ("digest", Bytes),
        ("entry", Integer),
        ("at", Integer),
        ("core", Bytes),
        ("kind", Text),
        ("actor", Text),
        ("reason", Text),
        ("remaining", Integer),
        ("size", Integer),
    ],
);
