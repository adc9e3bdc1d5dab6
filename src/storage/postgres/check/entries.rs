//! Entries of the journal that rows are compared with.

use std::collections::HashMap;

use crate::storage::entry::EntryText;
use crate::storage::postgres::columns::{text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;

/// Entries by their numbers.
pub(in crate::storage::postgres) type EntriesByNumber = HashMap<i64, EntryText>;

/// Returns the entries with these numbers, as far as they exist and can be parsed.
pub(in crate::storage::postgres) fn entries(
    session: &DatabaseTransaction<'_>,
    mut seqs: Vec<i64>,
) -> PostgresResult<EntriesByNumber> {
    seqs.sort_unstable();
    seqs.dedup();
    let mut entries = EntriesByNumber::new();
    let sql = "SELECT seq, entry FROM journal WHERE seq = ANY($1)";
    session.each(sql, &[&seqs], &mut |row| {
        // What cannot be parsed is a finding about the entry.
        if let Some(entry) = text(row, 1).ok().and_then(|text| EntryText::parse(&text).ok()) {
            entries.insert(value(row, 0)?, entry);
        }
        Ok(())
    })?;
    Ok(entries)
}
