use std::cell::Cell;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::flat::{self, RawEntry};
use super::{Format, MAX_ENTRIES};
use crate::artifact::{Entry, EntryContent};

/// Up to this size anything may be packed as tightly as it likes.
const FREE_BYTES: u64 = 16 << 20;
/// Beyond it, an archive may grow to so many times its size. JSON rarely compresses better than fifty to one.
const MAX_RATIO: u64 = 200;
/// What the headers and paddings of a tar file may take beside its files.
const TAR_OVERHEAD: u64 = 16 << 20;
/// The most bytes of a zip file that are read to find its list of entries.
const MAX_ZIP_LIST_BYTES: u64 = 8 << 20;

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
        "the archive grows to more than {MAX_RATIO} times its size when it is unpacked; no honest archive does"
    )]
    TooDense,
    /// It has too many entries.
    #[error("there are more than {MAX_ENTRIES} entries, the limit")]
    TooManyEntries,
}

/// What an archive contains.
#[derive(Debug)]
pub struct Contents {
    /// The entries of the directory that it stands for, as far as they could be read.
    pub entries: Vec<Entry>,
    /// Why there may be more.
    pub error: Option<ArchiveError>,
}

/// Reads the archive `input` and those of its files whose names are of members, no more than `limit` bytes in all.
pub fn read<R: Read + Seek>(
    format: Format,
    mut input: R,
    is_member: &dyn Fn(&str) -> bool,
    limit: u64,
) -> Contents {
    let size = input.seek(SeekFrom::End(0)).and_then(|size| input.rewind().map(|()| size));
    let mut raw = Vec::new();
    let read = size.map_err(|error| broken(&error)).and_then(|size| {
        let mut budget = Budget::of(size, limit);
        let mut reader = Reader { raw: &mut raw, is_member };
        match format {
            Format::Zip => reader.zip(input, size, &mut budget),
            Format::Tar => reader.tar(BufReader::new(input), budget),
            Format::TarGz => reader.tar(MultiGzDecoder::new(BufReader::new(input)), budget),
        }
    });
    Contents { entries: flat::flatten(raw), error: read.err() }
}

fn broken(error: &dyn std::error::Error) -> ArchiveError {
    ArchiveError::Broken(error.to_string())
}

/// The most bytes that an archive of `size` bytes may give.
pub(super) fn most_bytes(size: u64) -> u64 {
    size.saturating_mul(MAX_RATIO).max(FREE_BYTES)
}

/// How many bytes unpacking may give, and what it means if it gives more.
#[derive(Clone)]
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
}

impl Reader<'_> {
    fn push(&mut self, path: String, content: EntryContent) -> Result<(), ArchiveError> {
        if self.raw.len() == MAX_ENTRIES {
            return Err(ArchiveError::TooManyEntries);
        }
        self.raw.push(RawEntry { path, content });
        Ok(())
    }

    fn zip<R: Read + Seek>(
        &mut self,
        mut input: R,
        size: u64,
        budget: &mut Budget,
    ) -> Result<(), ArchiveError> {
        check_zip_end(&mut input, size)?;
        // The list is kept in memory as a whole, so reading it is bounded, whatever it claims to be.
        let left = Rc::new(Cell::new(MAX_ZIP_LIST_BYTES));
        let metered = Metered { input, left: Rc::clone(&left), at_end: Rc::default() };
        let opened = ZipArchive::new(metered);
        let mut archive = match opened {
            Err(_) if left.get() == 0 => return Err(ArchiveError::TooManyEntries),
            opened => opened.map_err(|error| broken(&error))?,
        };
        left.set(u64::MAX);
        if archive.has_duplicate_names() {
            return Err(ArchiveError::Broken("two of its entries have the same name".to_owned()));
        }
        for index in 0..archive.len() {
            let (path, content) = zip_entry(&archive, index)?;
            let wanted =
                matches!(content, EntryContent::Stranger) && flat::may_be_member(&path, self.is_member);
            let content = if wanted {
                let file = archive.by_index(index).map_err(|error| broken(&error))?;
                EntryContent::File(budget.read(file)?)
            } else {
                content
            };
            self.push(path, content)?;
        }
        Ok(())
    }

    fn tar(&mut self, input: impl Read, mut budget: Budget) -> Result<(), ArchiveError> {
        let left = Rc::new(Cell::new(budget.left.saturating_add(TAR_OVERHEAD)));
        let at_end = Rc::new(Cell::new(false));
        let mut archive =
            tar::Archive::new(Metered { input, left: Rc::clone(&left), at_end: Rc::clone(&at_end) });
        let outcome = self.tar_entries(&mut archive, &mut budget);
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
        let drained = io::copy(&mut archive.into_inner(), &mut io::sink());
        match drained {
            Err(_) if left.get() == 0 => Err(budget.exceeded),
            drained => drained.map(drop).map_err(|error| broken(&error)),
        }
    }

    fn tar_entries<R: Read>(
        &mut self,
        archive: &mut tar::Archive<R>,
        budget: &mut Budget,
    ) -> Result<(), ArchiveError> {
        for entry in archive.entries().map_err(|error| broken(&error))? {
            let mut entry = entry.map_err(|error| broken(&error))?;
            let sort = entry.header().entry_type();
            if sort.is_pax_global_extensions() {
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let content = if sort.is_symlink() || sort.is_hard_link() {
                EntryContent::Link
            } else if !sort.is_file() && !sort.is_contiguous() || path.ends_with('/') {
                EntryContent::Other
            } else if flat::may_be_member(&path, self.is_member) {
                EntryContent::File(budget.read(&mut entry)?)
            } else {
                EntryContent::Stranger
            };
            let path = if sort.is_dir() && !path.ends_with('/') { format!("{path}/") } else { path };
            self.push(path, content)?;
        }
        Ok(())
    }
}

/// The path of an entry, and what it is. Files are not read.
fn zip_entry<R>(archive: &ZipArchive<R>, index: usize) -> Result<(String, EntryContent), ArchiveError>
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
    let content = match entry.unix_mode().unwrap_or_default() & FILE_TYPE {
        LINK => EntryContent::Link,
        DIRECTORY => EntryContent::Other,
        0 | REGULAR if path.ends_with('/') => EntryContent::Other,
        0 | REGULAR => EntryContent::Stranger,
        _ => EntryContent::Other,
    };
    Ok((path, content))
}

/// Looks at the records with which a zip file ends, before memory is set aside for as many entries as they claim.
fn check_zip_end(input: &mut (impl Read + Seek), size: u64) -> Result<(), ArchiveError> {
    const SIGNATURE: &[u8] = b"PK\x05\x06";
    const RECORD_BYTES: u64 = 22;
    const COMMENT_BYTES: u64 = 1 << 16;
    let start = size.saturating_sub(RECORD_BYTES + COMMENT_BYTES + 4);
    let mut tail = Vec::new();
    let read = input.seek(SeekFrom::Start(start)).and_then(|_| input.read_to_end(&mut tail));
    read.and_then(|_| input.rewind()).map_err(|error| broken(&error))?;
    for (at, _) in tail.windows(SIGNATURE.len()).enumerate().filter(|(_, bytes)| *bytes == SIGNATURE) {
        let number = |offset: usize, bytes: usize| {
            let bytes = tail.get(at + offset..at + offset + bytes).unwrap_or_default();
            bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (here, in_all, list_bytes, list_at) = (number(8, 2), number(10, 2), number(12, 4), number(16, 4));
        // The largest values stand for larger ones that are written elsewhere.
        let is_zip64 = in_all == 0xffff || list_bytes == 0xffff_ffff || list_at == 0xffff_ffff;
        if is_zip64 || here.max(in_all) > MAX_ENTRIES as u64 {
            return Err(ArchiveError::TooManyEntries);
        }
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
