//! Comparison of tags, notes, pins and manual links with the journal entries that set them.

use std::collections::BTreeMap;

use rusqlite::Row;

use super::FileInspection;
use super::replay::entry;
use crate::storage::check::comparison::{AnnotationFacts, JournalComparison, link_subject, signature_facts};
use crate::storage::check::finding::{Finding, Subject};
use crate::storage::check::journal_state::JournalState;
use crate::storage::sqlite::Result;

/// The query and the keys for comparing annotations of one type.
struct SqliteAnnotationQuery<K> {
    sql: &'static str,
    table: &'static str,
    key: fn(&Row<'_>) -> rusqlite::Result<Option<K>>,
    subject: fn(&K) -> Subject,
}

impl FileInspection<'_> {
    pub(super) fn compare_tags(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let tags = SqliteAnnotationQuery {
            sql: "SELECT a.core, NULL, t.at, t.name FROM tag t NOT INDEXED LEFT JOIN artifact a ON a.id = t.artifact",
            table: "tag",
            key: |row| row.get(3).map(Some),
            subject: |name: &String| Subject::Tag(name.clone()),
        };
        self.compare_annotations(&tags, &mut state.tags, findings)
    }

    pub(super) fn compare_notes(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let notes = SqliteAnnotationQuery {
            sql: "SELECT a.core, n.text, n.at FROM note n NOT INDEXED LEFT JOIN artifact a ON a.id = n.artifact",
            table: "note",
            key: |row| row.get(0),
            subject: |core| Subject::Note(*core),
        };
        self.compare_annotations(&notes, &mut state.notes, findings)
    }

    pub(super) fn compare_pins(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let pins = SqliteAnnotationQuery {
            sql: "SELECT a.core, p.note, p.at FROM pin p NOT INDEXED LEFT JOIN artifact a ON a.id = p.artifact",
            table: "pin",
            key: |row| row.get(0),
            subject: |core| Subject::Pin(*core),
        };
        self.compare_annotations(&pins, &mut state.pins, findings)
    }

    pub(super) fn compare_links(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let links = SqliteAnnotationQuery {
            sql: "SELECT s.core, l.note, l.stated_at, l.relation, t.core FROM link l NOT INDEXED
                    LEFT JOIN artifact s ON s.id = l.source LEFT JOIN artifact t ON t.id = l.target",
            table: "link",
            key: |row| {
                let (source, target): (Option<_>, Option<_>) = (row.get(0)?, row.get(4)?);
                let relation: String = row.get(3)?;
                Ok(source.zip(target).map(|(source, target)| (source, relation, target)))
            },
            subject: link_subject,
        };
        self.compare_annotations(&links, &mut state.links, findings)
    }

    /// Compares the recorded signature states with the journal entries that recorded them.
    pub(super) fn compare_signatures(
        &self,
        state: &mut JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let sql = "SELECT b.digest, s.state, s.key_id, a.core FROM signature s NOT INDEXED
                     LEFT JOIN capture c ON c.id = s.capture LEFT JOIN blob b ON b.id = c.blob
                     LEFT JOIN artifact a ON a.id = c.artifact";
        let is_whole = self.each_row(sql, Subject::Table("signature".to_owned()), findings, |row| {
            // A row that refers to a missing capture is a broken reference.
            let (Some(capture), Some(core)) = (row.get(0)?, row.get(3)?) else { return Ok(()) };
            let seq = state.signatures.remove(&(core, capture));
            let entry = seq.map(|seq| entry(&self.connection, seq)).transpose()?;
            let recorded = entry.flatten().as_ref().and_then(signature_facts);
            let stored = (row.get(1)?, row.get(2)?);
            compared.signature(capture, Some(&stored), (seq.is_some(), recorded.as_ref()));
            Ok(())
        })?;
        // Rows that could not be read are not missing.
        if is_whole {
            compared.lost_signatures(state);
        }
        Ok(compared.finish(findings))
    }

    /// Compares the rows of a table with the entries that `expected` names for their keys.
    fn compare_annotations<K: Ord>(
        &self,
        annotations: &SqliteAnnotationQuery<K>,
        expected: &mut BTreeMap<K, i64>,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let table = Subject::Table(annotations.table.to_owned());
        let is_whole = self.each_row(annotations.sql, table, findings, |row| {
            // A row that refers to a missing artifact is a broken reference.
            let Some(key) = (annotations.key)(row)? else { return Ok(()) };
            let stored = AnnotationFacts { core: row.get(0)?, text: row.get(1)?, at: row.get(2)? };
            let seq = expected.remove(&key);
            let recorded = seq.map(|seq| entry(&self.connection, seq)).transpose()?.flatten();
            let set = seq.map(|seq| (seq, recorded.and_then(AnnotationFacts::from_entry)));
            compared.annotation(&(annotations.subject)(&key), &stored, set);
            Ok(())
        })?;
        // Rows that could not be read are not missing.
        if is_whole {
            compared.lost_annotations(expected, annotations.subject);
        }
        Ok(compared.finish(findings))
    }
}
