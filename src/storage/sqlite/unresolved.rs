//! The table of references to what is no core hash in the vault.
//!
//! It says which mention lists to read for references to what the vault does not have. A row has the first eight bytes of a
//! digest that a capture refers to in a role that requires the artifact, for as long as no artifact has this core hash. Rows
//! are not authoritative: the digest may be a capture hash, and other digests may begin with the same bytes, so the lists that
//! they lead to are read, and whole digests are compared. That is also
//! why there are no rows for references whose artifact is in the vault: a digest that begins like that of an artifact
//! could not be distinguished from it without reading all lists.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::mentions::{MentionListReader, MentionRow};
use super::rows::artifact_id;
use super::shared_statements::StatementProvider;
use crate::digest::{CoreHash, Digest};

/// A reader of the references in mention lists.
pub(super) struct ReferenceReader<'c> {
    lists: MentionListReader<'c>,
    /// The row ids of the roles that require the artifact.
    roles: BTreeSet<i64>,
}

/// Adds a reference of a capture to `target`, unless there is an artifact with this core hash.
pub(super) fn add(connection: &Connection, target: Digest, capture: i64) -> rusqlite::Result<()> {
    if artifact_id(connection, CoreHash(target))?.is_some() {
        return Ok(());
    }
    insert(connection, target.key(), capture)
}

fn insert(connection: &Connection, key: i64, capture: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO unresolved_reference (key, capture) VALUES (?1, ?2)")?
        .execute((key, capture))
        .map(drop)
}

fn delete(connection: &Connection, key: i64, capture: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM unresolved_reference WHERE key = ?1 AND capture = ?2")?
        .execute((key, capture))
        .map(drop)
}

/// Removes the references to an artifact that has been added.
pub(super) fn resolve(
    statements: &impl StatementProvider,
    lists: MentionListReader<'_>,
    core: CoreHash,
) -> rusqlite::Result<()> {
    let (connection, key) = (lists.payloads.connection, core.0.key());
    let captures: Vec<i64> = statements
        .with("SELECT capture FROM unresolved_reference WHERE key = ?1", |select| {
            select.query_map([key], |row| row.get(0))?.collect()
        })?;
    if captures.is_empty() {
        return Ok(());
    }
    let references = ReferenceReader::new(lists)?;
    for capture in captures {
        // It may also refer to another digest that begins with the same bytes.
        let others = references.unresolved(capture, |target| target.key() == key)?;
        if others.is_some_and(|others| others.is_empty()) {
            delete(connection, key, capture)?;
        }
    }
    Ok(())
}

/// Rebuilds the table from all mention lists.
pub(super) fn rebuild(lists: MentionListReader<'_>) -> rusqlite::Result<()> {
    let connection = lists.payloads.connection;
    connection.execute("DELETE FROM unresolved_reference", [])?;
    let references = ReferenceReader::new(lists)?;
    let mut captures = connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
    let mut captures = captures.query([])?;
    while let Some(row) = captures.next()? {
        let capture = row.get(0)?;
        for key in references.unresolved(capture, |_| true)?.unwrap_or_default() {
            insert(connection, key, capture)?;
        }
    }
    Ok(())
}

impl<'c> ReferenceReader<'c> {
    pub(super) fn new(lists: MentionListReader<'c>) -> rusqlite::Result<Self> {
        let mut roles = lists.payloads.connection.prepare_cached("SELECT id FROM role WHERE dangles")?;
        let roles = roles.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(Self { lists, roles })
    }

    /// Returns the keys of the digests that a capture refers to, that are `is_match`, and that no artifact has; `None` if its
    /// list cannot be read, which is a defect of its own.
    pub(super) fn unresolved(
        &self,
        capture: i64,
        is_match: impl Fn(&Digest) -> bool,
    ) -> rusqlite::Result<Option<BTreeSet<i64>>> {
        match self.lists.with(capture, is_match) {
            Err(rusqlite::Error::FromSqlConversionFailure(..)) => Ok(None),
            list => self.keys(&list?).map(Some),
        }
    }

    /// Returns the keys of the digests of `list` that no artifact has.
    fn keys(&self, list: &[MentionRow]) -> rusqlite::Result<BTreeSet<i64>> {
        let mut keys = BTreeSet::new();
        for MentionRow { digest, .. } in list.iter().filter(|mention| self.roles.contains(&mention.role)) {
            let is_known = keys.contains(&digest.key());
            if !is_known && artifact_id(self.lists.payloads.connection, CoreHash(*digest))?.is_none() {
                keys.insert(digest.key());
            }
        }
        Ok(keys)
    }

    /// Removes the references of a capture, which has this list.
    pub(super) fn forget(&self, capture: i64, list: &[MentionRow]) -> rusqlite::Result<()> {
        for key in self.keys(list)? {
            delete(self.lists.payloads.connection, key, capture)?;
        }
        Ok(())
    }

    /// Adds the references to an artifact that has been removed; `captures` may have some.
    pub(super) fn lose(&self, core: CoreHash, captures: &[i64]) -> rusqlite::Result<()> {
        for capture in captures {
            for key in self.unresolved(*capture, |target| *target == core.0)?.unwrap_or_default() {
                insert(self.lists.payloads.connection, key, *capture)?;
            }
        }
        Ok(())
    }
}
