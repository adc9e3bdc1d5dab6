//! Archive and compression formats, recognized by the beginning of a file and by file names.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use flate2::read::GzDecoder;
use zstd::stream::read::Decoder;

/// An archive format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFormat {
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

/// The leading bytes and descriptions of archive and compression formats that are recognized but not supported.
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

/// File name extensions of compressed files.
const COMPRESSED: [&str; 7] = [".gz", ".zst", ".xz", ".bz2", ".lz4", ".lz", ".z"];

/// File name extensions of compressed tar files that do not contain `.tar`.
const TAR_COMPRESSED: [&str; 6] = [".tgz", ".tzst", ".txz", ".tbz2", ".tbz", ".tlz"];

/// The size of the header of a tar entry in bytes.
const TAR_BLOCK: usize = 512;

/// Maximum window of a zstd frame, which determines the memory use of the decoder: 128 MiB, the limit that every `zstd`
/// accepts.
const MAX_WINDOW_LOG: u32 = 27;

impl ArchiveFormat {
    /// Returns the format of an archive that begins with `head`, or `None` if it is not an archive. The file name does
    /// not matter.
    #[must_use]
    pub fn detect(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            return Some(Self::Zip);
        }
        if is_tar(head) {
            return Some(Self::Tar);
        }
        // Whatever was unpacked before an error is enough to recognize the format.
        let mut first_block = Vec::new();
        let (format, _) = if head.starts_with(GZIP) {
            (Self::TarGz, GzDecoder::new(head).take(TAR_BLOCK as u64).read_to_end(&mut first_block))
        } else if head.starts_with(ZSTD) {
            let unpacked = zstd_decoder(head)
                .and_then(|decoder| decoder.take(TAR_BLOCK as u64).read_to_end(&mut first_block));
            (Self::TarZst, unpacked)
        } else {
            return None;
        };
        is_tar(&first_block).then_some(format)
    }

    /// Returns the format of an archive to be written to a file with this name, or `None` if the extension is not that
    /// of an archive.
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

    /// Returns whether a file that begins with `head` can be much larger when decompressed.
    #[must_use]
    pub fn can_grow(head: &[u8]) -> bool {
        [b"PK", GZIP, ZSTD].into_iter().any(|magic| head.starts_with(magic))
    }
}

/// Returns whether a file that begins with `head` is one compressed file and not an archive.
#[must_use]
pub fn is_compressed(head: &[u8]) -> bool {
    [GZIP, ZSTD].into_iter().any(|magic| head.starts_with(magic)) && ArchiveFormat::detect(head).is_none()
}

/// Returns a decoder of a compressed file that begins with `head`.
pub(super) fn decoder<'r>(head: &[u8], input: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    if head.starts_with(GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(input)));
    }
    Ok(Box::new(zstd_decoder(input)?))
}

/// Returns the description of an unsupported archive or compression format that begins with `head`, or `None` if it is
/// not one.
#[must_use]
pub fn unread(head: &[u8]) -> Option<&'static str> {
    if ArchiveFormat::detect(head).is_some() {
        return None;
    }
    UNREAD.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| name)
}

/// Returns whether the file name is that of a tar archive, compressed or not.
#[must_use]
pub fn is_tar_name(file_name: &str) -> bool {
    const TAR: &str = ".tar";
    let name = file_name.to_ascii_lowercase();
    TAR_COMPRESSED.into_iter().any(|ending| name.ends_with(ending))
        || decompressed_name(&name).unwrap_or(&name).ends_with(TAR)
}

/// Returns the file name without its compression extension, or `None` if it has none.
#[must_use]
pub fn decompressed_name(file_name: &str) -> Option<&str> {
    let ending = |ending: &&str| {
        let (_, end) = file_name.split_at_checked(file_name.len().checked_sub(ending.len())?)?;
        end.eq_ignore_ascii_case(ending).then_some(())
    };
    let ending = COMPRESSED.into_iter().find(|it| ending(it).is_some())?;
    file_name.get(..file_name.len() - ending.len()).filter(|name| !name.is_empty())
}

/// Returns a decoder that uses a limited amount of memory.
pub(super) fn zstd_decoder<R: Read>(input: R) -> io::Result<Decoder<'static, BufReader<R>>> {
    let mut decoder = Decoder::new(input)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(decoder)
}

/// Returns whether `head` begins with the header of a tar entry: with the ustar magic, or in the older format with a
/// correct checksum.
fn is_tar(head: &[u8]) -> bool {
    const MAGIC: std::ops::Range<usize> = 257..262;
    head.get(MAGIC) == Some(b"ustar") || head.first_chunk::<TAR_BLOCK>().is_some_and(is_old_header)
}

fn is_old_header(block: &[u8; TAR_BLOCK]) -> bool {
    let header = tar::Header::from_byte_slice(block);
    // Most files are told by this byte, without calculating a checksum.
    if !matches!(header.as_old().linkflag, [0 | b'0'..=b'7']) {
        return false;
    }
    let mut sealed = header.clone();
    sealed.set_cksum();
    let is_sealed =
        matches!((header.cksum(), sealed.cksum()), (Ok(recorded), Ok(actual)) if recorded == actual);
    // Some bytes match the checksum by chance, so the other fields must be plausible too.
    is_sealed
        && block.first().is_some_and(|first| *first != 0)
        && header.mode().is_ok()
        && header.entry_size().is_ok()
}

/// Maximum compression ratio beyond that size. JSON rarely compresses better than 50:1.
pub(super) const MAX_RATIO: u64 = 200;
/// Maximum number of bytes of a zip file that are read to parse its central directory.
pub(super) const MAX_ZIP_LIST_BYTES: u64 = 8 << 20;
/// Maximum length of an entry name in bytes.
pub(super) const MAX_NAME_BYTES: usize = 4096;
/// Maximum total size of the headers of one tar entry in bytes. They are kept in memory before the name is known.
pub(super) const MAX_HEADER_BYTES: u64 = 256 << 10;

/// The error for an archive that cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It is malformed, or uses an unsupported feature.
    #[error("the archive is broken: {0}")]
    Broken(String),
    /// The files exceed the size limit.
    #[error("the files in the archive exceed the limit of {0} bytes")]
    TooLarge(u64),
    /// The compression ratio exceeds the limit, as in a decompression bomb.
    #[error(
        "the archive expands to more than {MAX_RATIO} times its size, the limit beyond 16 MiB; if trusted, unpack it"
    )]
    TooDense,
    /// It has too many entries.
    #[error("there are more than {0} entries")]
    TooManyEntries(usize),
    /// The central directory of a zip file is too large.
    #[error("the list of entries exceeds the limit of {MAX_ZIP_LIST_BYTES} bytes")]
    ListTooLarge,
    /// The name of an entry is too long.
    #[error(
        "an entry has a name of more than {MAX_NAME_BYTES} bytes, or headers of more than {MAX_HEADER_BYTES}, the limits"
    )]
    NameTooLong,
}

/// Returns the error for an archive that is malformed because of `error`.
pub(super) fn broken(error: &dyn std::error::Error) -> ArchiveError {
    ArchiveError::Broken(error.to_string())
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
        assert_eq!(ArchiveFormat::detect(header.as_bytes()), Some(ArchiveFormat::Tar));
        let mut changed = *header.as_bytes();
        changed[0] ^= 1;
        assert_eq!(ArchiveFormat::detect(&changed), None);
        assert_eq!(ArchiveFormat::detect(&[0; 512]), None);
        assert_eq!(ArchiveFormat::detect(&[b'a'; 512]), None);
    }
}
