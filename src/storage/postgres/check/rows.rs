//! The journal, and the rows of the tables that follow from it.

use std::collections::HashMap;

use postgres::Row as PostgresRow;

use super::{DatabaseInspection, LARGE_ROWS, ROWS, read_all, table};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::check::finding::{BROKEN_CHAIN, DIFFERENT_ROW, Finding, Subject};
use crate::storage::check::{JournalReplay, JournalRow, JournaledTable, UnreadRows};
use crate::storage::entry::EntryText;
use crate::storage::postgres::columns::{capture, core, digest, optional_text, text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::snapshot::journal::{TOMBSTONE, tombstone};
use crate::storage::seal::seal;
use crate::storage::{Result, Tombstone};

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

    /// Passes the rows of a table to `take`. Those that cannot be read are findings.
    pub(super) fn rows_of(
        &self,
        of: JournaledTable,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        let (mut found, mut different) = (Vec::new(), Vec::new());
        let read = self.look(table(of.name()), findings, || {
            self.scan(&query(of), LARGE_ROWS, &mut |rows| {
                if of == JournaledTable::Tombstone {
                    let tombstones = read_all(rows, &table(of.name()), &mut found, tombstone);
                    return self.compare_tombstones(tombstones, &mut different, take);
                }
                different.extend(rows.iter().filter_map(|row| stored_differently(of, row)));
                read_all(rows, &table(of.name()), &mut found, |row| read(of, row))
                    .into_iter()
                    .for_each(&mut *take);
                Ok(())
            })
        })?;
        findings.append(&mut different);
        findings.append(&mut found);
        Ok(UnreadRows { numbers: Vec::new(), are_incomplete: read.is_none() })
    }

    /// Passes tombstones to `take`, and compares the columns that they have from their entries with those.
    fn compare_tombstones(
        &self,
        stored: Vec<Tombstone>,
        different: &mut Vec<Finding>,
        take: &mut dyn FnMut(Row),
    ) -> PostgresResult<()> {
        let seqs = stored.iter().map(|tombstone| tombstone.entry.cast_signed()).collect();
        let recorded = entries(&self.session, seqs)?;
        for tombstone in stored {
            let entry = recorded.get(&tombstone.entry.cast_signed());
            let right = |entry| Tombstone::from_text(entry, tombstone.digest, tombstone.entry);
            if entry.is_some_and(|entry| right(entry).as_ref() != Some(&tombstone)) {
                let detail = format!("tombstone: it is not what entry {} says", tombstone.entry);
                different.push(Finding::new(DIFFERENT_ROW, Subject::Tombstone(tombstone.digest), detail));
            }
            let Tombstone { digest, core, entry, .. } = tombstone;
            take(Row::Tombstone { digest, core, entry });
        }
        Ok(())
    }
}

/// Returns the query for the rows of a table that refer to no missing row.
fn query(of: JournaledTable) -> String {
    let sql = match of {
        JournaledTable::Artifact => {
            "SELECT a.core, a.id, k.name, a.added_at, a.seen_at, a.arrival FROM artifact a LEFT JOIN kind k ON k.id = a.kind"
        }
        JournaledTable::Capture => {
            "SELECT a.core, c.id, c.digest, c.size, c.added_at, c.seen_at, c.source_path, c.seal
               FROM capture c JOIN artifact a ON a.id = c.artifact"
        }
        // A key without a state is not what was recorded either.
        JournaledTable::Signature => {
            "SELECT a.core, c.digest, coalesce(c.signature, ''), c.key_id FROM capture c JOIN artifact a ON a.id = c.artifact
              WHERE c.signature IS NOT NULL OR c.key_id IS NOT NULL"
        }
        JournaledTable::Tag => "SELECT a.core, t.name, t.at FROM tag t JOIN artifact a ON a.id = t.artifact",
        JournaledTable::Note => {
            "SELECT a.core, n.text, n.at, n.folded FROM note n JOIN artifact a ON a.id = n.artifact"
        }
        JournaledTable::Pin => "SELECT a.core, p.note, p.at FROM pin p JOIN artifact a ON a.id = p.artifact",
        JournaledTable::Label => {
            "SELECT a.core, l.key, l.value, l.at FROM label l JOIN artifact a ON a.id = l.artifact"
        }
        JournaledTable::Link => {
            "SELECT s.core, l.relation, t.core, l.note, l.at
               FROM link l JOIN artifact s ON s.id = l.source JOIN artifact t ON t.id = l.target"
        }
        JournaledTable::Tombstone => {
            return format!("SELECT {TOMBSTONE} FROM tombstone t ORDER BY t.entry, t.digest");
        }
    };
    sql.to_owned()
}

/// Returns a row of a table other than that of tombstones.
fn read(of: JournaledTable, row: &PostgresRow) -> PostgresResult<Row> {
    let core = core(row, 0)?;
    Ok(match of {
        JournaledTable::Artifact => Row::Artifact {
            core,
            entry: value::<i64>(row, 1)?.cast_unsigned(),
            kind: optional_text(row, 2)?.unwrap_or_default(),
            added_at: value(row, 3)?,
            seen_at: value(row, 4)?,
            arrival: value(row, 5)?,
        },
        JournaledTable::Capture => Row::Capture {
            core,
            capture: capture(row, 2)?,
            entry: value::<i64>(row, 1)?.cast_unsigned(),
            size: value::<i64>(row, 3)?.cast_unsigned(),
            added_at: value(row, 4)?,
            seen_at: value(row, 5)?,
            source_path: optional_text(row, 6)?,
        },
        JournaledTable::Signature => Row::Signature {
            core,
            capture: capture(row, 1)?,
            state: text(row, 2)?,
            key_id: optional_text(row, 3)?,
        },
        JournaledTable::Tag => Row::Tag { core, name: text(row, 1)?, at: value(row, 2)? },
        JournaledTable::Note => Row::Note { core, text: text(row, 1)?, at: value(row, 2)? },
        JournaledTable::Pin => Row::Pin { core, note: optional_text(row, 1)?, at: value(row, 2)? },
        JournaledTable::Label => {
            Row::Label { core, key: text(row, 1)?, value: text(row, 2)?, at: value(row, 3)? }
        }
        JournaledTable::Link | JournaledTable::Tombstone => {
            let target = crate::storage::postgres::columns::core(row, 2)?;
            let (relation, note, at) = (text(row, 1)?, optional_text(row, 3)?, value(row, 4)?);
            Row::Link { source: core, relation, target, note, at }
        }
    })
}

/// Returns a finding if what is derived from the other columns of a row differs from them. What cannot be read is a finding
/// already.
fn stored_differently(of: JournaledTable, row: &PostgresRow) -> Option<Finding> {
    let owner: CoreHash = core(row, 0).ok()?;
    match of {
        JournaledTable::Capture => {
            let hash: CaptureHash = capture(row, 2).ok()?;
            let is_right = value::<&[u8]>(row, 7).is_ok_and(|stored| stored == seal(owner, hash));
            let detail = "capture: seal is not that of its artifact";
            (!is_right).then(|| Finding::new(DIFFERENT_ROW, Subject::Capture(hash), detail))
        }
        JournaledTable::Note => {
            let text = text(row, 1).ok()?.to_lowercase();
            let is_right = value::<&[u8]>(row, 3).is_ok_and(|stored| stored == text.as_bytes());
            let detail = "note: folded, in which it is searched, differs from its text";
            (!is_right).then(|| Finding::new(DIFFERENT_ROW, Subject::Artifact(owner), detail))
        }
        _ => None,
    }
}

/// Reads the whole journal, or returns `None` if an entry cannot be read.
pub(in crate::storage::postgres) fn replay(
    session: &DatabaseTransaction<'_>,
) -> PostgresResult<Option<JournalReplay>> {
    let mut replay = JournalReplay::begin(None);
    let mut is_readable = true;
    session.each("SELECT seq, at, entry, chain FROM journal ORDER BY seq", &[], &mut |row| {
        is_readable &= take_entry(row, &mut |row| replay.take(row));
        Ok(())
    })?;
    Ok(is_readable.then_some(replay))
}

/// Passes an entry to `take`, and returns whether it can be read.
fn take_entry(row: &PostgresRow, take: &mut dyn FnMut(JournalRow<'_>)) -> bool {
    let (Ok(seq), Ok(at), Ok(chain)) = (value(row, 0), value(row, 1), digest(row, 3)) else { return false };
    take(JournalRow { seq, text: text(row, 2).ok().as_deref(), chain, at });
    true
}

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
