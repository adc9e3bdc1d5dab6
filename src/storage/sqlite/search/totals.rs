//! The total number of rows and words in the index, which FTS5 calls the averages and uses to rank matches.
//!
//! FTS5 counts what is inserted. It does not subtract what is deleted from a contentless table, so that ranks would
//! depend on removed documents. It is subtracted here.

use rusqlite::{Connection, OptionalExtension};

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
