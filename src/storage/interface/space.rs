//! Reclaiming of space, and what removed artifacts leave.

/// The reclaimable space of a vault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimableSpace {
    /// Unreferenced blobs.
    pub blobs: u64,
    /// The stored size of these blobs in bytes.
    pub blob_bytes: u64,
    /// Dictionaries that are unused, or that may contain pieces of removed documents.
    pub dictionaries: u64,
    /// Free bytes within the file.
    pub free_bytes: u64,
    /// Whether something was removed since the file was last rewritten.
    pub has_removals: bool,
}

/// The result of reclaiming space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimResult {
    /// Number of unreferenced blobs that were removed.
    pub blobs: u64,
    /// Number of objects in object storage that no artifact was ever stored with, and that were deleted: uploads that were
    /// interrupted.
    pub orphans: u64,
    /// Number of dictionaries that were removed.
    pub dictionaries: u64,
    /// Number of payloads that were recompressed.
    pub recompressed: u64,
    /// The size of the vault's files in bytes, before and after.
    pub bytes_before: u64,
    /// See `bytes_before`.
    pub bytes_after: u64,
    /// Whether the write-ahead log was truncated. It cannot be while others are reading, and the file then shrinks
    /// later.
    pub is_complete: bool,
}

/// The remains of removed artifacts in the vault's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// The parts that contain, or may contain, remains until [`Maintenance::reclaim`](super::Maintenance::reclaim) has run. If it is empty, nothing
    /// remains except what other artifacts also have.
    pub remnants: Vec<Remnant>,
}

impl Erasure {
    /// Returns whether nothing remains.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remnants.is_empty()
    }
}

/// A part of the vault's files that may still contain removed content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remnant {
    /// Pages of a file that is larger than [`Erasure::REWRITTEN`]. Removed content was overwritten in place, but SQLite
    /// may have left copies of parts where it moved rows before, and the search index still has words.
    LargeFile,
    /// The same, because the file could not be rewritten; with the reason.
    NotRewritten(String),
    /// The dictionaries with which documents of these kinds are compressed.
    Dictionaries(Vec<String>),
    /// The write-ahead log, because others were still reading from it.
    Log,
    /// The files of a database server: dead rows until they are vacuumed, the write-ahead log, replicas and backups. The
    /// engine controls none of them, so this is always listed.
    Database,
    /// Object storage: the bytes stay for a day, longer while their pack has other blobs, and in versions of objects that
    /// the storage keeps. Which it keeps is not known, so this is always listed.
    Objects,
}

impl Remnant {
    /// Returns whether reclaiming space removes it.
    #[must_use]
    pub fn is_reclaimable(&self) -> bool {
        !matches!(self, Self::Database | Self::Objects)
    }
}
