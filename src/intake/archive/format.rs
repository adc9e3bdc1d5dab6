//! Archive and compression formats, recognized by the beginning of a file and by file names, and the end records of a zip
//! file, which are checked before memory is allocated for the number of entries that they state.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

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

const SIGNATURE: &[u8] = b"PK\x05\x06";
const RECORD_BYTES: usize = 22;
const COMMENT_BYTES: u64 = 1 << 16;

/// The signature of the ZIP64 end of central directory locator, which precedes the end record.
const LOCATOR_SIGNATURE: &[u8] = b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;
/// The ZIP64 end of central directory record.
const RECORD64_SIGNATURE: &[u8] = b"PK\x06\x06";
const RECORD64_BYTES: usize = 56;

/// The number of end records found in a zip file, and whether the file ends with one.
pub(super) struct ZipEndScan {
    number: usize,
    is_last: bool,
}

impl ZipEndScan {
    /// Searches a zip file of `size` bytes for end records.
    ///
    /// # Errors
    /// Returns [`ArchiveError::TooManyEntries`] if one states more than `most_entries`, and [`ArchiveError::Broken`] if
    /// its numbers contradict each other.
    pub(super) fn find(
        input: &mut (impl Read + Seek),
        size: u64,
        most_entries: usize,
    ) -> Result<Self, ArchiveError> {
        let start = size.saturating_sub(RECORD_BYTES as u64 + COMMENT_BYTES + 4);
        let mut tail = Vec::new();
        let read = input.seek(SeekFrom::Start(start)).and_then(|_| input.read_to_end(&mut tail));
        read.map_err(|error| broken(&error))?;
        let mut ends = Self { number: 0, is_last: false };
        for (at, _) in tail.windows(SIGNATURE.len()).enumerate().filter(|(_, bytes)| *bytes == SIGNATURE) {
            let Some(record) = tail.get(at..).and_then(<[u8]>::first_chunk::<{ RECORD_BYTES }>) else {
                continue;
            };
            let end = ZipEndRecord::parse(record);
            let claimed = match Zip64Locator::before(start + at as u64, input)? {
                Some(locator) => end.extended(&locator.record(input)?)?,
                None => end.entries,
            };
            if claimed > most_entries as u64 {
                return Err(ArchiveError::TooManyEntries(most_entries));
            }
            ends.number += 1;
            ends.is_last = at as u64 + RECORD_BYTES as u64 + end.comment_bytes == tail.len() as u64;
        }
        input.rewind().map_err(|error| broken(&error))?;
        Ok(ends)
    }

    /// # Errors
    /// Returns [`ArchiveError::Broken`] unless there is exactly one end record and nothing follows it.
    pub(super) fn check(&self) -> Result<(), ArchiveError> {
        if self.number == 1 && self.is_last {
            return Ok(());
        }
        Err(ArchiveError::Broken("there is data after its end, or a second end".to_owned()))
    }
}

/// The end of central directory record.
struct ZipEndRecord {
    /// The larger of the two entry counts.
    entries: u64,
    list_bytes: u64,
    list_at: u64,
    comment_bytes: u64,
}

impl ZipEndRecord {
    fn parse(record: &[u8; RECORD_BYTES]) -> Self {
        Self {
            entries: number(record, 8, 2).max(number(record, 10, 2)),
            list_bytes: number(record, 12, 4),
            list_at: number(record, 16, 4),
            comment_bytes: number(record, 20, 2),
        }
    }

    /// Returns the number of entries, given the ZIP64 record. Only the maximum value of a field refers to the ZIP64
    /// record.
    fn extended(&self, larger: &Zip64EndRecord) -> Result<u64, ArchiveError> {
        let agrees = |small: u64, most: u64, large: u64| small == most || small == large;
        if agrees(self.entries, 0xffff, larger.entries)
            && agrees(self.list_bytes, 0xffff_ffff, larger.list_bytes)
            && agrees(self.list_at, 0xffff_ffff, larger.list_at)
        {
            return Ok(larger.entries.max(if self.entries == 0xffff { 0 } else { self.entries }));
        }
        Err(contradiction())
    }
}

/// The ZIP64 end of central directory locator.
struct Zip64Locator {
    at: u64,
    record_at: u64,
}

impl Zip64Locator {
    /// Returns the locator directly before the end record at `end`, if there is one.
    fn before(end: u64, input: &mut (impl Read + Seek)) -> Result<Option<Self>, ArchiveError> {
        let Some(at) = end.checked_sub(LOCATOR_BYTES as u64) else { return Ok(None) };
        let bytes: [u8; LOCATOR_BYTES] = read_at(input, at)?;
        if !bytes.starts_with(LOCATOR_SIGNATURE) {
            return Ok(None);
        }
        // A single file (disk 0), not a multi-part archive.
        if number(&bytes, 4, 4) != 0 || number(&bytes, 16, 4) > 1 {
            return Err(contradiction());
        }
        Ok(Some(Self { at, record_at: number(&bytes, 8, 8) }))
    }

    fn record(&self, input: &mut (impl Read + Seek)) -> Result<Zip64EndRecord, ArchiveError> {
        let end = self.record_at.checked_add(RECORD64_BYTES as u64);
        if end.is_none_or(|end| end > self.at) {
            return Err(contradiction());
        }
        let bytes: [u8; RECORD64_BYTES] = read_at(input, self.record_at)?;
        // The recorded size excludes the signature and the size field. Nothing lies between the record and the locator.
        let is_adjacent = self.record_at.checked_add(12).and_then(|at| at.checked_add(number(&bytes, 4, 8)));
        if !bytes.starts_with(RECORD64_SIGNATURE) || is_adjacent != Some(self.at) {
            return Err(contradiction());
        }
        let (here, in_all) = (number(&bytes, 24, 8), number(&bytes, 32, 8));
        if here != in_all {
            return Err(contradiction());
        }
        Ok(Zip64EndRecord {
            entries: in_all,
            list_bytes: number(&bytes, 40, 8),
            list_at: number(&bytes, 48, 8),
        })
    }
}

/// The ZIP64 end of central directory record.
struct Zip64EndRecord {
    entries: u64,
    list_bytes: u64,
    list_at: u64,
}

fn contradiction() -> ArchiveError {
    ArchiveError::Broken("its ZIP64 records contradict the end of the archive".to_owned())
}

fn read_at<const N: usize>(input: &mut (impl Read + Seek), at: u64) -> Result<[u8; N], ArchiveError> {
    let mut bytes = [0; N];
    let read = input.seek(SeekFrom::Start(at)).and_then(|_| input.read_exact(&mut bytes));
    read.map(|()| bytes).map_err(|error| broken(&error))
}

/// Returns the little-endian number in the `bytes` bytes at `offset` of a record, which must contain them.
fn number(record: &[u8], offset: usize, bytes: usize) -> u64 {
    let bytes = record.iter().skip(offset).take(bytes);
    bytes.rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
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
