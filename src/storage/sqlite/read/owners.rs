//! The artifacts of the captures that may mention a digest. Very many artifacts may mention the same digest, and queries
//! along links ask for each of them, so the answers are remembered.

use std::collections::HashMap;

use rusqlite::OptionalExtension;

use super::Snapshot;
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::sqlite::mention_index;

/// If a digest has more candidate captures than this, all captures of a kind are read at once.
const MANY: usize = 1_000;

/// Maximum number of captures that are remembered.
const MOST: usize = 1 << 20;

/// What a snapshot remembers about the captures in it.
#[derive(Default)]
pub(in crate::storage::sqlite) struct Owners {
    /// The artifact of a capture and the row id of its kind.
    known: HashMap<i64, Option<(CoreHash, i64)>>,
    /// All captures of a kind, by its row id.
    of_kind: HashMap<i64, HashMap<i64, CoreHash>>,
    /// Kinds that have more captures than this number.
    more_than: HashMap<i64, usize>,
}

impl Snapshot<'_> {
    /// Returns the row ids of kinds by their names; unknown ones are skipped.
    pub(in crate::storage::sqlite) fn kind_ids(&self, names: &[String]) -> Result<Vec<i64>> {
        let mut ids = Vec::new();
        for name in names {
            ids.extend(self.rows("SELECT id FROM kind WHERE name = ?1", [name], |row| row.get::<_, i64>(0))?);
        }
        Ok(ids)
    }

    /// Returns the artifacts of these kinds that may mention `digest`, by core hash: all that do, and few others.
    pub(in crate::storage::sqlite) fn candidates_of(
        &self,
        digest: Digest,
        kinds: &[i64],
    ) -> Result<Vec<CoreHash>> {
        let find = || {
            let captures = self.captures_stating(mention_index::key(&digest))?;
            let owners = &mut *self.owners.borrow_mut();
            if owners.known.len() > MOST {
                *owners = Owners::default();
            }
            if captures.len() > MANY {
                for kind in kinds {
                    owners.load(self, *kind, captures.len())?;
                }
            }
            let mut artifacts = Vec::new();
            let maps: Vec<_> = kinds.iter().filter_map(|kind| owners.of_kind.get(kind)).collect();
            if maps.len() == kinds.len() {
                let owner = |capture| maps.iter().find_map(|all| all.get(capture)).copied();
                artifacts.extend(captures.iter().filter_map(owner));
            } else {
                for capture in captures {
                    let owner = owners.owner(self, capture)?.filter(|(_, kind)| kinds.contains(kind));
                    artifacts.extend(owner.map(|(core, _)| core));
                }
            }
            artifacts.sort_unstable();
            artifacts.dedup();
            Ok(artifacts)
        };
        find().map_err(|error| self.failed(error))
    }
}

impl Owners {
    fn owner(&mut self, snapshot: &Snapshot<'_>, capture: i64) -> rusqlite::Result<Option<(CoreHash, i64)>> {
        if let Some(known) = self.known.get(&capture) {
            return Ok(*known);
        }
        let owner = snapshot
            .connection
            .prepare_cached(
                "SELECT a.core, a.kind FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.id = ?1",
            )?
            .query_row([capture], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        self.known.insert(capture, owner);
        Ok(owner)
    }

    /// Reads all captures of artifacts of a kind, unless there are more than `limit`.
    fn load(&mut self, snapshot: &Snapshot<'_>, kind: i64, limit: usize) -> rusqlite::Result<()> {
        if self.of_kind.contains_key(&kind) || self.more_than.get(&kind).is_some_and(|more| limit <= *more) {
            return Ok(());
        }
        let mut statement = snapshot.connection.prepare_cached(
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
