use std::cell::Cell;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;
use zstd::stream::read::Decoder;

use super::Format;
use super::flat::{self, RawEntry};
use super::zip_end::ZipEnds;
use crate::artifact::{Entry, EntryContent};

/// Up to this size anything may be packed as tightly as it likes.
const FREE_BYTES: u64 = 16 << 20;
/// Beyond it, an archive may grow to so many times its size. JSON rarely compresses better than fifty to one.
const MAX_RATIO: u64 = 200;
/// What the headers and paddings of a tar file may take beside its files.
const TAR_OVERHEAD: u64 = 16 << 20;
/// The most bytes of a zip file that are read to find its list of entries.
const MAX_ZIP_LIST_BYTES: u64 = 8 << 20;
/// The most bytes of the name of an entry.
const MAX_NAME_BYTES: usize = 4096;
/// The most bytes of all headers of one entry of a tar file. They are kept in memory before a name can be looked at.
const MAX_HEADER_BYTES: u64 = 256 << 10;

/// The largest window of a zstd frame, which is memory for the decoder: 128 MiB, what any `zstd` reads.
const MAX_WINDOW_LOG: u32 = 27;

/// How much may come out of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all files that are read.
    pub bytes: u64,
    /// Entries, whether they are read or not.
    pub entries: usize,
}

/// Why an archive cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It is not well-formed, or made in a way that is not read.
    #[error("the archive is broken: {0}")]
    Broken(String),
    /// Its files are too large.
    #[error("the files in the archive have more bytes than the limit of {0}; --max-size sets another")]
    TooLarge(u64),
    /// It is a bomb, or as good as one.
    #[error(
        "the archive grows to more than {MAX_RATIO} times its size, the limit beyond 16 MiB; if it is honest, unpack it"
    )]
    TooDense,
    /// It has too many entries.
    #[error("there are more than {0} entries, the limit; --max-entries sets another")]
    TooManyEntries(usize),
    /// The list of entries of a zip file is too large.
    #[error("the list of entries has more than {MAX_ZIP_LIST_BYTES} bytes, the limit")]
    ListTooLarge,
    /// An entry has a name that nobody gives.
    #[error(
        "an entry has a name of more than {MAX_NAME_BYTES} bytes, or headers of more than {MAX_HEADER_BYTES}, the limits"
    )]
    NameTooLong,
}

/// What an archive contains.
#[derive(Debug)]
pub struct Contents {
    /// The entries of the directory that it stands for, as far as they could be read.
    pub entries: Vec<Entry>,
    /// Why there may be more.
    pub error: Option<ArchiveError>,
}

/// Reads the archive `input` and those of its files whose names are of members, as far as `limits` allow.
pub fn read<R: Read + Seek>(
    format: Format,
    mut input: R,
    is_member: &dyn Fn(&str) -> bool,
    limits: Limits,
) -> Contents {
    let size = input.seek(SeekFrom::End(0)).and_then(|size| input.rewind().map(|()| size));
    let mut raw = Vec::new();
    let read = size.map_err(|error| broken(&error)).and_then(|size| {
        let mut budget = Budget::of(size, limits.bytes);
        let mut reader = Reader { raw: &mut raw, is_member, most_entries: limits.entries };
        match format {
            Format::Zip => reader.zip(input, size, &mut budget),
            Format::Tar => reader.tar(BufReader::new(input), budget),
            Format::TarGz => reader.tar(MultiGzDecoder::new(BufReader::new(input)), budget),
            Format::TarZst => reader.tar(zstd_decoder(input).map_err(|error| broken(&error))?, budget),
        }
    });
    Contents { entries: flat::flatten(raw), error: read.err() }
}

pub(super) fn zstd_decoder<R: Read>(input: R) -> io::Result<Decoder<'static, BufReader<R>>> {
    let mut decoder = Decoder::new(input)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(decoder)
}

pub(super) fn broken(error: &dyn std::error::Error) -> ArchiveError {
    ArchiveError::Broken(error.to_string())
}

/// The most bytes that an archive of `size` bytes may give.
pub(super) fn most_bytes(size: u64) -> u64 {
    size.saturating_mul(MAX_RATIO).max(FREE_BYTES)
}

/// How many bytes unpacking may give, and what it means if it gives more.
struct Budget {
    left: u64,
    exceeded: ArchiveError,
}

impl Budget {
    fn of(size: u64, limit: u64) -> Self {
        let dense = most_bytes(size);
        if dense < limit {
            Self { left: dense, exceeded: ArchiveError::TooDense }
        } else {
            Self { left: limit, exceeded: ArchiveError::TooLarge(limit) }
        }
    }

    /// Reads all of `input`.
    fn read(&mut self, input: impl Read) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        input.take(self.left.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| broken(&error))?;
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| self.exceeded.clone())?;
        Ok(bytes)
    }
}

struct Reader<'r> {
    raw: &'r mut Vec<RawEntry>,
    is_member: &'r dyn Fn(&str) -> bool,
    most_entries: usize,
}

impl Reader<'_> {
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
        budget: &mut Budget,
    ) -> Result<(), ArchiveError> {
        let ends = ZipEnds::find(&mut input, size, self.most_entries)?;
        // The list is kept in memory as a whole, so reading it is bounded, whatever it claims to be.
        let left = Rc::new(Cell::new(MAX_ZIP_LIST_BYTES));
        let metered = Metered { input, left: Rc::clone(&left), at_end: Rc::default() };
        let opened = ZipArchive::new(metered);
        let mut archive = match opened {
            Err(_) if left.get() == 0 => return Err(ArchiveError::ListTooLarge),
            opened => opened.map_err(|error| broken(&error))?,
        };
        left.set(u64::MAX);
        // All names come first: they tell what an archive was meant to be, even if its files cannot be read.
        let mut wanted = Vec::new();
        let mut locals = Vec::new();
        for index in 0..archive.len() {
            let (entry, local) = zip_entry(&archive, index)?;
            if matches!(entry.content, EntryContent::Stranger)
                && flat::may_be_member(&entry.path, self.is_member)
            {
                wanted.push((index, self.raw.len()));
            }
            self.push(entry)?;
            locals.push(local);
        }
        if archive.has_duplicate_names() {
            return Err(ArchiveError::Broken("two of its entries have the same name".to_owned()));
        }
        ends.check()?;
        for (index, at) in wanted {
            let file = archive.by_index(index).map_err(|error| broken(&error))?;
            let stated = file.size();
            let bytes = budget.read(file)?;
            if bytes.len() as u64 != stated {
                return Err(ArchiveError::Broken(
                    "a file has not the size that the list of entries states".to_owned(),
                ));
            }
            if let Some(entry) = self.raw.get_mut(at) {
                entry.content = EntryContent::File(bytes);
            }
        }
        check_locals(&mut archive.into_inner(), locals)
    }

    fn tar(&mut self, input: impl Read, mut budget: Budget) -> Result<(), ArchiveError> {
        let left = Rc::new(Cell::new(budget.left.saturating_add(TAR_OVERHEAD)));
        let at_end = Rc::new(Cell::new(false));
        let mut archive =
            tar::Archive::new(Metered { input, left: Rc::clone(&left), at_end: Rc::clone(&at_end) });
        let outcome = self.tar_entries(&mut archive, &mut budget, &left);
        if left.get() == 0 {
            return Err(budget.exceeded);
        }
        outcome?;
        if at_end.get() {
            return Err(ArchiveError::Broken(
                "it ends without the mark of its end; it was cut off".to_owned(),
            ));
        }
        // A checksum may stand behind the end of the entries.
        match is_blank(&mut archive.into_inner()) {
            Err(_) if left.get() == 0 => Err(budget.exceeded),
            Err(error) => Err(broken(&error)),
            Ok(false) => {
                Err(ArchiveError::Broken("there is something behind the mark of its end".to_owned()))
            }
            Ok(true) => Ok(()),
        }
    }

    fn tar_entries<R: Read>(
        &mut self,
        archive: &mut tar::Archive<R>,
        budget: &mut Budget,
        left: &Cell<u64>,
    ) -> Result<(), ArchiveError> {
        let mut entries = archive.entries().map_err(|error| broken(&error))?;
        loop {
            // What was read of the entry before is read to its end, so that only headers are read here.
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
            // Old programs write directories as files.
            let is_directory = sort.is_dir() || sort.is_file() && path.ends_with('/');
            let content = if sort.is_symlink() || sort.is_hard_link() {
                EntryContent::Link
            } else if is_directory || !sort.is_file() && !sort.is_contiguous() {
                EntryContent::Other
            } else if flat::may_be_member(&path, self.is_member) {
                EntryContent::File(budget.read(&mut entry)?)
            } else {
                EntryContent::Stranger
            };
            io::copy(&mut entry, &mut io::sink()).map_err(|error| broken(&error))?;
            self.push(RawEntry { path, content, is_directory })?;
        }
    }
}

/// Refuses what some programs heed in the extended headers of a tar file and others do not.
fn check_extensions<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<(), ArchiveError> {
    let ambiguous = |what: &str| {
        Err(ArchiveError::Broken(format!("programs do not agree how to read it: it has {what}")))
    };
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

/// Whether nothing but zeros is left to read.
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

/// An entry as the list has it, and where its file is to be found. Files are not read.
fn zip_entry<R>(archive: &ZipArchive<R>, index: usize) -> Result<(RawEntry, Local), ArchiveError>
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
        0 | REGULAR if !is_directory => EntryContent::Stranger,
        _ => EntryContent::Other,
    };
    let local = Local {
        start: entry.header_start(),
        packed_bytes: entry.compressed_size(),
        name: entry.name_raw().to_vec(),
    };
    Ok((RawEntry { path, content, is_directory }, local))
}

/// Where an entry of a zip file stands, apart from the list of entries.
struct Local {
    start: u64,
    packed_bytes: u64,
    name: Vec<u8>,
}

/// Holds the entries of a zip file against its list: programs that read from the front must find the same files as those
/// that read the list.
fn check_locals(input: &mut (impl Read + Seek), mut locals: Vec<Local>) -> Result<(), ArchiveError> {
    const SIGNATURE: &[u8] = b"PK\x03\x04";
    let differs = |what: &str| Err(ArchiveError::Broken(format!("its list of entries does not fit: {what}")));
    locals.sort_by_key(|local| local.start);
    if locals.first().is_some_and(|first| first.start != 0) {
        return differs("there is something before the first entry");
    }
    let mut end = 0;
    for local in locals {
        if local.start < end {
            return differs("two entries share bytes");
        }
        let mut header = [0; 30];
        let read = input.seek(SeekFrom::Start(local.start)).and_then(|_| input.read_exact(&mut header));
        read.map_err(|error| broken(&error))?;
        let [.., name_low, name_high, extra_low, extra_high] = header;
        let name_bytes = u16::from_le_bytes([name_low, name_high]);
        let mut name = vec![0; usize::from(name_bytes)];
        input.read_exact(&mut name).map_err(|error| broken(&error))?;
        if !header.starts_with(SIGNATURE) || name != local.name {
            return differs("an entry has another name there");
        }
        let extra_bytes = u16::from_le_bytes([extra_low, extra_high]);
        let before = header.len() as u64 + u64::from(name_bytes) + u64::from(extra_bytes);
        end = local.start.saturating_add(before).saturating_add(local.packed_bytes);
    }
    Ok(())
}

/// Passes on so many bytes and no more, and sees when there are none left.
struct Metered<R> {
    input: R,
    left: Rc<Cell<u64>>,
    at_end: Rc<Cell<bool>>,
}

impl<R: Read> Read for Metered<R> {
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

impl<R: Seek> Seek for Metered<R> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.input.seek(position)
    }
}
