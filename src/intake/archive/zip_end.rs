//! The end records of a zip file, checked before memory is allocated for the number of entries that they state.

use std::io::{Read, Seek, SeekFrom};

use super::format::{ArchiveError, broken};

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
