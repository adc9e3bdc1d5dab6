//! Zip and tar files as directories: entries in, bytes out, nothing unpacked to a disk.
//!
//! What is read here may come from anybody. Entries are listed, never followed; only files of wanted names are read;
//! the number of entries, their size in all and how much they may grow when they are unpacked are bounded.

mod flat;
mod read;
mod write;

pub use read::{ArchiveError, Contents, Limits, read};
pub use write::write;

use std::io::Read;

use flate2::read::GzDecoder;

/// A sort of archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A zip file.
    Zip,
    /// A tar file.
    Tar,
    /// A tar file, compressed with gzip.
    TarGz,
}

/// Where a tar header says that it is one.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;

impl Format {
    /// The sort of archive that begins with `head`, if it is one. Names do not matter.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        let is_tar = |head: &[u8]| head.get(TAR_MAGIC) == Some(b"ustar");
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            return Some(Self::Zip);
        }
        if is_tar(head) {
            return Some(Self::Tar);
        }
        let mut first_block = Vec::new();
        if head.starts_with(b"\x1f\x8b") {
            // What was unpacked before an error is enough to tell.
            let _ = GzDecoder::new(head).take(512).read_to_end(&mut first_block);
        }
        is_tar(&first_block).then_some(Self::TarGz)
    }

    /// The sort of archive to write to a file of this name, if it names one.
    #[must_use]
    pub fn named(file_name: &str) -> Option<Self> {
        let name = file_name.to_ascii_lowercase();
        let endings =
            [(".zip", Self::Zip), (".tar", Self::Tar), (".tar.gz", Self::TarGz), (".tgz", Self::TarGz)];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }

    /// Whether unpacking a file that begins with `head` can give much more than its size.
    #[must_use]
    pub fn can_grow(head: &[u8]) -> bool {
        head.starts_with(b"PK") || head.starts_with(b"\x1f\x8b")
    }
}
