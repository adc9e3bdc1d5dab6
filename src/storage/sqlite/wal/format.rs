//! The write-ahead log format, as documented by SQLite (<https://www.sqlite.org/fileformat2.html#walformat>): a header,
//! then frames, each with the image of a page and a checksum of everything before it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const FRAME_HEADER_BYTES: usize = 24;

/// Magic number of logs whose checksums use little-endian words. The number for big-endian words is one higher.
const MAGIC: u32 = 0x377f_0682;

/// The only format version.
const VERSION: u32 = 3_007_000;

/// Byte order of the words that checksums are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordOrder {
    Little,
    Big,
}

impl WordOrder {
    /// Splits eight bytes into two words.
    fn words(self, bytes: [u8; 8]) -> [u32; 2] {
        let number = match self {
            Self::Little => u64::from_le_bytes(bytes).rotate_left(32),
            Self::Big => u64::from_be_bytes(bytes),
        };
        [number >> 32, number & u64::from(u32::MAX)].map(|word| u32::try_from(word).unwrap_or_default())
    }
}

/// A checksum of everything from the beginning of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalChecksum(u32, u32);

impl WalChecksum {
    /// Reads a stored checksum. Its byte order does not depend on the word order.
    pub(super) fn stored(bytes: &[u8]) -> Self {
        Self(big_endian(bytes, 0), big_endian(bytes, 4))
    }

    /// Returns the checksum extended by `bytes`, whose length must be a multiple of eight.
    pub(super) fn extended(self, bytes: &[u8], order: WordOrder) -> Self {
        let Self(mut first, mut second) = self;
        for pair in bytes.as_chunks::<8>().0 {
            let [one, other] = order.words(*pair);
            first = first.wrapping_add(one).wrapping_add(second);
            second = second.wrapping_add(other).wrapping_add(first);
        }
        Self(first, second)
    }
}

/// Returns the big-endian number at `offset`, or 0 beyond the end.
pub(super) fn big_endian(bytes: &[u8], offset: usize) -> u32 {
    let four = bytes.get(offset..).and_then(|rest| rest.first_chunk::<4>());
    four.map_or(0, |four| u32::from_be_bytes(*four))
}

/// The salts of the frames of one generation of a log. A log that restarts from its beginning gets other salts.
pub(super) type Salts = [u8; 8];

fn salts(bytes: &[u8], offset: usize) -> Salts {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

/// The header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalHeader {
    pub(super) order: WordOrder,
    pub(super) page_size: usize,
    pub(super) salts: Salts,
    /// Initial value of the checksums of the frames.
    pub(super) checksum: WalChecksum,
}

impl WalHeader {
    /// Parses a header. Returns `None` if it is not valid; SQLite then treats the log as empty.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let order = match big_endian(bytes, 0) {
            MAGIC => WordOrder::Little,
            magic if magic == MAGIC + 1 => WordOrder::Big,
            _ => return None,
        };
        let page_size = page_size(big_endian(bytes, 8))?;
        let (covered, stored) = bytes.split_at(24);
        let checksum = WalChecksum::default().extended(covered, order);
        let is_whole = checksum == WalChecksum::stored(stored) && big_endian(bytes, 4) == VERSION;
        is_whole.then(|| Self { order, page_size, salts: salts(bytes, 16), checksum })
    }
}

/// Returns `size` if it is a valid page size.
pub(super) fn page_size(size: u32) -> Option<usize> {
    let is_one = (512..=65_536).contains(&size) && size.is_power_of_two();
    is_one.then_some(size as usize)
}

/// A frame: a header and the image of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct WalFrame {
    bytes: Vec<u8>,
}

impl WalFrame {
    /// Returns the number of the page, from 1.
    pub(super) fn page_number(&self) -> u32 {
        big_endian(&self.bytes, 0)
    }

    /// Returns whether a transaction ends with this frame.
    pub(super) fn is_commit(&self) -> bool {
        big_endian(&self.bytes, 4) > 0
    }

    pub(super) fn salts(&self) -> Salts {
        salts(&self.bytes, 8)
    }

    pub(super) fn stored_checksum(&self) -> WalChecksum {
        WalChecksum::stored(self.bytes.get(16..).unwrap_or_default())
    }

    /// Returns the checksum that the frame should have after a frame with the checksum `before`.
    pub(super) fn checksum_after(&self, before: WalChecksum, order: WordOrder) -> WalChecksum {
        let header = self.bytes.get(..8).unwrap_or_default();
        before.extended(header, order).extended(self.page(), order)
    }

    pub(super) fn page(&self) -> &[u8] {
        self.bytes.get(FRAME_HEADER_BYTES..).unwrap_or_default()
    }
}

/// The file of a log, read frame by frame.
pub(super) struct WalFrameReader {
    file: File,
    page_size: usize,
}

impl WalFrameReader {
    pub(super) fn new(file: File, page_size: usize) -> Self {
        Self { file, page_size }
    }

    pub(super) fn page_size(&self) -> usize {
        self.page_size
    }

    /// Returns the offset of the frame with this number, from 1.
    pub(super) fn offset(page_size: usize, number: u64) -> u64 {
        let size = (FRAME_HEADER_BYTES + page_size) as u64;
        HEADER_BYTES as u64 + number.saturating_sub(1).saturating_mul(size)
    }

    /// Reads the frame with this number, from 1. Returns `None` if the log ends before the end of the frame.
    pub(super) fn read(&mut self, number: u64) -> io::Result<Option<WalFrame>> {
        let mut bytes = vec![0; FRAME_HEADER_BYTES + self.page_size];
        self.file.seek(SeekFrom::Start(Self::offset(self.page_size, number)))?;
        read_or_end(&mut self.file, &mut bytes).map(|is_whole| is_whole.then_some(WalFrame { bytes }))
    }
}

/// Fills `bytes`. Returns false if the file ends first.
pub(super) fn read_or_end(file: &mut File, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header as SQLite writes it, with checksums in the given word order.
    fn header(order: WordOrder) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let magic = if order == WordOrder::Big { MAGIC + 1 } else { MAGIC };
        for (place, number) in [magic, VERSION, 4_096, 7, 0x0102_0304, 0x0506_0708].into_iter().enumerate() {
            bytes[place * 4..place * 4 + 4].copy_from_slice(&number.to_be_bytes());
        }
        let WalChecksum(first, second) = WalChecksum::default().extended(&bytes[..24], order);
        bytes[24..28].copy_from_slice(&first.to_be_bytes());
        bytes[28..].copy_from_slice(&second.to_be_bytes());
        bytes
    }

    #[test]
    fn headers_of_both_byte_orders_are_read() {
        for order in [WordOrder::Little, WordOrder::Big] {
            let header = WalHeader::parse(&header(order)).unwrap();
            assert_eq!((header.order, header.page_size), (order, 4_096));
            assert_eq!(header.salts, [1, 2, 3, 4, 5, 6, 7, 8]);
        }
    }

    #[test]
    fn a_header_with_any_changed_bit_is_refused() {
        for order in [WordOrder::Little, WordOrder::Big] {
            let whole = header(order);
            for bit in 0..HEADER_BYTES * 8 {
                let mut changed = whole;
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(WalHeader::parse(&changed), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn checksums_are_those_of_the_specification() {
        // The algorithm, applied twice: s0 += x0 + s1; s1 += x1 + s0.
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
        assert_eq!(WalChecksum::default().extended(&bytes, WordOrder::Little), WalChecksum(7, 14));
        let bytes = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
        assert_eq!(WalChecksum::default().extended(&bytes, WordOrder::Big), WalChecksum(7, 14));
    }
}
