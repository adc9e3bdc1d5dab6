//! The size of what a vault stores. Payloads are measured and not read.

use rusqlite::Connection;

use super::{mention_index, search};
use crate::storage::interface::EngineStatistics;

/// Returns the size of what is stored, and of the indexes.
pub(super) fn engine_statistics(connection: &Connection) -> rusqlite::Result<EngineStatistics> {
    let number = |sql| number(connection, sql);
    let page = number("SELECT page_size FROM pragma_page_size")?;
    Ok(EngineStatistics {
        // The length is stored before the value, so long values are not read for this.
        stored_bytes: number(
            "SELECT coalesce(sum(length(bytes) + coalesce(length(digests), 0)), 0) FROM payload",
        )?,
        differences: number("SELECT count(*) FROM payload WHERE base NOT NULL")?,
        dictionaries: number("SELECT count(*) FROM dictionary")?,
        dictionary_bytes: number("SELECT coalesce(sum(length(bytes)), 0) FROM dictionary")?,
        search_bytes: search::size(connection)?,
        file_bytes: page * number("SELECT page_count FROM pragma_page_count")?,
        free_bytes: page * number("SELECT freelist_count FROM pragma_freelist_count")?,
        mentions: mention_index::count(connection)?,
    })
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.query_row(sql, [], |row| row.get(0))
}
