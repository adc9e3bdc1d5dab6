//! The tables of what is derived from the bytes of captures.

use crate::storage::sql::SqlTable;
use crate::storage::sql::SqlType::{Bytes, Flag, Integer, Text};

/// The files of captures.
pub(super) const MEMBER: SqlTable =
    SqlTable::new("member", 2, &[("capture", Integer), ("name", Text), ("blob", Bytes)]);

/// What captures mention, by group of roles.
pub(super) const MENTION_LIST: SqlTable = SqlTable::new(
    "mention_list",
    2,
    &[("capture", Integer), ("group_id", Integer), ("digests", Bytes), ("entries", Bytes), ("firsts", Bytes)],
);

/// Which lists to read for a digest.
pub(super) const MENTION_KEY: SqlTable =
    SqlTable::new("mention_key", 0, &[("key", Integer), ("capture", Integer), ("group_id", Integer)]);

/// Mentions that relate an artifact to another.
pub(super) const EDGE: SqlTable = SqlTable::new(
    "edge",
    0,
    &[("artifact", Integer), ("target", Bytes), ("role", Integer), ("index", Integer), ("pointer", Text)],
);

/// What artifacts state.
pub(super) const ATTRIBUTE: SqlTable = SqlTable::new(
    "attribute",
    3,
    &[("artifact", Integer), ("name", Text), ("value", Text), ("number", Integer)],
)
.hashing(2);

/// Names of artifacts.
pub(super) const IDENTITY: SqlTable =
    SqlTable::new("identity", 2, &[("artifact", Integer), ("handle", Text)]).hashing(1);

/// Names by which artifacts refer to others.
pub(super) const NAME_MENTION: SqlTable = SqlTable::new(
    "name_mention",
    3,
    &[("artifact", Integer), ("relation", Text), ("handle", Text), ("dangles", Flag)],
)
.hashing(2);
