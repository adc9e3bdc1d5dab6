//! Comparison of tags, notes, pins, labels and manual links with the journal entries that set them.

use std::collections::BTreeMap;
use std::sync::Arc;

use postgres::Row;

use super::{DatabaseInspection, LARGE_ROWS, ROWS, read_all, table};
use crate::digest::CoreHash;
use crate::storage::Result;
use crate::storage::check::CatalogCounts;
use crate::storage::check::comparison::{AnnotationFacts, JournalComparison, link_subject};
use crate::storage::check::finding::{Finding, INDEX_MISSING, Subject};
use crate::storage::check::journal_state::{JournalLinkKey, JournalState};
use crate::storage::postgres::columns::{core, optional_text, text, value};
use crate::storage::postgres::error::PostgresResult;

/// The query and the keys for comparing annotations of one type. The rows begin with the artifact, the text and the time.
/// Rows that refer to missing artifacts are broken references.
struct AnnotationTableQuery<K> {
    sql: &'static str,
    table: &'static str,
    key: fn(&Row) -> PostgresResult<K>,
    subject: fn(&K) -> Subject,
}

const TAGS: AnnotationTableQuery<String> = AnnotationTableQuery {
    sql: "SELECT a.core, NULL::text, t.at, t.name FROM tag t JOIN artifact a ON a.id = t.artifact",
    table: "tag",
    key: |row| text(row, 3),
    subject: |name| Subject::Tag(name.clone()),
};

const NOTES: AnnotationTableQuery<CoreHash> = AnnotationTableQuery {
    sql: "SELECT a.core, n.text, n.at FROM note n JOIN artifact a ON a.id = n.artifact",
    table: "note",
    key: |row| core(row, 0),
    subject: |core| Subject::Note(*core),
};

const PINS: AnnotationTableQuery<CoreHash> = AnnotationTableQuery {
    sql: "SELECT a.core, p.note, p.at FROM pin p JOIN artifact a ON a.id = p.artifact",
    table: "pin",
    key: |row| core(row, 0),
    subject: |core| Subject::Pin(*core),
};

const LINKS: AnnotationTableQuery<JournalLinkKey> = AnnotationTableQuery {
    sql: "SELECT s.core, l.note, l.at, l.relation, t.core
            FROM link l JOIN artifact s ON s.id = l.source JOIN artifact t ON t.id = l.target",
    table: "link",
    key: |row| Ok((core(row, 0)?, text(row, 3)?, core(row, 4)?)),
    subject: link_subject,
};

impl DatabaseInspection<'_> {
    /// Compares everything that people set with the journal.
    pub(super) fn compare_annotations(
        &self,
        state: &mut JournalState,
        counts: &mut CatalogCounts,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        counts.tags = self.compare_rows(&TAGS, &mut state.tags, findings)?;
        counts.notes = self.compare_rows(&NOTES, &mut state.notes, findings)?;
        self.compare_folded(findings)?;
        counts.pins = self.compare_rows(&PINS, &mut state.pins, findings)?;
        counts.labels = self.compare_labels(state, findings)?;
        counts.links = self.compare_rows(&LINKS, &mut state.links, findings)?;
        Ok(())
    }

    /// Compares the rows of a table with the entries that `expected` names for their keys.
    fn compare_rows<K: Ord>(
        &self,
        of: &AnnotationTableQuery<K>,
        expected: &mut BTreeMap<K, i64>,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let read = self.look(table(of.table), findings, || {
            self.scan(of.sql, LARGE_ROWS, &mut |rows| {
                let rows = read_all(rows, &table(of.table), &mut compared.found, |row| {
                    let (core, text) = (Some(core(row, 0)?), optional_text(row, 1)?);
                    Ok(((of.key)(row)?, AnnotationFacts { core, text, at: Some(value(row, 2)?) }))
                });
                let rows: Vec<_> =
                    rows.into_iter().map(|(key, row)| (expected.remove(&key), key, row)).collect();
                let mut recorded = self.entries(rows.iter().filter_map(|(seq, ..)| *seq).collect())?;
                for (seq, key, stored) in rows {
                    let set =
                        seq.map(|seq| (seq, recorded.remove(&seq).and_then(AnnotationFacts::from_entry)));
                    compared.annotation(&(of.subject)(&key), &stored, set);
                }
                Ok(())
            })
        })?;
        // Rows that could not be read are not missing.
        if read.is_some() {
            compared.lost_annotations(expected, of.subject);
        }
        Ok(compared.finish(findings))
    }

    /// Compares the form in which notes are searched with their texts.
    fn compare_folded(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut compared = JournalComparison::default();
        self.look(table("note"), findings, || {
            let sql = "SELECT a.core, n.text, n.folded FROM note n JOIN artifact a ON a.id = n.artifact";
            self.scan(sql, LARGE_ROWS, &mut |rows| {
                for row in rows {
                    // A text that cannot be read is reported already.
                    let (Ok(core), Ok(text)) = (core(row, 0), text(row, 1)) else { continue };
                    if text.to_lowercase().as_bytes() != value::<&[u8]>(row, 2)? {
                        let detail = "the form in which it is searched does not match its text";
                        compared.found.push(Finding::new(INDEX_MISSING, Subject::Note(core), detail));
                    }
                }
                Ok(())
            })
        })?;
        compared.finish(findings);
        Ok(())
    }

    fn compare_labels(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let read = self.look(table("label"), findings, || {
            let sql = "SELECT a.core, l.key, l.value, l.at FROM label l JOIN artifact a ON a.id = l.artifact";
            self.scan(sql, ROWS, &mut |rows| {
                let rows = read_all(rows, &table("label"), &mut compared.found, |row| {
                    let key: (_, Arc<str>) = (core(row, 0)?, text(row, 1)?.into());
                    Ok((key, text(row, 2)?, value(row, 3)?))
                });
                for (key, value, at) in rows {
                    compared.label(state, &key, (&value, at));
                }
                Ok(())
            })
        })?;
        if read.is_some() {
            compared.lost_labels(state);
        }
        Ok(compared.finish(findings))
    }
}
