//! The append-only, hash-chained record of what was added.

use rusqlite::{OptionalExtension, Transaction};
use serde::Serialize;

use crate::canonical::rfc8785;
use crate::digest::{CaptureHash, CoreHash, Digest, Hasher};

/// What happened. The text of an entry is its RFC 8785 form, so that any program can read and check it.
#[derive(Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub(super) enum Entry<'e> {
    /// A capture was added: the first of its artifact, or a further one.
    Add { at: &'e str, kind: &'e str, core: CoreHash, capture: CaptureHash, size: u64 },
    /// A person stated a link.
    Link {
        at: &'e str,
        source: CoreHash,
        relation: &'e str,
        target: CoreHash,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'e str>,
    },
    /// A person took a stated link back.
    Unlink { at: &'e str, source: CoreHash, relation: &'e str, target: CoreHash },
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
            .query_row([], |row| Ok(Self { seq: row.get(0)?, chain: Digest::from_bytes(row.get(1)?) }))
            .optional()?;
        Ok(last.unwrap_or(Self { seq: 0, chain: Digest::from_bytes([0; 32]) }))
    }

    pub(super) fn append(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &Entry<'_>,
    ) -> rusqlite::Result<()> {
        let text =
            rfc8785::to_vec(entry).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let mut hasher = Hasher::new();
        hasher.update(self.chain.as_bytes());
        hasher.update(&text);
        self.seq += 1;
        self.chain = hasher.finish();
        let text = String::from_utf8_lossy(&text);
        transaction
            .prepare_cached("INSERT INTO journal (seq, entry, chain) VALUES (?1, ?2, ?3)")?
            .execute((self.seq, text, self.chain.as_bytes()))?;
        Ok(())
    }
}
