//! Records that snapshots return.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{ArtifactLocation, MemberBytes, Signature};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::Tombstone;
use crate::validation::Violation;

/// An artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRecord {
    /// Its core hash.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// The time at which its first capture was added.
    pub added_at: DateTime<Utc>,
    /// The time at which one of its captures was last added or seen again.
    pub seen_at: DateTime<Utc>,
    /// Its position in the order of first additions. Positions increase, and are only comparable within one vault.
    pub addition: u64,
    /// Its position in the order in which artifacts were last added or seen again, which is that of the journal.
    pub arrival: u64,
}

/// A capture of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRecord {
    /// Its hash.
    pub capture: CaptureHash,
    /// Its artifact.
    pub artifact: CoreHash,
    /// Its size in bytes.
    pub size: u64,
    /// The time at which it was added.
    pub added_at: DateTime<Utc>,
    /// The time at which it was last added or seen again.
    pub seen_at: DateTime<Utc>,
    /// The warnings that were reported at its admission.
    pub warnings: Vec<Violation>,
    /// Its signature state; `None` if it has no signature.
    pub signature: Option<Signature>,
    /// The path that it was read from when it was first added, if that was recorded. Later additions do not change it.
    pub source_path: Option<String>,
}

/// A named value that is derived from an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AttributeRecord {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The number by which the value is ordered, if its type has an order.
    pub number: Option<i64>,
}

/// The annotations of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Its tags, by name.
    pub tags: Vec<Tag>,
    /// Its note.
    pub note: Option<Note>,
    /// Its pin.
    pub pin: Option<Pin>,
    /// Its labels, by key.
    pub labels: Vec<Label>,
}

/// A label. An artifact has at most one value of a key; many artifacts may have the same label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The time at which the artifact got this value.
    pub at: DateTime<Utc>,
}

/// A key of labels, with its use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelKey {
    /// The key.
    pub key: String,
    /// Number of artifacts with this key.
    pub artifacts: u64,
    /// Number of different values.
    pub values: u64,
}

/// A value of a key of labels, with the artifacts that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelValue {
    /// The value.
    pub value: String,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of their captures.
    pub captures: u64,
    /// The size of the captures in bytes, as they were received.
    pub bytes: u64,
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The name.
    pub name: String,
    /// The time at which it was set.
    pub at: DateTime<Utc>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The text.
    pub text: String,
    /// The time at which it was written.
    pub at: DateTime<Utc>,
}

/// A pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The reason.
    pub note: Option<String>,
    /// The time at which it was set.
    pub at: DateTime<Utc>,
}

/// The hashes that begin with a prefix. A list is as long as the limit if there may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The artifacts, by core hash.
    pub artifacts: Vec<CoreHash>,
    /// The captures, by hash and core hash.
    pub captures: Vec<CaptureTarget>,
    /// The tombstones of hashes that begin with the prefix, one for each hash, the latest first; empty if an artifact or
    /// a capture has such a hash.
    pub tombstones: Vec<Tombstone>,
}

/// A capture of an artifact. Captures of artifacts of several kinds may have the same bytes, and so the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaptureTarget {
    /// Its hash.
    pub capture: CaptureHash,
    /// Its artifact.
    pub artifact: CoreHash,
}

/// A mention of a digest by an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MentionRecord {
    /// The mentioning artifact.
    pub artifact: CoreHash,
    /// The role.
    pub role: Arc<str>,
    /// The unit of the place; empty if the place is a pointer.
    pub unit: Arc<str>,
    /// The place.
    pub place: ArtifactLocation,
    /// The digest.
    pub digest: Digest,
}

/// A mention that relates its artifact to the one that the digest identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceEdge {
    /// The mention.
    pub mention: MentionRecord,
    /// The relation of the mentioning artifact to the other.
    pub relation: String,
    /// The relation of the other artifact to the mentioning one, if that has a name of its own.
    pub inverse: Option<String>,
    /// The artifact that the digest identifies, if it is stored.
    pub target: Option<CoreHash>,
}

/// The names of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Those that it has, as `namespace:name`, sorted.
    pub own: Vec<String>,
    /// Those of which it is an original: it has the name and does not refer to it. Sorted.
    pub original: Vec<String>,
    /// Those by which it refers to others, sorted by relation and name.
    pub mentioned: Vec<NameMention>,
}

/// A name by which an artifact refers to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMention {
    /// The relation of the artifact to them.
    pub relation: String,
    /// The name, as `namespace:name`.
    pub handle: String,
    /// Whether the reference is reported if no artifact has the name.
    pub dangles: bool,
}

/// The artifacts that use a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameUse {
    /// Those that have it, in the order in which they were added.
    pub identified: Vec<CoreHash>,
    /// Those of them that are originals: they do not refer to it.
    pub originals: Vec<CoreHash>,
    /// Those that refer to others by it, each with its relation, sorted by relation and order of addition.
    pub referring: Vec<(String, CoreHash)>,
}

/// A manual link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualLink {
    /// The source artifact.
    pub source: CoreHash,
    /// The relation.
    pub relation: String,
    /// The target artifact.
    pub target: CoreHash,
    /// The note on the link.
    pub note: Option<String>,
}

/// The criterion by which an artifact contains another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// It states that it contains the other, as a pack does its session.
    Declared,
    /// It states that, or a document of the other is one of its documents or files. Files that several packs share do
    /// not make one pack part of another.
    Bytes,
}

/// A reference to something that the vault does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedReference {
    /// The missing target.
    pub missing: UnresolvedTarget,
    /// The referring artifact.
    pub artifact: CoreHash,
    /// The relation.
    pub relation: String,
    /// The role; `None` for names.
    pub role: Option<String>,
    /// The place; `None` for names.
    pub place: Option<ArtifactLocation>,
}

impl UnresolvedReference {
    /// Creates a reference to a name.
    pub(in crate::storage) fn to_name(name: String, artifact: CoreHash, relation: String) -> Self {
        Self { missing: UnresolvedTarget::Name(name), artifact, relation, role: None, place: None }
    }
}

/// The target of a reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnresolvedTarget {
    /// A core hash.
    Digest(Digest),
    /// A name, as `namespace:name`.
    Name(String),
}

/// A member of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Its name.
    pub name: String,
    /// The hash of its bytes.
    pub blob: BlobHash,
    /// Its size in bytes.
    pub size: u64,
}

/// A file of a capture of several files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// The artifact.
    pub artifact: CoreHash,
    /// The capture.
    pub capture: CaptureHash,
    /// The name of the file.
    pub name: String,
}

/// A journal entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    /// Its number: 1, 2, 3, and so on.
    pub seq: u64,
    /// Its time.
    pub at: DateTime<Utc>,
    /// Its text: a JSON object in its RFC 8785 form.
    pub entry: String,
    /// Its chain value.
    pub chain: Digest,
}

/// Number of the mentions of an artifact in one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MentionCount)]
pub struct RoleCount {
    /// The role.
    pub role: String,
    /// The number of mentions.
    pub count: u64,
}

/// A member of a capture, read and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMember {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl StoredMember {
    /// Borrows all `members` of a capture, in the form that kinds and archives expect.
    #[must_use]
    pub fn borrowed(members: &[Self]) -> Vec<MemberBytes<'_>> {
        members.iter().map(|member| MemberBytes { name: &member.name, bytes: &member.bytes }).collect()
    }
}

/// A file of an artifact whose bytes other artifacts also have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    /// Its name in the artifact.
    pub name: String,
    /// The artifacts that have the bytes, by core hash; at most [`SharedFile::LISTED`].
    pub dependents: Vec<CoreHash>,
    /// The number of artifacts that have the bytes.
    pub count: u64,
}

impl SharedFile {
    /// The maximum number of artifacts that are listed; the others are counted.
    pub const LISTED: usize = 5;
}
