//! The pages on which FTS5 stores words, and whether lookups find the page of a word.
//!
//! A segment is a sequence of pages with sorted words. `search_text_idx` has, for each page on which words begin, a key
//! between the last word before it and its first word. A word is looked up on the page with the greatest key not after
//! it. So everything is found if, and only if, every key is in this range. SQLite's integrity check does not check the
//! lower bound of the keys, nor what follows the last one. A prefix can also be looked up between the words of two pages,
//! so no key may be there that leads past them: the keys of a segment are in the order of its pages.
//!
//! FTS5 counts what is inserted. It does not subtract what is deleted from a contentless table, so that ranks would
//! depend on removed documents. It is subtracted here.

use std::collections::{HashMap, HashSet};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

/// The bit from which on the row id of a page contains its segment.
const SEGMENT_BIT: i64 = 37;

/// The mask of the row ids of `search_text_data` for the page within its segment.
pub(super) const PAGE: i64 = (1 << SEGMENT_BIT) - 1;

/// The lowest row id of a page; rows before it have other content.
pub(super) const FIRST: i64 = 1 << SEGMENT_BIT;

/// The page number within a segment below which pages contain words; pages of the index of long lists have larger
/// numbers.
const WORDS: i64 = 1 << 31;

/// The bit that the row ids of pages of the index of a long list have; those of the lowest level have no other bit of
/// these.
const LONG_LIST: i64 = 1 << 36;

/// The first segment number whose pages list deleted rows.
const DELETED: i64 = 1 << 16;

/// Returns the number of pages with words that lookups do not find: those of which another page is found for a word, or
/// whose key says that there is an index of a long list when there is none; and of keys that are not in the order of the
/// pages, or lead to none.
pub(super) fn unreachable(connection: &Connection) -> rusqlite::Result<u64> {
    let keys = keys(connection)?;
    let long_lists = long_lists(connection)?;
    let mut statement = connection
        .prepare("SELECT id, block FROM search_text_data WHERE id >= ?1 AND id < ?2 ORDER BY id")?;
    let mut rows = statement.query([FIRST, DELETED << SEGMENT_BIT])?;
    let (mut count, mut current) = (0, None);
    let mut last_pages = HashMap::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let (segment, page) = (id >> SEGMENT_BIT, id & PAGE);
        if page >= WORDS {
            continue;
        }
        // Pages before the first remaining page of a segment were merged; keys that lead to them lead to it.
        let first_page = match current {
            Some((of, first)) if of == segment => first,
            _ => page,
        };
        current = Some((segment, first_page));
        last_pages.insert(segment, page);
        // SQLite's own check reports pages that cannot be read.
        let Some((first, last)) = terms(row.get_ref(1)?.as_blob()?) else { continue };
        let keys = keys.get(&segment).map(Vec::as_slice).unwrap_or_default();
        let (first, last) = (KeyTerm::Word(first), KeyTerm::Word(last));
        let (found, after) = keys.split_at(keys.partition_point(|key| key.term <= first));
        let leads_here = |key: &PageKey| {
            key.page.max(first_page) == page
                && (!key.has_long_list || long_lists.contains(&(segment, key.page)))
        };
        let is_found = found.last().map_or(page == first_page, leads_here)
            && after.iter().take_while(|key| key.term <= last).all(leads_here);
        count += u64::from(!is_found);
    }
    let strays = keys.iter().map(|(segment, keys)| strays(keys, last_pages.get(segment).copied()));
    Ok(count + strays.sum::<u64>())
}

/// Returns the number of keys of a segment, sorted by their terms, that are not in the order of its pages or lead past the
/// last one.
fn strays(keys: &[PageKey], last_page: Option<i64>) -> u64 {
    let beyond = keys.iter().filter(|key| last_page.is_none_or(|last| key.page > last)).count();
    let disordered =
        keys.windows(2).filter(|pair| !pair.is_sorted_by(|one, next| one.page < next.page)).count();
    (beyond + disordered) as u64
}

/// The term of a key, in the order of SQLite: values of other types than the words that are looked up come before them.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum KeyTerm {
    OfAnotherType(Vec<u8>),
    Word(Vec<u8>),
}

/// A row of `search_text_idx`.
struct PageKey {
    term: KeyTerm,
    page: i64,
    /// Whether there is an index of the list of the last word on the page.
    has_long_list: bool,
}

/// Returns the keys of each segment, sorted.
fn keys(connection: &Connection) -> rusqlite::Result<HashMap<i64, Vec<PageKey>>> {
    let mut statement = connection.prepare("SELECT segid, pgno, term FROM search_text_idx")?;
    let mut rows = statement.query([])?;
    let mut keys: HashMap<i64, Vec<PageKey>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(1)?;
        let term = match row.get_ref(2)? {
            ValueRef::Blob(word) => KeyTerm::Word(word.to_vec()),
            ValueRef::Text(text) => KeyTerm::OfAnotherType(text.to_vec()),
            _ => KeyTerm::OfAnotherType(Vec::new()),
        };
        let key = PageKey { term, page: number >> 1, has_long_list: number & 1 == 1 };
        keys.entry(row.get(0)?).or_default().push(key);
    }
    for keys in keys.values_mut() {
        keys.sort_unstable_by(|one, other| one.term.cmp(&other.term));
    }
    Ok(keys)
}

/// Returns the segments and pages that have an index of a long list.
fn long_lists(connection: &Connection) -> rusqlite::Result<HashSet<(i64, i64)>> {
    let sql = "SELECT id FROM search_text_data WHERE id >= ?1 AND id < ?2 AND id & ?3 = ?4";
    let mut statement = connection.prepare(sql)?;
    let of_lowest_level = PAGE & !(WORDS - 1);
    let ids = statement
        .query_map([FIRST, DELETED << SEGMENT_BIT, of_lowest_level, LONG_LIST], |row| row.get::<_, i64>(0))?;
    ids.map(|id| id.map(|id| (id >> SEGMENT_BIT, id & (WORDS - 1)))).collect()
}

/// Returns the first and the last word that begin on a page, or `None` if none does or the page cannot be read.
fn terms(page: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    // Two bytes that do not matter here, the size of the page without its directory, and the words. The directory
    // contains the offset of the first word, then the distance of each word from the preceding one.
    let size = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let mut directory = page.get(size..)?;
    let mut at = varint(&mut directory)?;
    let mut rest = page.get(at..)?;
    let length = varint(&mut rest)?;
    let first = rest.get(..length)?.to_vec();
    let mut term = first.clone();
    while !directory.is_empty() {
        at = at.checked_add(varint(&mut directory)?)?;
        // The length of the prefix shared with the preceding word, and the rest.
        let mut rest = page.get(at..)?;
        let (common, length) = (varint(&mut rest)?, varint(&mut rest)?);
        term.truncate(common);
        term.extend_from_slice(rest.get(..length)?);
    }
    Some((first, term))
}

/// Reads a number in SQLite's varint encoding, as far as its values can occur here.
fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for _ in 0..5 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number = number << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The row of `search_text_data` that contains them.
const AVERAGES: i64 = 1;

/// The row count, followed by the word count of each column. Trailing columns without words may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals(Vec<u64>);

impl Totals {
    /// Returns the totals stored in the index.
    pub(super) fn stored(connection: &Connection) -> rusqlite::Result<Self> {
        let block: Option<Vec<u8>> = connection
            .prepare_cached("SELECT block FROM search_text_data WHERE id = ?1")?
            .query_row([AVERAGES], |row| row.get(0))
            .optional()?;
        Ok(Self::new(varints(&block.unwrap_or_default())))
    }

    /// Computes the totals of all rows that are now in the index.
    pub(super) fn counted(connection: &Connection) -> rusqlite::Result<Self> {
        let mut totals = Vec::new();
        let mut statement = connection.prepare("SELECT sz FROM search_text_docsize")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            add(&mut totals, row.get_ref(0)?.as_blob()?);
        }
        Ok(Self::new(totals))
    }

    /// Computes the totals of the `passages` rows from `first` on.
    pub(super) fn from_rows(connection: &Connection, first: i64, passages: i64) -> rusqlite::Result<Self> {
        let mut totals = Vec::new();
        let mut statement =
            connection.prepare_cached("SELECT sz FROM search_text_docsize WHERE id >= ?1 AND id < ?2")?;
        let mut rows = statement.query([first, first.saturating_add(passages)])?;
        while let Some(row) = rows.next()? {
            add(&mut totals, row.get_ref(0)?.as_blob()?);
        }
        Ok(Self::new(totals))
    }

    /// Subtracts the totals of rows deleted in this transaction from the stored ones.
    pub(super) fn subtract_from_stored(&self, connection: &Connection) -> rusqlite::Result<()> {
        // Until then, FTS5 keeps its own totals in memory, and writes them at the end of the transaction.
        connection.prepare_cached("INSERT INTO search_text (search_text) VALUES ('flush')")?.execute([])?;
        let mut stored = Self::stored(connection)?;
        for (total, removed) in stored.0.iter_mut().zip(&self.0) {
            *total = total.saturating_sub(*removed);
        }
        let mut block = Vec::new();
        for total in &stored.0 {
            write_varint(&mut block, *total);
        }
        connection
            .prepare_cached("UPDATE search_text_data SET block = ?2 WHERE id = ?1")?
            .execute((AVERAGES, block))?;
        Ok(())
    }

    fn new(mut totals: Vec<u64>) -> Self {
        while totals.last() == Some(&0) {
            totals.pop();
        }
        Self(totals)
    }
}

/// Adds a row with these column sizes.
fn add(totals: &mut Vec<u64>, sizes: &[u8]) {
    let row = std::iter::once(1).chain(varints(sizes));
    for (at, size) in row.enumerate() {
        match totals.get_mut(at) {
            Some(total) => *total = total.saturating_add(size),
            None => totals.push(size),
        }
    }
}

/// Decodes the numbers in an FTS5 record. They are varints in SQLite's encoding: seven bits per byte, the highest
/// first, and eight in the ninth.
fn varints(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        let mut number = 0;
        for at in 0..9 {
            let Some((byte, rest)) = bytes.split_first() else { break };
            bytes = rest;
            if at == 8 {
                number = number << 8 | u64::from(*byte);
                break;
            }
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                break;
            }
        }
        numbers.push(number);
    }
    numbers
}

fn write_varint(out: &mut Vec<u8>, number: u64) {
    let mut parts = Vec::new();
    let mut rest = number;
    if number >> 56 != 0 {
        parts.push(u8::try_from(number & 0xff).unwrap_or_default());
        rest >>= 8;
    }
    loop {
        let more = if parts.is_empty() { 0 } else { 0x80 };
        parts.push(u8::try_from(rest & 0x7f).unwrap_or_default() | more);
        rest >>= 7;
        // The ninth byte has eight bits, after eight bytes of seven bits.
        if rest == 0 && (number >> 56 == 0 || parts.len() == 9) {
            break;
        }
    }
    out.extend(parts.iter().rev());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Creates an index with several segments, some of them partly merged.
    fn index() -> Connection {
        let connection = Connection::open_with_flags("", rusqlite::OpenFlags::default()).unwrap();
        connection.execute_batch("CREATE TABLE capture (id INTEGER PRIMARY KEY)").unwrap();
        connection.execute_batch(super::super::SEARCH).unwrap();
        for part in 0..30_u32 {
            connection.execute_batch("BEGIN").unwrap();
            for number in 0..60_u32 {
                let words = (0..20)
                    .map(|word| format!("word{}x ", (part * 1_200 + number * 20 + word) * 7_919 % 36_007));
                let sql = "INSERT INTO search_text (rowid, response) VALUES (?1, ?2)";
                connection.execute(sql, (part * 60 + number + 1, words.collect::<String>())).unwrap();
            }
            connection.execute_batch("COMMIT").unwrap();
        }
        connection.execute("INSERT INTO search_text (search_text, rank) VALUES ('merge', 5)", []).unwrap();
        connection
    }

    #[test]
    fn keys_lead_to_every_page() {
        let connection = index();
        assert_eq!(unreachable(&connection).unwrap(), 0);
        let keys: usize = keys(&connection).unwrap().values().map(Vec::len).sum();
        assert!(keys > 20, "{keys}");
        connection.execute_batch("INSERT INTO search_text (search_text) VALUES ('optimize')").unwrap();
        assert_eq!(unreachable(&connection).unwrap(), 0);
    }

    #[test]
    fn a_key_that_is_missing_or_leads_past_a_word_is_noticed() {
        let last = "(segid, pgno) = (SELECT segid, pgno FROM search_text_idx ORDER BY segid DESC, pgno DESC LIMIT 1)";
        // A key before all words also hides the first page, and is not in the order of the pages.
        for (change, pages) in [
            ("DELETE FROM search_text_idx WHERE", 1),
            ("UPDATE search_text_idx SET term = x'30' WHERE", 3),
            ("UPDATE search_text_idx SET term = x'ff' WHERE", 1),
        ] {
            let connection = index();
            connection.execute_batch("INSERT INTO search_text (search_text) VALUES ('optimize')").unwrap();
            assert_eq!(connection.execute(&format!("{change} {last}"), []).unwrap(), 1);
            assert_eq!(unreachable(&connection).unwrap(), pages, "{change}");
        }
    }

    #[test]
    fn a_key_that_was_added_is_noticed() {
        for (term, page) in [
            // Between two pages, to a page before them, after them, or to none.
            ("(SELECT term FROM search_text_idx WHERE term > x'' ORDER BY term LIMIT 1) || x'00'", "2"),
            ("x''", "200"),
            ("x'ff'", "2"),
            ("x'ff'", "1000000"),
        ] {
            let connection = index();
            connection.execute_batch("INSERT INTO search_text (search_text) VALUES ('optimize')").unwrap();
            let sql = format!(
                "INSERT OR REPLACE INTO search_text_idx SELECT max(segid), CAST({term} AS BLOB), {page} FROM search_text_idx"
            );
            assert_eq!(connection.execute(&sql, []).unwrap(), 1);
            assert!(unreachable(&connection).unwrap() > 0, "{term} {page}");
        }
        let connection = index();
        connection.execute("INSERT INTO search_text_idx VALUES (1000, x'30', 2)", []).unwrap();
        assert_eq!(unreachable(&connection).unwrap(), 1);
    }

    #[test]
    fn keys_of_another_type_or_of_another_page_are_noticed() {
        for change in [
            "UPDATE search_text_idx SET term = CAST(term AS TEXT)",
            "UPDATE search_text_idx SET pgno = pgno | 1",
            "UPDATE search_text_idx SET pgno = pgno + 2",
            "UPDATE search_text_idx SET segid = segid + 1000",
            "DELETE FROM search_text_idx",
            "INSERT INTO search_text_idx SELECT segid, CAST(term || x'00' AS BLOB), pgno + 2 FROM search_text_idx",
        ] {
            let connection = index();
            connection.execute_batch(change).unwrap();
            assert!(unreachable(&connection).unwrap() > 0, "{change}");
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<u64>) {
            let mut bytes = Vec::new();
            for number in &numbers {
                write_varint(&mut bytes, *number);
            }
            prop_assert_eq!(varints(&bytes), numbers);
        }
    }

    #[test]
    fn what_is_deleted_is_subtracted() {
        let connection = Connection::open_with_flags("", rusqlite::OpenFlags::default()).unwrap();
        connection.execute_batch("CREATE TABLE capture (id INTEGER PRIMARY KEY)").unwrap();
        connection.execute_batch(super::super::SEARCH).unwrap();
        assert_eq!(Totals::stored(&connection).unwrap(), Totals::default());
        let insert = |row: i64, words: usize| {
            let sql = "INSERT INTO search_text (rowid, response, tool) VALUES (?1, ?2, 'a tool')";
            connection.execute(sql, (row, "word ".repeat(words))).unwrap();
        };
        for row in 1..200 {
            insert(row, usize::try_from(row).unwrap());
        }
        let same = || Totals::stored(&connection).unwrap() == Totals::counted(&connection).unwrap();
        assert!(same() && Totals::stored(&connection).unwrap().0[0] == 199);
        connection.execute_batch("BEGIN").unwrap();
        insert(300, 7);
        for first in [3, 150, 300] {
            let removed = Totals::from_rows(&connection, first, 2).unwrap();
            for row in [first, first + 1] {
                connection.execute("DELETE FROM search_text WHERE rowid = ?1", [row]).unwrap();
            }
            removed.subtract_from_stored(&connection).unwrap();
        }
        insert(400, 1);
        connection.execute_batch("COMMIT").unwrap();
        assert!(same() && Totals::stored(&connection).unwrap().0[0] == 196);
        connection.execute_batch("INSERT INTO search_text (search_text) VALUES ('optimize')").unwrap();
        assert!(same());
    }
}
