//! References between artifacts.

use std::collections::BTreeSet;

use crate::artifact::relation;
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{
    count_targets, digests_then_names, page_of_unresolved, sort_manual_links, sort_unresolved,
};
use crate::storage::sqlite::ids::artifact_id;
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::read::mentions::{RoleCache, mention};
use crate::storage::sqlite::rows::{ArtifactId, ArtifactRow, limit_of};
use crate::storage::{ManualLink, NameMention, ReferenceEdge, Result, UnresolvedReference, UnresolvedTarget};

/// The relation of an artifact to its embedded artifacts, which are stored with it.
const CONTAINS: &str = relation::CONTAINS;

impl SqliteSnapshot<'_> {
    /// Returns the mentions that relate an artifact to others. Unresolved ones are included if their relation dangles.
    pub(crate) fn references_from(&self, artifact: ArtifactId) -> Result<Vec<ReferenceEdge>> {
        let mut edges = Vec::new();
        // The lists of most artifacts are long, and have no such mention.
        let relating = "SELECT r.id FROM artifact a JOIN role r ON r.kind = a.kind AND r.relation IS NOT NULL
                         WHERE a.id = ?1 LIMIT 1";
        if self.rows(relating, [artifact.0], |row| row.get::<_, i64>(0))?.is_empty() {
            return Ok(edges);
        }
        let mut roles = RoleCache::default();
        for row in self.lists().for_artifact(artifact.0).map_err(|error| self.failed(error))? {
            let role = roles.get(self, row.role).map_err(|error| self.failed(error))?;
            let Some(relation) = role.relation.clone() else { continue };
            let target = self.artifact(CoreHash(row.digest))?;
            if target.as_ref().map_or(!role.dangles, |target| target.id == artifact) {
                continue;
            }
            let inverse =
                target.as_ref().map(|target| self.inverse_relation(&target.kind)).transpose()?.flatten();
            let mention = mention(self.core_of(artifact)?, row, role);
            edges.push(ReferenceEdge { mention, relation, inverse, is_resolved: target.is_some() });
        }
        Ok(edges)
    }

    /// Returns the mentions that relate other artifacts to each of these.
    pub(crate) fn references_to(&self, artifacts: &[ArtifactRow]) -> Result<Vec<Vec<ReferenceEdge>>> {
        let relating = "SELECT id FROM role WHERE relation IS NOT NULL LIMIT 1";
        if self.rows(relating, [], |row| row.get::<_, i64>(0))?.is_empty() {
            return Ok(vec![Vec::new(); artifacts.len()]);
        }
        let cores: Vec<Digest> = artifacts.iter().map(|artifact| artifact.core.0).collect();
        let stating = self.stating_each(&cores).map_err(|error| self.failed(error))?;
        let mut roles = RoleCache::default();
        let mut all = Vec::new();
        for (artifact, stating) in artifacts.iter().zip(stating) {
            let mut edges = Vec::new();
            let inverse = self.inverse_relation(&artifact.kind)?;
            for (from, row) in stating {
                let role = roles.get(self, row.role).map_err(|error| self.failed(error))?;
                let Some(relation) = role.relation.clone().filter(|_| from != artifact.id) else { continue };
                let mention = mention(self.core_of(from)?, row, role);
                edges.push(ReferenceEdge { mention, relation, inverse: inverse.clone(), is_resolved: true });
            }
            all.push(edges);
        }
        Ok(all)
    }

    /// Returns the relation of artifacts of a kind to those that state their core hash, if it has a name.
    fn inverse_relation(&self, kind: &str) -> Result<Option<String>> {
        let sql = "SELECT stated_by FROM kind WHERE name = ?1";
        Ok(self.rows(sql, [kind], |row| row.get(0))?.pop().flatten())
    }

    /// Returns the artifacts that contain an artifact, such as the packs of a session.
    pub(crate) fn containers_of(&self, artifact: ArtifactId) -> Result<Vec<ArtifactId>> {
        let core = self.artifact_by_id(artifact)?.core.0;
        let find = || {
            let mut containers = BTreeSet::new();
            let mut roles = RoleCache::default();
            // Most captures that mention an artifact are of kinds without members, so their lists need not be read.
            let containing = self
                .connection()
                .prepare_cached("SELECT DISTINCT kind FROM role WHERE relation = ?1")?
                .query_map([CONTAINS], |row| row.get(0))?
                .collect::<rusqlite::Result<BTreeSet<i64>>>()?;
            if containing.is_empty() {
                return Ok(Vec::new());
            }
            for capture in self.captures_stating(mention_index::key(&core))? {
                let owner = self.owners.borrow_mut().owner(self.connection(), capture)?;
                if !owner.is_some_and(|(_, kind)| containing.contains(&kind)) {
                    continue;
                }
                let container = self.artifact_with(capture)?;
                let Some(container) = container.filter(|container| *container != artifact) else { continue };
                for row in self.lists().with(capture, |digest| *digest == core)? {
                    if roles.get(self, row.role)?.relation.as_deref() == Some(CONTAINS) {
                        containers.insert(container);
                    }
                }
            }
            Ok(containers.into_iter().collect())
        };
        find().map_err(|error| self.failed(error))
    }

    /// Returns the artifacts that an artifact contains, such as the session of a pack.
    pub(crate) fn contained_in(&self, artifact: ArtifactId) -> Result<Vec<ArtifactId>> {
        let find = || {
            let mut contained = BTreeSet::new();
            let mut roles = RoleCache::default();
            for row in self.lists().for_artifact(artifact.0)? {
                if roles.get(self, row.role)?.relation.as_deref() == Some(CONTAINS) {
                    contained.extend(artifact_id(self.connection(), CoreHash(row.digest))?.map(ArtifactId));
                }
            }
            contained.remove(&artifact);
            Ok(contained.into_iter().collect())
        };
        find().map_err(|error| self.failed(error))
    }

    /// Returns the other artifacts that have the bytes of an artifact: those that have one of its
    /// documents as a document or as a file, and those that state that they contain it. Files that several packs share,
    /// such as a policy, do not make one pack part of another.
    pub(crate) fn artifacts_with_bytes(&self, artifact: ArtifactId) -> Result<BTreeSet<ArtifactId>> {
        let sql = "WITH document AS NOT MATERIALIZED (SELECT c.artifact, c.blob FROM capture c JOIN artifact a ON a.id = c.artifact
                                       JOIN kind k ON k.id = a.kind WHERE k.member IS NOT NULL)
                   SELECT h.artifact FROM document d JOIN document h ON h.blob = d.blob WHERE d.artifact = ?1
                   UNION
                   SELECT h.artifact FROM document d JOIN member m ON m.blob = d.blob JOIN capture h ON h.id = m.capture
                    WHERE d.artifact = ?1";
        let mut containers: BTreeSet<ArtifactId> =
            self.rows(sql, [artifact.0], |row| row.get(0))?.into_iter().collect();
        containers.extend(self.containers_of(artifact)?);
        containers.remove(&artifact);
        Ok(containers)
    }

    /// Returns the relations and names by which an artifact refers to others, and whether each dangles, sorted.
    pub(crate) fn names_mentioned(&self, artifact: ArtifactId) -> Result<Vec<NameMention>> {
        let sql = "SELECT relation, handle, dangles FROM name_mention WHERE artifact = ?1 ORDER BY relation, handle";
        self.rows(sql, [artifact.0], |row| {
            Ok(NameMention { relation: row.get(0)?, handle: row.get(1)?, dangles: row.get(2)? })
        })
    }

    /// Returns the names of an artifact, sorted.
    pub(crate) fn names_of(&self, artifact: ArtifactId) -> Result<Vec<String>> {
        let sql = "SELECT handle FROM identity WHERE artifact = ?1 ORDER BY handle";
        self.rows(sql, [artifact.0], |row| row.get(0))
    }

    /// Returns the artifacts that have a name, in the order in which they were added.
    pub(crate) fn named(&self, handle: &str) -> Result<Vec<ArtifactId>> {
        let sql = "SELECT artifact FROM identity WHERE handle = ?1 ORDER BY artifact";
        self.rows(sql, [handle], |row| row.get(0))
    }

    /// Returns the artifacts that refer to others by a name, each with its relation, sorted by relation and order of
    /// addition.
    pub(crate) fn referring_to(&self, handle: &str) -> Result<Vec<(String, ArtifactId)>> {
        let sql = "SELECT relation, artifact FROM name_mention WHERE handle = ?1 ORDER BY relation, artifact";
        self.rows(sql, [handle], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Returns the manual links from or to an artifact, sorted by relation, source and target.
    pub(crate) fn links_of(&self, artifact: ArtifactId) -> Result<Vec<ManualLink>> {
        let sql = "SELECT source, relation, target, note FROM link WHERE source = ?1 OR target = ?1";
        let links = self.rows(sql, [artifact.0], |row| {
            Ok((row.get::<_, ArtifactId>(0)?, row.get(1)?, row.get::<_, ArtifactId>(2)?, row.get(3)?))
        })?;
        let link = |(source, relation, target, note)| {
            Ok(ManualLink { source: self.core_of(source)?, relation, target: self.core_of(target)?, note })
        };
        let mut links = links.into_iter().map(link).collect::<Result<Vec<_>>>()?;
        sort_manual_links(&mut links);
        Ok(links)
    }

    /// Returns the references to the first `limit` targets after `after`, sorted: digests that are not core hashes in the
    /// vault, and names that no other artifact in it has.
    pub(crate) fn unresolved(
        &self,
        after: Option<&UnresolvedTarget>,
        limit: usize,
    ) -> Result<Vec<UnresolvedReference>> {
        let digests = |after, limit| self.missing_digests(after, limit);
        digests_then_names(after, limit, digests, |after, limit| self.missing_names(after, limit))
    }

    /// Returns the references to the first `limit` missing digests after `after`, sorted.
    fn missing_digests(&self, after: Option<Digest>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let from = after.map_or(0, |digest| digest.key());
        // The keys of digests whose first bit is set are negative, and come last.
        let ranges: &[_] = if from < 0 { &[(from, -1)] } else { &[(from, i64::MAX), (i64::MIN, -1)] };
        let (after, mut missing) = (after.map(UnresolvedTarget::Digest), Vec::new());
        for (first, end) in ranges {
            let mut first = *first;
            loop {
                let left = limit - count_targets(&missing);
                let Some(last) = self.last_key((first, *end), left)? else { break };
                let with_keys = self.missing_with_keys((first, last))?;
                missing.append(&mut page_of_unresolved(with_keys, after.as_ref(), left));
                if last == *end {
                    break;
                }
                first = last + 1;
            }
        }
        Ok(missing)
    }

    /// Returns the last of the first `limit` keys of missing digests between two keys; `None` if there are none.
    fn last_key(&self, (first, last): (i64, i64), limit: usize) -> Result<Option<i64>> {
        let sql = "SELECT max(key) FROM (SELECT DISTINCT key FROM unresolved_reference
                                          WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3)";
        Ok(self.rows(sql, (first, last, limit_of(limit)), |row| row.get(0))?.pop().flatten())
    }

    /// Returns the references to missing digests with keys from the first to the last one, sorted.
    fn missing_with_keys(&self, (first, last): (i64, i64)) -> Result<Vec<UnresolvedReference>> {
        let mut missing = Vec::new();
        let sql = "SELECT DISTINCT c.artifact FROM unresolved_reference u JOIN capture c ON c.id = u.capture
                    WHERE u.key BETWEEN ?1 AND ?2";
        for artifact in self.rows(sql, (first, last), |row| row.get::<_, ArtifactId>(0))? {
            let is_missing = |edge: &ReferenceEdge| {
                !edge.is_resolved && (first..=last).contains(&edge.mention.digest.key())
            };
            for edge in self.references_from(artifact)?.into_iter().filter(is_missing) {
                let ReferenceEdge { mention, relation, .. } = edge;
                missing.push(UnresolvedReference {
                    missing: UnresolvedTarget::Digest(mention.digest),
                    artifact: mention.artifact,
                    relation,
                    role: Some(mention.role),
                    place: Some(mention.place),
                });
            }
        }
        sort_unresolved(&mut missing);
        Ok(missing)
    }

    /// Returns the references to the first `limit` missing names after `after`, sorted.
    fn missing_names(&self, after: Option<&str>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let sql = "WITH missing AS (
                     SELECT n.handle, n.artifact, n.relation FROM name_mention n
                      WHERE n.dangles AND (?1 IS NULL OR n.handle > ?1) AND NOT EXISTS
                        (SELECT 1 FROM identity i WHERE i.handle = n.handle AND i.artifact <> n.artifact))
                   SELECT handle, artifact, relation FROM missing
                    WHERE handle IN (SELECT DISTINCT handle FROM missing ORDER BY handle LIMIT ?2)";
        let missing = self.rows(sql, (after, limit_of(limit)), |row| {
            Ok((row.get(0)?, row.get::<_, ArtifactId>(1)?, row.get(2)?))
        })?;
        let reference = |(name, artifact, relation)| {
            Ok(UnresolvedReference::to_name(name, self.core_of(artifact)?, relation))
        };
        let mut missing = missing.into_iter().map(reference).collect::<Result<Vec<_>>>()?;
        sort_unresolved(&mut missing);
        Ok(missing)
    }
}

/// The SQL condition that the artifact of `identity i` is of a kind with mentions in the group `?1`.
const IS_OF_GROUP: &str = "EXISTS (SELECT 1 FROM artifact a JOIN role r ON r.kind = a.kind
                                    WHERE a.id = i.artifact AND r.role_group = ?1)";

/// The SQL condition that the artifact of `identity i` does not refer to the name itself.
const REFERS_NOT: &str =
    "NOT EXISTS (SELECT 1 FROM name_mention n WHERE n.artifact = i.artifact AND n.handle = i.handle)";

impl SqliteSnapshot<'_> {
    /// Returns the names that several originals have, of kinds with mentions in one group, sorted.
    pub(crate) fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT i.handle FROM identity i WHERE {IS_OF_GROUP} AND {REFERS_NOT}
              GROUP BY i.handle HAVING count(*) > 1 ORDER BY 1"
        );
        self.rows(&sql, [group], |row| row.get(0))
    }

    /// Returns the originals that have a name, in the order in which they were added.
    pub(crate) fn originals(&self, name: &str) -> Result<Vec<ArtifactId>> {
        let sql =
            format!("SELECT i.artifact FROM identity i WHERE i.handle = ?1 AND {REFERS_NOT} ORDER BY 1");
        self.rows(&sql, [name], |row| row.get(0))
    }

    /// Returns the names of which an artifact is an original, sorted.
    pub(crate) fn original_names(&self, artifact: ArtifactId) -> Result<Vec<String>> {
        let sql =
            format!("SELECT i.handle FROM identity i WHERE i.artifact = ?1 AND {REFERS_NOT} ORDER BY 1");
        self.rows(&sql, [artifact.0], |row| row.get(0))
    }

    /// Returns whether another artifact of the same kind has a name of the artifact, or refers to a name that it refers
    /// to.
    pub(crate) fn has_namesake(&self, artifact: ArtifactId) -> Result<bool> {
        // The plus keeps SQLite from scanning all artifacts of the kind.
        let sql = "SELECT EXISTS (
                     SELECT 1 FROM identity mine JOIN identity other ON other.handle = mine.handle
                       JOIN artifact a ON a.id = other.artifact
                      WHERE mine.artifact = ?1 AND a.id <> ?1
                        AND +a.kind = (SELECT kind FROM artifact WHERE id = ?1))
                   OR EXISTS (
                     SELECT 1 FROM name_mention mine JOIN name_mention other ON other.handle = mine.handle
                       JOIN artifact a ON a.id = other.artifact
                      WHERE mine.artifact = ?1 AND a.id <> ?1
                        AND +a.kind = (SELECT kind FROM artifact WHERE id = ?1))";
        Ok(self.rows(sql, [artifact.0], |row| row.get(0))?.pop().unwrap_or_default())
    }
}
