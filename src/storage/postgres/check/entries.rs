//! Entries of the journal that rows are compared with.

use std::collections::HashMap;

use super::DatabaseInspection;
use crate::storage::entry::Entry;
use crate::storage::postgres::columns::{text, value};
use crate::storage::postgres::error::Outcome;
use crate::storage::postgres::session::Session;

/// Entries by their numbers.
pub(in crate::storage::postgres) type Entries = HashMap<i64, Entry>;

/// Returns the time of an entry.
pub(in crate::storage::postgres) fn time_of(entries: &Entries, seq: i64) -> Option<i64> {
    entries.get(&seq).and_then(Entry::milliseconds)
}

impl DatabaseInspection<'_> {
    /// Returns the entries with these numbers, as far as they exist and can be parsed.
    pub(super) fn entries(&self, seqs: Vec<i64>) -> Outcome<Entries> {
        entries(&self.session, seqs)
    }
}

/// Returns the entries with these numbers, as far as they exist and can be parsed.
pub(in crate::storage::postgres) fn entries(session: &Session<'_>, mut seqs: Vec<i64>) -> Outcome<Entries> {
    seqs.sort_unstable();
    seqs.dedup();
    let mut entries = Entries::new();
    let sql = "SELECT seq, entry FROM journal WHERE seq = ANY($1)";
    session.each(sql, &[&seqs], &mut |row| {
        // What cannot be parsed is a finding about the entry.
        if let Some(entry) = text(row, 1).ok().and_then(|text| Entry::parse(&text).ok()) {
            entries.insert(value(row, 0)?, entry);
        }
        Ok(())
    })?;
    Ok(entries)
}
