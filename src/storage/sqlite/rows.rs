//! Rows returned by queries.

use chrono::{DateTime, Utc};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::artifact::{Place, Signature};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::{ArtifactRecord, CaptureRecord};
use crate::validation::Violation;

/// An artifact's row id. Row ids increase in the order of arrival and are only meaningful within their vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ArtifactId(pub(super) i64);

/// A row of the `artifact` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactRow {
    /// Its row id.
    pub id: ArtifactId,
    /// Its core hash.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// The time at which its first capture was added.
    pub added_at: DateTime<Utc>,
    /// The time at which one of its captures was last added or seen again.
    pub seen_at: DateTime<Utc>,
    /// Its position in the order in which artifacts were last added or seen again, which is that of the journal: later
    /// ones have larger numbers.
    pub arrival: i64,
}

impl ArtifactRow {
    /// Returns the artifact without its row id.
    pub(super) fn record(self) -> ArtifactRecord {
        let Self { id, core, kind, added_at, seen_at, arrival } = self;
        let (addition, arrival) = (id.0.cast_unsigned(), arrival.cast_unsigned());
        ArtifactRecord { core, kind, added_at, seen_at, addition, arrival }
    }
}

/// A row of the `capture` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptureRow {
    /// Its hash.
    pub capture: CaptureHash,
    /// Its artifact.
    pub artifact: ArtifactId,
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
    /// The path that it was read from when it was first added, if that was recorded.
    pub source_path: Option<String>,
}

impl CaptureRow {
    /// Returns the capture without row ids; `artifact` is its artifact.
    pub(super) fn record(self, artifact: CoreHash) -> CaptureRecord {
        let Self { capture, size, added_at, seen_at, warnings, signature, source_path, .. } = self;
        CaptureRecord { capture, artifact, size, added_at, seen_at, warnings, signature, source_path }
    }
}

/// A file of a capture of several files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRow {
    /// The artifact.
    pub artifact: ArtifactId,
    /// The capture.
    pub capture: CaptureHash,
    /// The name of the file.
    pub name: String,
}

/// A mention in the vault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MentionRow {
    /// The mentioning artifact.
    pub artifact: ArtifactId,
    /// The role.
    pub role: String,
    /// The unit of the place; empty if the place is a pointer.
    pub unit: String,
    /// The place.
    pub place: Place,
    /// The digest.
    pub digest: Digest,
}

/// A mention that relates its artifact to the one that the digest identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DigestEdge {
    /// The mention.
    pub mention: MentionRow,
    /// The relation of the mentioning artifact to the other.
    pub relation: String,
    /// The relation of the other artifact to the mentioning one, if that has its own name.
    pub inverse: Option<String>,
    /// The artifact that the digest identifies, if it is in the vault.
    pub target: Option<ArtifactId>,
}

/// A manual link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedEdge {
    /// The source artifact.
    pub source: ArtifactId,
    /// The relation.
    pub relation: String,
    /// The target artifact.
    pub target: ArtifactId,
    /// The note on the link.
    pub note: Option<String>,
}

/// A reference to something that the vault does not have, with one of the referring artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<T> {
    /// The missing digest or name.
    pub missing: T,
    /// The referring artifact.
    pub artifact: ArtifactId,
    /// The relation.
    pub relation: String,
    /// The role; `None` for names.
    pub role: Option<String>,
    /// The place; `None` for names.
    pub place: Option<Place>,
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

/// A time as the vault stores it: milliseconds since 1970 in UTC.
pub(super) struct Milliseconds(pub(super) DateTime<Utc>);

impl FromSql for Milliseconds {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let milliseconds = i64::column_result(value)?;
        let time = DateTime::from_timestamp_millis(milliseconds);
        time.map(Self).ok_or(FromSqlError::OutOfRange(milliseconds))
    }
}
