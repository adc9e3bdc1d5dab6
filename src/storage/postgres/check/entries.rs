//! What entries of the journal record of rows.

use std::collections::HashMap;

use chrono::DateTime;
use postgres::types::Type;
use serde::Deserialize;

use super::DatabaseInspection;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::postgres::columns::{text, value};
use crate::storage::postgres::error::Outcome;

/// The members of entries that rows are compared with. Each action has some of them.
#[derive(Debug, Deserialize)]
pub(super) struct Recorded {
    at: String,
    core: Option<CoreHash>,
    source: Option<CoreHash>,
    pub(super) capture: Option<CaptureHash>,
    pub(super) kind: Option<String>,
    pub(super) source_path: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) note: Option<String>,
    pub(super) state: Option<String>,
    pub(super) key_id: Option<String>,
    pub(super) actor: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) left: Option<u64>,
}

impl Recorded {
    /// Returns the artifact that the entry is about: of a link, its source.
    pub(super) fn core(&self) -> Option<CoreHash> {
        self.core.or(self.source)
    }

    /// Returns the time in milliseconds since 1970, if it is a valid one.
    pub(super) fn milliseconds(&self) -> Option<i64> {
        DateTime::parse_from_rfc3339(&self.at).ok().map(|at| at.timestamp_millis())
    }
}

/// Entries by their numbers.
pub(super) type Entries = HashMap<i64, Recorded>;

/// Returns the time of an entry.
pub(super) fn time_of(entries: &Entries, seq: i64) -> Option<i64> {
    entries.get(&seq).and_then(Recorded::milliseconds)
}

impl DatabaseInspection<'_> {
    /// Returns the entries with these numbers, as far as they exist and can be parsed.
    pub(super) fn entries(&self, mut seqs: Vec<i64>) -> Outcome<Entries> {
        seqs.sort_unstable();
        seqs.dedup();
        let mut entries = Entries::new();
        let sql = "SELECT seq, entry FROM journal WHERE seq = ANY($1)";
        self.session.each(sql, &[(&seqs, Type::INT8_ARRAY)], |row| {
            // What cannot be parsed is a finding about the entry.
            if let Some(recorded) = text(row, 1).ok().and_then(|text| serde_json::from_str(&text).ok()) {
                entries.insert(value(row, 0)?, recorded);
            }
            Ok(())
        })?;
        Ok(entries)
    }
}
