//! References between artifacts, and artifacts that continue others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::artifact::relation;
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{
    ArtifactQueries as _, Direction, Filter, FindQueries, ReferenceQueries, UnresolvedTarget, count_targets,
    page_of_unresolved, sort_references, sort_unresolved,
};
use crate::storage::sql::{SqlSnapshot as _, capture_hashes, captured_as, in_order};
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::read::mentions::{RoleCache, mention};
use crate::storage::sqlite::rows::{ArtifactId, artifact_id};
use crate::storage::{ArtifactRecord, ReferenceEdge, Result, UnresolvedReference};

/// The relation of an artifact to its embedded artifacts, which are stored with it.
const CONTAINS: &str = relation::CONTAINS;

/// The relations of artifacts to those that state their core hash, by the kinds for which it has a name.
type InverseRelations = HashMap<String, String>;

impl ReferenceQueries for SqliteSnapshot<'_> {
    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>> {
        let artifacts: Vec<ArtifactRecord> = self.artifacts(of)?.into_iter().flatten().collect();
        let inverses = self.inverse_relations()?;
        let mut found = match direction {
            Direction::Out => {
                // The lists of most artifacts are long, and have no such mention.
                let sql = "SELECT DISTINCT k.name FROM role r JOIN kind k ON k.id = r.kind
                            WHERE r.relation IS NOT NULL";
                let relating: BTreeSet<String> = self.rows(sql, [], |row| row.get(0))?.into_iter().collect();
                let relating = artifacts.iter().filter(|artifact| relating.contains(&*artifact.kind));
                let from = |of: &ArtifactRecord| Ok((of.core, self.references_from(of, &inverses)?));
                relating.map(from).collect::<Result<_>>()?
            }
            Direction::In => self.references_to(&artifacts, &inverses)?,
        };
        for edges in found.values_mut() {
            sort_references(edges, direction);
        }
        self.answer(Ok(in_order(of, &found)))
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        self.related(of, filter, relation, attribute)
    }

    fn stated_containers(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>> {
        let kinds = self.containing_kinds()?;
        if kinds.is_empty() {
            return Ok(vec![BTreeSet::new(); of.len()]);
        }
        let containers = |core: &CoreHash| match self.id_of(*core)? {
            Some(artifact) => self.cores(self.containers_of(artifact, &kinds)?),
            None => Ok(BTreeSet::new()),
        };
        of.iter().map(containers).collect()
    }

    fn missing_digests(&self, after: Option<Digest>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let from = after.map_or(0, |digest| digest.key());
        // The keys of digests whose first bit is set are negative, and come last.
        let ranges: &[_] = if from < 0 { &[(from, -1)] } else { &[(from, i64::MAX), (i64::MIN, -1)] };
        let (after, mut missing) = (after.map(UnresolvedTarget::Digest), Vec::new());
        for (first, end) in ranges {
            let mut first = *first;
            loop {
                let left = limit - count_targets(&missing);
                let Some(last) = self.last_key(first, *end, left)? else { break };
                let with_keys = self.missing_with_keys(first, last)?;
                missing.append(&mut page_of_unresolved(with_keys, after.as_ref(), left));
                if last == *end {
                    break;
                }
                first = last + 1;
            }
        }
        Ok(missing)
    }
}

impl SqliteSnapshot<'_> {
    /// Returns the mentions that relate an artifact to others. Unresolved ones are included if their relation dangles.
    fn references_from(
        &self,
        artifact: &ArtifactRecord,
        inverses: &InverseRelations,
    ) -> Result<Vec<ReferenceEdge>> {
        let (id, mut edges) = (ArtifactId::from(artifact), Vec::new());
        let (mentions, mut roles) = (self.part(self.mentions_of_artifact(id.0))?, RoleCache::default());
        let mut relating = Vec::new();
        for row in mentions.iter() {
            let role = self.part(roles.get(self, row.role))?;
            if let Some(relation) = &role.relation {
                let mention = mention(artifact.core, row.clone(), role);
                relating.push((mention, relation.clone(), role.dangles));
            }
        }
        let targets: Vec<CoreHash> = relating.iter().map(|(mention, ..)| CoreHash(mention.digest)).collect();
        let targets = self.artifacts(&targets)?;
        let missing =
            relating.iter().zip(&targets).filter(|((.., dangles), target)| *dangles && target.is_none());
        let missing: Vec<Digest> = missing.map(|((mention, ..), _)| mention.digest).collect();
        let captured = self.first_captured_as(&missing)?;
        for ((mention, relation, dangles), target) in relating.into_iter().zip(targets) {
            let target = target.as_ref().or_else(|| captured.get(&mention.digest).filter(|_| dangles));
            if target.map_or(!dangles, |target| target.core == artifact.core) {
                continue;
            }
            let inverse = target.and_then(|target| inverses.get(&target.kind)).cloned();
            edges.push(ReferenceEdge { mention, relation, inverse, target: target.map(|it| it.core) });
        }
        Ok(edges)
    }

    /// Returns the artifact with the smallest core hash that has a capture of each hash.
    fn first_captured_as(&self, hashes: &[Digest]) -> Result<HashMap<Digest, ArtifactRecord>> {
        let mut captured = HashMap::new();
        for (capture, artifact) in captured_as(self, hashes)? {
            captured.entry(capture.0).or_insert(artifact);
        }
        Ok(captured)
    }

    /// Returns the mentions that relate other artifacts to each of these.
    fn references_to(
        &self,
        artifacts: &[ArtifactRecord],
        inverses: &InverseRelations,
    ) -> Result<HashMap<CoreHash, Vec<ReferenceEdge>>> {
        let relating = "SELECT id FROM role WHERE relation IS NOT NULL LIMIT 1";
        if self.rows(relating, [], |row| row.get::<_, i64>(0))?.is_empty() {
            return Ok(HashMap::new());
        }
        let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
        let known: HashMap<Digest, &ArtifactRecord> = artifacts.iter().map(|it| (it.core.0, it)).collect();
        let captures = capture_hashes(self, &cores)?;
        let of_others = self.artifacts(&captures.iter().copied().map(CoreHash).collect::<Vec<_>>())?;
        let captures = captures.into_iter().zip(of_others).filter(|(_, other)| other.is_none());
        let captures: Vec<Digest> = captures.map(|(capture, _)| capture).collect();
        let mut identified = self.first_captured_as(&captures)?;
        identified.retain(|_, artifact| known.contains_key(&artifact.core.0));
        identified.extend(known.into_iter().map(|(core, artifact)| (core, artifact.clone())));
        let digests: Vec<Digest> = identified.keys().copied().collect();
        let stating = self.part(self.stating_each(&digests))?;
        let mut roles = RoleCache::default();
        let mut all: HashMap<CoreHash, Vec<ReferenceEdge>> = HashMap::new();
        for (artifact, stating) in identified.values().zip(stating) {
            let edges = all.entry(artifact.core).or_default();
            let inverse = inverses.get(&artifact.kind);
            for (from, row) in stating {
                let role = self.part(roles.get(self, row.role))?;
                let is_reference = role.dangles || row.digest == artifact.core.0;
                let Some(relation) =
                    role.relation.clone().filter(|_| is_reference && from != ArtifactId::from(artifact))
                else {
                    continue;
                };
                let mention = mention(self.core_of(from)?, row, role);
                let target = Some(artifact.core);
                edges.push(ReferenceEdge { mention, relation, inverse: inverse.cloned(), target });
            }
        }
        Ok(all)
    }

    fn inverse_relations(&self) -> Result<InverseRelations> {
        let sql = "SELECT name, stated_by FROM kind WHERE stated_by IS NOT NULL";
        Ok(self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect())
    }

    /// Returns the numbers of the kinds whose artifacts state what they contain.
    pub(crate) fn containing_kinds(&self) -> Result<BTreeSet<i64>> {
        let sql = "SELECT DISTINCT kind FROM role WHERE relation = ?1";
        Ok(self.rows(sql, [CONTAINS], |row| row.get(0))?.into_iter().collect())
    }

    /// Returns the artifacts of these kinds that contain an artifact, such as the packs of a session.
    pub(crate) fn containers_of(
        &self,
        artifact: ArtifactId,
        kinds: &BTreeSet<i64>,
    ) -> Result<Vec<ArtifactId>> {
        let core = self.artifact_by_id(artifact)?.core.0;
        let find = || {
            let mut containers = BTreeSet::new();
            let mut roles = RoleCache::default();
            // Most captures that mention an artifact are of kinds without members, so their lists need not be read.
            for capture in self.captures_stating(mention_index::key(&core))? {
                let owner = self.owners.borrow_mut().owner(self.connection(), capture)?;
                if !owner.is_some_and(|(_, kind)| kinds.contains(&kind)) {
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
        self.answer(find())
    }

    /// Returns the artifacts that an artifact contains, such as the session of a pack.
    pub(crate) fn contained_in(&self, artifact: ArtifactId) -> Result<Vec<ArtifactId>> {
        let find = || {
            let mut contained = BTreeSet::new();
            let mut roles = RoleCache::default();
            for row in self.mentions_of_artifact(artifact.0)?.iter() {
                if roles.get(self, row.role)?.relation.as_deref() == Some(CONTAINS) {
                    contained.extend(artifact_id(self.connection(), CoreHash(row.digest))?.map(ArtifactId));
                }
            }
            contained.remove(&artifact);
            Ok(contained.into_iter().collect())
        };
        self.answer(find())
    }

    /// Returns the last of the first `limit` keys of missing digests between two keys; `None` if there are none.
    fn last_key(&self, first: i64, last: i64, limit: usize) -> Result<Option<i64>> {
        let sql = "SELECT max(key) FROM (SELECT DISTINCT key FROM unresolved_reference
                                          WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3)";
        let parameters = [first.into(), last.into(), limit.into()];
        Ok(self.read_rows(sql, &parameters, |row| row.optional_integer(0))?.pop().flatten())
    }

    /// Returns the references to missing digests with keys from the first to the last one, sorted.
    fn missing_with_keys(&self, first: i64, last: i64) -> Result<Vec<UnresolvedReference>> {
        let (inverses, mut missing) = (self.inverse_relations()?, Vec::new());
        let sql = "SELECT DISTINCT c.artifact FROM unresolved_reference u JOIN capture c ON c.id = u.capture
                    WHERE u.key BETWEEN ?1 AND ?2";
        for artifact in self.rows(sql, (first, last), |row| row.get(0))? {
            let is_missing = |edge: &ReferenceEdge| {
                edge.target.is_none() && (first..=last).contains(&edge.mention.digest.key())
            };
            let edges = self.references_from(&self.artifact_by_id(artifact)?, &inverses)?;
            for edge in edges.into_iter().filter(is_missing) {
                let ReferenceEdge { mention, relation, .. } = edge;
                missing.push(UnresolvedReference {
                    missing: UnresolvedTarget::Digest(mention.digest),
                    artifact: mention.artifact,
                    relation,
                    role: Some(mention.role.to_string()),
                    place: Some(mention.place),
                });
            }
        }
        sort_unresolved(&mut missing);
        self.answer(Ok(missing))
    }
}

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
