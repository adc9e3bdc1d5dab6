//! Rows in the pages of a log, read without SQLite, which cannot open a damaged log. The rows prove nothing; callers
//! verify them against hashes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::types::Value;

use super::format::WalFrameReader;
use super::scan::WalScan;
use crate::digest::Digest;

/// First byte of a leaf page of a table with row ids, and of one without.
const TABLE_LEAF: u8 = 0x0d;
const INDEX_LEAF: u8 = 0x0a;

/// Size of the header of the file, which precedes the header of the first page.
const FILE_HEADER_BYTES: usize = 100;

/// Maximum number of bytes read from overflow pages, as a multiple of the size of all pages in the log. Only damage
/// causes more reads: each row is read once and has its own overflow pages.
const MOST_READINGS: u64 = 64;

/// Maximum number of columns; every table of a vault has fewer.
const MAX_COLUMNS: usize = 64;

/// A row found in a log.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::storage::sqlite) struct LoggedRow {
    /// The number of the frame that it was read from.
    pub(in crate::storage::sqlite) frame: u64,
    /// The row id, or `None` if its table has none.
    pub(in crate::storage::sqlite) number: Option<i64>,
    pub(in crate::storage::sqlite) columns: Vec<Value>,
}

/// Calls `take` with every row in the frames of the log at `path`, including damaged ones, in the order in which they
/// were written. A row that was written again is passed again.
pub(in crate::storage::sqlite) fn each(
    path: &Path,
    scan: &WalScan,
    take: &mut dyn FnMut(LoggedRow),
) -> io::Result<()> {
    let budget = scan.last.saturating_mul(scan.page_size as u64).saturating_mul(MOST_READINGS);
    let frames = WalFrameReader::new(File::open(path)?, scan.page_size);
    let mut log = WalPageReader { frames, places: HashMap::new(), known: HashSet::new(), budget };
    let mut begin = 1;
    for number in 1..=scan.last {
        let Some(frame) = log.frames.read(number)? else { break };
        log.places.insert(frame.page_number(), number);
        // The overflow pages of a row are only known at the end of the transaction.
        if frame.is_commit() || number == scan.last {
            for number in begin..=number {
                log.rows_of(number, take)?;
            }
            begin = number + 1;
        }
    }
    Ok(())
}

/// A log, and the latest frame of each page so far.
struct WalPageReader {
    frames: WalFrameReader,
    places: HashMap<u32, u64>,
    /// Cells with overflow pages that were already read, each with the frame of its first overflow page.
    known: HashSet<(Digest, u64)>,
    /// Number of bytes that may still be read from overflow pages.
    budget: u64,
}

impl WalPageReader {
    fn rows_of(&mut self, number: u64, take: &mut dyn FnMut(LoggedRow)) -> io::Result<()> {
        let Some(frame) = self.frames.read(number)? else { return Ok(()) };
        let begin = if frame.page_number() == 1 { FILE_HEADER_BYTES } else { 0 };
        let page = frame.page();
        let Some([kind, _, _, high, low, ..]) = page.get(begin..) else { return Ok(()) };
        let is_table = match *kind {
            TABLE_LEAF => true,
            INDEX_LEAF => false,
            _ => return Ok(()),
        };
        let cells = usize::from(u16::from_be_bytes([*high, *low]));
        let places = page.get(begin + 8..).unwrap_or_default().as_chunks::<2>().0;
        for place in places.iter().take(cells) {
            let cell = page.get(usize::from(u16::from_be_bytes(*place))..).unwrap_or_default();
            if let Some((row, columns)) = self.row(cell, is_table, page.len())? {
                take(LoggedRow { frame: number, number: row, columns });
            }
        }
        Ok(())
    }

    /// Returns the columns of the row in `cell`, and its row id if its table has row ids.
    fn row(
        &mut self,
        cell: &[u8],
        is_table: bool,
        page_size: usize,
    ) -> io::Result<Option<(Option<i64>, Vec<Value>)>> {
        let Some((length, rest)) = varint(cell) else { return Ok(None) };
        let (number, rest) = match is_table.then(|| varint(rest)) {
            None => (None, rest),
            Some(None) => return Ok(None),
            Some(Some((number, rest))) => (Some(number), rest),
        };
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let local = local_bytes(length, is_table, page_size);
        let Some((head, rest)) = rest.split_at_checked(local) else { return Ok(None) };
        let mut record = head.to_vec();
        if local < length {
            let next = super::format::big_endian(rest, 0);
            let Some(place) = self.places.get(&next) else { return Ok(None) };
            // A page is written again for each row added to it. Skips rows that were already read.
            let Some(own) = cell.get(..cell.len() - rest.len() + 4) else { return Ok(None) };
            let key = Digest::from_content(own);
            if !self.known.insert((key, *place)) || !self.overflow(next, length, &mut record)? {
                return Ok(None);
            }
        }
        Ok(columns(&record).map(|columns| (number, columns)))
    }

    /// Appends the part of a record on overflow pages, the first of which is `next`. Returns false if they are not in
    /// the log.
    fn overflow(&mut self, mut next: u32, length: usize, record: &mut Vec<u8>) -> io::Result<bool> {
        if length > self.places.len().saturating_mul(self.frames.page_size()) {
            return Ok(false);
        }
        while record.len() < length {
            let Some(place) = self.places.get(&next) else { return Ok(false) };
            let Some(frame) = self.frames.read(*place)? else { return Ok(false) };
            let Some((pointer, content)) = frame.page().split_first_chunk::<4>() else { return Ok(false) };
            let chunk_length = content.len().min(length - record.len());
            let Some(left) = self.budget.checked_sub(chunk_length as u64) else { return Ok(false) };
            self.budget = left;
            record.extend(content.iter().take(chunk_length));
            next = u32::from_be_bytes(*pointer);
        }
        Ok(true)
    }
}

/// Returns how many bytes of a record of `length` bytes are on the page itself.
fn local_bytes(length: usize, is_table: bool, page_size: usize) -> usize {
    let most = if is_table { page_size - 35 } else { (page_size - 12) * 64 / 255 - 23 };
    if length <= most {
        return length;
    }
    let least = (page_size - 12) * 32 / 255 - 23;
    let local = least + (length - least) % (page_size - 4);
    if local <= most { local } else { least }
}

/// Reads a variable-length integer of one to nine bytes. Returns it and the remaining bytes.
fn varint(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut number: u64 = 0;
    for (place, byte) in bytes.iter().take(9).enumerate() {
        let rest = bytes.get(place + 1..)?;
        if place == 8 {
            return Some(((number << 8 | u64::from(*byte)).cast_signed(), rest));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number.cast_signed(), rest));
        }
    }
    None
}

/// Returns the columns of a record, or `None` if it is not valid.
fn columns(record: &[u8]) -> Option<Vec<Value>> {
    let (length, _) = varint(record)?;
    let (header, mut content) = record.split_at_checked(usize::try_from(length).ok()?)?;
    let (_, mut types) = varint(header)?;
    let mut columns = Vec::new();
    while !types.is_empty() {
        let (serial_type, rest) = varint(types)?;
        types = rest;
        let (value, rest) = value(serial_type, content)?;
        content = rest;
        columns.push(value);
        if columns.len() > MAX_COLUMNS {
            return None;
        }
    }
    Some(columns)
}

fn value(serial_type: i64, content: &[u8]) -> Option<(Value, &[u8])> {
    let integer = |length: usize| {
        let (bytes, rest) = content.split_at_checked(length)?;
        let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
        Some((Value::Integer(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte))), rest))
    };
    match serial_type {
        0 => Some((Value::Null, content)),
        1..=4 => integer(usize::try_from(serial_type).ok()?),
        5 => integer(6),
        6 => integer(8),
        7 => {
            let (bytes, rest) = content.split_first_chunk::<8>()?;
            Some((Value::Real(f64::from_be_bytes(*bytes)), rest))
        }
        8 => Some((Value::Integer(0), content)),
        9 => Some((Value::Integer(1), content)),
        12.. => {
            let (bytes, rest) = content.split_at_checked(usize::try_from((serial_type - 12) / 2).ok()?)?;
            let value = if serial_type % 2 == 0 {
                Value::Blob(bytes.to_vec())
            } else {
                Value::Text(String::from_utf8(bytes.to_vec()).ok()?)
            };
            Some((value, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::{Connection, OpenFlags};

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            columns(&bytes);
            varint(&bytes);
        }
    }

    /// Tests rows with every type of column, and records from a few bytes to many pages, as SQLite logs them.
    #[test]
    fn rows_are_those_that_sqlite_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let connection = Connection::open_with_flags(&path, OpenFlags::default()).unwrap();
        connection.execute_batch("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL;").unwrap();
        connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c)").unwrap();
        connection.execute_batch("CREATE TABLE w (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID").unwrap();
        let mut expected = Vec::new();
        for (id, length) in (0_i64..).zip([0, 1, 100, 228, 229, 980, 990, 1_000, 5_000, 70_000]) {
            let number = -(1_i64 << (id * 6));
            let text = "é".repeat(length / 2);
            let values = (id - 3, number, &text, vec![7_u8; length]);
            connection.execute("INSERT INTO t VALUES (?1, ?2, ?3, ?4)", values).unwrap();
            connection.execute("INSERT INTO w VALUES (?1, ?2)", (&text, id)).unwrap();
            let columns = vec![
                Value::Null,
                Value::Integer(number),
                Value::Text(text.clone()),
                Value::Blob(vec![7; length]),
            ];
            expected.push((Some(id - 3), columns));
            let columns = vec![Value::Text(text), Value::Integer(id)];
            expected.push((None, columns));
        }
        let mut wal = path.clone().into_os_string();
        wal.push("-wal");
        let scan = WalScan::read(Path::new(&wal), &path).unwrap().unwrap();
        assert_eq!((scan.behind, scan.readable), (0, scan.last));
        let mut rows = Vec::new();
        each(Path::new(&wal), &scan, &mut |row| rows.push((row.number, row.columns))).unwrap();
        for row in expected {
            assert!(rows.contains(&row), "{:?}", row.0);
        }
    }
}
