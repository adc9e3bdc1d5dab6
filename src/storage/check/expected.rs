//! The rows of the catalog that follow from the journal alone, and their comparison with those that are stored.
//!
//! They are made by [`journaled`] of every entry, as the rows of an engine are. Memory grows with the number of artifacts:
//! about 300 bytes for each with one capture.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::CatalogCounts;
use super::finding::{self, DIFFERENT_ROW, Finding, MISSING_ROW, SURPLUS_ROW, Subject, UNREADABLE};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::catalog::{Row, RowChange, RowKey, journaled};
use crate::storage::entry::EntryText;
use crate::storage::{CaptureTarget, Tombstone};

/// The tables whose rows follow from the journal alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournaledTable {
    /// Artifacts.
    Artifact,
    /// Captures.
    Capture,
    /// Signatures of captures.
    Signature,
    /// Tags.
    Tag,
    /// Notes.
    Note,
    /// Pins.
    Pin,
    /// Labels.
    Label,
    /// Manual links.
    Link,
    /// Tombstones.
    Tombstone,
}

impl JournaledTable {
    /// All of them, in the order in which they are compared.
    pub const ALL: [Self; 9] = [
        Self::Artifact,
        Self::Capture,
        Self::Signature,
        Self::Tag,
        Self::Note,
        Self::Pin,
        Self::Label,
        Self::Link,
        Self::Tombstone,
    ];

    /// Returns its name, which is the same in every engine that has tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Artifact => "artifact",
            Self::Capture => "capture",
            Self::Signature => "signature",
            Self::Tag => "tag",
            Self::Note => "note",
            Self::Pin => "pin",
            Self::Label => "label",
            Self::Link => "link",
            Self::Tombstone => "tombstone",
        }
    }
}

/// The rows of a table that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadRows {
    /// The numbers of those that have one.
    pub numbers: Vec<i64>,
    /// Whether there may be others.
    pub are_incomplete: bool,
}

/// The rows that follow from the journal.
#[derive(Default)]
pub struct ExpectedCatalog {
    artifacts: HashMap<CoreHash, ExpectedArtifact>,
    annotations: BTreeMap<RowKey, ExpectedAnnotation>,
    /// What was removed with each artifact.
    tombstones: BTreeMap<CoreHash, Vec<Tombstone>>,
    /// Texts that many rows have.
    texts: HashSet<Arc<str>>,
}

struct ExpectedArtifact {
    entry: u64,
    kind: Arc<str>,
    added_at: i64,
    seen_at: i64,
    arrival: i64,
    captures: Vec<ExpectedCapture>,
    /// Whether the row was found.
    is_stored: bool,
}

struct ExpectedCapture {
    capture: CaptureHash,
    entry: u64,
    size: u64,
    added_at: i64,
    seen_at: i64,
    source_path: Option<Box<str>>,
    signature: Option<Box<ExpectedSignature>>,
    is_stored: bool,
}

/// The name of the state of a signature, and the id of its key.
type ExpectedSignature = (String, Option<String>);

/// A tag, note, pin, label or manual link.
struct ExpectedAnnotation {
    core: CoreHash,
    text: Option<Arc<str>>,
    at: i64,
}

impl ExpectedCatalog {
    /// Adds what follows from the entry `seq`: nothing if its time is invalid.
    pub(in crate::storage) fn apply(&mut self, seq: u64, entry: &EntryText) {
        let Ok(at) = entry.at() else { return };
        for change in journaled(seq, at, entry.actor.as_deref(), &entry.change) {
            self.execute(change);
        }
    }

    fn execute(&mut self, change: RowChange<'_>) {
        match change {
            RowChange::Insert(row) | RowChange::Put(row) => self.put(row),
            RowChange::Delete(RowKey::Signature(core, capture)) => {
                if let Some(known) = self.capture_mut(core, capture) {
                    known.signature = None;
                }
            }
            RowChange::Delete(key) => drop(self.annotations.remove(&key)),
            RowChange::Arrive { core, at, arrival } => {
                if let Some(known) = self.artifacts.get_mut(&core) {
                    (known.seen_at, known.arrival) = (at, arrival);
                }
            }
            RowChange::See { core, capture, at } => {
                if let Some(known) = self.capture_mut(core, capture) {
                    known.seen_at = at;
                }
            }
            RowChange::Remove { core } => drop(self.artifacts.remove(&core)),
            RowChange::Readmit { core } => drop(self.tombstones.remove(&core)),
            RowChange::Store { .. } => {}
        }
    }

    /// Adds a row. Those of artifacts that the vault does not have are left out.
    fn put(&mut self, row: Row) {
        match row {
            Row::Artifact { core, entry, kind, added_at, seen_at, arrival } => {
                let kind = self.shared(&kind);
                let (captures, is_stored) = (Vec::new(), false);
                let new = ExpectedArtifact { entry, kind, added_at, seen_at, arrival, captures, is_stored };
                self.artifacts.entry(core).or_insert(new);
            }
            Row::Capture { core, capture, entry, size, added_at, seen_at, source_path } => {
                let Some(artifact) = self.artifacts.get_mut(&core) else { return };
                // A capture that was lost and is added again has the number of the last addition.
                artifact.captures.retain(|known| known.capture != capture);
                artifact.captures.push(ExpectedCapture {
                    capture,
                    entry,
                    size,
                    added_at,
                    seen_at,
                    source_path: source_path.map(String::into_boxed_str),
                    signature: None,
                    is_stored: false,
                });
            }
            Row::Signature { core, capture, state, key_id } => {
                if let Some(known) = self.capture_mut(core, capture) {
                    known.signature = Some(Box::new((state, key_id)));
                }
            }
            Row::Tombstone(tombstone) => {
                let removed = self.tombstones.entry(tombstone.core).or_default();
                // The core hash of a document may be that of its capture.
                if !removed.contains(&tombstone) {
                    removed.push(tombstone);
                }
            }
            row => {
                let has = |core: &CoreHash| self.artifacts.contains_key(core);
                let is_known = match &row {
                    Row::Link { source, target, .. } => has(source) && has(target),
                    Row::Tag { core, .. }
                    | Row::Note { core, .. }
                    | Row::Pin { core, .. }
                    | Row::Label { core, .. } => has(core),
                    _ => false,
                };
                match self.annotation(row) {
                    Some((key, annotation)) if is_known => drop(self.annotations.insert(key, annotation)),
                    // A tag of an artifact that the vault does not have is no longer that of another one.
                    Some((key, _)) => drop(self.annotations.remove(&key)),
                    None => {}
                }
            }
        }
    }

    /// Returns the key of an annotation, and the rest of it.
    fn annotation(&mut self, row: Row) -> Option<(RowKey, ExpectedAnnotation)> {
        let key = row.annotation_key()?;
        let (core, text, at) = match row {
            Row::Tag { core, at, .. } => (core, None, at),
            Row::Note { core, text, at } | Row::Label { core, value: text, at, .. } => (core, Some(text), at),
            Row::Pin { core, note, at } | Row::Link { source: core, note, at, .. } => (core, note, at),
            _ => return None,
        };
        let text = text.map(|text| self.shared(&text));
        Some((key, ExpectedAnnotation { core, text, at }))
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    fn capture_mut(&mut self, core: CoreHash, capture: CaptureHash) -> Option<&mut ExpectedCapture> {
        self.artifacts.get_mut(&core)?.captures.iter_mut().find(|known| known.capture == capture)
    }

    /// Returns the rows of all tables that were not compared, those of artifacts and their captures first, in the order in
    /// which they were added.
    pub(in crate::storage) fn rows(&self) -> impl Iterator<Item = Row> {
        let mut artifacts: Vec<_> = self.artifacts.iter().collect();
        artifacts.sort_unstable_by_key(|(_, artifact)| artifact.entry);
        let artifacts = artifacts.into_iter().flat_map(|(core, artifact)| artifact.rows(*core));
        artifacts.chain(self.rows_of_others())
    }

    /// Returns the rows of annotations and tombstones.
    fn rows_of_others(&self) -> impl Iterator<Item = Row> {
        let annotations = self.annotations.iter().map(|(key, annotation)| annotation.row(key));
        annotations.chain(self.tombstones.values().flatten().cloned().map(Row::Tombstone))
    }

    /// Removes the row with the key of `stored` from what is expected, and returns it.
    fn take(&mut self, stored: &Row) -> Option<Row> {
        match stored {
            Row::Artifact { core, .. } => {
                let known = self.artifacts.get_mut(core)?;
                (!std::mem::replace(&mut known.is_stored, true)).then(|| known.row(*core))
            }
            Row::Capture { core, capture, .. } => {
                let known = self.capture_mut(*core, *capture)?;
                (!std::mem::replace(&mut known.is_stored, true)).then(|| known.row(*core))
            }
            Row::Signature { core, capture, .. } => {
                let known = self.capture_mut(*core, *capture)?;
                let row = known.signature_row(*core);
                known.signature = None;
                row
            }
            Row::Tombstone(Tombstone { digest, core, entry, .. }) => {
                let removed = self.tombstones.get_mut(core)?;
                let is_same = |known: &Tombstone| (known.digest, known.entry) == (*digest, *entry);
                Some(Row::Tombstone(removed.swap_remove(removed.iter().position(is_same)?)))
            }
            stored => {
                let key = stored.annotation_key()?;
                self.annotations.remove(&key).map(|known| known.row(&key))
            }
        }
    }

    /// Returns the captures that were added and not removed, and that have `digest` or belong to the artifact with this core
    /// hash, with the names of their kinds and in the order in which they were added.
    #[must_use]
    pub fn captures_with(&self, digest: Digest) -> Vec<(CaptureTarget, &str)> {
        let mut found: Vec<(u64, CaptureTarget, &str)> = Vec::new();
        for (core, artifact) in &self.artifacts {
            let is_match = |known: &&ExpectedCapture| core.0 == digest || known.capture.0 == digest;
            found.extend(artifact.captures.iter().filter(is_match).map(|known| {
                let target = CaptureTarget { capture: known.capture, artifact: *core };
                (known.entry, target, &*artifact.kind)
            }));
        }
        found.sort_unstable_by_key(|(entry, ..)| *entry);
        found.into_iter().map(|(_, target, kind)| (target, kind)).collect()
    }

    /// Returns the signature of a capture that was recorded last.
    #[must_use]
    pub fn signature(&self, target: CaptureTarget) -> Option<Signature> {
        let artifact = self.artifacts.get(&target.artifact)?;
        let known = artifact.captures.iter().find(|known| known.capture == target.capture)?;
        let (state, key_id) = known.signature.as_deref()?;
        Some(Signature { state: SignatureState::named(state)?, key_id: key_id.clone() })
    }

    /// Returns the core hashes and capture hashes of what was removed.
    #[must_use]
    pub fn removed(&self) -> BTreeSet<Digest> {
        self.tombstones.values().flatten().map(|tombstone| tombstone.digest).collect()
    }
}

impl ExpectedArtifact {
    fn row(&self, core: CoreHash) -> Row {
        let Self { entry, added_at, seen_at, arrival, .. } = *self;
        Row::Artifact { core, entry, kind: self.kind.to_string(), added_at, seen_at, arrival }
    }

    fn rows(&self, core: CoreHash) -> impl Iterator<Item = Row> {
        let captures = self.captures.iter().flat_map(move |known| {
            let row = (!known.is_stored).then(|| known.row(core));
            row.into_iter().chain(known.signature_row(core))
        });
        (!self.is_stored).then(|| self.row(core)).into_iter().chain(captures)
    }
}

impl ExpectedCapture {
    fn row(&self, core: CoreHash) -> Row {
        let Self { capture, entry, size, added_at, seen_at, .. } = *self;
        let source_path = self.source_path.as_deref().map(str::to_owned);
        Row::Capture { core, capture, entry, size, added_at, seen_at, source_path }
    }

    fn signature_row(&self, core: CoreHash) -> Option<Row> {
        let (state, key_id) = self.signature.as_deref()?.clone();
        Some(Row::Signature { core, capture: self.capture, state, key_id })
    }
}

impl ExpectedAnnotation {
    fn row(&self, key: &RowKey) -> Row {
        let Self { core, at, .. } = *self;
        let text = self.text.as_deref().map(str::to_owned);
        match key.clone() {
            RowKey::Tag(name) => Row::Tag { name, core, at },
            RowKey::Note(core) => Row::Note { core, text: text.unwrap_or_default(), at },
            RowKey::Label(core, key) => Row::Label { core, key, value: text.unwrap_or_default(), at },
            RowKey::Link(source, relation, target) => Row::Link { source, relation, target, note: text, at },
            RowKey::Pin(core) | RowKey::Signature(core, _) => Row::Pin { core, note: text, at },
        }
    }
}

/// The comparison of stored rows with those that follow from the journal.
pub(in crate::storage) struct CatalogComparison {
    expected: ExpectedCatalog,
    findings: Vec<Finding>,
    counts: CatalogCounts,
}

impl CatalogComparison {
    pub(in crate::storage) fn new(expected: ExpectedCatalog) -> Self {
        Self { expected, findings: Vec::new(), counts: CatalogCounts::default() }
    }

    /// Compares a stored row.
    pub(in crate::storage) fn take(&mut self, stored: &Row) {
        let finding = match self.expected.take(stored) {
            None => (SURPLUS_ROW, format!("{stored}: the journal does not record it")),
            Some(expected) => {
                self.counts.count(stored);
                if *stored == expected {
                    return;
                }
                let columns = different_columns(stored, &expected);
                (DIFFERENT_ROW, format!("{stored}: {columns} differs from the journal"))
            }
        };
        self.findings.push(Finding::new(finding.0, Subject::from(stored), finding.1));
    }

    /// Reports the rows of a table that follow from the journal and were not among those that were compared. `unread` are
    /// those that could not be read.
    pub(in crate::storage) fn finish_table(&mut self, table: JournaledTable, unread: &UnreadRows) {
        let mut unreadable = 0;
        for row in self.missing(table) {
            let is_unread = match row {
                Row::Artifact { entry, .. } | Row::Capture { entry, .. } => {
                    unread.numbers.contains(&entry.cast_signed())
                }
                _ => false,
            };
            if unread.are_incomplete || is_unread {
                unreadable += 1;
            } else {
                let detail = self.recorded(&row);
                self.findings.push(Finding::new(MISSING_ROW, Subject::from(&row), detail));
            }
        }
        if unreadable > 0 {
            let detail = match unreadable {
                1 => "1 row that follows from the journal is not in the part that can be read".to_owned(),
                rows => {
                    format!("{rows} rows that follow from the journal are not in the part that can be read")
                }
            };
            self.findings.push(Finding::new(UNREADABLE, Subject::Table(table.name().to_owned()), detail));
        }
    }

    /// Returns the rows of a table that were not compared.
    fn missing(&self, table: JournaledTable) -> Vec<Row> {
        use JournaledTable::{Artifact, Capture, Signature};
        let is_of_table = |row: &Row| row.table() == table.name();
        if matches!(table, Artifact | Capture | Signature) {
            let artifacts = self.expected.artifacts.iter();
            artifacts.flat_map(|(core, artifact)| artifact.rows(*core)).filter(is_of_table).collect()
        } else {
            self.expected.rows_of_others().filter(is_of_table).collect()
        }
    }

    /// Returns what the journal says of a missing row.
    fn recorded(&self, row: &Row) -> String {
        match row {
            Row::Tombstone(Tombstone { entry, .. }) => format!("{row}: entry {entry} removed it"),
            Row::Capture { core, .. } | Row::Signature { core, .. } => {
                let kind = self.expected.artifacts.get(core).map(|artifact| &*artifact.kind);
                let kind = kind.unwrap_or_default();
                format!("{row}: the journal records it (artifact {core}, kind {kind})")
            }
            _ => format!("{row}: the journal records it"),
        }
    }

    /// Returns the findings, sorted.
    pub(in crate::storage) fn into_findings(mut self) -> (CatalogCounts, Vec<Finding>) {
        finding::sort(&mut self.findings);
        (self.counts, self.findings)
    }
}

/// Returns the names of the columns in which two rows of one table differ.
fn different_columns(stored: &Row, expected: &Row) -> String {
    let pairs = columns(stored).into_iter().zip(columns(expected));
    let differ = pairs.filter(|(stored, expected)| stored != expected).map(|((name, _), _)| name);
    differ.collect::<Vec<_>>().join(", ")
}

/// Returns the columns of a row that are not part of its key, with their values as text.
fn columns(row: &Row) -> Vec<(&'static str, String)> {
    let text = |text: &Option<String>| format!("{text:?}");
    match row {
        Row::Artifact { entry, kind, added_at, seen_at, arrival, .. } => vec![
            ("id", entry.to_string()),
            ("kind", kind.clone()),
            ("added_at", added_at.to_string()),
            ("seen_at", seen_at.to_string()),
            ("arrival", arrival.to_string()),
        ],
        Row::Capture { entry, size, added_at, seen_at, source_path, .. } => vec![
            ("id", entry.to_string()),
            ("size", size.to_string()),
            ("added_at", added_at.to_string()),
            ("seen_at", seen_at.to_string()),
            ("source_path", text(source_path)),
        ],
        Row::Signature { state, key_id, .. } => vec![("state", state.clone()), ("key_id", text(key_id))],
        Row::Tag { core, at, .. } => vec![("artifact", core.to_string()), ("at", at.to_string())],
        Row::Note { text, at, .. } => vec![("text", text.clone()), ("at", at.to_string())],
        Row::Label { value, at, .. } => vec![("value", value.clone()), ("at", at.to_string())],
        Row::Pin { note, at, .. } | Row::Link { note, at, .. } => {
            vec![("note", text(note)), ("at", at.to_string())]
        }
        Row::Tombstone(Tombstone { at, kind, actor, reason, left, size, .. }) => vec![
            ("at", at.to_string()),
            ("kind", kind.clone()),
            ("actor", text(actor)),
            ("reason", text(reason)),
            ("remaining", left.to_string()),
            ("size", size.to_string()),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::journal::arrival;

    /// The time of the entries.
    const AT: i64 = 1_767_225_600_000;

    fn digest(text: &str) -> Digest {
        Digest::from_content(text.as_bytes())
    }

    fn catalog_after(entries: &[String]) -> ExpectedCatalog {
        let mut catalog = ExpectedCatalog::default();
        for (seq, text) in (1..).zip(entries) {
            let entry = EntryText::parse(text).unwrap();
            catalog.apply(seq, &entry);
        }
        catalog
    }

    fn entry_of(action: &str, members: &str) -> String {
        format!(r#"{{"action":"{action}","actor":"a","at":"2026-01-01T00:00:00.000Z",{members}}}"#)
    }

    fn add(core: &Digest, capture: &Digest) -> String {
        entry_of("add", &format!(r#""capture":"{capture}","core":"{core}","kind":"trace","size":1"#))
    }

    /// What is found if no row is stored.
    fn missing(entries: &[String]) -> Vec<String> {
        let mut compared = CatalogComparison::new(catalog_after(entries));
        for table in JournaledTable::ALL {
            compared.finish_table(table, &UnreadRows::default());
        }
        let (_, findings) = compared.into_findings();
        findings.into_iter().map(|finding| format!("{} {}", finding.subject, finding.detail)).collect()
    }

    #[test]
    fn stored_rows_are_those_that_follow_from_the_journal() {
        let (one, two) = (digest("one"), digest("two"));
        let entries = [
            add(&one, &two),
            entry_of("tag", &format!(r#""core":"{one}","name":"a""#)),
            entry_of("note", &format!(r#""core":"{one}","note":"n""#)),
            entry_of("pin", &format!(r#""core":"{one}""#)),
            entry_of("label", &format!(r#""cores":["{one}"],"labels":{{"a":"x","b":"y"}}"#)),
            entry_of("link", &format!(r#""relation":"r","source":"{one}","target":"{one}""#)),
            entry_of("gc", r#""blobs":0,"bytes_after":0,"bytes_before":0,"dictionaries":0,"recompressed":0"#),
        ];
        let mut compared = CatalogComparison::new(catalog_after(&entries));
        let rows: Vec<Row> = catalog_after(&entries).rows().collect();
        for row in rows {
            compared.take(&row);
        }
        for table in JournaledTable::ALL {
            compared.finish_table(table, &UnreadRows::default());
        }
        let (counts, findings) = compared.into_findings();
        assert_eq!(findings, []);
        assert_eq!((counts.artifacts, counts.captures, counts.labels, counts.links), (1, 1, 2, 1));
        let named = |row: &str| format!("artifact {one} {row}: the journal records it");
        let expected = [
            named("artifact"),
            named("label \"a\""),
            named("label \"b\""),
            named(&format!("link \"r\" to {one}")),
            named("note"),
            named("pin"),
            format!("capture {two} capture: the journal records it (artifact {one}, kind trace)"),
            "tag a tag: the journal records it".to_owned(),
        ];
        assert_eq!(missing(&entries), expected);
    }

    #[test]
    fn annotations_of_artifacts_that_are_not_stored_are_no_rows() {
        let (one, two) = (digest("one"), digest("two"));
        let tag = |core| entry_of("tag", &format!(r#""core":"{core}","name":"a""#));
        let artifact = [
            format!("artifact {one} artifact: the journal records it"),
            format!("capture {one} capture: the journal records it (artifact {one}, kind trace)"),
        ];
        assert_eq!(missing(&[add(&one, &one), tag(one), tag(two)]), artifact);
    }

    #[test]
    fn a_changed_row_names_its_columns() {
        let one = digest("one");
        let entries = [add(&one, &one), entry_of("note", &format!(r#""core":"{one}","note":"n""#))];
        let mut compared = CatalogComparison::new(catalog_after(&entries));
        compared.take(&Row::Note { core: CoreHash(one), text: "m".to_owned(), at: 0 });
        let (_, findings) = compared.into_findings();
        assert_eq!(findings[0].detail, "note: text, at differs from the journal");
        assert_eq!(findings[0].info, DIFFERENT_ROW);
    }

    /// The rows that follow from entries, without those of artifacts, captures and tombstones.
    fn annotations(entries: &[String]) -> Vec<Row> {
        let is_annotation =
            |row: &Row| !matches!(row, Row::Artifact { .. } | Row::Capture { .. } | Row::Tombstone(_));
        catalog_after(entries).rows().filter(is_annotation).collect()
    }

    #[test]
    fn the_last_entry_about_a_row_determines_it() {
        let (one, two) = (digest("one"), digest("two"));
        let [tag_one, tag_two] =
            [one, two].map(|core| entry_of("tag", &format!(r#""core":"{core}","name":"a""#)));
        let note = |text| entry_of("note", &format!(r#""core":"{one}","note":{text}"#));
        let link = |note| {
            entry_of("link", &format!(r#""note":{note},"relation":"r","source":"{one}","target":"{two}""#))
        };
        let entries = [
            add(&one, &one),
            add(&two, &two),
            tag_one,
            tag_two,
            note(r#""n""#),
            note(r#""m""#),
            entry_of("pin", &format!(r#""core":"{one}""#)),
            entry_of("pin", &format!(r#""core":"{one}","note":"p""#)),
            link("null"),
            link(r#""l""#),
        ];
        let (core, other, relation) = (CoreHash(one), CoreHash(two), "r".to_owned());
        let expected = [
            Row::Tag { name: "a".to_owned(), core: other, at: AT },
            Row::Note { core, text: "m".to_owned(), at: AT },
            Row::Pin { core, note: Some("p".to_owned()), at: AT },
            Row::Link { source: core, relation, target: other, note: Some("l".to_owned()), at: AT },
        ];
        let found = annotations(&entries);
        assert!(found.len() == 4 && expected.iter().all(|row| found.contains(row)), "{found:?}");
        let undone = [
            entry_of("untag", &format!(r#""core":"{two}","name":"a""#)),
            note("null"),
            entry_of("unpin", &format!(r#""core":"{one}""#)),
            entry_of("unlink", &format!(r#""relation":"r","source":"{one}","target":"{two}""#)),
        ];
        assert_eq!(annotations(&[&entries[..], &undone].concat()), []);
    }

    #[test]
    fn an_entry_may_set_labels_of_several_artifacts() {
        let (one, two) = (digest("one"), digest("two"));
        let mut entries = vec![
            add(&one, &one),
            add(&two, &two),
            entry_of("label", &format!(r#""cores":["{one}","{two}"],"labels":{{"a":"x","b":"y"}}"#)),
            entry_of("label", &format!(r#""cores":["{two}"],"labels":{{"b":"z"}}"#)),
        ];
        let row = |core, key: &str, value: &str| Row::Label {
            core: CoreHash(core),
            key: key.to_owned(),
            value: value.to_owned(),
            at: AT,
        };
        let set = [row(one, "a", "x"), row(one, "b", "y"), row(two, "a", "x"), row(two, "b", "z")];
        let found = annotations(&entries);
        assert!(found.len() == 4 && set.iter().all(|row| found.contains(row)), "{found:?}");
        entries.push(entry_of("unlabel", &format!(r#""cores":["{one}","{two}"],"keys":["a","none"]"#)));
        let found = annotations(&entries);
        assert!(found.len() == 2 && [&set[1], &set[3]].iter().all(|row| found.contains(row)), "{found:?}");
    }

    #[test]
    fn what_was_removed_is_a_tombstone_until_it_is_removed_again() {
        let (core, capture) = (digest("core"), digest("capture"));
        let add = add(&core, &capture);
        let members = format!(r#""captures":["{capture}"],"core":"{core}","kind":"trace","left":0,"size":1"#);
        let remove = entry_of("remove", &members);
        let tombstones = |entries: &[String]| -> Vec<(Digest, u64)> {
            let removed = catalog_after(entries).tombstones.remove(&CoreHash(core)).unwrap_or_default();
            removed.into_iter().map(|tombstone| (tombstone.digest, tombstone.entry)).collect()
        };
        let removed = [add.clone(), remove.clone()];
        assert_eq!(tombstones(&removed), [(capture, 2), (core, 2)]);
        assert_eq!(catalog_after(&removed).removed(), BTreeSet::from([core, capture]));
        assert!(catalog_after(&removed).artifacts.is_empty());
        let added = catalog_after(&[&removed[..], std::slice::from_ref(&add)].concat());
        let target = CaptureTarget { capture: CaptureHash(capture), artifact: CoreHash(core) };
        assert_eq!(added.captures_with(core), [(target, "trace")]);
        assert!(added.removed().is_empty());
        // What was removed before does not come back.
        let again = [&removed[..], &[add.clone(), remove]].concat();
        assert_eq!(tombstones(&again), [(capture, 4), (core, 4)]);
        assert!(catalog_after(&again).artifacts.is_empty());
        let allow = entry_of("allow-removed", &format!(r#""core":"{core}","kind":"trace""#));
        let allowed = catalog_after(&[&removed[..], std::slice::from_ref(&allow)].concat());
        assert!(allowed.removed().is_empty() && allowed.artifacts.is_empty());
        let added = catalog_after(&[&removed[..], &[allow, add]].concat());
        assert!(added.removed().is_empty());
        assert_eq!(added.artifacts[&CoreHash(core)].entry, 4);
    }

    #[test]
    fn a_capture_that_is_added_twice_has_the_number_of_its_last_entry() {
        let (core, capture) = (digest("core"), digest("capture"));
        let signature = entry_of(
            "signature",
            &format!(r#""capture":"{capture}","core":"{core}","key_id":"k","state":"verified""#),
        );
        let rows: Vec<Row> =
            catalog_after(&[add(&core, &capture), signature, add(&core, &capture)]).rows().collect();
        let (core, capture) = (CoreHash(core), CaptureHash(capture));
        let kind = "trace".to_owned();
        let arrival = arrival(3, 0);
        // A signature that was recorded before it was lost is that of the lost one.
        let expected = [
            Row::Artifact { core, entry: 1, kind, added_at: AT, seen_at: AT, arrival },
            Row::Capture { core, capture, entry: 3, size: 1, added_at: AT, seen_at: AT, source_path: None },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_is_seen_again_arrives_again_and_is_not_added_again() {
        let (core, other, capture) = (digest("core"), digest("other"), digest("capture"));
        let see = format!(
            r#"{{"action":"seen","actor":"a","at":"2026-01-01T00:00:01.000Z","captures":["{other}","{capture}"],"cores":["{other}","{core}"]}}"#
        );
        let rows: Vec<Row> = catalog_after(&[add(&core, &capture), see]).rows().collect();
        let (core, capture) = (CoreHash(core), CaptureHash(capture));
        let (kind, seen_at) = ("trace".to_owned(), AT + 1000);
        let arrival = (2 << 20) + 1;
        let expected = [
            Row::Artifact { core, entry: 1, kind, added_at: AT, seen_at, arrival },
            Row::Capture { core, capture, entry: 1, size: 1, added_at: AT, seen_at, source_path: None },
        ];
        assert_eq!(rows, expected);
    }
}
