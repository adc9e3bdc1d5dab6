//! Rebuilding of mention lists and of the indexes that are made of them.

use std::collections::HashSet;

use rusqlite::Connection;

use super::dictionaries::{DecompressionDictionaryCache, Dictionaries};
use super::error::is_damage;
use super::ids::blob_id;
use super::lists::{MentionListReader, MentionRow};
use super::mention_index;
use super::payload::PayloadReader;
use super::unresolved;
use super::write::{NewCapture, SqliteWriter};
use crate::storage::check::ReadmittedArtifact;
use crate::storage::sql::SqlSession;

/// Number of entries that are added to the new mention index at once.
const ENTRIES: usize = 1 << 20;

/// Replaces the mention lists of those captures of artifacts that were admitted, and inserts the other rows that are derived
/// from them.
pub(super) fn write_derived(
    connection: &Connection,
    artifacts: &[&ReadmittedArtifact],
) -> rusqlite::Result<()> {
    let known = delete_lists(connection, artifacts)?;
    // No bytes are stored.
    let dictionaries = Dictionaries::default();
    let mut writer = SqliteWriter::new(connection, &dictionaries, &|_| Ok(()))?;
    for readmitted in artifacts {
        let first = readmitted.captures.first().map(|(id, _)| id.number());
        for (id, admitted) in readmitted.admitted() {
            let kind = writer.kind(admitted.kind())?;
            let mut new = NewCapture {
                id,
                artifact: readmitted.artifact.id,
                is_first: first == Some(id),
                blobs: Vec::new(),
            };
            for member in admitted.stored() {
                let blob = blob_id(connection, member.blob())?;
                new.blobs.extend(blob.map(|blob| writer.stored_blob(blob)));
            }
            writer.insert_members(&new, admitted)?;
            writer.index(&new, kind, admitted)?;
        }
    }
    // Another capture may have a mention now.
    let now: HashSet<_> = writer.entries.iter().copied().collect();
    let moved = known.difference(&now).copied().collect();
    // Lookups of the previous entries already lead there.
    writer.entries.retain(|entry| !known.contains(entry));
    match mention_index::remove(connection, moved).and_then(|()| writer.finish()) {
        Err(error) if is_damage(&error) => rebuild_mentions(connection),
        changed => changed,
    }
}

/// Deletes the mention lists of those captures of artifacts that were admitted. Returns their entries in the mention index.
fn delete_lists(
    connection: &Connection,
    artifacts: &[&ReadmittedArtifact],
) -> rusqlite::Result<HashSet<mention_index::MentionIndexEntry>> {
    let readers = DecompressionDictionaryCache::default();
    let lists = MentionListReader { payloads: PayloadReader { connection, readers: &readers } };
    let mut known = HashSet::new();
    for (capture, _) in artifacts.iter().flat_map(|readmitted| readmitted.admitted()) {
        let mentions = readable(lists, capture)?;
        known.extend(mentions.iter().map(|mention| (mention_index::key(&mention.digest), capture)));
        connection.prepare_cached("DELETE FROM mention_list WHERE capture = ?1")?.execute([capture])?;
    }
    Ok(known)
}

/// Rebuilds the indexes from the mention lists, and deletes the values of attributes that no artifact has.
pub(super) fn rebuild_indexes(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM attribute_value WHERE id NOT IN (SELECT value FROM attribute)", [])?;
    rebuild_mentions(connection)?;
    let readers = DecompressionDictionaryCache::default();
    unresolved::rebuild(MentionListReader { payloads: PayloadReader { connection, readers: &readers } })
}

/// Returns the mentions of a capture. A damaged list has no entries worth keeping; that of a damaged capture was already
/// reported.
///
/// # Errors
/// Returns an error if the list cannot be read for a reason other than damage: its entries would otherwise be lost.
fn readable(lists: MentionListReader<'_>, capture: i64) -> rusqlite::Result<Vec<MentionRow>> {
    match lists.for_capture(capture) {
        Err(error) if is_damage(&error) => Ok(Vec::new()),
        mentions => mentions,
    }
}

/// Rebuilds the mention index, and deletes the roles in which nothing is mentioned.
fn rebuild_mentions(connection: &Connection) -> rusqlite::Result<()> {
    mention_index::clear(connection)?;
    let readers = DecompressionDictionaryCache::default();
    let lists = MentionListReader { payloads: PayloadReader { connection, readers: &readers } };
    let mut entries = Vec::new();
    let mut roles = HashSet::new();
    let mut captures = connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
    let mut captures = captures.query([])?;
    while let Some(row) = captures.next()? {
        let capture: i64 = row.get(0)?;
        let mentions = readable(lists, capture)?;
        roles.extend(mentions.iter().map(|mention| mention.role));
        entries.extend(mentions.iter().map(|mention| (mention_index::key(&mention.digest), capture)));
        if entries.len() >= ENTRIES {
            mention_index::add(connection, std::mem::take(&mut entries))?;
        }
    }
    mention_index::add(connection, entries)?;
    let used = Vec::from_iter(roles);
    let sql = "DELETE FROM role WHERE id NOT IN (SELECT value FROM rarray(?1))";
    SqlSession::execute(connection, sql, &[used.as_slice().into()]).map(drop)
}
