//! The part of the migration to schema version 2 that SQL cannot express: packing the mentions.

use rusqlite::Transaction;
use rusqlite_migration::HookResult;

use super::mention_index;
use super::mentions::{MentionList, MentionListEntry};
use crate::artifact::ArtifactLocation;
use crate::digest::Digest;

/// Creates the mention list of every artifact, assigned to its first capture, and drops the old tables.
pub(super) fn pack_mentions(transaction: &Transaction<'_>) -> HookResult {
    let mut artifacts = transaction.prepare(
        "SELECT a.id, (SELECT min(c.id) FROM capture c WHERE c.artifact = a.id) FROM artifact a ORDER BY a.id",
    )?;
    let mut artifacts = artifacts.query([])?;
    while let Some(row) = artifacts.next()? {
        pack(transaction, row.get(0)?, row.get(1)?)?;
    }
    transaction.execute_batch(
        "DROP TABLE old_mention; DROP TABLE old_capture; DROP TABLE old_blob; DROP TABLE old_artifact",
    )?;
    Ok(())
}

fn pack(transaction: &Transaction<'_>, artifact: i64, capture: i64) -> rusqlite::Result<()> {
    let mut mentions = transaction.prepare_cached(
        "SELECT role, place, digest FROM old_mention WHERE artifact = ?1 ORDER BY role, place, digest",
    )?;
    let mut mentions = mentions.query([artifact])?;
    let mut list = MentionList::default();
    while let Some(row) = mentions.next()? {
        let (role, place, digest): (_, ArtifactLocation, Digest) = (row.get(0)?, row.get(1)?, row.get(2)?);
        list.entries.push(MentionListEntry { role, place, position: list.own.len() });
        list.own.push(digest);
    }
    if list.entries.is_empty() {
        return Ok(());
    }
    let keys = list.own.iter().map(|digest| (mention_index::key(digest), capture)).collect();
    transaction
        .prepare_cached("INSERT INTO mention_list (capture, bytes) VALUES (?1, ?2)")?
        .execute((capture, list.encode()))?;
    mention_index::add(transaction, keys)
}
