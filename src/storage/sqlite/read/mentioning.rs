//! The artifacts of the captures that may mention a digest. Very many artifacts may mention the same digest, and queries
//! along links ask for each of them, so the answers are remembered.

use super::SqliteSnapshot;
use super::owners::Owners;
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::sqlite::mention_index;

/// If a digest has more candidate captures than this, all captures of a kind are read at once.
const MANY: usize = 1_000;

/// Maximum number of captures that are remembered.
const MOST: usize = 1 << 20;

impl SqliteSnapshot<'_> {
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
                    owners.load(self.connection(), *kind, captures.len())?;
                }
            }
            let mut artifacts = Vec::new();
            let maps: Vec<_> = kinds.iter().filter_map(|kind| owners.of_kind.get(kind)).collect();
            if maps.len() == kinds.len() {
                let owner = |capture| maps.iter().find_map(|all| all.get(capture)).copied();
                artifacts.extend(captures.iter().filter_map(owner));
            } else {
                for capture in captures {
                    let owner =
                        owners.owner(self.connection(), capture)?.filter(|(_, kind)| kinds.contains(kind));
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
