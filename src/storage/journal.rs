//! The append-only, hash-chained record of changes to a vault, which every engine keeps in the same form, and its records of
//! removals: `docs/journal.md` describes it.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::{CoreHash, Digest, Hasher};
use crate::storage::entry::Entry;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = JournalHead)]
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

/// The end of a journal within a transaction, with what all entries of the transaction have in common.
pub struct JournalWriter {
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

    /// Extends the chain by an entry and returns its text.
    pub(super) fn append(&mut self, entry: &Entry) -> serde_json::Result<String> {
        let text = entry.text(self.actor.as_ref().map(Actor::name), &self.at_text)?;
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
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::digest::{CaptureHash, CoreHash};

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
        let hostile_text = || hostile.to_owned();
        let size = 9_007_199_254_740_991;
        let labels = ["z", "a.b/c-d_e", "A"].map(|key| (key.to_owned(), hostile_text()));
        let keys: BTreeSet<String> = labels.clone().map(|(key, _)| key).into();
        let labels = BTreeMap::from(labels);
        let kind = || "trace".to_owned();
        let relation = || "governs".to_owned();
        let (source, target) = (core, core);
        for event in [
            Entry::Add { capture, core, kind: kind(), size, source_path: None },
            Entry::Add { capture, core, kind: kind(), size, source_path: Some(hostile_text()) },
            Entry::Seen { captures: vec![capture, capture], cores: vec![core, core] },
            Entry::Signature { capture, core, key_id: Some(hostile_text()), state: "verified".to_owned() },
            Entry::Signature { capture, core, key_id: None, state: "unchecked".to_owned() },
            Entry::Link { note: Some(hostile_text()), relation: relation(), source, target },
            Entry::Link { note: None, relation: relation(), source, target },
            Entry::Unlink { relation: relation(), source, target },
            Entry::Tag { core, name: hostile_text() },
            Entry::Untag { core, name: hostile_text() },
            Entry::Pin { core, note: Some(hostile_text()) },
            Entry::Unpin { core },
            Entry::Note { core, note: Some(hostile_text()) },
            Entry::Note { core, note: None },
            Entry::Label { cores: vec![core, core], labels },
            Entry::Unlabel { cores: vec![core], keys },
            Entry::Remove {
                captures: vec![capture, capture],
                core,
                kind: kind(),
                left: 0,
                reason: Some(hostile_text()),
                size,
            },
            Entry::AllowRemoved { core, kind: kind() },
            Entry::Gc { blobs: 1, bytes_after: 2, bytes_before: 3, dictionaries: 4, recompressed: 5 },
            Entry::Reindex { indexed: 7, not_admitted: 0 },
            Entry::Repair { did: "restored".to_owned(), subject: "blob sha256:…".to_owned() },
        ] {
            for actor in [None, Some(hostile)] {
                let text = event.text(actor, at).unwrap();
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                examples.push((text, serde_json_canonicalizer::to_vec(&value).unwrap()));
            }
        }
        examples
    }
}

/// The author of a change to a vault: a person, a program or a CI job. The name is self-declared; nothing authenticates
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

/// The error for an invalid actor name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of an actor must have 1 to {} bytes", Actor::MAX_BYTES)]
pub struct ActorError;

impl Actor {
    /// Maximum length in bytes. Longer names would make every journal entry long.
    pub const MAX_BYTES: usize = 256;

    /// Creates an actor with the name `name`.
    ///
    /// # Errors
    /// Returns an error if the name is empty or longer than [`Actor::MAX_BYTES`].
    pub fn new(name: impl Into<String>) -> Result<Self, ActorError> {
        let name = name.into();
        if name.is_empty() || name.len() > Self::MAX_BYTES { Err(ActorError) } else { Ok(Self(name)) }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The journal's record of a removal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tombstone {
    /// The removed core hash or capture hash.
    pub digest: Digest,
    /// The number of the entry.
    pub entry: u64,
    /// The time of the removal.
    pub at: DateTime<Utc>,
    /// The core hash of the artifact.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// The actor.
    pub actor: Option<String>,
    /// The reason.
    pub reason: Option<String>,
    /// Number of remaining captures of the artifact.
    pub left: u64,
    /// Number of bytes that were removed.
    pub size: u64,
}

impl Tombstone {
    /// Returns the tombstone of a digest that an entry removes; `None` if the entry removes nothing. Times have milliseconds.
    pub(super) fn new(
        change: &Entry,
        digest: Digest,
        entry: u64,
        at: DateTime<Utc>,
        actor: Option<&str>,
    ) -> Option<Self> {
        let Entry::Remove { core, kind, left, reason, size, .. } = change else { return None };
        let (actor, kind, reason) = (actor.map(str::to_owned), kind.clone(), reason.clone());
        let at = DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at);
        Some(Self { digest, entry, at, core: *core, kind, actor, reason, left: *left, size: *size })
    }

    /// Describes the removal: `removed by dana on 2026-11-20 13:04:03 UTC: names a customer`, with the actor and the
    /// reason if they are recorded.
    #[must_use]
    pub fn removal(&self) -> String {
        let by = self.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("removed{by} on {}{why}", self.at.format("%Y-%m-%d %H:%M:%S UTC"))
    }
}
