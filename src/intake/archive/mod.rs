//! Zip and tar archives read as directories: entries in, bytes out, nothing unpacked to disk.
//!
//! Archives are untrusted input. Entries are listed, never followed; only files with the requested names are read; the
//! number of entries, their total size and the decompression ratio are limited.

mod flat;
mod format;
mod read;
mod write;
mod zip_end;

pub use format::{ArchiveError, ArchiveFormat, decompressed_name, is_tar_name, unread};
pub use read::{ArchiveContents, ArchiveLimits, read, read_files};
pub use write::write;
