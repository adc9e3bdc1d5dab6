//! The error of reading archives, and the limits that it names.

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
