//! The append-only, hash-chained record of changes to a vault, which every engine keeps in the same form:
//! `docs/journal.md` describes it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use super::actor::Actor;
use crate::digest::{CaptureHash, CoreHash, Digest, Hasher};

/// A filter of journal entries. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct JournalQuery {
    /// The earliest time, inclusive, compared with the time in the entry's text.
    pub since: Option<DateTime<Utc>>,
    /// The latest time, exclusive.
    pub until: Option<DateTime<Utc>>,
    /// The action, such as `add`.
    pub action: Option<String>,
    /// The maximum number of entries; the last ones are selected.
    pub limit: Option<u32>,
}

/// The last entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; 0 if the journal is empty.
    pub seq: u64,
    /// Its chain value: the digest of all entries; 32 zero bytes if the journal is empty.
    pub chain: Digest,
}

/// The result of checking every entry of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalCheck {
    /// The last entry, as stored.
    pub head: Head,
    /// The first defect.
    pub defect: Option<JournalDefect>,
    /// The entry whose chain value is the given digest; 0 is the beginning, before the first entry.
    pub since: Option<u64>,
}

/// A defect of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalDefect {
    /// An entry, or one before it, was changed after it was chained.
    #[error("entry {0} or an earlier one was changed")]
    Changed(u64),
    /// An entry is missing.
    #[error("entry {0} is missing")]
    Missing(u64),
}

impl JournalDefect {
    /// Returns the number of the entry.
    #[must_use]
    pub fn entry(&self) -> u64 {
        match self {
            Self::Changed(seq) | Self::Missing(seq) => *seq,
        }
    }
}

/// A journal event. Members are declared in their canonical order.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum JournalEvent<'e> {
    /// A capture was added, either the first of its artifact or a further one.
    Add {
        capture: CaptureHash,
        core: CoreHash,
        kind: &'e str,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        source_path: Option<&'e str>,
    },
    /// Existing captures were added again, in this order. `cores` contains the artifact of each capture, at the same
    /// position: captures of artifacts of different kinds may have the same hash.
    Seen { captures: &'e [CaptureHash], cores: &'e [CoreHash] },
    /// The known signature state of a capture changed; `key_id` is the id that the capture states.
    Signature {
        capture: CaptureHash,
        core: CoreHash,
        #[serde(skip_serializing_if = "Option::is_none")]
        key_id: Option<&'e str>,
        state: &'e str,
    },
    /// A link was added manually.
    Link {
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'e str>,
        relation: &'e str,
        source: CoreHash,
        target: CoreHash,
    },
    /// The index was rebuilt from the stored bytes of `indexed` artifacts.
    Reindex { indexed: u64, not_admitted: u64 },
    /// A repair was made; `did` describes what was done to `subject`.
    Repair { did: &'e str, subject: &'e str },
    /// A manual link was removed, either directly or with one of its ends.
    Unlink { relation: &'e str, source: CoreHash, target: CoreHash },
    /// A tag was set on an artifact, and thereby removed from any other.
    Tag { core: CoreHash, name: &'e str },
    /// A tag was removed from an artifact.
    Untag { core: CoreHash, name: &'e str },
    /// An artifact was pinned.
    Pin {
        core: CoreHash,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'e str>,
    },
    /// An artifact was unpinned.
    Unpin { core: CoreHash },
    /// The note of an artifact was set, replaced or removed.
    Note {
        core: CoreHash,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'e str>,
    },
    /// Labels were set on artifacts, replacing the values of these keys.
    Label { cores: &'e [CoreHash], labels: &'e BTreeMap<String, String> },
    /// The labels with these keys were removed from artifacts.
    Unlabel { cores: &'e [CoreHash], keys: &'e BTreeSet<String> },
    /// Captures were removed; if `left` is 0, the artifact is gone.
    Remove {
        captures: &'e [CaptureHash],
        core: CoreHash,
        kind: &'e str,
        left: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'e str>,
        size: u64,
    },
    /// A removed artifact may be added again. The entry of its addition follows this one.
    AllowRemoved { core: CoreHash, kind: &'e str },
    /// Space was reclaimed.
    Gc { blobs: u64, bytes_after: u64, bytes_before: u64, dictionaries: u64, recompressed: u64 },
}

impl JournalEvent<'_> {
    pub(super) fn action(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add",
            Self::Seen { .. } => "seen",
            Self::Signature { .. } => "signature",
            Self::Link { .. } => "link",
            Self::Unlink { .. } => "unlink",
            Self::Tag { .. } => "tag",
            Self::Untag { .. } => "untag",
            Self::Pin { .. } => "pin",
            Self::Unpin { .. } => "unpin",
            Self::Note { .. } => "note",
            Self::Label { .. } => "label",
            Self::Unlabel { .. } => "unlabel",
            Self::Remove { .. } => "remove",
            Self::AllowRemoved { .. } => "allow-removed",
            Self::Reindex { .. } => "reindex",
            Self::Repair { .. } => "repair",
            Self::Gc { .. } => "gc",
        }
    }
}

/// A journal entry. Its text is its RFC 8785 form, so that any program can read and check it: the common members come
/// first in that order, and the members of events must come after `at`.
#[derive(Serialize)]
struct SerializedEntry<'e> {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'e str>,
    at: &'e str,
    #[serde(flatten)]
    event: &'e JournalEvent<'e>,
}

/// The end of a journal within a transaction, with what all entries of the transaction have in common.
pub(super) struct JournalWriter {
    head: Head,
    actor: Option<Actor>,
    at: DateTime<Utc>,
    at_text: String,
}

impl JournalWriter {
    /// Creates a writer at the end of a journal whose last entry has the time `last`, for changes by `actor` at the
    /// time `at`. Times never go back: if the last entry is later, its time is used.
    pub(super) fn new(
        head: Head,
        last: Option<DateTime<Utc>>,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> Self {
        // In the form in which it will be read back.
        let at = DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at);
        let at = last.map_or(at, |last| at.max(last));
        let at_text = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        Self { head, actor: actor.cloned(), at, at_text }
    }

    /// Returns the last entry.
    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Returns the actor of the recorded changes.
    pub(super) fn actor(&self) -> Option<&Actor> {
        self.actor.as_ref()
    }

    /// Returns the time of the recorded changes.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Continues after an entry of another journal, which has been checked to follow the last one, with its time.
    pub(super) fn adopt(&mut self, head: Head, at: DateTime<Utc>) {
        (self.head, self.at) = (head, at);
        self.at_text = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    }

    /// Extends the chain by an entry of `event` and returns its text.
    pub(super) fn append(&mut self, event: &JournalEvent<'_>) -> serde_json::Result<String> {
        let actor = self.actor.as_ref().map(Actor::name);
        let entry = SerializedEntry { action: event.action(), actor, at: &self.at_text, event };
        // serde_json writes strings and numbers as RFC 8785 does.
        let text = serde_json::to_string(&entry)?;
        self.head = Head { seq: self.head.seq + 1, chain: next(&self.head.chain, &text) };
        Ok(text)
    }
}

/// Maximum number of captures in an entry of captures that were seen again, to limit the memory for an entry.
pub(super) const MAX_CAPTURES: usize = 1_000;

/// Returns the sort key of an arrival in the journal: the number of the entry, then the position in it.
pub(super) fn arrival(entry: i64, position: u32) -> i64 {
    const { assert!(MAX_CAPTURES < 1 << 20) };
    // A number that no journal reaches may be stored by mistake.
    (entry << 20).wrapping_add(i64::from(position))
}

/// Returns the chain value of an entry with this text that follows the chain value `before`.
pub(super) fn next(before: &Digest, text: &str) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(before.as_bytes());
    hasher.update(text.as_bytes());
    hasher.finish()
}

impl JournalCheck {
    /// Creates a check that starts before the first entry and looks for the chain value `since`.
    pub(super) fn begin(since: Option<Digest>) -> Self {
        let zero = Digest::from_bytes([0; 32]);
        Self { head: Head { seq: 0, chain: zero }, defect: None, since: (since == Some(zero)).then_some(0) }
    }

    /// Checks the next entry, and returns its defect.
    pub(super) fn take(
        &mut self,
        seq: u64,
        entry: Option<&str>,
        chain: Digest,
        since: Option<Digest>,
    ) -> Option<JournalDefect> {
        let expected = entry.map(|entry| next(&self.head.chain, entry));
        let defect = if seq != self.head.seq + 1 {
            Some(JournalDefect::Missing(self.head.seq + 1))
        } else if expected != Some(chain) {
            Some(JournalDefect::Changed(seq))
        } else {
            None
        };
        self.defect = self.defect.or(defect);
        self.head = Head { seq, chain };
        if since == Some(chain) {
            self.since = self.since.or(Some(seq));
        }
        defect
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn entries_are_in_their_canonical_form() {
        for (text, canonical) in examples() {
            assert_eq!(text.as_bytes(), canonical);
        }
    }

    /// Returns the text of an entry of each event, and its canonical form.
    pub(in crate::storage) fn examples() -> Vec<(String, Vec<u8>)> {
        let mut examples = Vec::new();
        let (core, capture) = (CoreHash(Digest::from_content(b"a")), CaptureHash(Digest::from_content(b"b")));
        let at = "2026-01-01T00:00:00.000Z";
        let hostile = "\u{e000}\u{1f600}\u{7f}\u{1}\"\\/é";
        let (note, reason, name) = (Some(hostile), Some(hostile), hostile);
        let size = 9_007_199_254_740_991;
        let labels = ["z", "a.b/c-d_e", "A"].map(|key| (key.to_owned(), hostile.to_owned()));
        let (labels, keys) = (BTreeMap::from(labels.clone()), labels.map(|(key, _)| key).into());
        for event in [
            JournalEvent::Add { capture, core, kind: "trace", size, source_path: None },
            JournalEvent::Add { capture, core, kind: "trace", size, source_path: Some(hostile) },
            JournalEvent::Seen { captures: &[capture, capture], cores: &[core, core] },
            JournalEvent::Signature { capture, core, key_id: Some(hostile), state: "verified" },
            JournalEvent::Signature { capture, core, key_id: None, state: "unchecked" },
            JournalEvent::Link { note, relation: "governs", source: core, target: core },
            JournalEvent::Link { note: None, relation: "governs", source: core, target: core },
            JournalEvent::Unlink { relation: "governs", source: core, target: core },
            JournalEvent::Tag { core, name },
            JournalEvent::Untag { core, name },
            JournalEvent::Pin { core, note },
            JournalEvent::Unpin { core },
            JournalEvent::Note { core, note },
            JournalEvent::Note { core, note: None },
            JournalEvent::Label { cores: &[core, core], labels: &labels },
            JournalEvent::Unlabel { cores: &[core], keys: &keys },
            JournalEvent::Remove { captures: &[capture, capture], core, kind: "rpk", left: 0, reason, size },
            JournalEvent::AllowRemoved { core, kind: "rpk" },
            JournalEvent::Gc { blobs: 1, bytes_after: 2, bytes_before: 3, dictionaries: 4, recompressed: 5 },
            JournalEvent::Reindex { indexed: 7, not_admitted: 0 },
            JournalEvent::Repair { did: "restored", subject: "blob sha256:…" },
        ] {
            for actor in [None, Some(hostile)] {
                let entry = SerializedEntry { action: event.action(), actor, at, event: &event };
                let text = serde_json::to_string(&entry).unwrap();
                examples.push((text, serde_json_canonicalizer::to_vec(&entry).unwrap()));
            }
        }
        examples
    }
}
