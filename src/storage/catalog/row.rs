//! The rows of the catalog.

use crate::artifact::Kind;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::Prepared;

/// A row of the catalog. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// An artifact. `entry` is the number of the entry that first added it, and `arrival` its position in the order in which
    /// artifacts were last added or seen.
    Artifact {
        core: CoreHash,
        entry: u64,
        kind: Kind,
        added_at: i64,
        seen_at: i64,
        arrival: i64,
    },
    /// A capture. `entry` is the number of the entry that added it.
    Capture {
        core: CoreHash,
        capture: CaptureHash,
        entry: u64,
        size: u64,
        added_at: i64,
        seen_at: i64,
        source_path: Option<String>,
    },
    /// A value that captures of an artifact state.
    Attribute {
        core: CoreHash,
        name: String,
        value: String,
        number: Option<i64>,
    },
    /// A name that an artifact has.
    Identity {
        core: CoreHash,
        handle: String,
    },
    /// A name by which an artifact refers to others.
    NameMention {
        core: CoreHash,
        relation: String,
        handle: String,
        dangles: bool,
    },
    /// The state of a signature.
    Signature {
        core: CoreHash,
        capture: CaptureHash,
        state: String,
        key_id: Option<String>,
    },
    Tag {
        name: String,
        core: CoreHash,
        at: i64,
    },
    Note {
        core: CoreHash,
        text: String,
        at: i64,
    },
    Pin {
        core: CoreHash,
        note: Option<String>,
        at: i64,
    },
    Label {
        core: CoreHash,
        key: String,
        value: String,
        at: i64,
    },
    Link {
        source: CoreHash,
        relation: String,
        target: CoreHash,
        note: Option<String>,
        at: i64,
    },
    /// A removed core hash or capture hash of an artifact, with the entry that removed it.
    Tombstone {
        digest: Digest,
        core: CoreHash,
        entry: u64,
    },
}

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowKey {
    Signature(CoreHash, CaptureHash),
    Tag(String),
    Note(CoreHash),
    Pin(CoreHash),
    Label(CoreHash, String),
    Link(CoreHash, String, CoreHash),
}

/// A change of rows.
pub(crate) enum RowChange<'c> {
    /// Inserts a row unless there is one with its key.
    Insert(Row),
    /// Inserts a row, or replaces the one with its key.
    Put(Row),
    /// Deletes the row with this key, if there is one.
    Delete(RowKey),
    /// Sets when an artifact was last added or seen, and its position in the order of that.
    Arrive { core: CoreHash, at: i64, arrival: i64 },
    /// Sets when a capture was last seen.
    See { core: CoreHash, capture: CaptureHash, at: i64 },
    /// Stores the bytes of a capture, and inserts the rows of its files and its mentions.
    Store { core: CoreHash, capture: CaptureHash, content: &'c Prepared },
    /// Deletes all rows of an artifact but its tombstones, and what only it refers to. Annotations were deleted before.
    Remove { core: CoreHash },
    /// Deletes the tombstones of an artifact.
    Readmit { core: CoreHash },
}
