//! The state of the catalog that follows from the journal.
//!
//! The journal is read once, entry by entry, and its chain is computed on the way. Only the numbers of the entries that
//! determine a row of the catalog, and the key of that row, are kept in memory: the values stay in the journal and are
//! read from it when a row is compared. So memory use grows with the number of rows, not with their content: about 100
//! bytes per artifact and 60 per capture.
//!
//! A new event gets an arm in [`JournalState::apply`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::entry::{Entry, EntryText};
use crate::storage::journal::{JournalCheck, JournalDefect, arrival};
use crate::storage::seal::seal;

/// The key of a manual link.
pub(in crate::storage) type JournalLinkKey = (CoreHash, String, CoreHash);

/// The artifact and the key of a label.
pub(in crate::storage) type JournalLabelKey = (CoreHash, Arc<str>);

/// The state of a label that the journal records. Unlike other annotations, it is not read again from the entry, which
/// may be about many artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct LabelEntry {
    pub(in crate::storage) seq: i64,
    pub(in crate::storage) value: Arc<str>,
    /// The time of the entry in milliseconds since 1970, if it has a valid one.
    pub(in crate::storage) at: Option<i64>,
}

impl LabelEntry {
    /// Describes how the entry differs from a label that is stored.
    pub(in crate::storage) fn difference(&self, value: &str, at: i64) -> Option<String> {
        let differences = [(value != &*self.value, "another value"), (self.at != Some(at), "another time")];
        let parts: Vec<&str> =
            differences.iter().filter(|(differs, _)| *differs).map(|(_, part)| *part).collect();
        (!parts.is_empty()).then(|| format!("entry {} has {}", self.seq, parts.join(" and ")))
    }
}

/// The key of a capture: the seal of its artifact's core hash and its own hash. Captures of artifacts of different
/// kinds may have the same hash.
type CaptureKey = [u8; 16];

fn capture_key(core: CoreHash, capture: CaptureHash) -> CaptureKey {
    seal(core, capture)
}

/// The entries about a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) struct CaptureEntries {
    /// The artifact, as an index into [`JournalState::artifact_entries`].
    artifact: usize,
    /// The last entry that added it.
    pub(in crate::storage) added: i64,
    /// The last entry that added it or saw it again.
    pub(in crate::storage) seen: i64,
}

/// The entries about an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) struct ArtifactEntries {
    /// The entry that first added it.
    pub(in crate::storage) added: i64,
    /// The last entry that added one of its captures or saw it again.
    pub(in crate::storage) seen: i64,
    /// The position of the capture in that entry.
    position: u32,
}

impl ArtifactEntries {
    /// Returns the artifact's position in the order of arrival.
    pub(in crate::storage) fn arrival(&self) -> i64 {
        arrival(self.seen, self.position)
    }
}

/// The expected state of the catalog after the last entry. Each value is the number of the entry that determines it.
#[derive(Default)]
pub(in crate::storage) struct JournalState {
    captures: HashMap<CaptureKey, CaptureEntries>,
    /// The artifacts in the vault, as indexes into `artifact_entries`.
    artifacts: HashMap<CoreHash, usize>,
    artifact_entries: Vec<ArtifactEntries>,
    /// Later additions of captures that the journal already had, because they had been lost. The journal does not
    /// record whether the artifact's own row was lost too.
    pub(in crate::storage) added_again: BTreeMap<CoreHash, Vec<i64>>,
    pub(in crate::storage) tags: BTreeMap<String, i64>,
    pub(in crate::storage) pins: BTreeMap<CoreHash, i64>,
    pub(in crate::storage) notes: BTreeMap<CoreHash, i64>,
    pub(in crate::storage) labels: BTreeMap<JournalLabelKey, LabelEntry>,
    pub(in crate::storage) links: BTreeMap<JournalLinkKey, i64>,
    pub(in crate::storage) signatures: BTreeMap<(CoreHash, CaptureHash), i64>,
    /// The entry of the last removal of each core hash and capture hash with each artifact, unless it was reverted.
    pub(in crate::storage) tombstones: BTreeMap<TombstoneKey, i64>,
    /// Whether rows of captures could not be read or identified, so that captures that remain may be in those.
    pub(in crate::storage) has_unread_captures: bool,
    /// The digests that were removed with each artifact.
    removed: HashMap<CoreHash, Vec<Digest>>,
}

/// A removed digest and the artifact that it was removed with.
pub(in crate::storage) type TombstoneKey = (Digest, CoreHash);

impl JournalState {
    fn apply(&mut self, seq: i64, at: Option<i64>, change: Entry) {
        match change {
            Entry::Add { core, capture, .. } => self.add(seq, core, capture),
            Entry::Seen { captures, cores } => self.see(seq, &captures, &cores),
            Entry::Remove { core, captures, left, .. } => self.remove(seq, core, captures, left),
            Entry::AllowRemoved { core, .. } => self.revert_removal(core),
            Entry::Tag { name, .. } => {
                self.tags.insert(name, seq);
            }
            Entry::Untag { name, .. } => {
                self.tags.remove(&name);
            }
            Entry::Pin { core, .. } => {
                self.pins.insert(core, seq);
            }
            Entry::Unpin { core } => {
                self.pins.remove(&core);
            }
            Entry::Note { core, note: Some(_) } => {
                self.notes.insert(core, seq);
            }
            Entry::Note { core, note: None } => {
                self.notes.remove(&core);
            }
            Entry::Label { cores, labels } => {
                for (key, value) in labels {
                    let (key, entry) = (Arc::from(key), LabelEntry { seq, value: value.into(), at });
                    self.labels.extend(cores.iter().map(|core| ((*core, Arc::clone(&key)), entry.clone())));
                }
            }
            Entry::Unlabel { cores, keys } => {
                for key in keys.into_iter().map(Arc::from) {
                    for core in &cores {
                        self.labels.remove(&(*core, Arc::clone(&key)));
                    }
                }
            }
            Entry::Link { source, relation, target, .. } => {
                self.links.insert((source, relation, target), seq);
            }
            Entry::Unlink { source, relation, target } => {
                self.links.remove(&(source, relation, target));
            }
            Entry::Signature { core, capture, .. } => {
                self.signatures.insert((core, capture), seq);
            }
            Entry::Gc { .. } | Entry::Reindex { .. } | Entry::Repair { .. } | Entry::Unknown => {}
        }
    }

    fn add(&mut self, seq: i64, core: CoreHash, capture: CaptureHash) {
        // Earlier versions wrote no entry for undoing a removal.
        self.revert_removal(core);
        let entries = ArtifactEntries { added: seq, seen: seq, position: 0 };
        let artifact = *self.artifacts.entry(core).or_insert_with(|| {
            self.artifact_entries.push(entries);
            self.artifact_entries.len() - 1
        });
        if let Some(known) = self.artifact_entries.get_mut(artifact) {
            *known = ArtifactEntries { added: known.added, ..entries };
        }
        // A signature state recorded before the capture was lost only counts if a later entry records it again.
        self.signatures.remove(&(core, capture));
        let entries = CaptureEntries { artifact, added: seq, seen: seq };
        if self.captures.insert(capture_key(core, capture), entries).is_some() {
            self.added_again.entry(core).or_default().push(seq);
        }
    }

    fn see(&mut self, seq: i64, captures: &[CaptureHash], cores: &[CoreHash]) {
        for (position, (capture, core)) in (0..).zip(captures.iter().zip(cores)) {
            let Some(entries) = self.captures.get_mut(&capture_key(*core, *capture)) else { continue };
            entries.seen = seq;
            if let Some(artifact) = self.artifact_entries.get_mut(entries.artifact) {
                *artifact = ArtifactEntries { added: artifact.added, seen: seq, position };
            }
        }
    }

    /// Returns the entries about a capture of the artifact `core`.
    pub(in crate::storage) fn capture(&self, core: CoreHash, capture: CaptureHash) -> Option<CaptureEntries> {
        self.captures.get(&capture_key(core, capture)).copied()
    }

    /// Returns the entries about the capture with this seal.
    #[cfg(feature = "postgres")]
    pub(in crate::storage) fn sealed(&self, seal: &[u8]) -> Option<CaptureEntries> {
        let key: CaptureKey = seal.try_into().ok()?;
        self.captures.get(&key).copied()
    }

    /// Returns the entries about a capture of the artifact `core`, and removes them from the state.
    pub(in crate::storage) fn take_capture(
        &mut self,
        core: CoreHash,
        capture: CaptureHash,
    ) -> Option<CaptureEntries> {
        let entries = self.capture(core, capture)?;
        self.captures.remove(&capture_key(core, capture));
        Some(entries)
    }

    /// Removes the capture with this seal from the state. Returns whether there is one.
    pub(in crate::storage) fn take_sealed(&mut self, seal: &[u8]) -> bool {
        CaptureKey::try_from(seal).is_ok_and(|key| self.captures.remove(&key).is_some())
    }

    /// Returns the remaining captures, in no particular order.
    pub(in crate::storage) fn captures(&self) -> impl Iterator<Item = &CaptureEntries> {
        self.captures.values()
    }

    /// Returns the entries about an artifact.
    pub(in crate::storage) fn artifact(&self, core: CoreHash) -> Option<ArtifactEntries> {
        self.artifacts.get(&core).and_then(|artifact| self.artifact_entries.get(*artifact)).copied()
    }

    /// Returns the entries that added captures of an artifact to the vault when it did not have any.
    pub(in crate::storage) fn additions(&self, core: CoreHash) -> impl Iterator<Item = i64> {
        let again = self.added_again.get(&core).into_iter().flatten();
        self.artifact(core).map(|entries| entries.added).into_iter().chain(again.copied())
    }

    fn remove(&mut self, seq: i64, core: CoreHash, captures: Vec<CaptureHash>, left: u64) {
        let mut digests = vec![core.0];
        for capture in captures {
            self.captures.remove(&capture_key(core, capture));
            self.signatures.remove(&(core, capture));
            digests.push(capture.0);
        }
        self.tombstones.extend(digests.iter().map(|digest| ((*digest, core), seq)));
        self.removed.entry(core).or_default().append(&mut digests);
        if left == 0 {
            self.artifacts.remove(&core);
            self.added_again.remove(&core);
        }
    }

    /// Reverts the removal of an artifact by removing its tombstones.
    fn revert_removal(&mut self, core: CoreHash) {
        for digest in self.removed.remove(&core).unwrap_or_default() {
            self.tombstones.remove(&(digest, core));
        }
    }
}

/// A defect of an entry.
pub(in crate::storage) enum EntryDefect {
    /// A break in the chain; with a description.
    Chain(String),
    /// An entry that this program does not recognize; with the reason.
    Unknown(String),
    /// An `at` column that differs from the time in the entry's text.
    Time,
}

/// The result of reading the journal.
pub(in crate::storage) struct JournalReplay {
    pub(in crate::storage) state: JournalState,
    /// The check of the chain.
    pub(in crate::storage) check: JournalCheck,
    /// The defects in the order of the entries, each with the entry's number.
    pub(in crate::storage) defects: Vec<(i64, EntryDefect)>,
}

impl JournalReplay {
    /// Returns whether every entry chains and was recognized, so that the state is proven by the journal.
    pub(in crate::storage) fn is_proven(&self) -> bool {
        self.check.defect.is_none()
            && !self.defects.iter().any(|(_, defect)| matches!(defect, EntryDefect::Unknown(_)))
    }
}

/// An entry of the journal as stored.
pub(in crate::storage) struct JournalRow<'r> {
    pub(in crate::storage) seq: i64,
    /// The text; `None` if it is not UTF-8.
    pub(in crate::storage) text: Option<&'r str>,
    pub(in crate::storage) chain: Digest,
    /// The time in milliseconds since 1970 that is stored beside the text.
    pub(in crate::storage) at: Option<i64>,
    /// The artifact and capture that the entry added, if they are stored instead of the text.
    pub(in crate::storage) added: Option<(CoreHash, CaptureHash)>,
}

impl JournalReplay {
    /// Creates the state before the first entry, of which none is read yet. The chain value `since` is looked for.
    pub(in crate::storage) fn begin(since: Option<Digest>) -> Self {
        Self { state: JournalState::default(), check: JournalCheck::begin(since), defects: Vec::new() }
    }

    /// Reads the next entry.
    pub(in crate::storage) fn take(&mut self, row: &JournalRow<'_>, since: Option<Digest>) {
        let JournalRow { seq, text, chain, at, added } = *row;
        let last = self.check.head.seq;
        // A number below 1 has no predecessor, so it is out of order in any case.
        let defect = self.check.take(u64::try_from(seq).unwrap_or(0), text, chain, since);
        match defect {
            Some(JournalDefect::Missing(_)) => {
                self.defects.push((seq, EntryDefect::Chain(format!("it follows entry {last}"))));
            }
            Some(JournalDefect::Changed(_)) => {
                let detail = "it or the chain before it was changed".to_owned();
                self.defects.push((seq, EntryDefect::Chain(detail)));
            }
            None => {}
        }
        if let Some((core, capture)) = added {
            self.state.add(seq, core, capture);
            return;
        }
        let text = text.unwrap_or_default();
        match EntryText::parse(text) {
            Ok(EntryText { change: Entry::Unknown, .. }) if defect.is_none() => {
                let action = EntryText::action(text).unwrap_or_default();
                let detail = format!("this program does not know the action {action:?}");
                self.defects.push((seq, EntryDefect::Unknown(detail)));
            }
            Ok(entry) => {
                let written = entry.milliseconds();
                if written != at {
                    self.defects.push((seq, EntryDefect::Time));
                }
                self.state.apply(seq, written, entry.change);
            }
            // An entry that breaks the chain is already reported as changed.
            Err(_) if defect.is_some() => {}
            Err(error) => self.defects.push((seq, EntryDefect::Unknown(error.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::from_content(text.as_bytes())
    }

    fn state_after(entries: &[String]) -> JournalState {
        let mut state = JournalState::default();
        for (seq, text) in (1..).zip(entries) {
            let entry = EntryText::parse(text).unwrap();
            state.apply(seq, entry.milliseconds(), entry.change);
        }
        state
    }

    fn entry_of(action: &str, members: &str) -> String {
        format!(r#"{{"action":"{action}","actor":"a","at":"2026-01-01T00:00:00.000Z",{members}}}"#)
    }

    #[test]
    fn the_last_entry_about_a_row_determines_it() {
        let (one, two) = (digest("one"), digest("two"));
        let state = state_after(&[
            entry_of("add", &format!(r#""capture":"{two}","core":"{one}","kind":"trace","size":1"#)),
            entry_of("tag", &format!(r#""core":"{one}","name":"a""#)),
            entry_of("tag", &format!(r#""core":"{two}","name":"a""#)),
            entry_of("note", &format!(r#""core":"{one}","note":"n""#)),
            entry_of("pin", &format!(r#""core":"{one}""#)),
            entry_of("link", &format!(r#""relation":"r","source":"{one}","target":"{two}""#)),
            entry_of("gc", r#""blobs":0,"bytes_after":0,"bytes_before":0,"dictionaries":0,"recompressed":0"#),
        ]);
        assert_eq!(state.tags, BTreeMap::from([("a".to_owned(), 3)]));
        assert_eq!(state.notes, BTreeMap::from([(CoreHash(one), 4)]));
        assert_eq!(state.pins, BTreeMap::from([(CoreHash(one), 5)]));
        assert_eq!(state.links.values().collect::<Vec<_>>(), [&6]);
        let entries = ArtifactEntries { added: 1, seen: 1, position: 0 };
        assert_eq!(state.artifact(CoreHash(one)), Some(entries));
    }

    #[test]
    fn an_entry_may_set_labels_of_several_artifacts() {
        let (one, two) = (digest("one"), digest("two"));
        let state = state_after(&[
            entry_of("label", &format!(r#""cores":["{one}","{two}"],"labels":{{"a":"x","b":"y"}}"#)),
            entry_of("label", &format!(r#""cores":["{two}"],"labels":{{"b":"z"}}"#)),
            entry_of("unlabel", &format!(r#""cores":["{one}","{two}"],"keys":["a","none"]"#)),
        ]);
        let at = Some(1_767_225_600_000);
        let entry = |seq, value: &str| LabelEntry { seq, value: value.into(), at };
        let expected =
            [((CoreHash(one), "b".into()), entry(1, "y")), ((CoreHash(two), "b".into()), entry(2, "z"))];
        assert_eq!(state.labels, BTreeMap::from(expected));
    }

    #[test]
    fn what_was_removed_is_a_tombstone_until_it_is_removed_again() {
        let (core, capture) = (digest("core"), digest("capture"));
        let add =
            entry_of("add", &format!(r#""capture":"{capture}","core":"{core}","kind":"trace","size":1"#));
        let members = format!(r#""captures":["{capture}"],"core":"{core}","kind":"trace","left":0,"size":1"#);
        let remove = entry_of("remove", &members);
        let state = state_after(&[add.clone(), remove.clone(), add.clone()]);
        assert_eq!(state.artifact(CoreHash(core)).unwrap().added, 3);
        let seqs = |state: &JournalState| -> Vec<i64> { state.tombstones.values().copied().collect() };
        // Earlier versions wrote no entry for undoing it.
        assert!(seqs(&state).is_empty() && state.added_again.is_empty());
        let state = state_after(&[add.clone(), remove.clone(), add.clone(), remove.clone()]);
        assert!(state.artifacts.is_empty() && state.captures.is_empty());
        assert_eq!(seqs(&state), [4, 4]);
        let allow = entry_of("allow-removed", &format!(r#""core":"{core}","kind":"trace""#));
        let state = state_after(&[add.clone(), remove.clone(), allow, add.clone()]);
        assert!(seqs(&state).is_empty() && state.artifact(CoreHash(core)).is_some());
        // An artifact that was added again without a removal had been lost.
        let state = state_after(&[add.clone(), add]);
        assert_eq!(state.artifact(CoreHash(core)).unwrap().added, 1);
        assert_eq!(state.added_again, BTreeMap::from([(CoreHash(core), vec![2])]));
    }

    #[test]
    fn what_is_seen_again_arrives_again_and_is_not_added_again() {
        let (core, other, capture) = (digest("core"), digest("other"), digest("capture"));
        let add =
            entry_of("add", &format!(r#""capture":"{capture}","core":"{core}","kind":"trace","size":1"#));
        let see =
            entry_of("seen", &format!(r#""captures":["{other}","{capture}"],"cores":["{other}","{core}"]"#));
        let state = state_after(&[add, see]);
        let artifact = state.artifact(CoreHash(core)).unwrap();
        assert_eq!((artifact.added, artifact.seen, artifact.arrival()), (1, 2, (2 << 20) + 1));
        let capture = state.capture(CoreHash(core), CaptureHash(capture)).unwrap();
        assert_eq!((capture.added, capture.seen), (1, 2));
        assert!(state.capture(CoreHash(other), CaptureHash(other)).is_none());
    }
}
