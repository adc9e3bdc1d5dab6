//! The rows of the catalog.

use std::sync::Arc;

use crate::artifact::{ArtifactLocation, Kind, Role};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::{Prepared, Tombstone};

/// A row of the catalog. Times are milliseconds since 1970, and entries are numbers of entries of the journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A kind of which there are artifacts.
    Kind(Kind),
    /// An artifact.
    Artifact {
        /// Its core hash.
        core: CoreHash,
        /// The entry that first added it.
        entry: u64,
        /// The name of its kind.
        kind: String,
        /// When it was first added.
        added_at: i64,
        /// When it was last added or seen.
        seen_at: i64,
        /// Its position in the order in which artifacts were last added or seen.
        arrival: i64,
    },
    /// A capture.
    Capture {
        /// The core hash of its artifact.
        core: CoreHash,
        /// Its hash.
        capture: CaptureHash,
        /// The entry that added it.
        entry: u64,
        /// The total size of its files in bytes.
        size: u64,
        /// When it was added.
        added_at: i64,
        /// When it was last added or seen.
        seen_at: i64,
        /// The path that it was read from, if that was recorded.
        source_path: Option<String>,
    },
    /// A file of a capture.
    Member {
        /// The core hash of the artifact.
        core: CoreHash,
        /// The capture.
        capture: CaptureHash,
        /// Its name.
        name: String,
        /// Its bytes.
        blob: BlobHash,
    },
    /// A digest that captures of an artifact mention.
    Mention {
        /// The core hash of the artifact.
        core: CoreHash,
        /// The location.
        place: ArtifactLocation,
        /// The digest.
        digest: Digest,
        /// The role. Last, because comparing roles takes longest.
        role: Arc<MentionRole>,
    },
    /// A value that captures of an artifact state.
    Attribute {
        /// The core hash of the artifact.
        core: CoreHash,
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// The number of a value whose type has an order.
        number: Option<i64>,
    },
    /// A name that an artifact has.
    Identity {
        /// The core hash of the artifact.
        core: CoreHash,
        /// The name with its namespace.
        handle: String,
    },
    /// A name by which an artifact refers to others.
    NameMention {
        /// The core hash of the artifact.
        core: CoreHash,
        /// The relation to the others.
        relation: String,
        /// The name with its namespace.
        handle: String,
        /// Whether it is reported if no artifact has the name.
        dangles: bool,
    },
    /// The state of a signature.
    Signature {
        /// The core hash of the artifact.
        core: CoreHash,
        /// The capture that is signed.
        capture: CaptureHash,
        /// The name of the state.
        state: String,
        /// The key that it was checked with, or that the capture names.
        key_id: Option<String>,
    },
    /// A tag.
    Tag {
        /// Its name.
        name: String,
        /// The core hash of the artifact that has it.
        core: CoreHash,
        /// When it was set.
        at: i64,
    },
    /// The note of an artifact.
    Note {
        /// The core hash of the artifact.
        core: CoreHash,
        /// Its text.
        text: String,
        /// When it was set.
        at: i64,
    },
    /// The protection of an artifact from removal.
    Pin {
        /// The core hash of the artifact.
        core: CoreHash,
        /// The reason.
        note: Option<String>,
        /// When it was set.
        at: i64,
    },
    /// A label of an artifact.
    Label {
        /// The core hash of the artifact.
        core: CoreHash,
        /// Its key.
        key: String,
        /// Its value.
        value: String,
        /// When it was set.
        at: i64,
    },
    /// A manual link.
    Link {
        /// The core hash of its source.
        source: CoreHash,
        /// Its relation.
        relation: String,
        /// The core hash of its target.
        target: CoreHash,
        /// Its note.
        note: Option<String>,
        /// When it was stated.
        at: i64,
    },
    /// A removed core hash or capture hash of an artifact. It is larger than other rows, and there are few.
    Tombstone(Box<Tombstone>),
}

/// A role in which artifacts of a kind mention digests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MentionRole {
    /// The name of the kind.
    pub kind: String,
    /// The name.
    pub name: Arc<str>,
    /// The group.
    pub group: String,
    /// The unit of the location.
    pub unit: Arc<str>,
    /// The relation to the artifact that the digest identifies, if there is one.
    pub relation: Option<String>,
    /// Whether a mention is reported if no artifact has the digest.
    pub dangles: bool,
}

impl MentionRole {
    /// Returns the row of a role that this program defines.
    pub(in crate::storage) fn new(kind: Kind, role: &Role) -> Self {
        Self {
            kind: kind.name().to_owned(),
            name: role.name.into(),
            group: role.group.to_owned(),
            unit: role.unit.into(),
            relation: role.relation.map(|relation| relation.name.to_owned()),
            dangles: role.relation.is_some_and(|relation| relation.dangles),
        }
    }

    /// Returns what stands for the row of a role that the vault lacks.
    pub(crate) fn missing(number: i64) -> Self {
        Self {
            kind: String::new(),
            name: format!("role {number}, which does not exist,").into(),
            group: String::new(),
            unit: "".into(),
            relation: None,
            dangles: false,
        }
    }
}

impl Row {
    /// Returns the name of its table.
    pub(crate) fn table(&self) -> &'static str {
        match self {
            Self::Kind(_) => "kind",
            Self::Artifact { .. } => "artifact",
            Self::Capture { .. } => "capture",
            Self::Member { .. } => "member",
            Self::Mention { .. } => "mention_list",
            Self::Attribute { .. } => "attribute",
            Self::Identity { .. } => "identity",
            Self::NameMention { .. } => "name_mention",
            Self::Signature { .. } => "signature",
            Self::Tag { .. } => "tag",
            Self::Note { .. } => "note",
            Self::Pin { .. } => "pin",
            Self::Label { .. } => "label",
            Self::Link { .. } => "link",
            Self::Tombstone(_) => "tombstone",
        }
    }

    /// Returns the artifact to which it belongs.
    pub(crate) fn owner(&self) -> Option<CoreHash> {
        match self {
            Self::Kind(_) => None,
            Self::Artifact { core, .. }
            | Self::Capture { core, .. }
            | Self::Member { core, .. }
            | Self::Mention { core, .. }
            | Self::Attribute { core, .. }
            | Self::Identity { core, .. }
            | Self::NameMention { core, .. }
            | Self::Signature { core, .. }
            | Self::Tag { core, .. }
            | Self::Note { core, .. }
            | Self::Pin { core, .. }
            | Self::Label { core, .. }
            | Self::Link { source: core, .. } => Some(*core),
            Self::Tombstone(tombstone) => Some(tombstone.core),
        }
    }

    /// Returns the key of a tag, note, pin, label or manual link.
    pub(crate) fn annotation_key(&self) -> Option<RowKey> {
        Some(match self {
            Self::Tag { name, .. } => RowKey::Tag(name.clone()),
            Self::Note { core, .. } => RowKey::Note(*core),
            Self::Pin { core, .. } => RowKey::Pin(*core),
            Self::Label { core, key, .. } => RowKey::Label(*core, key.clone()),
            Self::Link { source, relation, target, .. } => RowKey::Link(*source, relation.clone(), *target),
            _ => return None,
        })
    }
}

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
