//! The journal, and the rows of the tables that follow from it.

use postgres::Row as PostgresRow;

use super::ahead::read_all;
use super::{DatabaseInspection, LARGE_ROWS, ROWS, table};
use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::check::JournalRow;
use crate::storage::check::finding::{BROKEN_CHAIN, DIFFERENT_ROW, Finding, Subject};
use crate::storage::entry::EntryText;
use crate::storage::postgres::columns::{digest, text, value};
use crate::storage::postgres::error::PostgresResult;

/// The recorded end of the journal.
#[derive(PartialEq, Eq)]
struct JournalEndRow {
    id: i16,
    seq: i64,
    at: Option<i64>,
    chain: Digest,
}

impl DatabaseInspection<'_> {
    /// Passes every entry of the journal to `take`, and compares what is stored beside the texts with them. Returns false and
    /// adds a finding if the journal cannot be read.
    pub(super) fn entries_of_journal(
        &self,
        take: &mut dyn FnMut(JournalRow<'_>),
        findings: &mut Vec<Finding>,
    ) -> Result<bool> {
        let mut found = Vec::new();
        let none = Digest::from_bytes([0; 32]);
        let mut last = JournalEndRow { id: 1, seq: 0, at: None, chain: none };
        let read = self.look(table("journal"), findings, || {
            let sql = "SELECT seq, at, action, entry, chain FROM journal ORDER BY seq";
            self.scan(sql, LARGE_ROWS, &mut |rows| {
                for row in rows {
                    let (seq, at, text) = (value(row, 0)?, value(row, 1)?, text(row, 3).ok());
                    // Whatever is no chain value is not the right one.
                    let chain = digest(row, 4).unwrap_or(none);
                    take(JournalRow { seq, text: text.as_deref(), chain, at });
                    let written = text.as_deref().and_then(|text| EntryText::action(text).ok());
                    if written.is_some_and(|written| value::<&str>(row, 2).ok() != Some(written.as_str())) {
                        let detail = "journal: action differs from the one in its text";
                        found.push(Finding::new(DIFFERENT_ROW, Subject::Entry(seq), detail));
                    }
                    last = JournalEndRow { id: 1, seq, at, chain };
                }
                Ok(())
            })
        })?;
        findings.append(&mut found);
        if read.is_none() {
            return Ok(false);
        }
        self.compare_head(&last, findings)?;
        Ok(true)
    }

    /// Passes the entries that name a digest and can be read to `take`.
    pub(super) fn entries_with(
        &self,
        digest: Digest,
        take: &mut dyn FnMut(JournalRow<'_>),
    ) -> PostgresResult<()> {
        let sql = "SELECT seq, at, entry, chain FROM journal WHERE position($1 IN entry) > 0 ORDER BY seq";
        self.session.each(sql, &[&digest.hex()], &mut |row| {
            take_entry(row, take);
            Ok(())
        })
    }

    /// Compares the recorded end of the journal with its last entry.
    fn compare_head(&self, last: &JournalEndRow, findings: &mut Vec<Finding>) -> Result<()> {
        let mut heads = Vec::new();
        let mut found = Vec::new();
        let read = self.look(table("head"), findings, || {
            self.scan("SELECT seq, at, chain, id FROM head", ROWS, &mut |rows| {
                heads.extend(read_all(rows, &table("head"), &mut found, |row| {
                    let (seq, at, chain) = (value(row, 0)?, value(row, 1)?, digest(row, 2)?);
                    Ok(JournalEndRow { id: value(row, 3)?, seq, at, chain })
                }));
                Ok(())
            })
        })?;
        findings.append(&mut found);
        if read.is_some() && !matches!(&heads[..], [only] if only == last) {
            let detail = format!("it does not name entry {}, the last one", last.seq);
            findings.push(Finding::new(BROKEN_CHAIN, table("head"), detail));
        }
        Ok(())
    }
}

/// Passes an entry to `take`, and returns whether it can be read.
fn take_entry(row: &PostgresRow, take: &mut dyn FnMut(JournalRow<'_>)) -> bool {
    let (Ok(seq), Ok(at), Ok(chain)) = (value(row, 0), value(row, 1), digest(row, 3)) else { return false };
    take(JournalRow { seq, text: text(row, 2).ok().as_deref(), chain, at });
    true
}
