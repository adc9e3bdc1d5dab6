//! Comparison of tags, notes, pins, labels and manual links with the journal entries that set them.

use std::collections::BTreeMap;
use std::sync::Arc;

use postgres::Row;

use super::catalog::append_sorted;
use super::entries::Recorded;
use super::{DatabaseInspection, LARGE_ROWS, ROWS, read_all, table};
use crate::digest::CoreHash;
use crate::storage::Result;
use crate::storage::check::CatalogCounts;
use crate::storage::check::finding::{
    ANNOTATION_DIFFERS, ANNOTATION_LOST, ANNOTATION_UNRECORDED, Finding, INDEX_MISSING, Subject,
};
use crate::storage::check::journal_state::{JournalState, LabelEntry, LinkKey};
use crate::storage::postgres::columns::{core, optional_text, text, value};
use crate::storage::postgres::error::Outcome;

/// An annotation as stored, in the form that the journal records.
struct Annotation<K> {
    key: K,
    /// The artifact, or the source of a link.
    core: CoreHash,
    text: Option<String>,
    at: i64,
}

/// The query and the keys for comparing annotations of one type. The rows begin with the artifact, the text and the time.
/// Rows that refer to missing artifacts are broken references.
struct Annotations<K> {
    sql: &'static str,
    table: &'static str,
    key: fn(&Row) -> Outcome<K>,
    subject: fn(&K) -> Subject,
}

const TAGS: Annotations<String> = Annotations {
    sql: "SELECT a.core, NULL::text, t.at, t.name FROM tag t JOIN artifact a ON a.id = t.artifact",
    table: "tag",
    key: |row| text(row, 3),
    subject: |name| Subject::Tag(name.clone()),
};

const NOTES: Annotations<CoreHash> = Annotations {
    sql: "SELECT a.core, n.text, n.at FROM note n JOIN artifact a ON a.id = n.artifact",
    table: "note",
    key: |row| core(row, 0),
    subject: |core| Subject::Note(*core),
};

const PINS: Annotations<CoreHash> = Annotations {
    sql: "SELECT a.core, p.note, p.at FROM pin p JOIN artifact a ON a.id = p.artifact",
    table: "pin",
    key: |row| core(row, 0),
    subject: |core| Subject::Pin(*core),
};

const LINKS: Annotations<LinkKey> = Annotations {
    sql: "SELECT s.core, l.note, l.at, l.relation, t.core
            FROM link l JOIN artifact s ON s.id = l.source JOIN artifact t ON t.id = l.target",
    table: "link",
    key: |row| Ok((core(row, 0)?, text(row, 3)?, core(row, 4)?)),
    subject: |(source, relation, target)| Subject::Link {
        source: *source,
        relation: relation.clone(),
        target: *target,
    },
};

/// A label as stored.
struct LabelRow {
    core: CoreHash,
    key: Arc<str>,
    value: String,
    at: i64,
}

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
        of: &Annotations<K>,
        expected: &mut BTreeMap<K, i64>,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let mut count = 0;
        let mut found = Vec::new();
        let read = self.look(table(of.table), findings, || {
            self.scan(of.sql, LARGE_ROWS, |rows| {
                let rows = read_all(rows, &table(of.table), &mut found, |row| {
                    let (key, core) = ((of.key)(row)?, core(row, 0)?);
                    Ok(Annotation { key, core, text: optional_text(row, 1)?, at: value(row, 2)? })
                });
                let rows: Vec<_> = rows.into_iter().map(|row| (expected.remove(&row.key), row)).collect();
                let recorded = self.entries(rows.iter().filter_map(|(seq, _)| *seq).collect())?;
                for (seq, row) in rows {
                    let subject = (of.subject)(&row.key);
                    let Some(seq) = seq else {
                        found.push(Finding::new(ANNOTATION_UNRECORDED, subject, "no entry set it"));
                        continue;
                    };
                    count += 1;
                    let difference = recorded.get(&seq).and_then(|entry| row.difference(entry, seq));
                    found.extend(difference.map(|detail| Finding::new(ANNOTATION_DIFFERS, subject, detail)));
                }
                Ok(())
            })
        })?;
        // Rows that could not be read are not missing.
        if read.is_some() {
            for (key, seq) in std::mem::take(expected) {
                let detail = format!("entry {seq} set it");
                found.push(Finding::new(ANNOTATION_LOST, (of.subject)(&key), detail));
            }
        }
        append_sorted(findings, found);
        Ok(count)
    }

    /// Compares the form in which notes are searched with their texts.
    fn compare_folded(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut found = Vec::new();
        self.look(table("note"), findings, || {
            let sql = "SELECT a.core, n.text, n.folded FROM note n JOIN artifact a ON a.id = n.artifact";
            self.scan(sql, LARGE_ROWS, |rows| {
                for row in rows {
                    // A text that cannot be read is reported already.
                    let (Ok(core), Ok(text)) = (core(row, 0), text(row, 1)) else { continue };
                    if text.to_lowercase().as_bytes() != value::<&[u8]>(row, 2)? {
                        let detail = "the form in which it is searched does not match its text";
                        found.push(Finding::new(INDEX_MISSING, Subject::Note(core), detail));
                    }
                }
                Ok(())
            })
        })?;
        append_sorted(findings, found);
        Ok(())
    }

    fn compare_labels(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let expected = &mut state.labels;
        let (mut count, mut found) = (0, Vec::new());
        let read = self.look(table("label"), findings, || {
            let sql = "SELECT a.core, l.key, l.value, l.at FROM label l JOIN artifact a ON a.id = l.artifact";
            self.scan(sql, ROWS, |rows| {
                let rows = read_all(rows, &table("label"), &mut found, |row| {
                    let (core, key) = (core(row, 0)?, text(row, 1)?.into());
                    Ok(LabelRow { core, key, value: text(row, 2)?, at: value(row, 3)? })
                });
                for LabelRow { core, key, value, at } in rows {
                    let subject = label(core, &key);
                    let Some(recorded) = expected.remove(&(core, key)) else {
                        found.push(Finding::new(ANNOTATION_UNRECORDED, subject, "no entry set it"));
                        continue;
                    };
                    count += 1;
                    let detail = recorded.difference(&value, at);
                    found.extend(detail.map(|detail| Finding::new(ANNOTATION_DIFFERS, subject, detail)));
                }
                Ok(())
            })
        })?;
        if read.is_some() {
            for ((core, key), LabelEntry { seq, .. }) in std::mem::take(expected) {
                let detail = format!("entry {seq} set it");
                found.push(Finding::new(ANNOTATION_LOST, label(core, &key), detail));
            }
        }
        append_sorted(findings, found);
        Ok(count)
    }
}

fn label(core: CoreHash, key: &str) -> Subject {
    Subject::Label { core, key: key.to_owned() }
}

impl<K> Annotation<K> {
    /// Describes how the entry `seq` differs. The texts are not included: they may be long, and the journal has the
    /// correct one.
    fn difference(&self, entry: &Recorded, seq: i64) -> Option<String> {
        let mut parts = Vec::new();
        if entry.core() != Some(self.core) {
            let core = entry.core().map(|core| format!(" ({core:.12})")).unwrap_or_default();
            parts.push(format!("another artifact{core}"));
        }
        if self.text != entry.note {
            parts.push("another text".to_owned());
        }
        if entry.milliseconds() != Some(self.at) {
            parts.push("another time".to_owned());
        }
        (!parts.is_empty()).then(|| format!("entry {seq} has {}", parts.join(" and ")))
    }
}
