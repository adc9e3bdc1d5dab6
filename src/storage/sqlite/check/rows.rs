//! The journal, and the rows of the tables that follow from it.

use rusqlite::Row as SqliteRow;

use super::FileInspection;
use super::scan::TableScan;
use crate::digest::Digest;
use crate::storage::catalog::Row;
use crate::storage::check::finding::Finding;
use crate::storage::check::{JournalRow, JournaledTable, UnreadRows};
use crate::storage::sql::{self, Dialect};
use crate::storage::sqlite::shared_statements::shared_row;
use crate::storage::sqlite::{Result, schema};

/// The query for the row ids of artifacts.
const ARTIFACT_IDS: &str =
    "SELECT id FROM artifact INDEXED BY artifact_by_arrival WHERE id >= ?1 ORDER BY id";

/// The query for the row ids of captures.
const CAPTURE_IDS: &str = "SELECT id FROM capture INDEXED BY capture_by_artifact WHERE id >= ?1 ORDER BY id";

impl FileInspection<'_> {
    /// Passes the entries of the journal to `take`, or only those that name a digest.
    pub(super) fn entries(
        &self,
        naming: Option<Digest>,
        take: &mut dyn FnMut(JournalRow<'_>),
    ) -> rusqlite::Result<()> {
        schema::expect_journal_view(&self.connection)?;
        let mut statement = self.connection.prepare(
            "SELECT j.seq, e.entry, j.chain, j.at FROM journal j JOIN journal_entries e ON e.seq = j.seq
              WHERE ?1 IS NULL OR j.core = ?1 OR j.capture = ?1 OR (j.core IS NULL AND instr(j.entry, ?2))
              ORDER BY j.seq",
        )?;
        let mut rows =
            statement.query((naming.as_ref().map(Digest::as_bytes), naming.as_ref().map(Digest::hex)))?;
        while let Some(row) = rows.next()? {
            take(JournalRow {
                seq: row.get(0)?,
                // Text that is not UTF-8 was changed too.
                text: row.get_ref(1)?.as_bytes().ok().and_then(|bytes| std::str::from_utf8(bytes).ok()),
                chain: row.get(2)?,
                at: row.get(3)?,
            });
        }
        Ok(())
    }

    /// Passes the rows of a table to `take`, and returns those that cannot be read.
    pub(super) fn rows_of(
        &self,
        table: JournaledTable,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        let (alias, ids) = match table {
            JournaledTable::Artifact => ("a", ARTIFACT_IDS),
            JournaledTable::Capture => ("c", CAPTURE_IDS),
            _ => return sql::journaled_rows_of(self, table, take, findings),
        };
        let rows = sql::journaled_rows(Dialect::Sqlite, table);
        let scan = TableScan {
            table: table.name(),
            sql: format!("{rows} WHERE {alias}.id BETWEEN ?1 AND ?2 ORDER BY {alias}.id"),
            id: 1,
            ids,
        };
        let mut different = Vec::new();
        let visit =
            |row: &SqliteRow<'_>| Ok(sql::take_journaled(table, &shared_row(row)?, take, &mut different)?);
        let unread = self.scan(&scan, findings, visit)?;
        findings.append(&mut different);
        Ok(unread)
    }
}
