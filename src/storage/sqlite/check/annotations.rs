//! Comparison of tags, notes, pins and manual links with the journal entries that set them.

use std::collections::BTreeMap;

use rusqlite::Row;

use super::FileInspection;
use super::replay::entry;
use crate::digest::CoreHash;
use crate::storage::check::finding::{
    ANNOTATION_DIFFERS, ANNOTATION_LOST, ANNOTATION_UNRECORDED, Finding, SIGNATURE_DIFFERS, Subject,
};
use crate::storage::check::journal_state::{Change, Entry, JournalState, LinkKey};
use crate::storage::sqlite::Result;

/// An annotation row of the catalog, in the form that the journal records.
#[derive(PartialEq, Eq)]
struct Annotation {
    /// The artifact, or the source of a link. `None` if the row refers to a missing artifact.
    core: Option<CoreHash>,
    text: Option<String>,
    at: i64,
}

/// The query and the keys for comparing annotations of one type.
struct Annotations<K> {
    sql: &'static str,
    table: &'static str,
    key: fn(&Row<'_>) -> rusqlite::Result<Option<K>>,
    subject: fn(&K) -> Subject,
}

impl FileInspection<'_> {
    pub(super) fn compare_tags(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let tags = Annotations {
            sql: "SELECT a.core, NULL, t.at, t.name FROM tag t NOT INDEXED LEFT JOIN artifact a ON a.id = t.artifact",
            table: "tag",
            key: |row| row.get(3).map(Some),
            subject: |name: &String| Subject::Tag(name.clone()),
        };
        self.compare_annotations(&tags, &mut state.tags, findings)
    }

    pub(super) fn compare_notes(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let notes = Annotations {
            sql: "SELECT a.core, n.text, n.at FROM note n NOT INDEXED LEFT JOIN artifact a ON a.id = n.artifact",
            table: "note",
            key: |row| row.get(0),
            subject: |core| Subject::Note(*core),
        };
        self.compare_annotations(&notes, &mut state.notes, findings)
    }

    pub(super) fn compare_pins(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let pins = Annotations {
            sql: "SELECT a.core, p.note, p.at FROM pin p NOT INDEXED LEFT JOIN artifact a ON a.id = p.artifact",
            table: "pin",
            key: |row| row.get(0),
            subject: |core| Subject::Pin(*core),
        };
        self.compare_annotations(&pins, &mut state.pins, findings)
    }

    pub(super) fn compare_links(&self, state: &mut JournalState, findings: &mut Vec<Finding>) -> Result<u64> {
        let links = Annotations {
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
        let expected = &mut state.signatures;
        let (mut count, mut found) = (0, Vec::new());
        let mut differs = |capture, detail: &str| {
            found.push(Finding::new(SIGNATURE_DIFFERS, Subject::Capture(capture), detail));
        };
        let read = self.look(Subject::Table("signature".to_owned()), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT coalesce(c.digest, b.digest), s.state, s.key_id, a.core FROM signature s NOT INDEXED
                   LEFT JOIN capture c ON c.id = s.capture LEFT JOIN blob b ON b.id = c.blob
                   LEFT JOIN artifact a ON a.id = c.artifact",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // A row that refers to a missing capture is a broken reference.
                let (Some(capture), Some(core)) = (row.get(0)?, row.get(3)?) else { continue };
                let (stored_state, stored_key): (String, Option<String>) = (row.get(1)?, row.get(2)?);
                let recorded =
                    expected.remove(&(core, capture)).map(|seq| entry(&self.connection, seq)).transpose()?;
                match recorded.flatten().map(|(entry, _)| entry.change) {
                    Some(Change::Signature { state, key_id, .. })
                        if state == stored_state && key_id == stored_key =>
                    {
                        count += 1;
                    }
                    Some(_) => differs(capture, "the journal records a different state or key"),
                    None => differs(capture, "no entry recorded its state"),
                }
            }
            Ok(())
        })?;
        // Rows that could not be read are not missing.
        if read.is_some() {
            for (_, capture) in std::mem::take(expected).into_keys() {
                differs(capture, "the journal records it, but it is missing");
            }
        }
        findings.append(&mut found);
        Ok(count)
    }

    /// Compares the rows of a table with the entries that `expected` names for their keys.
    fn compare_annotations<K: Ord>(
        &self,
        annotations: &Annotations<K>,
        expected: &mut BTreeMap<K, i64>,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let mut count = 0;
        let mut found = Vec::new();
        let read = self.look(Subject::Table(annotations.table.to_owned()), findings, || {
            let mut statement = self.connection.prepare(annotations.sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // A row that refers to a missing artifact is a broken reference.
                let Some(key) = (annotations.key)(row)? else { continue };
                let subject = (annotations.subject)(&key);
                let Some(seq) = expected.remove(&key) else {
                    let detail = "no entry set it";
                    found.push(Finding::new(ANNOTATION_UNRECORDED, subject, detail));
                    continue;
                };
                count += 1;
                let stored = Annotation { core: row.get(0)?, text: row.get(1)?, at: row.get(2)? };
                if let Some(recorded) = entry(&self.connection, seq)?.and_then(Annotation::from_entry)
                    && let Some(detail) = stored.difference(&recorded, seq)
                {
                    found.push(Finding::new(ANNOTATION_DIFFERS, subject, detail));
                }
            }
            Ok(())
        })?;
        // Rows that could not be read are not missing.
        if read.is_some() {
            for (key, seq) in std::mem::take(expected) {
                let detail = format!("entry {seq} set it");
                found.push(Finding::new(ANNOTATION_LOST, (annotations.subject)(&key), detail));
            }
        }
        found.sort_by(|one, other| one.key().cmp(&other.key()));
        findings.append(&mut found);
        Ok(count)
    }
}

impl Annotation {
    /// Returns the row that an entry sets, or `None` if it sets no annotation.
    fn from_entry((entry, at): (Entry, i64)) -> Option<Self> {
        let (core, text) = match entry.change {
            Change::Tag { core, .. } => (core, None),
            Change::Note { core, note } | Change::Pin { core, note } => (core, note),
            Change::Link { source, note, .. } => (source, note),
            _ => return None,
        };
        Some(Self { core: Some(core), text, at })
    }

    /// Describes how the entry `seq` differs. The texts are not included: they may be long, and the journal has the
    /// correct one.
    fn difference(&self, recorded: &Self, seq: i64) -> Option<String> {
        let mut parts = Vec::new();
        if self.core != recorded.core {
            let core = recorded.core.map(|core| format!(" ({core:.12})")).unwrap_or_default();
            parts.push(format!("another artifact{core}"));
        }
        if self.text != recorded.text {
            parts.push("another text".to_owned());
        }
        if self.at != recorded.at {
            parts.push("another time".to_owned());
        }
        (!parts.is_empty()).then(|| format!("entry {seq} has {}", parts.join(" and ")))
    }
}

fn link_subject((source, relation, target): &LinkKey) -> Subject {
    Subject::Link { source: *source, relation: relation.clone(), target: *target }
}
