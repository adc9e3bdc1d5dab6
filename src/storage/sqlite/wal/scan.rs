//! Detection of the frames of a log that can be read, and of the content after those that cannot.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::format::{
    HEADER_BYTES, Salts, WalChecksum, WalFrame, WalFrameReader, WalHeader, WordOrder, page_size, read_or_end,
};
use super::index::WalIndex;

/// The result of scanning a log. Frames are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage::sqlite) struct WalScan {
    pub(in crate::storage::sqlite) page_size: usize,
    /// The salts of the valid frames.
    pub(in crate::storage::sqlite) salts: Salts,
    /// The last frame that SQLite will read: the last commit frame before the first frame that does not verify.
    pub(in crate::storage::sqlite) readable: u64,
    /// The first frame that does not verify, or the one after the last.
    pub(in crate::storage::sqlite) broken: u64,
    /// The last frame with the salts of the log.
    pub(in crate::storage::sqlite) last: u64,
    /// Number of frames, from the broken one on, with the salts of the log.
    pub(in crate::storage::sqlite) behind: u64,
    /// Number of transactions that end after the broken frame, and so were written after it.
    pub(in crate::storage::sqlite) commits_behind: u64,
    /// Whether the header is damaged, so that SQLite treats the log as empty.
    pub(in crate::storage::sqlite) is_without_header: bool,
}

impl WalScan {
    /// Scans the log at `path`. Returns `None` if it is missing or has no frames. The page size is read from `vault` if
    /// the log's header is damaged.
    pub(in crate::storage::sqlite) fn read(path: &Path, vault: &Path) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = [0; HEADER_BYTES];
        if !read_or_end(&mut file, &mut bytes)? {
            return Ok(None);
        }
        if let Some(header) = WalHeader::parse(&bytes) {
            let mut frames = WalFrameReader::new(file, header.page_size);
            return Self::with_header(header, &mut frames).map(Some);
        }
        let Some(page_size) = page_size_of(vault)? else { return Ok(None) };
        let mut frames = WalFrameReader::new(file, page_size);
        Self::without_header(page_size, &mut frames)
    }

    fn with_header(header: WalHeader, frames: &mut WalFrameReader) -> io::Result<Self> {
        let WalHeader { order, page_size, salts, checksum } = header;
        let mut scan = Self {
            page_size,
            salts,
            readable: 0,
            broken: 0,
            last: 0,
            behind: 0,
            commits_behind: 0,
            is_without_header: false,
        };
        let mut sum = checksum;
        let mut number = 1;
        while let Some(frame) = frames.read(number)? {
            let expected = frame.checksum_after(sum, order);
            if frame.salts() != salts || frame.stored_checksum() != expected || frame.page_number() == 0 {
                break;
            }
            sum = expected;
            if frame.is_commit() {
                scan.readable = number;
            }
            scan.last = number;
            number += 1;
        }
        scan.broken = number;
        scan.look_behind(frames, order, sum)?;
        Ok(scan)
    }

    /// Scans the frames from the broken one on; `sum` is the checksum before it.
    fn look_behind(
        &mut self,
        frames: &mut WalFrameReader,
        order: WordOrder,
        sum: WalChecksum,
    ) -> io::Result<()> {
        // The computed and the stored checksum of the previous frame. The next frame may continue from either, because
        // probably only one of the frame and its checksum is damaged.
        let mut before = [sum, sum];
        let mut number = self.broken;
        while let Some(frame) = frames.read(number)? {
            let is_ours = frame.salts() == self.salts;
            if is_ours {
                self.behind += 1;
                self.last = number;
            }
            if is_ours && number > self.broken && frame.is_commit() && follows(&frame, before, order) {
                self.commits_behind += 1;
            }
            let [_, stored] = before;
            before = [frame.checksum_after(stored, order), frame.stored_checksum()];
            number += 1;
        }
        Ok(())
    }

    /// Scans a log with a damaged header: its salts are those of the first frame whose successor has the same salts.
    fn without_header(page_size: usize, frames: &mut WalFrameReader) -> io::Result<Option<Self>> {
        let mut scan = Self {
            page_size,
            salts: Salts::default(),
            readable: 0,
            broken: 1,
            last: 0,
            behind: 0,
            commits_behind: 0,
            is_without_header: true,
        };
        let Some(first) = frames.read(1)? else { return Ok(None) };
        scan.salts = match frames.read(2)? {
            Some(second) if second.salts() != first.salts() => {
                let third = frames.read(3)?;
                third.map_or(first.salts(), |third| third.salts())
            }
            _ => first.salts(),
        };
        let mut number = 1;
        while let Some(frame) = frames.read(number)? {
            if frame.salts() == scan.salts {
                scan.behind += 1;
                scan.last = number;
                scan.commits_behind += u64::from(frame.is_commit());
            }
            number += 1;
        }
        Ok(Some(scan))
    }

    /// Returns whether committed frames cannot be read: those counted by `index`, or those of transactions written
    /// after a frame that does not verify. An unfinished transaction at the end of the log does not count, because it
    /// was not acknowledged.
    pub(in crate::storage::sqlite) fn is_damaged(&self, index: Option<&WalIndex>) -> bool {
        let counted = index.filter(|index| self.is_counted_by(index) && index.frames > index.in_file);
        self.commits_behind > 0 || counted.is_some_and(|index| u64::from(index.frames) > self.readable)
    }

    /// Returns whether the frames that `index` counts should be in this log: its header says so, or is overwritten. A log with
    /// another header was begun after the file had all frames of the one before, and a power loss can leave an older index.
    fn is_counted_by(&self, index: &WalIndex) -> bool {
        index.salts == self.salts || self.is_without_header
    }

    /// Returns the number of frames of committed transactions that are known to be unreadable.
    pub(in crate::storage::sqlite) fn unreadable(&self, index: Option<&WalIndex>) -> u64 {
        let counted =
            index.filter(|index| self.is_counted_by(index)).map_or(0, |index| u64::from(index.frames));
        self.last.max(counted).saturating_sub(self.readable)
    }

    /// Returns whether everything from the broken frame on in the log at `path` is also in the log at `other`.
    pub(in crate::storage::sqlite) fn is_same_damage(
        &self,
        path: &Path,
        other: &Path,
        in_other: &Self,
    ) -> io::Result<bool> {
        if self.salts != in_other.salts || self.page_size != in_other.page_size {
            return Ok(false);
        }
        if self.last < self.broken {
            return Ok(self.broken == in_other.broken);
        }
        let begin = WalFrameReader::offset(self.page_size, self.broken);
        let end = WalFrameReader::offset(self.page_size, self.last + 1);
        let part = |path: &Path| {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(begin))?;
            io::Result::Ok(io::BufReader::new(file.take(end - begin)))
        };
        let (mut one, mut other) = (part(path)?, part(other)?);
        let (mut ours, mut theirs) = ([0; 4_096], [0; 4_096]);
        loop {
            let length = fill(&mut one, &mut ours)?;
            if length != fill(&mut other, &mut theirs)? || ours != theirs {
                return Ok(false);
            }
            if length == 0 {
                return Ok(true);
            }
        }
    }
}

/// Reads until `bytes` is full or the input ends, and fills the rest with zeros.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    bytes.fill(0);
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

fn follows(frame: &WalFrame, before: [WalChecksum; 2], order: WordOrder) -> bool {
    before.into_iter().any(|sum| frame.checksum_after(sum, order) == frame.stored_checksum())
}

/// Returns the page size of the database at `path`.
pub(in crate::storage::sqlite) fn page_size_of(path: &Path) -> io::Result<Option<usize>> {
    let mut bytes = [0; 18];
    if !read_or_end(&mut File::open(path)?, &mut bytes)? {
        return Ok(None);
    }
    let [.., high, low] = bytes;
    let size = u32::from(u16::from_be_bytes([high, low]));
    Ok(page_size(if size == 1 { 65_536 } else { size }))
}
