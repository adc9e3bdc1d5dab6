//! The journal, and the rows of the tables that follow from it.

use rusqlite::Row as SqliteRow;

use super::FileInspection;
use super::captures::ARTIFACT_IDS;
use super::scan::TableScan;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::check::finding::{DIFFERENT_ROW, Finding, SURPLUS_ROW, Subject};
use crate::storage::check::{JournalReplay, JournalRow, JournaledTable, UnreadRows};
use crate::storage::seal::seal;
use crate::storage::sqlite::tombstones::{self, UndeletedArtifact};
use crate::storage::sqlite::{Result, schema};

/// Artifacts.
const ARTIFACTS: TableScan = TableScan {
    table: "artifact",
    // Not through an index, which may be incomplete.
    sql: "SELECT a.id, a.core, k.name, a.added_at, a.seen_at, a.arrival FROM artifact a NOT INDEXED
            LEFT JOIN kind k ON k.id = a.kind WHERE a.id BETWEEN ?1 AND ?2 ORDER BY a.id",
    ids: ARTIFACT_IDS,
};

/// Captures. An entry that does not have the path of the capture has none.
const CAPTURES: TableScan = TableScan {
    table: "capture",
    sql: "SELECT c.id, a.core, b.digest, c.size, c.added_at, c.seen_at,
                 iif(c.source_entry IS NULL, NULL, coalesce(j.source_path, '')), c.seal
            FROM capture c NOT INDEXED LEFT JOIN artifact a ON a.id = c.artifact LEFT JOIN blob b ON b.id = c.blob
            LEFT JOIN journal j ON j.seq = c.source_entry AND j.core = a.core AND j.capture = b.digest
           WHERE c.id BETWEEN ?1 AND ?2 ORDER BY c.id",
    ids: "SELECT id FROM capture INDEXED BY capture_by_artifact WHERE id >= ?1 ORDER BY id",
};

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
        let mut visit = |row: &SqliteRow<'_>| {
            let read = read(table, row)?;
            if let Some(Row::Capture { core, capture, .. }) = &read
                && row.get_ref(7)?.as_blob()? != seal(*core, *capture)
            {
                let subject = Subject::Capture(*capture);
                found.push(Finding::new(DIFFERENT_ROW, subject, "capture: seal is not that of its artifact"));
            }
            if let Some(row) = read {
                take(row);
            }
            Ok(())
        };
        let unread = match table {
            JournaledTable::Artifact => self.scan(&ARTIFACTS, findings, visit)?,
            JournaledTable::Capture => self.scan(&CAPTURES, findings, visit)?,
            _ => {
                let subject = Subject::Table(table.name().to_owned());
                let is_whole = self.each_row(query(table), subject, findings, &mut visit)?;
                UnreadRows { numbers: Vec::new(), are_incomplete: !is_whole }
            }
        };
        findings.append(&mut found);
        Ok(unread)
    }
}

/// Returns the query for the rows of a table without row ids.
fn query(table: JournaledTable) -> &'static str {
    match table {
        JournaledTable::Artifact => ARTIFACTS.sql,
        JournaledTable::Capture => CAPTURES.sql,
        JournaledTable::Signature => {
            "SELECT a.core, b.digest, s.state, s.key_id FROM signature s NOT INDEXED
               LEFT JOIN capture c ON c.id = s.capture LEFT JOIN blob b ON b.id = c.blob
               LEFT JOIN artifact a ON a.id = c.artifact"
        }
        JournaledTable::Tag => {
            "SELECT a.core, t.name, t.at FROM tag t NOT INDEXED LEFT JOIN artifact a ON a.id = t.artifact"
        }
        JournaledTable::Note => {
            "SELECT a.core, n.text, n.at FROM note n NOT INDEXED LEFT JOIN artifact a ON a.id = n.artifact"
        }
        JournaledTable::Pin => {
            "SELECT a.core, p.note, p.at FROM pin p NOT INDEXED LEFT JOIN artifact a ON a.id = p.artifact"
        }
        JournaledTable::Label => {
            "SELECT a.core, v.key, v.value, l.at FROM label l NOT INDEXED
               LEFT JOIN artifact a ON a.id = l.artifact LEFT JOIN label_value v ON v.id = l.value"
        }
        JournaledTable::Link => {
            "SELECT s.core, l.relation, t.core, l.note, l.stated_at FROM link l NOT INDEXED
               LEFT JOIN artifact s ON s.id = l.source LEFT JOIN artifact t ON t.id = l.target"
        }
        JournaledTable::Tombstone => {
            "SELECT t.digest, t.entry, j.entry ->> 'core' FROM tombstone t NOT INDEXED
               LEFT JOIN journal j ON j.seq = t.entry"
        }
    }
}

/// Reads a row. Returns `None` if it refers to a missing one, which is found as that.
fn read(table: JournaledTable, row: &SqliteRow<'_>) -> rusqlite::Result<Option<Row>> {
    if table == JournaledTable::Tombstone {
        // An entry that removes nothing names no artifact.
        let core: Option<String> = row.get(2)?;
        let core = core.and_then(|core| core.parse().ok()).map_or(CoreHash(row.get(0)?), CoreHash);
        let entry = row.get::<_, i64>(1)?.cast_unsigned();
        return Ok(Some(Row::Tombstone { digest: row.get(0)?, core, entry }));
    }
    let is_numbered = matches!(table, JournaledTable::Artifact | JournaledTable::Capture);
    let core: Option<CoreHash> = row.get(usize::from(is_numbered))?;
    let Some(core) = core else { return Ok(None) };
    Ok(Some(match table {
        JournaledTable::Artifact => Row::Artifact {
            core,
            entry: row.get::<_, i64>(0)?.cast_unsigned(),
            // A damaged name is another one.
            kind: row.get::<_, Option<String>>(2).unwrap_or_default().unwrap_or_default(),
            added_at: row.get(3)?,
            seen_at: row.get(4)?,
            arrival: row.get(5)?,
        },
        JournaledTable::Capture => {
            let Some(capture) = row.get(2)? else { return Ok(None) };
            Row::Capture {
                core,
                capture,
                entry: row.get::<_, i64>(0)?.cast_unsigned(),
                size: row.get::<_, i64>(3)?.cast_unsigned(),
                added_at: row.get(4)?,
                seen_at: row.get(5)?,
                source_path: row.get(6)?,
            }
        }
        JournaledTable::Signature => {
            let capture: Option<CaptureHash> = row.get(1)?;
            let Some(capture) = capture else { return Ok(None) };
            Row::Signature { core, capture, state: row.get(2)?, key_id: row.get(3)? }
        }
        JournaledTable::Tag => Row::Tag { core, name: row.get(1)?, at: row.get(2)? },
        JournaledTable::Note => Row::Note { core, text: row.get(1)?, at: row.get(2)? },
        JournaledTable::Pin => Row::Pin { core, note: row.get(1)?, at: row.get(2)? },
        JournaledTable::Label => {
            let key: Option<String> = row.get(1)?;
            let Some(key) = key else { return Ok(None) };
            Row::Label { core, key, value: row.get(2)?, at: row.get(3)? }
        }
        JournaledTable::Link => {
            let target: Option<CoreHash> = row.get(2)?;
            let Some(target) = target else { return Ok(None) };
            let (relation, note, at) = (row.get(1)?, row.get(3)?, row.get(4)?);
            Row::Link { source: core, relation, target, note, at }
        }
        JournaledTable::Tombstone => return Ok(None),
    }))
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
