//! The rows of the catalog that follow from the journal alone, and their comparison with those that are stored.
//!
//! They are made by [`journaled`] of every entry, as the rows of an engine are. If there are many, they are compared in parts,
//! by core hash: what is in memory is one part, and the name of every tag.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use super::CatalogCounts;
use super::finding::{self, DIFFERENT_ROW, Finding, MISSING_ROW, SURPLUS_ROW, Subject, UNREADABLE};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CoreHash, Digest};
use crate::storage::catalog::{Row, RowChange, RowKey, journaled};
use crate::storage::entry::{Entry, EntryText};
use crate::storage::{CaptureTarget, Tombstone};

/// Up to this number, room for the rows of an artifact is reserved one row at a time, so that none stays unused.
const FEW_ROWS: usize = 8;

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

/// The rows that follow from the journal, or a part of them: those of the artifacts whose core hashes begin with numbers in a
/// range.
pub struct ExpectedCatalog {
    artifacts: HashMap<CoreHash, ExpectedArtifact>,
    /// The artifact of each tag, of those in other parts too.
    tags: HashMap<String, CoreHash>,
    /// What was removed with each artifact.
    tombstones: BTreeMap<CoreHash, Vec<Tombstone>>,
    part: RangeInclusive<u64>,
    /// Number of rows, tombstones among them.
    rows: usize,
    /// Number of rows above which the part is halved.
    most_rows: usize,
}

impl Default for ExpectedCatalog {
    /// Creates the whole catalog before the first entry.
    fn default() -> Self {
        Self::part(0..=u64::MAX, usize::MAX)
    }
}

/// The rows of an artifact.
struct ExpectedArtifact {
    /// The entry that first added it.
    entry: u64,
    kind: String,
    /// Those that were not compared yet.
    rows: Vec<Row>,
}

impl ExpectedCatalog {
    /// Creates a part of the catalog before the first entry. When it has more than `most_rows` rows, and not of one artifact, only
    /// the first half of the range remains.
    pub(super) fn part(part: RangeInclusive<u64>, most_rows: usize) -> Self {
        let (artifacts, tags, tombstones) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { artifacts, tags, tombstones, part, rows: 0, most_rows }
    }

    /// Returns the range after this part, of twice its width, because this one may be narrow for what is there; `None` after the
    /// last part.
    pub(super) fn next_part(&self) -> Option<RangeInclusive<u64>> {
        let first = self.part.end().checked_add(1)?;
        let width = (self.part.end() - self.part.start()).saturating_mul(2).saturating_add(1);
        Some(first..=first.saturating_add(width))
    }

    /// Returns the range of the core hashes of the artifacts in this part.
    pub(super) fn digests(&self) -> RangeInclusive<Digest> {
        Digest::with_keys(&self.part)
    }

    /// Adds what follows from the entry `seq`: nothing if its time is invalid.
    pub(in crate::storage) fn apply(&mut self, seq: u64, entry: &EntryText) {
        if matches!(entry.change, Entry::Add { core, .. } if !self.contains(core)) {
            return;
        }
        let Ok(at) = entry.at() else { return };
        for change in journaled(seq, at, entry.actor.as_deref(), &entry.change) {
            self.execute(change);
        }
        while self.rows > self.most_rows
            && self.artifacts.len() + self.tombstones.len() > 1
            && self.part.start() < self.part.end()
        {
            self.halve();
        }
    }

    /// Adds what follows from the text of an entry: nothing if it cannot be read.
    pub(super) fn apply_text(&mut self, seq: i64, text: Option<&str>) {
        if let Ok(entry) = EntryText::parse(text.unwrap_or_default()) {
            self.apply(u64::try_from(seq).unwrap_or(0), &entry);
        }
    }

    /// Returns whether the rows of an artifact belong to this part.
    fn contains(&self, core: CoreHash) -> bool {
        self.part.contains(&core.0.key().cast_unsigned())
    }

    fn halve(&mut self) {
        let (first, last) = self.part.clone().into_inner();
        self.part = first..=first + (last - first) / 2;
        let (mut artifacts, mut tombstones) =
            (std::mem::take(&mut self.artifacts), std::mem::take(&mut self.tombstones));
        artifacts.retain(|core, _| self.contains(*core));
        tombstones.retain(|core, _| self.contains(*core));
        self.rows = artifacts.values().map(|artifact| artifact.rows.len()).sum::<usize>()
            + tombstones.values().map(Vec::len).sum::<usize>();
        (self.artifacts, self.tombstones) = (artifacts, tombstones);
    }

    fn execute(&mut self, change: RowChange<'_>) {
        match change {
            RowChange::Insert(row) | RowChange::Put(row) => self.put(row),
            RowChange::Delete(key) => self.delete(&key),
            RowChange::Arrive { core, at, arrival: position } => {
                for row in self.rows_mut(core) {
                    if let Row::Artifact { seen_at, arrival, .. } = row {
                        (*seen_at, *arrival) = (at, position);
                    }
                }
            }
            RowChange::See { core, capture, at } => {
                for row in self.rows_mut(core) {
                    match row {
                        Row::Capture { capture: known, seen_at, .. } if *known == capture => *seen_at = at,
                        _ => {}
                    }
                }
            }
            RowChange::Remove { core } => {
                self.rows -= self.artifacts.remove(&core).map_or(0, |artifact| artifact.rows.len());
            }
            RowChange::Readmit { core } => {
                self.rows -= self.tombstones.remove(&core).map_or(0, |removed| removed.len());
            }
            RowChange::Store { .. } => {}
        }
    }

    fn rows_mut(&mut self, core: CoreHash) -> impl Iterator<Item = &mut Row> {
        self.artifacts.get_mut(&core).into_iter().flat_map(|artifact| &mut artifact.rows)
    }

    /// Adds a row, or replaces the one with its key. Those of artifacts that the vault does not have are left out.
    fn put(&mut self, row: Row) {
        match row {
            Row::Artifact { core, entry, ref kind, .. } => {
                let kind = kind.clone();
                self.artifacts.entry(core).or_insert_with(|| {
                    self.rows += 1;
                    ExpectedArtifact { entry, kind, rows: vec![row] }
                });
            }
            Row::Tombstone(tombstone) if !self.contains(tombstone.core) => {}
            Row::Tombstone(tombstone) => {
                let removed = self.tombstones.entry(tombstone.core).or_default();
                // The core hash of a document may be that of its capture.
                if !removed.contains(&tombstone) {
                    removed.push(*tombstone);
                    self.rows += 1;
                }
            }
            row => {
                let Some(core) = row.owner() else { return };
                if let Row::Tag { name, .. } = &row {
                    // A tag of an artifact that the vault does not have is no longer that of another one.
                    self.delete(&RowKey::Tag(name.clone()));
                    self.tags.insert(name.clone(), core);
                }
                // Artifacts in other parts are taken for stored ones.
                let is_missing = |core: &CoreHash| self.contains(*core) && !self.artifacts.contains_key(core);
                let has_target = !matches!(&row, Row::Link { target, .. } if is_missing(target));
                if let Some(artifact) = self.artifacts.get_mut(&core).filter(|_| has_target) {
                    let before = artifact.rows.len();
                    artifact.rows.retain(|known| !is_same_row(known, &row));
                    if artifact.rows.len() < FEW_ROWS {
                        artifact.rows.reserve_exact(1);
                    }
                    artifact.rows.push(row);
                    self.rows = self.rows + artifact.rows.len() - before;
                }
            }
        }
    }

    fn delete(&mut self, key: &RowKey) {
        let owner = match key {
            RowKey::Tag(name) => self.tags.remove(name),
            RowKey::Signature(core, _)
            | RowKey::Note(core)
            | RowKey::Pin(core)
            | RowKey::Label(core, _)
            | RowKey::Link(core, ..) => Some(*core),
        };
        if let Some(artifact) = owner.and_then(|core| self.artifacts.get_mut(&core)) {
            let before = artifact.rows.len();
            artifact.rows.retain(|row| match (row, key) {
                (Row::Signature { capture, .. }, RowKey::Signature(_, signed)) => capture != signed,
                _ => row.annotation_key().as_ref() != Some(key),
            });
            self.rows = self.rows + artifact.rows.len() - before;
        }
    }

    /// Returns the rows of all tables that were not compared, those of artifacts and their captures first, in the order in
    /// which they were added.
    pub(in crate::storage) fn rows(&self) -> impl Iterator<Item = Row> {
        let mut artifacts: Vec<_> = self.artifacts.values().collect();
        artifacts.sort_unstable_by_key(|artifact| artifact.entry);
        let (annotations, others): (Vec<&Row>, Vec<&Row>) = artifacts
            .into_iter()
            .flat_map(|artifact| &artifact.rows)
            .partition(|row| row.annotation_key().is_some());
        let tombstones = self.tombstones.values().flatten().cloned().map(Box::new).map(Row::Tombstone);
        others.into_iter().chain(annotations).cloned().chain(tombstones)
    }

    /// Returns whether a stored row is to be compared with this part. A tag belongs to the artifact that should have it.
    fn is_of_part(&self, stored: &Row) -> bool {
        let expected = if let Row::Tag { name, .. } = stored { self.tags.get(name).copied() } else { None };
        expected.or(stored.owner()).is_none_or(|core| self.contains(core))
    }

    /// Removes the row with the key of `stored` from what is expected, and returns it.
    fn take(&mut self, stored: &Row) -> Option<Row> {
        let owner = match stored {
            Row::Tombstone(tombstone) => {
                let removed = self.tombstones.get_mut(&tombstone.core)?;
                let key = |tombstone: &Tombstone| (tombstone.digest, tombstone.entry);
                let is_same = |known: &Tombstone| key(known) == key(tombstone);
                let position = removed.iter().position(is_same)?;
                return Some(Row::Tombstone(Box::new(removed.swap_remove(position))));
            }
            Row::Tag { name, .. } => *self.tags.get(name)?,
            stored => stored.owner()?,
        };
        let rows = &mut self.artifacts.get_mut(&owner)?.rows;
        let position = rows.iter().position(|row| is_same_row(row, stored))?;
        Some(rows.remove(position))
    }

    /// Returns the captures that were added and not removed, and that have `digest` or belong to the artifact with this core
    /// hash, with the names of their kinds and in the order in which they were added.
    #[must_use]
    pub fn captures_with(&self, digest: Digest) -> Vec<(CaptureTarget, &str)> {
        let mut found: Vec<(u64, CaptureTarget, &str)> = Vec::new();
        for (core, artifact) in &self.artifacts {
            found.extend(artifact.rows.iter().filter_map(|row| match row {
                Row::Capture { capture, entry, .. } if core.0 == digest || capture.0 == digest => {
                    let target = CaptureTarget { capture: *capture, artifact: *core };
                    Some((*entry, target, &*artifact.kind))
                }
                _ => None,
            }));
        }
        found.sort_unstable_by_key(|(entry, ..)| *entry);
        found.into_iter().map(|(_, target, kind)| (target, kind)).collect()
    }

    /// Returns the signature of a capture that was recorded last.
    #[must_use]
    pub fn signature(&self, target: CaptureTarget) -> Option<Signature> {
        let artifact = self.artifacts.get(&target.artifact)?;
        artifact.rows.iter().find_map(|row| match row {
            Row::Signature { capture, state, key_id, .. } if *capture == target.capture => {
                Some(Signature { state: SignatureState::named(state)?, key_id: key_id.clone() })
            }
            _ => None,
        })
    }

    /// Returns what the journal says of a missing row.
    fn recorded(&self, row: &Row) -> String {
        match row {
            Row::Tombstone(tombstone) => format!("{row}: entry {} removed it", tombstone.entry),
            Row::Capture { core, .. } | Row::Signature { core, .. } => {
                let kind = self.artifacts.get(core).map(|artifact| artifact.kind.as_str());
                let kind = kind.unwrap_or_default();
                format!("{row}: the journal records it (artifact {core}, kind {kind})")
            }
            _ => format!("{row}: the journal records it"),
        }
    }

    /// Returns the core hashes and capture hashes of what was removed.
    #[must_use]
    pub fn removed(&self) -> BTreeSet<Digest> {
        self.tombstones.values().flatten().map(|tombstone| tombstone.digest).collect()
    }
}

/// Returns whether two rows of an artifact have the same key.
fn is_same_row(one: &Row, other: &Row) -> bool {
    match (one, other) {
        (Row::Artifact { .. }, Row::Artifact { .. }) => true,
        (Row::Capture { capture: one, .. }, Row::Capture { capture: other, .. })
        | (Row::Signature { capture: one, .. }, Row::Signature { capture: other, .. }) => one == other,
        _ => one.annotation_key().is_some_and(|key| Some(key) == other.annotation_key()),
    }
}

/// The comparison of stored rows with those that follow from the journal.
pub(super) struct CatalogComparison {
    pub(super) expected: ExpectedCatalog,
    findings: Vec<Finding>,
    counts: CatalogCounts,
    /// The rows of each table that could not be read.
    unread: HashMap<&'static str, UnreadRows>,
    /// Number of expected rows of each table that may be among them.
    unreadable: BTreeMap<&'static str, usize>,
}

impl CatalogComparison {
    /// Creates the comparison with the first part of what is expected.
    pub(super) fn new(expected: ExpectedCatalog) -> Self {
        let (findings, counts) = (Vec::new(), CatalogCounts::default());
        Self { expected, findings, counts, unread: HashMap::new(), unreadable: BTreeMap::new() }
    }

    /// Compares a stored row, if it belongs to this part.
    pub(super) fn take(&mut self, stored: &Row) {
        if !self.expected.is_of_part(stored) {
            return;
        }
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
    pub(super) fn finish_table(&mut self, table: JournaledTable, unread: UnreadRows) {
        let missing = self.missing(table);
        // With the first part, all rows are read.
        let unread = self.unread.entry(table.name()).or_insert(unread);
        for row in missing {
            let is_unread = match row {
                Row::Artifact { entry, .. } | Row::Capture { entry, .. } => {
                    unread.numbers.contains(&entry.cast_signed())
                }
                _ => false,
            };
            if unread.are_incomplete || is_unread {
                *self.unreadable.entry(table.name()).or_default() += 1;
            } else {
                let detail = self.expected.recorded(&row);
                self.findings.push(Finding::new(MISSING_ROW, Subject::from(&row), detail));
            }
        }
    }

    /// Returns the rows of a table that were not compared.
    fn missing(&self, table: JournaledTable) -> Vec<Row> {
        let artifacts = self.expected.artifacts.values().flat_map(|artifact| &artifact.rows);
        let mut missing: Vec<Row> = artifacts.filter(|row| row.table() == table.name()).cloned().collect();
        if table == JournaledTable::Tombstone {
            missing.extend(
                self.expected.tombstones.values().flatten().cloned().map(Box::new).map(Row::Tombstone),
            );
        }
        missing
    }

    /// Returns the findings, sorted.
    pub(super) fn into_findings(mut self) -> (CatalogCounts, Vec<Finding>) {
        for (table, rows) in self.unreadable {
            let detail = match rows {
                1 => "1 row that follows from the journal is not in the part that can be read".to_owned(),
                rows => {
                    format!("{rows} rows that follow from the journal are not in the part that can be read")
                }
            };
            self.findings.push(Finding::new(UNREADABLE, Subject::Table(table.to_owned()), detail));
        }
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
        Row::Tombstone(tombstone) => vec![
            ("at", tombstone.at.to_string()),
            ("kind", tombstone.kind.clone()),
            ("actor", text(&tombstone.actor)),
            ("reason", text(&tombstone.reason)),
            ("remaining", tombstone.left.to_string()),
            ("size", tombstone.size.to_string()),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use proptest::sample::Index;

    use super::*;
    use crate::digest::CaptureHash;
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
            compared.finish_table(table, UnreadRows::default());
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
            compared.finish_table(table, UnreadRows::default());
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

    /// Compares rows with what follows from entries, in parts of at most `most_rows` rows. Returns the number of parts too.
    fn compared(
        entries: &[String],
        stored: &[Row],
        most_rows: usize,
    ) -> (usize, CatalogCounts, Vec<Finding>) {
        let parsed: Vec<EntryText> = entries.iter().map(|text| EntryText::parse(text).unwrap()).collect();
        let (mut compared, mut parts) = (CatalogComparison::new(ExpectedCatalog::default()), 0);
        let mut next = Some(0..=u64::MAX);
        while let Some(part) = next {
            parts += 1;
            compared.expected = ExpectedCatalog::part(part, most_rows);
            (1..).zip(&parsed).for_each(|(seq, entry)| compared.expected.apply(seq, entry));
            for table in JournaledTable::ALL {
                stored.iter().filter(|row| row.table() == table.name()).for_each(|row| compared.take(row));
                compared.finish_table(table, UnreadRows::default());
            }
            next = compared.expected.next_part();
        }
        let (counts, findings) = compared.into_findings();
        (parts, counts, findings)
    }

    proptest! {
        #[test]
        fn parts_have_the_findings_of_the_whole(
            changes in vec((0_u8..9, 0_u8..6, 0_u8..6), 0..60),
            lost in vec(any::<Index>(), 0..4),
            moved in vec((any::<Index>(), 0_u8..6), 0..4),
            most_rows in 1_usize..12,
        ) {
            let core = |number: u8| digest(&number.to_string());
            let entry = |(action, one, two): (u8, u8, u8)| {
                let (one, other) = (core(one), core(two));
                let link = format!(r#""relation":"r","source":"{one}","target":"{other}""#);
                match action {
                    0..=2 => add(&one, &digest(&format!("capture {two} of {one}"))),
                    3 => entry_of("tag", &format!(r#""core":"{one}","name":"t{two}""#)),
                    4 => entry_of("label", &format!(r#""cores":["{one}","{other}"],"labels":{{"a":"x"}}"#)),
                    5 => entry_of("unlabel", &format!(r#""cores":["{one}","{other}"],"keys":["a"]"#)),
                    6 => entry_of("note", &format!(r#""core":"{one}","note":"n""#)),
                    7 => entry_of("link", &link),
                    _ => {
                        let removed = format!(r#""captures":["{one}"],"core":"{one}","kind":"trace""#);
                        entry_of("remove", &format!(r#"{removed},"left":0,"size":1"#))
                    }
                }
            };
            let adds = (0..6).map(|number| (0, number, number));
            // A link to what is not stored is not recorded.
            let mut removed = BTreeSet::new();
            let is_recorded = |&(action, one, two): &(u8, u8, u8)| {
                let _ = match action {
                    0..=2 => removed.remove(&one),
                    8 => removed.insert(one),
                    _ => true,
                };
                action != 7 || !removed.contains(&two)
            };
            let entries: Vec<String> = adds.chain(changes).filter(is_recorded).map(entry).collect();
            let mut stored: Vec<Row> = catalog_after(&entries).rows().collect();
            for index in lost {
                if !stored.is_empty() {
                    stored.swap_remove(index.index(stored.len()));
                }
            }
            for (index, to) in moved {
                let to = CoreHash(core(to));
                let surplus = match stored.get(index.index(stored.len().max(1))).cloned() {
                    Some(Row::Tag { name, at, .. }) => Some(Row::Tag { name, core: to, at }),
                    Some(Row::Note { text, at, .. }) => Some(Row::Note { core: to, text, at }),
                    other => other,
                };
                stored.extend(surplus);
            }
            let (parts, counts, findings) = compared(&entries, &stored, usize::MAX);
            prop_assert_eq!(parts, 1);
            let (_, counts_of_parts, findings_of_parts) = compared(&entries, &stored, most_rows);
            prop_assert_eq!((counts_of_parts, findings_of_parts), (counts, findings));
        }
    }

    #[test]
    fn a_part_has_few_rows() {
        let entries: Vec<String> =
            (0..100).map(|number| digest(&number.to_string())).map(|core| add(&core, &core)).collect();
        let mut catalog = ExpectedCatalog::part(0..=u64::MAX, 20);
        let (mut parts, mut rows) = (1, 0);
        loop {
            for (seq, text) in (1..).zip(&entries) {
                catalog.apply(seq, &EntryText::parse(text).unwrap());
                assert!(catalog.rows <= 20 && catalog.rows().count() == catalog.rows);
            }
            rows += catalog.rows;
            let Some(next) = catalog.next_part() else { break };
            catalog = ExpectedCatalog::part(next, 20);
            parts += 1;
        }
        assert_eq!(rows, 200);
        assert!((10..=40).contains(&parts), "{parts}");
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
