//! Zip and tar files as directories: entries in, bytes out, nothing unpacked to a disk.
//!
//! What is read here may come from anybody. Entries are listed, never followed; only files of wanted names are read;
//! the number of entries, their size in all and how much they may grow when they are unpacked are bounded.

mod flat;
mod read;
mod write;
mod zip_end;

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
    /// A tar file, compressed with zstd.
    TarZst,
}

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// How files begin that are compressed or archives, and are not read, and what they are called.
const UNREAD: [(&[u8], &str); 8] = [
    (b"\xfd7zXZ\0", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x04\x22\x4d\x18", "an LZ4 file"),
    (b"LZIP", "an lzip file"),
    (GZIP, "a gzip file that contains no tar archive"),
    (ZSTD, "a zstd file that contains no tar archive"),
];

/// Endings that say that a file is compressed.
const COMPRESSED: [&str; 7] = [".gz", ".zst", ".xz", ".bz2", ".lz4", ".lz", ".z"];

/// Endings of compressed tar files without `.tar` in them.
const TAR_COMPRESSED: [&str; 6] = [".tgz", ".tzst", ".txz", ".tbz2", ".tbz", ".tlz"];

/// The header of an entry of a tar file.
const TAR_BLOCK: usize = 512;

impl Format {
    /// The sort of archive that begins with `head`, if it is one. Names do not matter.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            return Some(Self::Zip);
        }
        if is_tar(head) {
            return Some(Self::Tar);
        }
        // What was unpacked before an error is enough to tell.
        let mut first_block = Vec::new();
        let (format, _) = if head.starts_with(GZIP) {
            (Self::TarGz, GzDecoder::new(head).take(TAR_BLOCK as u64).read_to_end(&mut first_block))
        } else if head.starts_with(ZSTD) {
            let unpacked = read::zstd_decoder(head)
                .and_then(|decoder| decoder.take(TAR_BLOCK as u64).read_to_end(&mut first_block));
            (Self::TarZst, unpacked)
        } else {
            return None;
        };
        is_tar(&first_block).then_some(format)
    }

    /// The sort of archive to write to a file of this name, if it names one.
    #[must_use]
    pub fn named(file_name: &str) -> Option<Self> {
        let name = file_name.to_ascii_lowercase();
        let endings = [
            (".zip", Self::Zip),
            (".tar", Self::Tar),
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar.zst", Self::TarZst),
            (".tzst", Self::TarZst),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }

    /// Whether unpacking a file that begins with `head` can give much more than its size.
    #[must_use]
    pub fn can_grow(head: &[u8]) -> bool {
        [b"PK", GZIP, ZSTD].into_iter().any(|magic| head.starts_with(magic))
    }
}

/// What a file that begins with `head` is, if it is an archive or compressed in a way that is not read.
#[must_use]
pub fn unread(head: &[u8]) -> Option<&'static str> {
    if Format::of(head).is_some() {
        return None;
    }
    UNREAD.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| name)
}

/// Whether a file of this name is meant to be a tar archive, compressed in any way or not at all.
#[must_use]
pub fn is_tar_name(file_name: &str) -> bool {
    const TAR: &str = ".tar";
    let name = file_name.to_ascii_lowercase();
    TAR_COMPRESSED.into_iter().any(|ending| name.ends_with(ending))
        || decompressed_name(&name).unwrap_or(&name).ends_with(TAR)
}

/// The name that a file has once it is decompressed, if its name says that it is compressed.
#[must_use]
pub fn decompressed_name(file_name: &str) -> Option<&str> {
    let ending = |ending: &&str| {
        let (_, end) = file_name.split_at_checked(file_name.len().checked_sub(ending.len())?)?;
        end.eq_ignore_ascii_case(ending).then_some(())
    };
    let ending = COMPRESSED.into_iter().find(|it| ending(it).is_some())?;
    file_name.get(..file_name.len() - ending.len()).filter(|name| !name.is_empty())
}

/// Whether a file begins with the header of an entry of a tar file: one that says so, or one of the form before that, whose
/// checksum is right.
fn is_tar(head: &[u8]) -> bool {
    const MAGIC: std::ops::Range<usize> = 257..262;
    head.get(MAGIC) == Some(b"ustar") || head.first_chunk::<TAR_BLOCK>().is_some_and(is_old_header)
}

fn is_old_header(block: &[u8; TAR_BLOCK]) -> bool {
    let header = tar::Header::from_byte_slice(block);
    let mut sealed = header.clone();
    sealed.set_cksum();
    let is_sealed = matches!((header.cksum(), sealed.cksum()), (Ok(stated), Ok(actual)) if stated == actual);
    // There are bytes whose sum is right by chance: the rest must make sense as well.
    is_sealed
        && block.first().is_some_and(|first| *first != 0)
        && matches!(header.as_old().linkflag, [0 | b'0'..=b'7'])
        && header.mode().is_ok()
        && header.entry_size().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_compressed() {
        for (name, decompressed) in [
            ("a.json.gz", Some("a.json")),
            ("a.rpk.ZST", Some("a.rpk")),
            ("é.bz2", Some("é")),
            (".gz", None),
            ("a.json", None),
            ("gz", None),
            ("", None),
        ] {
            assert_eq!(decompressed_name(name), decompressed, "{name}");
        }
        assert!(["p.TAR.XZ", "p.tbz2", "p.tar", "p.tar.gz", "p.tgz"].into_iter().all(is_tar_name));
        assert!(!["p.xz", "p.gz", "tar", "p.tarx", "p.tar.json"].into_iter().any(is_tar_name));
    }

    #[test]
    fn an_old_tar_header_is_told_by_its_checksum() {
        let mut header = tar::Header::new_old();
        header.set_path("run.json").unwrap();
        header.set_size(7);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_cksum();
        assert_eq!(Format::of(header.as_bytes()), Some(Format::Tar));
        let mut changed = *header.as_bytes();
        changed[0] ^= 1;
        assert_eq!(Format::of(&changed), None);
        assert_eq!(Format::of(&[0; 512]), None);
        assert_eq!(Format::of(&[b'a'; 512]), None);
    }
}
