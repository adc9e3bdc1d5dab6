//! Artifacts that continue others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::read::mentions::RoleCache;
use crate::storage::sqlite::rows::{ArtifactId, ArtifactRow};

/// Maximum number of artifacts whose attributes are looked up one by one; those of more are looked up all at once.
const MANY: usize = 1_000;

impl SqliteSnapshot<'_> {
    /// Returns those of `artifacts` that another one of them relates to by `relation`, which holds only between
    /// artifacts that have the same value of `attribute`. For each, only as much of the index is read as is needed to
    /// find one that does.
    pub(crate) fn related_among(
        &self,
        artifacts: &[&ArtifactRow],
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<ArtifactId>> {
        let candidates = self.sharing(artifacts, attribute)?;
        let mut of_capture: HashMap<i64, ArtifactId> = HashMap::new();
        for artifact in &candidates {
            let sql = "SELECT id FROM capture WHERE artifact = ?1";
            let captures = self.rows(sql, [artifact.id.0], |row| row.get(0))?;
            of_capture.extend(captures.into_iter().map(|capture: i64| (capture, artifact.id)));
        }
        let mut roles = RoleCache::default();
        let mut related = BTreeSet::new();
        for artifact in candidates {
            if self
                .is_related(artifact, relation, &of_capture, &mut roles)
                .map_err(|error| self.failed(error))?
            {
                related.insert(artifact.id);
            }
        }
        Ok(related)
    }

    /// Returns those of `artifacts` that another artifact relates to by `relation`, which holds only between artifacts that
    /// have the same value of `attribute`; only others that `is_other` accepts count. For each, only as much of the index
    /// is read as is needed to find one, the newest first.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read or the index is damaged, and any error that `is_other` returns.
    pub(crate) fn related_to(
        &self,
        artifacts: &[ArtifactRow],
        relation: &str,
        attribute: &str,
        is_other: &mut dyn FnMut(ArtifactId) -> Result<bool>,
    ) -> Result<BTreeSet<ArtifactId>> {
        let mut roles = RoleCache::default();
        let mut related = BTreeSet::new();
        for artifact in artifacts {
            let own = self.values_of(artifact.id, attribute)?;
            if own.is_empty() {
                continue;
            }
            let captures = self.captures_stating(mention_index::key(&artifact.core.0));
            for capture in captures.map_err(|error| self.failed(error))?.into_iter().rev() {
                let other =
                    self.rows("SELECT artifact FROM capture WHERE id = ?1", [capture], |row| row.get(0));
                let Some(other) = other?.pop().filter(|other| *other != artifact.id) else { continue };
                if !is_other(other)? {
                    continue;
                }
                let states = self.states(capture, &artifact.core.0, relation, &mut roles);
                if states.map_err(|error| self.failed(error))?
                    && self.values_of(other, attribute)?.iter().any(|value| own.contains(value))
                {
                    related.insert(artifact.id);
                    break;
                }
            }
        }
        Ok(related)
    }

    /// Whether the list of one of these captures mentions `artifact` by `relation`.
    fn is_related(
        &self,
        artifact: &ArtifactRow,
        relation: &str,
        of_capture: &HashMap<i64, ArtifactId>,
        roles: &mut RoleCache,
    ) -> rusqlite::Result<bool> {
        let digest = artifact.core.0;
        for capture in self.captures_stating(mention_index::key(&digest))? {
            if of_capture.get(&capture).is_none_or(|other| *other == artifact.id) {
                continue;
            }
            if self.states(capture, &digest, relation, roles)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the list of a capture mentions `digest` by `relation`.
    fn states(
        &self,
        capture: i64,
        digest: &Digest,
        relation: &str,
        roles: &mut RoleCache,
    ) -> rusqlite::Result<bool> {
        for row in self.lists().with(capture, |other| other == digest)? {
            if roles.get(self, row.role)?.relation.as_deref() == Some(relation) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns those of `artifacts` that share a value of `attribute` with another one of them.
    fn sharing<'a>(&self, artifacts: &[&'a ArtifactRow], attribute: &str) -> Result<Vec<&'a ArtifactRow>> {
        let values = self.values(artifacts, attribute)?;
        let mut counts: HashMap<i64, usize> = HashMap::new();
        let of = |artifact: &ArtifactRow| values.get(&artifact.id).map_or(&[][..], Vec::as_slice);
        for value in artifacts.iter().flat_map(|artifact| of(artifact)) {
            *counts.entry(*value).or_default() += 1;
        }
        let is_shared = |value: &i64| counts.get(value).is_some_and(|count| *count > 1);
        Ok(artifacts.iter().copied().filter(|artifact| of(artifact).iter().any(is_shared)).collect())
    }

    /// Returns the row ids of the values of `attribute`, by artifact.
    fn values(&self, artifacts: &[&ArtifactRow], attribute: &str) -> Result<BTreeMap<ArtifactId, Vec<i64>>> {
        let mut values: BTreeMap<ArtifactId, Vec<i64>> = BTreeMap::new();
        let sql = "SELECT a.artifact, a.value FROM attribute a JOIN attribute_value v ON v.id = a.value
                    WHERE v.name = ?1";
        if artifacts.len() > MANY {
            for (artifact, value) in self.rows(sql, [attribute], |row| Ok((row.get(0)?, row.get(1)?)))? {
                values.entry(artifact).or_default().push(value);
            }
            return Ok(values);
        }
        for artifact in artifacts {
            values.insert(artifact.id, self.values_of(artifact.id, attribute)?);
        }
        Ok(values)
    }

    /// Returns the row ids of the values of `attribute` of an artifact.
    fn values_of(&self, artifact: ArtifactId, attribute: &str) -> Result<Vec<i64>> {
        let sql = "SELECT a.value FROM attribute a JOIN attribute_value v ON v.id = a.value
                    WHERE v.name = ?1 AND a.artifact = ?2";
        self.rows(sql, (attribute, artifact.0), |row| row.get(0))
    }
}
