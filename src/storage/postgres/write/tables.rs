//! The tables of what is derived from the bytes of captures.

use crate::storage::sql::SqlTable;
use crate::storage::sql::SqlType::{Bytes, Flag, Integer, Text};

/// The files of captures.
pub(super) const MEMBER: SqlTable = SqlTable {
    name: "member",
    columns: &[("capture", Integer), ("name", Text), ("blob", Bytes)],
    key: 2,
    hashed: None,
};

/// What captures mention, by group of roles.
pub(super) const MENTION_LIST: SqlTable = SqlTable {
    name: "mention_list",
    columns: &[
        ("capture", Integer),
        ("group_id", Integer),
        ("digests", Bytes),
        ("entries", Bytes),
        ("firsts", Bytes),
    ],
    key: 2,
    hashed: None,
};

/// Which lists to read for a digest.
pub(super) const MENTION_KEY: SqlTable = SqlTable {
    name: "mention_key",
    columns: &[("key", Integer), ("capture", Integer), ("group_id", Integer)],
    key: 0,
    hashed: None,
};

/// Mentions that relate an artifact to another.
pub(super) const EDGE: SqlTable = SqlTable {
    name: "edge",
    columns: &[
        ("artifact", Integer),
        ("target", Bytes),
        ("role", Integer),
        ("index", Integer),
        ("pointer", Text),
    ],
    key: 0,
    hashed: None,
};

/// What artifacts state.
pub(super) const ATTRIBUTE: SqlTable = SqlTable {
    name: "attribute",
    columns: &[("artifact", Integer), ("name", Text), ("value", Text), ("number", Integer)],
    key: 3,
    hashed: Some(2),
};

/// Names of artifacts.
pub(super) const IDENTITY: SqlTable = SqlTable {
    name: "identity",
    columns: &[("artifact", Integer), ("handle", Text)],
    key: 2,
    hashed: Some(1),
};

/// Names by which artifacts refer to others.
pub(super) const NAME_MENTION: SqlTable = SqlTable {
    name: "name_mention",
    columns: &[("artifact", Integer), ("relation", Text), ("handle", Text), ("dangles", Flag)],
    key: 3,
    hashed: Some(2),
};
