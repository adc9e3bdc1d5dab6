use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::flat::{self, RawEntry};
use super::format::{
    ArchiveError, ArchiveFormat, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RATIO, MAX_ZIP_LIST_BYTES, ZipEndScan,
    broken, decoder, zstd_decoder,
};
use crate::artifact::{DirectoryEntry, EntryContent};

/// Uncompressed size up to which the compression ratio is not limited.
const FREE_BYTES: u64 = 16 << 20;
/// Allowance for the headers and padding of a tar file, in addition to its files.
const TAR_OVERHEAD: u64 = 16 << 20;

/// Limits on what is read from an archive.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveLimits {
    /// Maximum total size in bytes of all files that are read.
    pub bytes: u64,
    /// Maximum number of entries, read or not.
    pub entries: usize,
}

/// The contents of an archive.
#[derive(Debug)]
pub struct ArchiveContents {
    /// The entries of the directory that the archive represents, as far as they could be read.
    pub entries: Vec<DirectoryEntry>,
    /// The error that stopped reading, if any: there may be more entries.
    pub error: Option<ArchiveError>,
}

/// Reads the archive `input` and those of its files that have member names, within `limits`.
pub fn read<R: Read + Seek>(
    format: ArchiveFormat,
    input: R,
    is_member: &dyn Fn(&str) -> bool,
    limits: ArchiveLimits,
) -> ArchiveContents {
    let may_be_member = |path: &str| flat::may_be_member(path, is_member);
    let (raw, error) = read_raw(format, input, &may_be_member, limits);
    ArchiveContents { entries: flat::flatten(raw), error }
}

/// Reads the files of the archive `input` whose paths, as stored, `is_wanted` selects, within `limits`. Returns them with
/// these paths.
///
/// # Errors
/// Returns an error if the archive cannot be read to its end.
pub fn read_files<R: Read + Seek>(
    format: ArchiveFormat,
    input: R,
    is_wanted: &dyn Fn(&str) -> bool,
    limits: ArchiveLimits,
) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    let (raw, error) = read_raw(format, input, is_wanted, limits);
    let file = |entry: RawEntry| match entry.content {
        EntryContent::File(bytes) => Some((entry.path, bytes)),
        _ => None,
    };
    error.map_or_else(|| Ok(raw.into_iter().filter_map(file).collect()), Err)
}

fn read_raw<R: Read + Seek>(
    format: ArchiveFormat,
    mut input: R,
    is_wanted: &dyn Fn(&str) -> bool,
    limits: ArchiveLimits,
) -> (Vec<RawEntry>, Option<ArchiveError>) {
    let size = input.seek(SeekFrom::End(0)).and_then(|size| input.rewind().map(|()| size));
    let mut raw = Vec::new();
    let read = size.map_err(|error| broken(&error)).and_then(|size| {
        let mut budget = DecompressionBudget::new(size, limits.bytes);
        let mut reader = ArchiveReader { raw: &mut raw, is_wanted, most_entries: limits.entries };
        match format {
            ArchiveFormat::Zip => reader.zip(input, size, &mut budget),
            ArchiveFormat::Tar => reader.tar(BufReader::new(input), budget),
            ArchiveFormat::TarGz => reader.tar(MultiGzDecoder::new(BufReader::new(input)), budget),
            ArchiveFormat::TarZst => reader.tar(zstd_decoder(input).map_err(|error| broken(&error))?, budget),
        }
    });
    (raw, read.err())
}

/// Returns what a [compressed](super::is_compressed) file contains: at most `limit` bytes.
///
/// # Errors
/// Returns an error if it cannot be read to its end, or contains more.
pub fn decompress<R: Read + Seek>(mut input: R, limit: u64) -> Result<Vec<u8>, ArchiveError> {
    let unreadable = |error: io::Error| broken(&error);
    let size = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    let mut input = BufReader::new(input);
    let head = input.fill_buf().map_err(unreadable)?.to_vec();
    DecompressionBudget::new(size, limit).read(decoder(&head, input).map_err(unreadable)?)
}

/// Returns the beginning of what a compressed file that begins with `head` contains, as far as it can be told from that.
#[must_use]
pub fn decompressed_head(head: &[u8], limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(decoder) = decoder(head, head) {
        // The file does not end where its beginning does.
        let _ = decoder.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

/// Returns the maximum number of bytes that an archive of `size` bytes may expand to.
pub(super) fn most_bytes(size: u64) -> u64 {
    size.saturating_mul(MAX_RATIO).max(FREE_BYTES)
}

/// The number of bytes that may still be decompressed, and the error if there are more.
struct DecompressionBudget {
    left: u64,
    exceeded: ArchiveError,
}

impl DecompressionBudget {
    fn new(size: u64, limit: u64) -> Self {
        let dense = most_bytes(size);
        if dense < limit {
            Self { left: dense, exceeded: ArchiveError::TooDense }
        } else {
            Self { left: limit, exceeded: ArchiveError::TooLarge(limit) }
        }
    }

    /// Reads `input` to its end.
    fn read(&mut self, input: impl Read) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        input.take(self.left.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| broken(&error))?;
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| self.exceeded.clone())?;
        Ok(bytes)
    }
}

struct ArchiveReader<'r> {
    raw: &'r mut Vec<RawEntry>,
    is_wanted: &'r dyn Fn(&str) -> bool,
    most_entries: usize,
}

impl ArchiveReader<'_> {
    fn push(&mut self, entry: RawEntry) -> Result<(), ArchiveError> {
        if self.raw.len() >= self.most_entries {
            return Err(ArchiveError::TooManyEntries(self.most_entries));
        }
        if entry.path.len() > MAX_NAME_BYTES {
            return Err(ArchiveError::NameTooLong);
        }
        self.raw.push(entry);
        Ok(())
    }

    fn zip<R: Read + Seek>(
        &mut self,
        mut input: R,
        size: u64,
        budget: &mut DecompressionBudget,
    ) -> Result<(), ArchiveError> {
        let ends = ZipEndScan::find(&mut input, size, self.most_entries)?;
        // The whole list is kept in memory, so reading it is bounded, whatever size it claims.
        let left = Rc::new(Cell::new(MAX_ZIP_LIST_BYTES));
        let metered = MeteredReader { input, left: Rc::clone(&left), at_end: Rc::default() };
        let opened = ZipArchive::new(metered);
        let mut archive = match opened {
            Err(_) if left.get() == 0 => return Err(ArchiveError::ListTooLarge),
            opened => opened.map_err(|error| broken(&error))?,
        };
        left.set(u64::MAX);
        // All names are read first: they identify what the archive is meant to be, even if its files cannot be read.
        let mut members = Vec::new();
        let mut locals = Vec::new();
        for index in 0..archive.len() {
            let (entry, local) = zip_entry(&archive, index)?;
            if matches!(entry.content, EntryContent::Unexpected) && (self.is_wanted)(&entry.path) {
                members.push((index, self.raw.len()));
            }
            self.push(entry)?;
            locals.push(local);
        }
        if archive.has_duplicate_names() {
            return Err(ArchiveError::Broken("two of its entries have the same name".to_owned()));
        }
        ends.check()?;
        for (index, at) in members {
            let file = archive.by_index(index).map_err(|error| broken(&error))?;
            let declared_size = file.size();
            let bytes = budget.read(file)?;
            if bytes.len() as u64 != declared_size {
                return Err(ArchiveError::Broken(
                    "the size of a file differs from the list of entries".to_owned(),
                ));
            }
            if let Some(entry) = self.raw.get_mut(at) {
                entry.content = EntryContent::File(bytes);
            }
        }
        check_locals(&mut archive.into_inner(), locals)
    }

    fn tar(&mut self, input: impl Read, mut budget: DecompressionBudget) -> Result<(), ArchiveError> {
        let left = Rc::new(Cell::new(budget.left.saturating_add(TAR_OVERHEAD)));
        let at_end = Rc::new(Cell::new(false));
        let mut archive =
            tar::Archive::new(MeteredReader { input, left: Rc::clone(&left), at_end: Rc::clone(&at_end) });
        let outcome = self.tar_entries(&mut archive, &mut budget, &left);
        if left.get() == 0 {
            return Err(budget.exceeded);
        }
        outcome?;
        if at_end.get() {
            return Err(ArchiveError::Broken(
                "the end marker is missing; the archive was truncated".to_owned(),
            ));
        }
        // A checksum may follow the end of the entries.
        match is_blank(&mut archive.into_inner()) {
            Err(_) if left.get() == 0 => Err(budget.exceeded),
            Err(error) => Err(broken(&error)),
            Ok(false) => Err(ArchiveError::Broken("there is data after the end marker".to_owned())),
            Ok(true) => Ok(()),
        }
    }

    fn tar_entries<R: Read>(
        &mut self,
        archive: &mut tar::Archive<R>,
        budget: &mut DecompressionBudget,
        left: &Cell<u64>,
    ) -> Result<(), ArchiveError> {
        let mut entries = archive.entries().map_err(|error| broken(&error))?;
        loop {
            // The rest of the preceding entry was already read, so only headers are read here.
            let before = left.get();
            left.set(before.min(MAX_HEADER_BYTES));
            let next = entries.next();
            let within = left.get();
            left.set(before.saturating_sub(before.min(MAX_HEADER_BYTES) - within));
            if within == 0 && before > MAX_HEADER_BYTES {
                return Err(ArchiveError::NameTooLong);
            }
            let Some(entry) = next else { return Ok(()) };
            let mut entry = entry.map_err(|error| broken(&error))?;
            check_extensions(&mut entry)?;
            let sort = entry.header().entry_type();
            if sort.is_pax_global_extensions() {
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            // Old programs store directories as files.
            let is_directory = sort.is_dir() || sort.is_file() && path.ends_with('/');
            let content = if sort.is_symlink() || sort.is_hard_link() {
                EntryContent::Link
            } else if is_directory || !sort.is_file() && !sort.is_contiguous() {
                EntryContent::Other
            } else if (self.is_wanted)(&path) {
                EntryContent::File(budget.read(&mut entry)?)
            } else {
                EntryContent::Unexpected
            };
            io::copy(&mut entry, &mut io::sink()).map_err(|error| broken(&error))?;
            self.push(RawEntry { path, content, is_directory })?;
        }
    }
}

/// Rejects extended tar headers that programs interpret differently.
fn check_extensions<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<(), ArchiveError> {
    let ambiguous =
        |what: &str| Err(ArchiveError::Broken(format!("programs disagree on how to read it: it has {what}")));
    let sort = entry.header().entry_type();
    if sort.is_gnu_sparse() {
        return ambiguous("a sparse file");
    }
    if sort.is_pax_global_extensions() && entry.size() > MAX_HEADER_BYTES {
        return Err(ArchiveError::NameTooLong);
    }
    let size = entry.size();
    let Some(extensions) = entry.pax_extensions().map_err(|error| broken(&error))? else { return Ok(()) };
    for extension in extensions {
        let extension = extension.map_err(|error| broken(&error))?;
        let key = extension.key_bytes();
        if key.starts_with(b"GNU.sparse") {
            return ambiguous("a sparse file");
        }
        if sort.is_pax_global_extensions() && [&b"path"[..], b"linkpath", b"size"].contains(&key) {
            return ambiguous("one path or size for all its files");
        }
        if key == b"size" && extension.value().ok().and_then(|value| value.parse().ok()) != Some(size) {
            return ambiguous("a file with two sizes");
        }
    }
    Ok(())
}

/// Returns whether only zero bytes remain.
fn is_blank(input: &mut impl Read) -> io::Result<bool> {
    let mut block = [0; 8192];
    loop {
        match input.read(&mut block) {
            Ok(0) => return Ok(true),
            Ok(read) if block.iter().take(read).any(|byte| *byte != 0) => return Ok(false),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Returns an entry as listed in the central directory, and the location of its file. Files are not read.
fn zip_entry<R>(archive: &ZipArchive<R>, index: usize) -> Result<(RawEntry, ZipLocalHeader), ArchiveError>
where
    R: Read + Seek,
{
    const FILE_TYPE: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    const DIRECTORY: u32 = 0o040_000;
    const LINK: u32 = 0o120_000;
    let entry = archive.by_index_data(index).map_err(|error| broken(&error))?;
    let path = match entry.name() {
        Ok(name) => name.into_owned(),
        Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
    };
    let file_type = entry.unix_mode().unwrap_or_default() & FILE_TYPE;
    let is_directory = file_type == DIRECTORY || matches!(file_type, 0 | REGULAR) && path.ends_with('/');
    let content = match file_type {
        LINK => EntryContent::Link,
        0 | REGULAR if !is_directory => EntryContent::Unexpected,
        _ => EntryContent::Other,
    };
    let local = ZipLocalHeader {
        start: entry.header_start(),
        packed_bytes: entry.compressed_size(),
        name: entry.name_raw().to_vec(),
    };
    Ok((RawEntry { path, content, is_directory }, local))
}

/// The location of an entry in a zip file, apart from the central directory.
struct ZipLocalHeader {
    start: u64,
    packed_bytes: u64,
    name: Vec<u8>,
}

/// Checks the local headers of a zip file against its central directory: programs that read from the front must find
/// the same files as those that read the central directory.
fn check_locals(input: &mut (impl Read + Seek), mut locals: Vec<ZipLocalHeader>) -> Result<(), ArchiveError> {
    const SIGNATURE: &[u8] = b"PK\x03\x04";
    let differs =
        |what: &str| Err(ArchiveError::Broken(format!("its list of entries is inconsistent: {what}")));
    locals.sort_unstable_by_key(|local| local.start);
    if locals.first().is_some_and(|first| first.start != 0) {
        return differs("there is data before the first entry");
    }
    let mut end = 0;
    for local in locals {
        if local.start < end {
            return differs("two entries overlap");
        }
        let mut header = [0; 30];
        let read = input.seek(SeekFrom::Start(local.start)).and_then(|_| input.read_exact(&mut header));
        read.map_err(|error| broken(&error))?;
        let [.., name_low, name_high, extra_low, extra_high] = header;
        let name_bytes = u16::from_le_bytes([name_low, name_high]);
        let mut name = vec![0; usize::from(name_bytes)];
        input.read_exact(&mut name).map_err(|error| broken(&error))?;
        if !header.starts_with(SIGNATURE) || name != local.name {
            return differs("an entry has a different name there");
        }
        let extra_bytes = u16::from_le_bytes([extra_low, extra_high]);
        let before = header.len() as u64 + u64::from(name_bytes) + u64::from(extra_bytes);
        end = local.start.saturating_add(before).saturating_add(local.packed_bytes);
    }
    Ok(())
}

/// A reader that fails after a number of bytes and records whether the end was reached.
struct MeteredReader<R> {
    input: R,
    left: Rc<Cell<u64>>,
    at_end: Rc<Cell<bool>>,
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..most).filter(|_| self.left.get() > 0) else {
            return Err(io::Error::other("more than the limit"));
        };
        let read = self.input.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(read as u64));
        self.at_end.set(self.at_end.get() || read == 0 && most > 0);
        Ok(read)
    }
}

impl<R: Seek> Seek for MeteredReader<R> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.input.seek(position)
    }
}
