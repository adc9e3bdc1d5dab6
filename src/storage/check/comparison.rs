//! Comparison of the rows of the catalog with the entries of the journal that determine them.
//!
//! Engines read the rows and the entries; what is compared, and what a difference is called, is the same for all of them.

use std::collections::BTreeMap;

use super::finding::{
    self, ANNOTATION_DIFFERS, ANNOTATION_LOST, ANNOTATION_UNRECORDED, CAPTURE_UNRECORDED, Finding,
    FindingInfo, KIND_WRONG, ORDER_DIFFERS, SIGNATURE_DIFFERS, SIZE_WRONG, SOURCE_PATH_DIFFERS, Subject,
    TIME_DIFFERS, TOMBSTONE_DIFFERS,
};
use super::journal_state::{
    ArtifactEntries, CaptureEntries, JournalLabelKey, JournalLinkKey, JournalState, LabelEntry,
};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::entry::{Entry, EntryText};

const ARRIVED_BEFORE: &str = "in the journal, it arrived before the one that precedes it in the vault";
const SEEN_OTHERWISE: &str = "the journal has a different time at which it was last seen";
const SEEN_ELSEWHERE: &str =
    "the journal has it at a different position in the order in which artifacts were last seen";

/// The comparison of the rows of a table, which come in the order of their ids.
#[derive(Default)]
pub(in crate::storage) struct JournalComparison {
    /// Number of rows that the journal knows.
    pub(in crate::storage) count: u64,
    pub(in crate::storage) found: Vec<Finding>,
    /// The entry that added the row before.
    last: i64,
}

/// The facts of an addition that the journal records. `S` names source paths.
pub(in crate::storage) struct AdditionFacts<S> {
    /// The time in milliseconds since 1970; `None` if the entry has no valid one.
    pub(in crate::storage) at: Option<i64>,
    pub(in crate::storage) size: Option<i64>,
    pub(in crate::storage) kind: Option<String>,
    pub(in crate::storage) source_path: Option<S>,
}

/// An artifact as stored, as far as the journal determines it.
pub(in crate::storage) struct JournaledArtifactRow {
    pub(in crate::storage) core: CoreHash,
    pub(in crate::storage) added_at: i64,
    pub(in crate::storage) seen_at: i64,
    pub(in crate::storage) arrival: i64,
}

/// A tag, a note, a pin or a manual link, as stored or as an entry sets it.
pub(in crate::storage) struct AnnotationFacts {
    /// The artifact, or the source of a link. `None` if the row refers to a missing artifact.
    pub(in crate::storage) core: Option<CoreHash>,
    pub(in crate::storage) text: Option<String>,
    /// The time in milliseconds since 1970; `None` if the entry has no valid one.
    pub(in crate::storage) at: Option<i64>,
}

/// The state of a signature and the id of its key, as stored or as an entry records them.
pub(in crate::storage) type SignatureFacts = (String, Option<String>);

impl JournalComparison {
    /// Adds the findings in their order to `findings`. Returns the number of rows that the journal knows.
    pub(in crate::storage) fn finish(mut self, findings: &mut Vec<Finding>) -> u64 {
        finding::sort(&mut self.found);
        findings.append(&mut self.found);
        self.count
    }

    fn find(&mut self, info: FindingInfo, subject: &Subject, detail: impl Into<String>) {
        self.found.push(Finding::new(info, subject.clone(), detail.into()));
    }

    /// Compares the position of a capture and the time at which it was last seen. `entries` are those about it, of which the
    /// last one has the time `seen.1`. Returns the entry that added it.
    pub(in crate::storage) fn capture(
        &mut self,
        capture: CaptureHash,
        entries: Option<CaptureEntries>,
        seen: (i64, Option<i64>),
    ) -> Option<i64> {
        let subject = Subject::Capture(capture);
        let Some(entries) = entries else {
            self.find(CAPTURE_UNRECORDED, &subject, "no entry records that it was added");
            return None;
        };
        self.count += 1;
        if entries.added < self.last {
            self.find(ORDER_DIFFERS, &subject, ARRIVED_BEFORE);
        }
        self.last = entries.added;
        if seen.1 != Some(seen.0) {
            self.find(TIME_DIFFERS, &subject, SEEN_OTHERWISE);
        }
        Some(entries.added)
    }

    /// Compares a capture with the entry that added it.
    pub(in crate::storage) fn addition<S: PartialEq>(
        &mut self,
        capture: CaptureHash,
        stored: &AdditionFacts<S>,
        recorded: &AdditionFacts<S>,
    ) {
        for (is_same, info, what) in [
            (recorded.at == stored.at, TIME_DIFFERS, "time"),
            (recorded.size.is_none() || recorded.size == stored.size, SIZE_WRONG, "size"),
            (recorded.kind.is_none() || recorded.kind == stored.kind, KIND_WRONG, "kind"),
            (recorded.source_path == stored.source_path, SOURCE_PATH_DIFFERS, "source path"),
        ] {
            if !is_same {
                self.find(info, &Subject::Capture(capture), format!("the journal has a different {what}"));
            }
        }
    }

    /// Compares an artifact with the entries about it. `time_of` returns the time of an entry.
    ///
    /// # Errors
    /// As `time_of`.
    pub(in crate::storage) fn artifact<E>(
        &mut self,
        state: &JournalState,
        entries: ArtifactEntries,
        row: &JournaledArtifactRow,
        mut time_of: impl FnMut(i64) -> Result<Option<i64>, E>,
    ) -> Result<(), E> {
        let subject = Subject::Artifact(row.core);
        self.count += 1;
        if time_of(entries.seen)? != Some(row.seen_at) {
            self.find(TIME_DIFFERS, &subject, SEEN_OTHERWISE);
        }
        if row.arrival != entries.arrival() {
            self.find(ORDER_DIFFERS, &subject, SEEN_ELSEWHERE);
        }
        let mut arrivals = Vec::new();
        for seq in state.additions(row.core) {
            if time_of(seq)? == Some(row.added_at) {
                arrivals.push(seq);
            }
        }
        let Some(latest) = arrivals.last() else {
            self.find(TIME_DIFFERS, &subject, "the journal has a different time");
            self.last = self.last.max(entries.added);
            return Ok(());
        };
        let arrival = *arrivals.iter().find(|seq| **seq > self.last).unwrap_or(latest);
        if arrival < self.last {
            self.find(ORDER_DIFFERS, &subject, ARRIVED_BEFORE);
        }
        self.last = arrival;
        Ok(())
    }

    /// Compares the stored state of a signature with the entry that recorded it: whether there is one, and what it states,
    /// if it can be read.
    pub(in crate::storage) fn signature(
        &mut self,
        capture: CaptureHash,
        stored: Option<&SignatureFacts>,
        (is_recorded, recorded): (bool, Option<&SignatureFacts>),
    ) {
        let detail = match stored {
            None if !is_recorded => return,
            None => "the journal records it, but it is missing",
            Some(_) if !is_recorded => "no entry recorded its state",
            Some(stored) if recorded == Some(stored) => {
                self.count += 1;
                return;
            }
            Some(_) => "the journal records a different state or key",
        };
        self.find(SIGNATURE_DIFFERS, &Subject::Capture(capture), detail);
    }

    /// Reports the signatures that remain in the state.
    pub(in crate::storage) fn lost_signatures(&mut self, state: &mut JournalState) {
        for (_, capture) in std::mem::take(&mut state.signatures).into_keys() {
            self.signature(capture, None, (true, None));
        }
    }

    /// Compares a tag, a note, a pin or a manual link with the entry that set it. `set` is its number and what it records,
    /// if it can be read.
    pub(in crate::storage) fn annotation(
        &mut self,
        subject: &Subject,
        stored: &AnnotationFacts,
        set: Option<(i64, Option<AnnotationFacts>)>,
    ) {
        let Some((seq, recorded)) = set else {
            self.find(ANNOTATION_UNRECORDED, subject, "no entry set it");
            return;
        };
        self.count += 1;
        if let Some(detail) = recorded.and_then(|recorded| stored.difference(&recorded, seq)) {
            self.find(ANNOTATION_DIFFERS, subject, detail);
        }
    }

    /// Compares a label with the journal, and removes it from the state.
    pub(in crate::storage) fn label(
        &mut self,
        state: &mut JournalState,
        key: &JournalLabelKey,
        (value, at): (&str, i64),
    ) {
        let subject = label_subject(key);
        let Some(recorded) = state.labels.remove(key) else {
            self.find(ANNOTATION_UNRECORDED, &subject, "no entry set it");
            return;
        };
        self.count += 1;
        if let Some(detail) = recorded.difference(value, at) {
            self.find(ANNOTATION_DIFFERS, &subject, detail);
        }
    }

    /// Reports the labels that remain in the state.
    pub(in crate::storage) fn lost_labels(&mut self, state: &mut JournalState) {
        for (key, LabelEntry { seq, .. }) in std::mem::take(&mut state.labels) {
            self.find(ANNOTATION_LOST, &label_subject(&key), format!("entry {seq} set it"));
        }
    }

    /// Reports the tags, notes, pins or manual links that remain in the state.
    pub(in crate::storage) fn lost_annotations<K: Ord>(
        &mut self,
        remaining: &mut BTreeMap<K, i64>,
        subject: impl Fn(&K) -> Subject,
    ) {
        for (key, seq) in std::mem::take(remaining) {
            self.find(ANNOTATION_LOST, &subject(&key), format!("entry {seq} set it"));
        }
    }

    /// Compares a tombstone that refers to the entry `seq` with the removal that the journal records of the digest with the
    /// artifact `core`, and removes it from the state. Returns whether they agree.
    pub(in crate::storage) fn tombstone(
        &mut self,
        state: &mut JournalState,
        digest: Digest,
        core: Option<CoreHash>,
        seq: i64,
    ) -> bool {
        let detail = match core.and_then(|core| state.tombstones.remove(&(digest, core))) {
            Some(removal) if removal == seq => {
                self.count += 1;
                return true;
            }
            Some(removal) => format!("it refers to entry {seq}; entry {removal} removed it"),
            None => format!("it refers to entry {seq}, which did not remove it"),
        };
        self.find(TOMBSTONE_DIFFERS, &Subject::Tombstone(digest), detail);
        false
    }

    /// Reports the tombstones that remain in the state.
    pub(in crate::storage) fn lost_tombstones(&mut self, state: &mut JournalState) {
        for ((digest, _), seq) in std::mem::take(&mut state.tombstones) {
            let detail = format!("it is missing; entry {seq} removed it");
            self.find(TOMBSTONE_DIFFERS, &Subject::Tombstone(digest), detail);
        }
    }
}

impl AnnotationFacts {
    /// Returns what an entry sets, or `None` if it sets no annotation.
    pub(in crate::storage) fn from_entry(entry: EntryText) -> Option<Self> {
        let at = entry.milliseconds();
        let (core, text) = match entry.change {
            Entry::Tag { core, .. } => (core, None),
            Entry::Note { core, note } | Entry::Pin { core, note } => (core, note),
            Entry::Link { source, note, .. } => (source, note),
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

/// Returns the state of a signature that an entry records, if it records one.
pub(in crate::storage) fn signature_facts(entry: &EntryText) -> Option<SignatureFacts> {
    match &entry.change {
        Entry::Signature { state, key_id, .. } => Some((state.clone(), key_id.clone())),
        _ => None,
    }
}

fn label_subject((core, key): &JournalLabelKey) -> Subject {
    Subject::Label { core: *core, key: key.as_ref().to_owned() }
}

pub(in crate::storage) fn link_subject((source, relation, target): &JournalLinkKey) -> Subject {
    Subject::Link { source: *source, relation: relation.clone(), target: *target }
}
