//! The journal, and the rows of the tables that follow from it.

use super::ahead::read_all;
use super::{DatabaseInspection, LARGE_ROWS, ROWS, table};
use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::check::JournalRow;
use crate::storage::check::finding::{BROKEN_CHAIN, DIFFERENT_ROW, Finding, Subject};
use crate::storage::entry::EntryText;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::sql::{SqlRow, SqlSession as _};

/// The recorded end of the journal.
#[derive(PartialEq, Eq)]
struct JournalEndRow {
    id: i64,
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
                    let (seq, at, text) = (row.integer(0)?, row.optional_integer(1)?, row.text(3).ok());
                    // Whatever is no chain value is not the right one.
                    let chain = row.digest(4).unwrap_or(none);
                    take(JournalRow { seq, text: text.as_deref(), chain, at });
                    let written = text.as_deref().and_then(|text| EntryText::action(text).ok());
                    if written.is_some_and(|written| row.as_text(2) != Some(&written)) {
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
        self.session.each(sql, &[digest.hex().into()], &mut |row| {
            take_entry(&row, take);
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
                    let (seq, at, chain) = (row.integer(0)?, row.optional_integer(1)?, row.digest(2)?);
                    Ok(JournalEndRow { id: row.integer(3)?, seq, at, chain })
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

/// Passes an entry to `take` if it can be read.
fn take_entry(row: &SqlRow, take: &mut dyn FnMut(JournalRow<'_>)) {
    if let (Ok(seq), Ok(at), Ok(chain)) = (row.integer(0), row.optional_integer(1), row.digest(3)) {
        take(JournalRow { seq, text: row.as_text(2), chain, at });
    }
}
