//! Queries of mentions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Error, OptionalExtension};

use super::{Owners, SqliteSnapshot};
use crate::artifact::ArtifactLocation;
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::Result;
use crate::storage::catalog::MentionRole;
use crate::storage::interface::{MentionQueries, MentionRecord, sort_mentions, sort_mentions_by_artifact};
use crate::storage::sqlite::mention_index::{self, MentionIndexReader};
use crate::storage::sqlite::mentions::MentionRow;
use crate::storage::sqlite::rows::{ArtifactId, artifact_id, mention_role};

/// The roles read so far, by row id.
#[derive(Default)]
pub(super) struct RoleCache(BTreeMap<i64, MentionRole>);

impl RoleCache {
    pub(super) fn get(&mut self, snapshot: &SqliteSnapshot<'_>, id: i64) -> rusqlite::Result<&MentionRole> {
        if let Entry::Vacant(unknown) = self.0.entry(id) {
            unknown.insert(mention_role(&snapshot.connection, id)?.ok_or(Error::QueryReturnedNoRows)?);
        }
        self.0.get(&id).ok_or(Error::QueryReturnedNoRows)
    }
}

impl MentionQueries for SqliteSnapshot<'_> {
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        let mut roles = RoleCache::default();
        let mut read = |core: CoreHash| {
            let mut found = Vec::new();
            let Some(artifact) = artifact_id(self.connection(), core)? else { return Ok(found) };
            for row in self.mentions_of_artifact(artifact)?.iter() {
                let role = roles.get(self, row.role)?;
                if group.is_none_or(|group| role.group == group) {
                    found.push(mention(core, row.clone(), role));
                }
            }
            sort_mentions(&mut found);
            Ok(found)
        };
        self.answer(of.iter().map(|core| read(*core)).collect())
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        let stating = self.part(self.stating_each(digests))?;
        let found = stating.into_iter().map(|rows| self.in_group(rows, group)).collect::<Result<_>>()?;
        self.answer(Ok(found))
    }

    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        let kinds = self.kind_ids(kinds)?;
        let mut found = Vec::with_capacity(digests.len());
        let keys = digests.iter().map(mention_index::key);
        let read = self.with_mention_index(|index| {
            index.visit_captures(&self.connection, keys, |captures| {
                found.push(self.owners_of_kinds(captures, &kinds)?);
                Ok(())
            })
        });
        self.answer(read.map(|()| found))
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        let find = || {
            let mut found = BTreeSet::new();
            let mut roles = RoleCache::default();
            for capture in mention_index::captures_beginning(&self.connection, prefix)? {
                for row in self.lists().with(capture, |digest| prefix.matches(digest))? {
                    if group
                        .is_none_or(|group| group == roles.get(self, row.role).map_or("", |role| &role.group))
                    {
                        found.insert(row.digest);
                    }
                }
            }
            Ok(found.into_iter().take(limit).collect())
        };
        self.answer(find())
    }

    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>> {
        let mut beginnings: BTreeMap<Digest, BTreeSet<CoreHash>> = BTreeMap::new();
        let sql = "SELECT a.core FROM artifact a
                    WHERE a.kind IN (SELECT kind FROM role WHERE role_group = ?1) ORDER BY a.id";
        for core in self.rows(sql, [group], |row| row.get(0))? {
            for mention in self.mentions(&[core], Some(group))?.into_iter().flatten() {
                if mention.place == ArtifactLocation::Index(0) {
                    beginnings.entry(mention.digest).or_default().insert(core);
                }
            }
        }
        let shared = beginnings.into_iter().filter(|(_, artifacts)| artifacts.len() > 1);
        Ok(shared.map(|(digest, _)| digest).collect())
    }
}

impl SqliteSnapshot<'_> {
    /// Returns where the captures of an artifact mention `digest`, in any role or in those of one group, sorted by role and
    /// place. If the captures that may mention it are known, they must be sorted, and the others are not read.
    pub(crate) fn mentions_in(
        &self,
        artifact: ArtifactId,
        captures: Option<&[i64]>,
        digest: Digest,
        group: Option<&str>,
    ) -> Result<Vec<MentionRecord>> {
        let find = || {
            let mut found = Vec::new();
            let mut own = self.connection.prepare_cached("SELECT id FROM capture WHERE artifact = ?1")?;
            for capture in own.query_map([artifact.0], |row| row.get(0))? {
                let capture: i64 = capture?;
                if captures.is_some_and(|captures| captures.binary_search(&capture).is_err()) {
                    continue;
                }
                let rows = self.lists().with(capture, |other| *other == digest)?;
                found.extend(rows.into_iter().map(|row| (artifact, row)));
            }
            Ok(found)
        };
        self.in_group(self.part(find())?, group)
    }

    pub(in crate::storage::sqlite) fn artifact_with(
        &self,
        capture: i64,
    ) -> rusqlite::Result<Option<ArtifactId>> {
        self.connection
            .prepare_cached("SELECT artifact FROM capture WHERE id = ?1")?
            .query_row([capture], |row| row.get(0))
            .optional()
    }

    /// Returns the captures whose lists may contain a digest with this key, in order.
    pub(super) fn captures_stating(&self, key: u64) -> rusqlite::Result<Vec<i64>> {
        self.captures_stating_up_to(key, usize::MAX).map(Option::unwrap_or_default)
    }

    /// Returns the captures whose lists may contain a digest with this key, in order, or `None` if they are more than `limit`.
    pub(in crate::storage::sqlite) fn captures_stating_up_to(
        &self,
        key: u64,
        limit: usize,
    ) -> rusqlite::Result<Option<Vec<i64>>> {
        self.with_mention_index(|index| index.captures_up_to(&self.connection, key, limit))
    }

    /// Calls `read` with the segments of the mention index.
    fn with_mention_index<T>(
        &self,
        read: impl FnOnce(&MentionIndexReader) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let Some(known) = &self.segments else { return read(&MentionIndexReader::load(&self.connection)?) };
        let index = if let Some(index) = known.get() {
            index
        } else {
            let now = MentionIndexReader::load(&self.connection)?;
            known.get_or_init(|| now)
        };
        read(index)
    }

    /// Returns the mentions of each of `digests` with their artifacts. The index only selects the lists to read, each of which
    /// is read once, however many of the digests it has; the lists decide.
    pub(super) fn stating_each(
        &self,
        digests: &[Digest],
    ) -> rusqlite::Result<Vec<Vec<(ArtifactId, MentionRow)>>> {
        let mut found: HashMap<Digest, Vec<(ArtifactId, MentionRow)>> =
            digests.iter().map(|digest| (*digest, Vec::new())).collect();
        let mut captures = BTreeSet::new();
        for digest in found.keys() {
            captures.extend(self.captures_stating(mention_index::key(digest))?);
        }
        for capture in captures {
            let list = self.lists().with(capture, |digest| found.contains_key(digest))?;
            if list.is_empty() {
                continue;
            }
            let Some(artifact) = self.artifact_with(capture)? else { continue };
            for row in list {
                found.entry(row.digest).or_default().push((artifact, row));
            }
        }
        Ok(digests.iter().map(|digest| found.get(digest).cloned().unwrap_or_default()).collect())
    }

    /// Returns those mentions that have a role of the group, or all of them, ordered by artifact, role and place.
    fn in_group(
        &self,
        rows: Vec<(ArtifactId, MentionRow)>,
        group: Option<&str>,
    ) -> Result<Vec<MentionRecord>> {
        let mut found = Vec::new();
        let mut roles = RoleCache::default();
        for (artifact, row) in rows {
            let role = self.part(roles.get(self, row.role))?;
            if group.is_none_or(|group| group == role.group) {
                found.push(mention(self.core_of(artifact)?, row, role));
            }
        }
        sort_mentions_by_artifact(&mut found);
        found.dedup();
        Ok(found)
    }
}

pub(super) fn mention(artifact: CoreHash, row: MentionRow, role: &MentionRole) -> MentionRecord {
    let MentionRow { place, digest, .. } = row;
    MentionRecord { artifact, role: role.name.clone(), unit: role.unit.clone(), place, digest }
}

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

    /// Returns the artifacts of these kinds that have one of the captures, by core hash.
    fn owners_of_kinds(&self, captures: Vec<i64>, kinds: &[i64]) -> rusqlite::Result<Vec<CoreHash>> {
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
    }
}
