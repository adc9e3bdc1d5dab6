//! The append-only, hash-chained record of changes to the vault. `docs/journal.md` describes it.

use chrono::{DateTime, SecondsFormat, Utc};
use rusqlite::{Connection, OptionalExtension, ToSql};
use serde::Serialize;

use super::actor::Actor;
use super::rows::Milliseconds;
use super::write::after;
use crate::digest::{CaptureHash, CoreHash, Digest, Hasher};

/// The SQL expression for the time of an entry of the journal `j`: the one in its text, which is chained. The text of
/// an addition is built from the column.
pub(super) const AT: &str = "coalesce(CASE WHEN json_valid(j.entry)
    THEN CAST(round(unixepoch(j.entry ->> 'at', 'subsec') * 1000) AS INTEGER) END, j.at)";

/// Returns the time of the entry `seq` in milliseconds since 1970, or `None` if there is no such entry.
pub(super) fn time_of(connection: &Connection, seq: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(&format!("SELECT {AT} FROM journal j WHERE j.seq = ?1"))?
        .query_row([seq], |row| row.get(0))
        .optional()
}

/// A journal event. Members are declared in their canonical order.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Event<'e> {
    /// A capture was added, either the first of its artifact or a further one.
    Add { capture: CaptureHash, core: CoreHash, kind: &'e str, size: u64 },
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

impl Event<'_> {
    fn action(&self) -> &'static str {
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
struct Entry<'e> {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'e str>,
    at: &'e str,
    #[serde(flatten)]
    event: &'e Event<'e>,
}

/// An added capture.
pub(super) struct Addition {
    /// The row id and the name of its kind.
    pub(super) kind: i64,
    pub(super) kind_name: &'static str,
    pub(super) core: CoreHash,
    pub(super) capture: CaptureHash,
    pub(super) size: u64,
}

/// A writer that appends entries within a transaction.
pub(super) struct Journal {
    seq: i64,
    chain: Digest,
    actor: Option<Actor>,
    /// The actor's row id, once there was an addition.
    actor_id: Option<i64>,
    at: DateTime<Utc>,
    at_text: String,
}

impl Journal {
    /// Creates a writer at the end of the journal for changes by `actor` at the time `at`. Times never go back: if the
    /// last entry is later, its time is used.
    pub(super) fn open(
        connection: &Connection,
        actor: Option<&Actor>,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<Self> {
        let last = connection
            .prepare_cached("SELECT seq, chain, at FROM journal ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Milliseconds>(2)?)))
            .optional()?;
        let (seq, chain, last) = last.unwrap_or((0, Digest::from_bytes([0; 32]), Milliseconds(at)));
        // In the form in which it will be read back.
        let at = DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at).max(last.0);
        let at_text = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        Ok(Self { seq, chain, actor: actor.cloned(), actor_id: None, at, at_text })
    }

    /// Returns the number of the last entry.
    pub(super) fn seq(&self) -> i64 {
        self.seq
    }

    /// Returns the time of the recorded changes.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Appends the entry of an addition. It is stored in columns, from which the view `journal_entries` builds its
    /// text.
    pub(super) fn add(&mut self, connection: &Connection, addition: &Addition) -> rusqlite::Result<()> {
        let Addition { kind, kind_name, core, capture, size } = *addition;
        let actor = self.actor_id(connection)?;
        self.chain_up(&Event::Add { capture, core, kind: kind_name, size })?;
        let parts: [&dyn ToSql; 8] = [
            &self.seq,
            &self.at.timestamp_millis(),
            &actor,
            &kind,
            core.0.as_bytes(),
            capture.0.as_bytes(),
            &size.cast_signed(),
            self.chain.as_bytes(),
        ];
        connection
            .prepare_cached(
                "INSERT INTO journal (seq, at, actor, kind, core, capture, size, chain)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(parts)?;
        Ok(())
    }

    /// Appends an entry of any other event.
    pub(super) fn append(&mut self, connection: &Connection, event: &Event<'_>) -> rusqlite::Result<()> {
        let text = self.chain_up(event)?;
        connection
            .prepare_cached("INSERT INTO journal (seq, at, entry, chain) VALUES (?1, ?2, ?3, ?4)")?
            .execute((self.seq, self.at.timestamp_millis(), text, self.chain.as_bytes()))?;
        Ok(())
    }

    fn actor_id(&mut self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        if let (None, Some(actor)) = (self.actor_id, &self.actor) {
            connection
                .prepare_cached("INSERT OR IGNORE INTO actor (name) VALUES (?1)")?
                .execute([actor.name()])?;
            self.actor_id = connection
                .prepare_cached("SELECT id FROM actor WHERE name = ?1")?
                .query_row([actor.name()], |row| row.get(0))?;
        }
        Ok(self.actor_id)
    }

    /// Extends the chain by an entry of `event` and returns its text.
    fn chain_up(&mut self, event: &Event<'_>) -> rusqlite::Result<String> {
        let actor = self.actor.as_ref().map(Actor::name);
        let entry = Entry { action: event.action(), actor, at: &self.at_text, event };
        // serde_json writes strings and numbers as RFC 8785 does.
        let text = serde_json::to_string(&entry)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        self.chain = next(&self.chain, &text);
        self.seq = after(self.seq, "journal")?;
        Ok(text)
    }
}

/// Returns the chain value of an entry with this text that follows the chain value `before`.
pub(super) fn next(before: &Digest, text: &str) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(before.as_bytes());
    hasher.update(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_in_their_canonical_form() {
        let (core, capture) = (CoreHash(Digest::from_content(b"a")), CaptureHash(Digest::from_content(b"b")));
        let at = "2026-01-01T00:00:00.000Z";
        let hostile = "\u{e000}\u{1f600}\u{7f}\u{1}\"\\/é";
        let (note, reason, name) = (Some(hostile), Some(hostile), hostile);
        let size = 9_007_199_254_740_991;
        for event in [
            Event::Add { capture, core, kind: "trace", size },
            Event::Seen { captures: &[capture, capture], cores: &[core, core] },
            Event::Signature { capture, core, key_id: Some(hostile), state: "verified" },
            Event::Signature { capture, core, key_id: None, state: "unchecked" },
            Event::Link { note, relation: "governs", source: core, target: core },
            Event::Link { note: None, relation: "governs", source: core, target: core },
            Event::Unlink { relation: "governs", source: core, target: core },
            Event::Tag { core, name },
            Event::Untag { core, name },
            Event::Pin { core, note },
            Event::Unpin { core },
            Event::Note { core, note },
            Event::Note { core, note: None },
            Event::Remove { captures: &[capture, capture], core, kind: "rpk", left: 0, reason, size },
            Event::AllowRemoved { core, kind: "rpk" },
            Event::Gc { blobs: 1, bytes_after: 2, bytes_before: 3, dictionaries: 4, recompressed: 5 },
            Event::Reindex { indexed: 7, not_admitted: 0 },
            Event::Repair { did: "restored", subject: "blob sha256:…" },
        ] {
            for actor in [None, Some(hostile)] {
                let entry = Entry { action: event.action(), actor, at, event: &event };
                let text = serde_json::to_string(&entry).unwrap();
                assert_eq!(text.as_bytes(), serde_json_canonicalizer::to_vec(&entry).unwrap());
                // `fsck` derives the catalog from entries parsed here.
                crate::storage::sqlite::check::RecordedEntry::parse(&text).unwrap();
            }
        }
    }
}
