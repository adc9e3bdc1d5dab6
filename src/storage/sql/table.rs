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

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum SqlType {
    Integer,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "a file has no type for it"))]
    Flag,
    Text,
    Bytes,
}

use SqlType::{Bytes, Integer, Text};

/// Names that people give to artifacts.
pub(super) const TAG: SqlTable = SqlTable {
    name: "tag",
    columns: &[("name", Text), ("artifact", Integer), ("at", Integer)],
    key: 1,
    hashed: None,
};

/// What people want to remember of artifacts.
pub(super) const NOTE: SqlTable = SqlTable {
    name: "note",
    columns: &[("artifact", Integer), ("text", Text), ("folded", Bytes), ("at", Integer)],
    key: 1,
    hashed: None,
};

/// Artifacts that must not be removed.
pub(super) const PIN: SqlTable = SqlTable {
    name: "pin",
    columns: &[("artifact", Integer), ("note", Text), ("at", Integer)],
    key: 1,
    hashed: None,
};

/// Labels, which many artifacts share.
pub(super) const LABEL: SqlTable = SqlTable {
    name: "label",
    columns: &[("artifact", Integer), ("key", Text), ("value", Text), ("at", Integer)],
    key: 2,
    hashed: None,
};

/// Links that people state.
pub(super) const LINK: SqlTable = SqlTable {
    name: "link",
    columns: &[("source", Integer), ("relation", Text), ("target", Integer), ("note", Text), ("at", Integer)],
    key: 3,
    hashed: None,
};

/// What was removed.
pub(super) const TOMBSTONE: SqlTable = SqlTable {
    name: "tombstone",
    columns: &[
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
    key: 2,
    hashed: None,
};
