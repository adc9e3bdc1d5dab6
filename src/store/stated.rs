//! Links that people state.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::journal::{self, Entry, Journal};
use super::rows::ArtifactRow;

/// A link that a person states: `source` relates to `target`.
#[derive(Clone, Copy, Debug)]
pub struct StatedLink<'l> {
    /// The artifact that relates.
    pub source: &'l ArtifactRow,
    /// How.
    pub relation: &'l str,
    /// The artifact that it relates to.
    pub target: &'l ArtifactRow,
}

/// Whether `text` can be the relation of a stated link: a lowercase letter, then at most 39 of a-z, 0-9 and `-`.
#[must_use]
pub fn is_relation(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= MAX_RELATION_BYTES
        && text.bytes().all(fits)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The most bytes of the relation of a stated link.
pub const MAX_RELATION_BYTES: usize = 40;

/// States `link`; false if it was stated with this note before.
pub(super) fn state(
    connection: &mut Connection,
    link: StatedLink<'_>,
    note: Option<&str>,
    at: DateTime<Utc>,
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let key = (link.source.id.0, link.relation, link.target.id.0);
    let known: Option<Option<String>> = transaction
        .prepare_cached("SELECT note FROM link WHERE source = ?1 AND relation = ?2 AND target = ?3")?
        .query_row(key, |row| row.get(0))
        .optional()?;
    if known.is_some_and(|known| known.as_deref() == note) {
        return Ok(false);
    }
    transaction
        .prepare_cached(
            "INSERT INTO link (source, relation, target, note, stated_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET note = excluded.note, stated_at = excluded.stated_at",
        )?
        .execute((key.0, key.1, key.2, note, at.timestamp_millis()))?;
    let StatedLink { source, relation, target } = link;
    let entry =
        Entry::Link { at: &journal::text(at), source: source.core, relation, target: target.core, note };
    record(transaction, at, &entry)?;
    Ok(true)
}

/// Takes `link` back; false if it was not stated.
pub(super) fn take_back(
    connection: &mut Connection,
    link: StatedLink<'_>,
    at: DateTime<Utc>,
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let removed = transaction
        .prepare_cached("DELETE FROM link WHERE source = ?1 AND relation = ?2 AND target = ?3")?
        .execute((link.source.id.0, link.relation, link.target.id.0))?;
    if removed == 0 {
        return Ok(false);
    }
    let StatedLink { source, relation, target } = link;
    record(
        transaction,
        at,
        &Entry::Unlink { at: &journal::text(at), source: source.core, relation, target: target.core },
    )?;
    Ok(true)
}

fn record(transaction: Transaction<'_>, at: DateTime<Utc>, entry: &Entry<'_>) -> rusqlite::Result<()> {
    Journal::of(&transaction)?.append(&transaction, at, entry)?;
    transaction.commit()
}
