//! The journal, and the rows of the tables that follow from it.

use rusqlite::Row as SqliteRow;

use super::FileInspection;
use super::scan::TableScan;
use crate::digest::Digest;
use crate::storage::catalog::Row;
use crate::storage::check::finding::{Finding, SURPLUS_ROW, Subject};
use crate::storage::check::{JournalReplay, JournalRow, JournaledTable, UnreadRows};
use crate::storage::sql::{Dialect, differently_derived, journaled_row, journaled_rows};
use crate::storage::sqlite::shared_statements::shared_row;
use crate::storage::sqlite::tombstones::{self, UndeletedArtifact};
use crate::storage::sqlite::{Result, schema};

/// The query for the row ids of artifacts.
const ARTIFACT_IDS: &str =
    "SELECT id FROM artifact INDEXED BY artifact_by_arrival WHERE id >= ?1 ORDER BY id";

/// The query for the row ids of captures.
const CAPTURE_IDS: &str = "SELECT id FROM capture INDEXED BY capture_by_artifact WHERE id >= ?1 ORDER BY id";

impl FileInspection<'_> {
    /// Passes every entry of the journal to `take`. Returns false and adds a finding if it cannot be read.
    pub(super) fn entries(
        &self,
        take: &mut dyn FnMut(JournalRow<'_>),
        findings: &mut Vec<Finding>,
    ) -> Result<bool> {
        let table = Subject::Table("journal".to_owned());
        Ok(self.look(table, findings, || entries(&self.connection, None, take))?.is_some())
    }

    /// Passes the entries of the journal that name a digest to `take`.
    pub(super) fn entries_with(
        &self,
        digest: Digest,
        take: &mut dyn FnMut(JournalRow<'_>),
    ) -> rusqlite::Result<()> {
        entries(&self.connection, Some(digest), take)
    }

    /// Passes the rows of a table to `take`, and returns those that cannot be read.
    pub(super) fn rows_of(
        &self,
        table: JournaledTable,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        let mut found = Vec::new();
        let sql = journaled_rows(Dialect::Sqlite, table);
        let mut visit = |row: &SqliteRow<'_>| {
            let values = shared_row(row)?;
            if let Some(stored) = journaled_row(table, &values)? {
                found.extend(differently_derived(&stored, &values));
                take(stored);
            }
            Ok(())
        };
        let scan = |alias: &str, ids| TableScan {
            table: table.name(),
            sql: format!("{sql} WHERE {alias}.id BETWEEN ?1 AND ?2 ORDER BY {alias}.id"),
            id: 1,
            ids,
        };
        let unread = match table {
            JournaledTable::Artifact => self.scan(&scan("a", ARTIFACT_IDS), findings, visit)?,
            JournaledTable::Capture => self.scan(&scan("c", CAPTURE_IDS), findings, visit)?,
            _ => {
                let subject = Subject::Table(table.name().to_owned());
                let is_whole = self.each_row(&sql, subject, findings, &mut visit)?;
                UnreadRows { numbers: Vec::new(), are_incomplete: !is_whole }
            }
        };
        findings.append(&mut found);
        Ok(unread)
    }
}

/// Reads the whole journal.
pub(in crate::storage::sqlite) fn replay(
    connection: &rusqlite::Connection,
) -> rusqlite::Result<JournalReplay> {
    let mut replay = JournalReplay::begin(None);
    entries(connection, None, &mut |row| replay.take(row))?;
    Ok(replay)
}

/// Passes the entries of the journal to `take`, or only those that name a digest.
fn entries(
    connection: &rusqlite::Connection,
    naming: Option<Digest>,
    take: &mut dyn FnMut(JournalRow<'_>),
) -> rusqlite::Result<()> {
    schema::expect_journal_view(connection)?;
    let mut statement = connection.prepare(
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

impl FileInspection<'_> {
    /// Finds the artifacts that are recorded as removed and whose bytes are still in the vault.
    pub(super) fn undeleted(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let table = Subject::Table("tombstone".to_owned());
        let present =
            self.look(table, &mut findings, || tombstones::undeleted_artifacts(&self.connection))?;
        for UndeletedArtifact { tombstone, owner } in present.unwrap_or_default() {
            let place = match owner {
                Some((kind, core)) => format!("its bytes are in {kind} {core}"),
                None => "its bytes are in the vault, but no artifact has them".to_owned(),
            };
            let detail = format!("tombstone: {}; {place}", tombstone.removal());
            findings.push(Finding::new(SURPLUS_ROW, Subject::Artifact(tombstone.core), detail));
        }
        Ok(findings)
    }
}
