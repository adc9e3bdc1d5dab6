//! Reading the journal for checks.

use rusqlite::{Connection, OptionalExtension};

use crate::digest::Digest;
use crate::storage::check::journal_state::{JournalReplay, JournalRow};
use crate::storage::entry::EntryText;
use crate::storage::sqlite::schema;

/// Reads the whole journal, computes its chain and looks for the entry whose chain value is `since`.
pub(in crate::storage::sqlite) fn replay(
    connection: &Connection,
    since: Option<Digest>,
) -> rusqlite::Result<JournalReplay> {
    let mut replay = JournalReplay::begin(since);
    schema::expect_journal_view(connection)?;
    let mut statement = connection.prepare(
        "SELECT j.seq, e.entry, j.chain, j.at, j.core, j.capture
           FROM journal j JOIN journal_entries e ON e.seq = j.seq ORDER BY j.seq",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (core, capture): (Option<_>, Option<_>) = (row.get(4)?, row.get(5)?);
        let row = JournalRow {
            seq: row.get(0)?,
            // Text that is not UTF-8 was changed too.
            text: row.get_ref(1)?.as_bytes().ok().and_then(|bytes| std::str::from_utf8(bytes).ok()),
            chain: row.get(2)?,
            at: row.get(3)?,
            added: core.zip(capture),
        };
        replay.take(&row, since);
    }
    Ok(replay)
}

/// Returns the entry `seq`, or `None` if there is no such entry or it cannot be parsed.
pub(in crate::storage::sqlite) fn entry(
    connection: &Connection,
    seq: i64,
) -> rusqlite::Result<Option<EntryText>> {
    let text: Option<Option<String>> = connection
        .prepare_cached("SELECT entry FROM journal WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    Ok(text.flatten().and_then(|text| EntryText::parse(&text).ok()))
}
