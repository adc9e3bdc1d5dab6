//! The frames of a log that can be read, and the transactions after those that cannot.
//!
//! SQLite documents the format (<https://www.sqlite.org/fileformat2.html#walformat>): a header, then frames, each with the
//! image of a page and a checksum of everything before it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Magic number of logs whose checksums use little-endian words. The number for big-endian words is one higher.
const MAGIC: u32 = 0x377f_0682;

/// The only format version.
const VERSION: u32 = 3_007_000;

/// The salts of the frames of one generation of a log. A log that restarts from its beginning gets other salts.
type Salts = [u8; 8];

/// The result of scanning a log. Frames are numbered from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalScan {
    /// The salts of the valid frames.
    salts: Salts,
    /// The last frame that SQLite will read: the last commit frame before the first frame that does not verify.
    pub(super) readable: u64,
    /// The first frame that does not verify, or the one after the last.
    pub(super) broken: u64,
    /// The last frame with the salts of the log.
    pub(super) last: u64,
    /// Number of transactions that end after the broken frame, and so were written after it.
    pub(super) commits_behind: u64,
    /// Whether the header is damaged, so that SQLite treats the log as empty.
    pub(super) is_without_header: bool,
}

impl WalScan {
    /// Scans the log at `path`. Returns `None` if it is missing or has no frames. The page size is read from `vault` if
    /// the log's header is damaged.
    pub(super) fn read(path: &Path, vault: &Path) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = [0; HEADER_BYTES];
        if !fill(&mut file, &mut bytes)? {
            return Ok(None);
        }
        if let Some(header) = WalHeader::parse(&bytes) {
            return Self::with_header(&header, &mut file).map(Some);
        }
        let Some(page_size) = page_size_of(vault)? else { return Ok(None) };
        Self::without_header(page_size, &mut file).map(Some)
    }

    fn with_header(header: &WalHeader, file: &mut File) -> io::Result<Self> {
        let WalHeader { is_big, page_size, salts, mut checksum } = *header;
        let mut scan = Self { salts, broken: 1, ..Self::default() };
        while let Some(frame) = WalFrame::read(file, page_size, scan.broken)? {
            let expected = frame.checksum_after(checksum, is_big);
            if frame.salts() != salts || frame.checksum() != expected || frame.page_number() == 0 {
                break;
            }
            checksum = expected;
            scan.last = scan.broken;
            if frame.is_commit() {
                scan.readable = scan.last;
            }
            scan.broken += 1;
        }
        // The computed and the stored checksum of the previous frame. The next frame may continue from either, because
        // probably only one of the frame and its checksum is damaged.
        let mut before = [checksum, checksum];
        let mut number = scan.broken;
        while let Some(frame) = WalFrame::read(file, page_size, number)? {
            if frame.salts() == salts {
                scan.last = number;
                let follows = |checksum| frame.checksum_after(checksum, is_big) == frame.checksum();
                if number > scan.broken && frame.is_commit() && before.into_iter().any(follows) {
                    scan.commits_behind += 1;
                }
            }
            before = [frame.checksum_after(before[1], is_big), frame.checksum()];
            number += 1;
        }
        Ok(scan)
    }

    /// Scans a log with a damaged header, which had the salts of the first frame.
    fn without_header(page_size: usize, file: &mut File) -> io::Result<Self> {
        let mut scan = Self { broken: 1, is_without_header: true, ..Self::default() };
        let mut number = 1;
        while let Some(frame) = WalFrame::read(file, page_size, number)? {
            if number == 1 {
                scan.salts = frame.salts();
            }
            if frame.salts() == scan.salts {
                scan.last = number;
                scan.commits_behind += u64::from(frame.is_commit());
            }
            number += 1;
        }
        Ok(scan)
    }
}

/// The header of a log.
struct WalHeader {
    /// Whether checksums are computed from big-endian words.
    is_big: bool,
    page_size: usize,
    salts: Salts,
    /// Initial value of the checksums of the frames.
    checksum: [u32; 2],
}

impl WalHeader {
    /// Parses a header. Returns `None` if it is not valid; SQLite then treats the log as empty.
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let is_big = match number(bytes, 0) {
            MAGIC => false,
            magic if magic == MAGIC + 1 => true,
            _ => return None,
        };
        let page_size = page_size(number(bytes, 8))?;
        let checksum = extended([0, 0], bytes.get(..24)?, is_big);
        let is_whole = checksum == [number(bytes, 24), number(bytes, 28)] && number(bytes, 4) == VERSION;
        is_whole.then(|| Self { is_big, page_size, salts: salts(bytes, 16), checksum })
    }
}

/// A frame: a header and the image of a page.
struct WalFrame(Vec<u8>);

impl WalFrame {
    /// Reads the frame with this number. Returns `None` if the log ends before the end of the frame.
    fn read(log: &mut File, page_size: usize, number: u64) -> io::Result<Option<Self>> {
        let mut bytes = vec![0; FRAME_HEADER_BYTES + page_size];
        let before = (number - 1).saturating_mul(bytes.len() as u64);
        log.seek(SeekFrom::Start(HEADER_BYTES as u64 + before))?;
        Ok(fill(log, &mut bytes)?.then_some(Self(bytes)))
    }

    fn page_number(&self) -> u32 {
        number(&self.0, 0)
    }

    /// Returns whether a transaction ends with this frame.
    fn is_commit(&self) -> bool {
        number(&self.0, 4) > 0
    }

    fn salts(&self) -> Salts {
        salts(&self.0, 8)
    }

    fn checksum(&self) -> [u32; 2] {
        [number(&self.0, 16), number(&self.0, 20)]
    }

    /// Returns the checksum that the frame should have after a frame with the checksum `before`.
    fn checksum_after(&self, before: [u32; 2], is_big: bool) -> [u32; 2] {
        let (header, page) = self.0.split_at_checked(FRAME_HEADER_BYTES).unwrap_or_default();
        extended(extended(before, header.get(..8).unwrap_or_default(), is_big), page, is_big)
    }
}

/// Returns a checksum extended by `bytes`, whose length must be a multiple of eight.
fn extended([mut first, mut second]: [u32; 2], bytes: &[u8], is_big: bool) -> [u32; 2] {
    let word = |bytes| if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let mut words = bytes.as_chunks::<4>().0.iter().map(|bytes| word(*bytes));
    while let (Some(one), Some(other)) = (words.next(), words.next()) {
        first = first.wrapping_add(one).wrapping_add(second);
        second = second.wrapping_add(other).wrapping_add(first);
    }
    [first, second]
}

/// Returns the big-endian number at `offset`, or 0 beyond the end.
fn number(bytes: &[u8], offset: usize) -> u32 {
    let four = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    four.map_or(0, |four| u32::from_be_bytes(*four))
}

fn salts(bytes: &[u8], offset: usize) -> Salts {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

/// Returns `size` if it is a valid page size.
fn page_size(size: u32) -> Option<usize> {
    ((512..=65_536).contains(&size) && size.is_power_of_two()).then_some(size as usize)
}

/// Returns the page size of the database at `path`.
fn page_size_of(path: &Path) -> io::Result<Option<usize>> {
    let mut bytes = [0; 18];
    if !fill(&mut File::open(path)?, &mut bytes)? {
        return Ok(None);
    }
    let [.., high, low] = bytes;
    let size = u32::from(u16::from_be_bytes([high, low]));
    Ok(page_size(if size == 1 { 65_536 } else { size }))
}

/// Fills `bytes`. Returns false if the file ends first.
fn fill(file: &mut File, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        outcome => outcome.map(|()| true),
    }
}
