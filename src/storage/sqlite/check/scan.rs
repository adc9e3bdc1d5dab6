//! Scans of tables of which single rows may be damaged: those do not prevent reading the others.

use rusqlite::Row;

use super::FileInspection;
use crate::storage::check::UnreadRows;
use crate::storage::check::finding::{Finding, Subject, UNREADABLE};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::{Result, StorageError};

/// Maximum number of row ids in a finding.
const LISTED: usize = 10;

/// A scan of a table in the order of its row ids.
pub(super) struct TableScan {
    pub(super) table: &'static str,
    /// The query for the rows with row ids from `?1` to `?2`.
    pub(super) sql: String,
    /// The column of the query that has the row id.
    pub(super) id: usize,
    /// The query for the row ids from `?1` on, which reads an index: those in the table may be out of reach.
    pub(super) ids: &'static str,
}

impl FileInspection<'_> {
    /// Calls `take` with each row that `sql` returns, also after a row whose values are damaged. Returns false and adds a
    /// finding if there was one, or if reading ended early.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub(super) fn each_row(
        &self,
        sql: &str,
        subject: Subject,
        findings: &mut Vec<Finding>,
        mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<bool> {
        let mut damaged = None;
        let read = self.look(subject.clone(), findings, || {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(error) = damage(take(row))? {
                    damaged.get_or_insert(error);
                }
            }
            Ok(())
        })?;
        let is_whole = read.is_some() && damaged.is_none();
        findings.extend(damaged.map(|error| Finding::new(UNREADABLE, subject, error.to_string())));
        Ok(is_whole)
    }

    /// Calls `take` with each row of a table, also after a row or a page that is damaged. Returns the rows that could not be
    /// read, about which it adds findings.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub(super) fn scan(
        &self,
        scan: &TableScan,
        findings: &mut Vec<Finding>,
        mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<UnreadRows> {
        let subject = || Subject::Table(scan.table.to_owned());
        let failed = |error| StorageError::from_sqlite(self.path, error);
        let (mut unread, mut cause) = (UnreadRows::default(), None);
        let mut next = i64::MIN;
        let read = self.look(subject(), findings, || {
            let mut statement = self.connection.prepare(&scan.sql)?;
            let mut rows = statement.query((i64::MIN, i64::MAX))?;
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(scan.id)?;
                next = id.saturating_add(1);
                if let Some(error) = damage(take(row))? {
                    unread.numbers.push(id);
                    cause.get_or_insert(error);
                }
            }
            Ok(())
        })?;
        if read.is_none() {
            let ids = || {
                let mut statement = self.connection.prepare(scan.ids)?;
                statement.query_map([next], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()
            };
            let ids = match ids() {
                Err(error) if is_damage(&error) => {
                    unread.are_incomplete = true;
                    Vec::new()
                }
                ids => ids.map_err(failed)?,
            };
            for id in ids {
                let row = self.connection.prepare_cached(&scan.sql).and_then(|mut row| {
                    let mut rows = row.query((id, id))?;
                    rows.next()?.map_or(Ok(()), &mut take)
                });
                if let Some(error) = damage(row).map_err(failed)? {
                    unread.numbers.push(id);
                    cause.get_or_insert(error);
                }
            }
        }
        if let Some(error) = cause {
            findings.push(Finding::new(
                UNREADABLE,
                subject(),
                format!("{}: {error}", named(&unread.numbers)),
            ));
        }
        Ok(unread)
    }
}

/// Returns the error if it is caused by damage.
fn damage(outcome: rusqlite::Result<()>) -> rusqlite::Result<Option<rusqlite::Error>> {
    match outcome {
        Err(error) if is_damage(&error) => Ok(Some(error)),
        outcome => outcome.map(|()| None),
    }
}

/// Returns row ids for a finding.
fn named(ids: &[i64]) -> String {
    let listed: Vec<String> = ids.iter().take(LISTED).map(i64::to_string).collect();
    let listed = listed.join(", ");
    match ids.len() {
        1 => format!("row {listed}"),
        count if count > LISTED => format!("rows {listed} and {} more", count - LISTED),
        _ => format!("rows {listed}"),
    }
}
