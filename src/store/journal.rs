//! The append-only, hash-chained record of what was added.

use chrono::{DateTime, SecondsFormat, Utc};
use rusqlite::{OptionalExtension, ToSql, Transaction};
use serde::Serialize;

use crate::digest::{CaptureHash, CoreHash, Digest, Hasher};

/// What happened. The text of an entry is its RFC 8785 form, so that any program can read and check it.
#[derive(Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub(super) enum Entry<'e> {
    /// A capture was added: the first of its artifact, or a further one.
    Add { at: &'e str, capture: CaptureHash, core: CoreHash, kind: &'e str, size: u64 },
    /// A person stated a link.
    Link {
        at: &'e str,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'e str>,
        relation: &'e str,
        source: CoreHash,
        target: CoreHash,
    },
    /// The index was made anew from the stored bytes of so many artifacts.
    Reindex { artifacts: u64, at: &'e str, not_admitted: u64 },
    /// Something was mended: `did` says what was done to `subject`.
    Repair { at: &'e str, did: &'e str, subject: &'e str },
    /// A person took a stated link back.
    Unlink { at: &'e str, relation: &'e str, source: CoreHash, target: CoreHash },
}

/// A time as entries state it.
pub(super) fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A capture that was added.
pub(super) struct Addition {
    /// The number and the name of its kind.
    pub(super) kind: i64,
    pub(super) kind_name: &'static str,
    pub(super) core: CoreHash,
    pub(super) capture: CaptureHash,
    pub(super) size: u64,
}

/// Appends entries within a transaction.
pub(super) struct Journal {
    seq: i64,
    chain: Digest,
}

impl Journal {
    pub(super) fn of(transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        let last = transaction
            .prepare_cached("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok(Self { seq: row.get(0)?, chain: row.get(1)? }))
            .optional()?;
        Ok(last.unwrap_or(Self { seq: 0, chain: Digest::from_bytes([0; 32]) }))
    }

    /// Appends the entry of an addition. It is stored in parts; the view `journal_entries` puts them together.
    pub(super) fn add(
        &mut self,
        transaction: &Transaction<'_>,
        at: DateTime<Utc>,
        addition: &Addition,
    ) -> rusqlite::Result<()> {
        let Addition { kind, kind_name, core, capture, size } = *addition;
        self.chain_up(&Entry::Add { at: &text(at), capture, core, kind: kind_name, size })?;
        let parts: [&dyn ToSql; 7] = [
            &self.seq,
            &at.timestamp_millis(),
            &kind,
            core.0.as_bytes(),
            capture.0.as_bytes(),
            &size.cast_signed(),
            self.chain.as_bytes(),
        ];
        transaction
            .prepare_cached(
                "INSERT INTO journal (seq, at, kind, core, capture, size, chain) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(parts)?;
        Ok(())
    }

    /// Appends any other entry.
    pub(super) fn append(
        &mut self,
        transaction: &Transaction<'_>,
        at: DateTime<Utc>,
        entry: &Entry<'_>,
    ) -> rusqlite::Result<()> {
        let text = self.chain_up(entry)?;
        transaction
            .prepare_cached("INSERT INTO journal (seq, at, entry, chain) VALUES (?1, ?2, ?3, ?4)")?
            .execute((self.seq, at.timestamp_millis(), text, self.chain.as_bytes()))?;
        Ok(())
    }

    /// Makes `entry` the last one; gives its text.
    fn chain_up(&mut self, entry: &Entry<'_>) -> rusqlite::Result<String> {
        // Members are declared in their canonical order, and serde_json writes texts and numbers as RFC 8785 does.
        let text = serde_json::to_string(entry)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let mut hasher = Hasher::new();
        hasher.update(self.chain.as_bytes());
        hasher.update(text.as_bytes());
        self.seq += 1;
        self.chain = hasher.finish();
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::rfc8785;

    #[test]
    fn entries_are_in_their_canonical_form() {
        let (core, capture) = (CoreHash(Digest::of(b"a")), CaptureHash(Digest::of(b"b")));
        let at = "2026-01-01T00:00:00.000Z";
        let note = Some("\u{e000}\u{1f600}\u{7f}\u{1}\"\\/é");
        for entry in [
            Entry::Add { at, capture, core, kind: "trace", size: 9_007_199_254_740_991 },
            Entry::Link { at, note, relation: "governs", source: core, target: core },
            Entry::Link { at, note: None, relation: "governs", source: core, target: core },
            Entry::Reindex { artifacts: 7, at, not_admitted: 0 },
            Entry::Repair { at, did: "restored", subject: "blob sha256:…" },
            Entry::Unlink { at, relation: "governs", source: core, target: core },
        ] {
            assert_eq!(serde_json::to_vec(&entry).unwrap(), rfc8785::to_vec(&entry).unwrap());
        }
    }
}
