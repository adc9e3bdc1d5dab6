//! The artifacts of captures, as a snapshot remembers them.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use crate::digest::CoreHash;

/// What a snapshot remembers about the captures in it.
#[derive(Default)]
pub(in crate::storage::sqlite) struct Owners {
    /// The artifact of a capture and the row id of its kind.
    pub(super) known: HashMap<i64, Option<(CoreHash, i64)>>,
    /// All captures of a kind, by its row id.
    pub(super) of_kind: HashMap<i64, HashMap<i64, CoreHash>>,
    /// Kinds that have more captures than this number.
    more_than: HashMap<i64, usize>,
}

impl Owners {
    /// Returns the artifact of a capture and the row id of its kind.
    pub(super) fn owner(
        &mut self,
        connection: &Connection,
        capture: i64,
    ) -> rusqlite::Result<Option<(CoreHash, i64)>> {
        if let Some(known) = self.known.get(&capture) {
            return Ok(*known);
        }
        let owner = connection
            .prepare_cached(
                "SELECT a.core, a.kind FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.id = ?1",
            )?
            .query_row([capture], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        self.known.insert(capture, owner);
        Ok(owner)
    }

    /// Reads all captures of artifacts of a kind, unless there are more than `limit`.
    pub(super) fn load(&mut self, connection: &Connection, kind: i64, limit: usize) -> rusqlite::Result<()> {
        if self.of_kind.contains_key(&kind) || self.more_than.get(&kind).is_some_and(|more| limit <= *more) {
            return Ok(());
        }
        let mut statement = connection.prepare_cached(
            "SELECT c.id, a.core FROM artifact a JOIN capture c ON c.artifact = a.id WHERE a.kind = ?1 LIMIT ?2",
        )?;
        let captures = statement
            .query_map((kind, limit.saturating_add(1)), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<HashMap<_, _>>>()?;
        if captures.len() > limit {
            self.more_than.insert(kind, limit);
        } else {
            self.of_kind.insert(kind, captures);
        }
        Ok(())
    }
}
