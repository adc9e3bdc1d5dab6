//! Artifacts that continue others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{ArtifactQueries as _, Filter, FindQueries};
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::read::mentions::RoleCache;
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::{ArtifactRecord, Result};

/// Maximum number of artifacts whose attributes are looked up one by one; those of more are looked up all at once.
const MANY: usize = 1_000;

impl SqliteSnapshot<'_> {
    /// Returns those of `of` that another artifact which matches `filter` relates to by `relation`, which holds only between
    /// artifacts that have the same value of `attribute`. For each, only as much of the index is read as is needed to find
    /// one, the newest first.
    pub(super) fn related(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        let of: BTreeSet<CoreHash> = of.iter().copied().collect();
        let others = filter.among.as_ref().map(|among| among.iter().copied().collect::<BTreeSet<_>>());
        let all: Vec<CoreHash> = of.union(others.as_ref().unwrap_or(&BTreeSet::new())).copied().collect();
        let all = self.artifacts(&all)?;
        let mut artifacts: Vec<&ArtifactRecord> = all.iter().flatten().collect();
        if others.is_some() {
            artifacts = self.sharing(artifacts, attribute)?;
        }
        artifacts.retain(|artifact| of.contains(&artifact.core));
        let mut matching = MatchCache { filter, others, known: HashMap::new() };
        let mut roles = RoleCache::default();
        let mut related = BTreeSet::new();
        for artifact in artifacts {
            let id = ArtifactId::from(artifact);
            let own = self.values_of(id, attribute)?;
            if own.is_empty() {
                continue;
            }
            let captures = self.answer(self.captures_stating(mention_index::key(&artifact.core.0)))?;
            for capture in captures.into_iter().rev() {
                let other = self.answer(self.artifact_with(capture))?;
                let Some(other) = other.filter(|other| *other != id) else { continue };
                if matching.has(self, other)?
                    && self.answer(self.states(capture, &artifact.core.0, relation, &mut roles))?
                    && self.values_of(other, attribute)?.iter().any(|value| own.contains(value))
                {
                    related.insert(artifact.core);
                    break;
                }
            }
        }
        Ok(related)
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
    fn sharing<'a>(
        &self,
        artifacts: Vec<&'a ArtifactRecord>,
        attribute: &str,
    ) -> Result<Vec<&'a ArtifactRecord>> {
        let values = self.values(&artifacts, attribute)?;
        let mut counts: HashMap<i64, usize> = HashMap::new();
        let of = |artifact: &ArtifactRecord| {
            values.get(&ArtifactId::from(artifact)).map_or(&[][..], Vec::as_slice)
        };
        for value in artifacts.iter().flat_map(|artifact| of(artifact)) {
            *counts.entry(*value).or_default() += 1;
        }
        let is_shared = |value: &i64| counts.get(value).is_some_and(|count| *count > 1);
        Ok(artifacts.into_iter().filter(|artifact| of(artifact).iter().any(is_shared)).collect())
    }

    /// Returns the row ids of the values of `attribute`, by artifact.
    fn values(
        &self,
        artifacts: &[&ArtifactRecord],
        attribute: &str,
    ) -> Result<BTreeMap<ArtifactId, Vec<i64>>> {
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
            let id = ArtifactId::from(*artifact);
            values.insert(id, self.values_of(id, attribute)?);
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

/// The artifacts that are known to match a filter or not.
struct MatchCache<'f> {
    filter: &'f Filter,
    /// The only artifacts that can match.
    others: Option<BTreeSet<CoreHash>>,
    known: HashMap<ArtifactId, bool>,
}

impl MatchCache<'_> {
    fn has(&mut self, snapshot: &SqliteSnapshot<'_>, artifact: ArtifactId) -> Result<bool> {
        if let Some(matches) = self.known.get(&artifact) {
            return Ok(*matches);
        }
        let core = snapshot.core_of(artifact)?;
        let filter = Filter { among: None, ..self.filter.clone() };
        let mut matches = self.others.as_ref().is_none_or(|others| others.contains(&core));
        if matches && filter != Filter::default() {
            let digits = core.0.hex();
            let has_digits = filter.digits.as_ref().is_none_or(|first| digits.starts_with(first.as_str()));
            matches =
                has_digits && FindQueries::count(snapshot, &Filter { digits: Some(digits), ..filter })? > 0;
        }
        self.known.insert(artifact, matches);
        Ok(matches)
    }
}
