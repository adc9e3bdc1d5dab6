//! What reads give back.

use std::fmt;

use chrono::{DateTime, Utc};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::artifact::{MemberBytes, Place, Signature};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::verify::Violation;

/// An artifact within its vault. Numbers grow in the order of arrival and mean nothing in another vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId(pub(super) i64);

impl ArtifactId {
    /// The number, as the SQL views have it.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }
}

/// A kind within its vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub(super) i64);

/// An artifact in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRow {
    /// Its number.
    pub id: ArtifactId,
    /// Its core hash.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// When its first capture was added.
    pub added_at: DateTime<Utc>,
    /// When one of its captures was last added or seen again.
    pub seen_at: DateTime<Utc>,
    /// Its place in the order in which artifacts were last added or seen again, which is that of the journal: later ones have
    /// larger numbers.
    pub arrival: i64,
}

/// A capture in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRow {
    /// Its hash.
    pub capture: CaptureHash,
    /// Its artifact.
    pub artifact: ArtifactId,
    /// Its size in bytes.
    pub size: u64,
    /// When it was added.
    pub added_at: DateTime<Utc>,
    /// When it was last added or seen again.
    pub seen_at: DateTime<Utc>,
    /// What was reported when it was admitted.
    pub warnings: Vec<Violation>,
    /// What is known of its signature; nothing if it has none.
    pub signature: Option<Signature>,
}

/// A member of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// Its name.
    pub name: String,
    /// The digest of its bytes.
    pub blob: BlobHash,
    /// How many bytes there are.
    pub size: u64,
}

/// A file of a capture of several files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// The artifact.
    pub artifact: ArtifactId,
    /// The capture.
    pub capture: CaptureHash,
    /// The name of the file.
    pub name: String,
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
    /// All `members` of a capture, as kinds and archives take them.
    #[must_use]
    pub fn borrowed(members: &[Self]) -> Vec<MemberBytes<'_>> {
        members.iter().map(|member| MemberBytes { name: &member.name, bytes: &member.bytes }).collect()
    }
}

/// A mention in the vault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MentionRow {
    /// The artifact that mentions.
    pub artifact: ArtifactId,
    /// In which role.
    pub role: String,
    /// What the place counts; empty where it is a pointer.
    pub unit: String,
    /// Where.
    pub place: Place,
    /// Which digest.
    pub digest: Digest,
}

/// A mention that relates its artifact to the one that the digest identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestEdge {
    /// The mention.
    pub mention: MentionRow,
    /// How the mentioning artifact relates to the other.
    pub relation: String,
    /// How the other relates to the mentioning one, if that has a name of its own.
    pub inverse: Option<String>,
    /// The artifact that the digest identifies, if it is in the vault.
    pub target: Option<ArtifactId>,
}

/// A name by which an artifact refers to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMention {
    /// How it relates to them.
    pub relation: String,
    /// The name, as `namespace:name`.
    pub handle: String,
    /// Whether the reference is reported if nothing has the name.
    pub dangles: bool,
}

/// A link that a person stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedEdge {
    /// The artifact that relates.
    pub source: ArtifactId,
    /// How.
    pub relation: String,
    /// The artifact that it relates to.
    pub target: ArtifactId,
    /// What the person said of it.
    pub note: Option<String>,
}

/// Something that artifacts refer to and the vault does not have, with one of those who do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<T> {
    /// What is missing.
    pub missing: T,
    /// Who refers to it.
    pub artifact: ArtifactId,
    /// Under which relation.
    pub relation: String,
    /// In which role; nothing for names.
    pub role: Option<String>,
    /// Where; nothing for names.
    pub place: Option<Place>,
}

/// How often an artifact mentions digests in one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleCount {
    /// The role.
    pub role: String,
    /// The number of mentions.
    pub count: u64,
}

/// A name that people gave to an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRow {
    /// The name.
    pub name: String,
    /// The artifact.
    pub artifact: ArtifactId,
    /// Its core hash.
    pub core: CoreHash,
    /// Since when it has the name.
    pub at: DateTime<Utc>,
}

/// An artifact that must not be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinRow {
    /// The artifact.
    pub artifact: ArtifactId,
    /// Its core hash.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// Why, as a person said.
    pub note: Option<String>,
    /// Since when.
    pub at: DateTime<Utc>,
}

/// What people want to remember of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    /// The artifact.
    pub artifact: ArtifactId,
    /// The text.
    pub text: String,
    /// When it was written.
    pub at: DateTime<Utc>,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    /// Its number: 1, 2, 3, and so on.
    pub seq: u64,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// Its text: a JSON object in its RFC 8785 form.
    pub entry: String,
    /// Its chain value.
    pub chain: Digest,
}

/// What the journal says of something that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The core hash or the capture hash that is gone.
    pub digest: Digest,
    /// The number of the entry.
    pub entry: u64,
    /// When it was removed.
    pub at: DateTime<Utc>,
    /// The core hash of the artifact.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// Who removed it.
    pub actor: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// How many captures of the artifact were left.
    pub left: u64,
    /// How many bytes were removed.
    pub size: u64,
}

impl Tombstone {
    /// Returns who removed it, when and why: `removed by dana on 2026-11-20 13:04:03 UTC: names a customer`, as far as that
    /// is recorded.
    #[must_use]
    pub fn removal(&self) -> String {
        let by = self.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("removed{by} on {}{why}", self.at.format("%Y-%m-%d %H:%M:%S UTC"))
    }
}

impl fmt::Display for Tombstone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, entry, at, core, kind, actor, reason, .. } = self;
        let whose = if *digest == core.0 { String::new() } else { format!(", a capture of {core:.12}") };
        write!(f, "{digest} (a {kind}{whose}) was removed on {}", at.format("%Y-%m-%d %H:%M:%S UTC"))?;
        if let Some(actor) = actor {
            write!(f, " by {actor}")?;
        }
        if let Some(reason) = reason {
            write!(f, ": {reason}")?;
        }
        write!(f, " (entry {entry} of the journal)")
    }
}

impl FromSql for ArtifactId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}

impl FromSql for Place {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(index) => {
                u32::try_from(index).map(Self::Index).map_err(|_| FromSqlError::OutOfRange(index))
            }
            other => String::column_result(other).map(Self::Pointer),
        }
    }
}

impl FromSql for Digest {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self::from_bytes)
    }
}

impl FromSql for CoreHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::column_result(value).map(Self)
    }
}

impl FromSql for CaptureHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::column_result(value).map(Self)
    }
}

/// A time as the vault keeps it: milliseconds since 1970 in UTC.
pub(super) struct Milliseconds(pub(super) DateTime<Utc>);

impl FromSql for Milliseconds {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let milliseconds = i64::column_result(value)?;
        let time = DateTime::from_timestamp_millis(milliseconds);
        time.map(Self).ok_or(FromSqlError::OutOfRange(milliseconds))
    }
}
