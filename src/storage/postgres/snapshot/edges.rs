//! References between artifacts by digest.

use std::collections::{BTreeSet, HashMap};

use crate::artifact::{ArtifactLocation, relation};
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{
    Direction, Filter, ReferenceEdge, ReferenceQueries, UnresolvedReference, UnresolvedTarget,
    sort_references, sort_unresolved,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::ListedMention;
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{
    self, FindSnapshot as _, SqlRow, SqlSession as _, SqlSnapshot as _, StatementParameters, in_order,
};

/// The references of the artifacts `requested` to others: the core hash, the number of the artifact that the digest
/// identifies, if it is stored, the role, the place, the digest, and the inverse relation.
pub(super) const OUTGOING: &str =
    "SELECT DISTINCT f.core, t.id AS other, e.role, e.index, e.pointer, e.target, k.stated_by
       FROM requested f JOIN edge e ON e.artifact = f.id JOIN role r ON r.id = e.role
       LEFT JOIN artifact t ON t.id = coalesce(
         (SELECT a.id FROM artifact a WHERE a.core = e.target),
         (SELECT a.id FROM capture c JOIN artifact a ON a.id = c.artifact
           WHERE r.dangles AND c.digest = e.target ORDER BY a.core LIMIT 1))
       LEFT JOIN kind k ON k.id = t.kind
      WHERE r.relation IS NOT NULL AND CASE WHEN t.id IS NULL THEN r.dangles ELSE t.id <> f.id END";

/// The references of other artifacts to the artifacts `requested`: the core hash, the number of the other artifact, and the rest
/// as above. A capture hash identifies an artifact unless it is a core hash, or that of a capture of an artifact before it.
pub(super) const INCOMING: &str =
    "SELECT DISTINCT t.core, e.artifact AS other, e.role, e.index, e.pointer, e.target, k.stated_by
       FROM (SELECT a.id, a.core, a.kind, a.core AS hash FROM requested a
             UNION
             SELECT a.id, a.core, a.kind, c.digest FROM requested a JOIN capture c ON c.artifact = a.id
              WHERE NOT EXISTS (SELECT 1 FROM artifact b WHERE b.core = c.digest)
                AND NOT EXISTS (SELECT 1 FROM capture d JOIN artifact b ON b.id = d.artifact
                                 WHERE d.digest = c.digest AND b.core < a.core)) t
       JOIN edge e ON e.target = t.hash JOIN role r ON r.id = e.role JOIN kind k ON k.id = t.kind
      WHERE r.relation IS NOT NULL AND e.artifact <> t.id AND (t.hash = t.core OR r.dangles)";

/// Returns the place in two columns from `first` on.
fn place(row: &SqlRow, first: usize) -> PostgresResult<ArtifactLocation> {
    if let Some(index) = row.optional_integer(first)? {
        let index = u32::try_from(index).map_err(|_| PostgresError::damaged("a place is out of range"))?;
        return Ok(ArtifactLocation::Index(index));
    }
    Ok(ArtifactLocation::Pointer(row.text(first + 1)?))
}

impl PostgresSnapshot<'_> {
    /// Returns the reference in the columns from `first` on: the artifact at the other end than that in the first column, if it
    /// is stored, the role, the place in two columns, the digest, and the inverse relation.
    pub(super) fn reference(
        &self,
        row: &SqlRow,
        first: usize,
        direction: Direction,
    ) -> PostgresResult<ReferenceEdge> {
        let (requested, other) = (row.core(0)?, row.optional_digest(first)?.map(CoreHash));
        let (source, target) = match (direction, other) {
            (Direction::Out, target) => (requested, target),
            (Direction::In, Some(source)) => (source, Some(requested)),
            (Direction::In, None) => {
                return Err(PostgresError::damaged("a reference belongs to no artifact"));
            }
        };
        let role = row.integer(first + 1)?;
        let entry = ListedMention { role, place: place(row, first + 2)?, digest: row.digest(first + 4)? };
        let relation = self.names.role(&self.session, role)?.relation.clone();
        Ok(ReferenceEdge {
            mention: self.mention(source, &entry)?,
            relation: relation.unwrap_or_default(),
            inverse: row.optional_text(first + 5)?,
            target,
        })
    }
}

impl ReferenceQueries for PostgresSnapshot<'_> {
    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>> {
        let edges = match direction {
            Direction::Out => OUTGOING,
            Direction::In => INCOMING,
        };
        let sql = format!(
            "WITH requested AS MATERIALIZED (SELECT a.* FROM artifact a WHERE a.core = ANY($1))
             SELECT DISTINCT o.core, a.core, o.role, o.index, o.pointer, o.target, o.stated_by
               FROM ({edges}) o LEFT JOIN artifact a ON a.id = o.other"
        );
        let read = || {
            let mut found: HashMap<CoreHash, Vec<ReferenceEdge>> = HashMap::new();
            for row in self.session.rows(&sql, &[of.into()])? {
                let edge = self.reference(&row, 1, direction)?;
                found.entry(row.core(0)?).or_default().push(edge);
            }
            for edges in found.values_mut() {
                sort_references(edges, direction);
            }
            Ok(in_order(of, &found))
        };
        self.answer(read())
    }

    fn stated_containers(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>> {
        let sql = "SELECT a.core, f.core AS container FROM artifact a JOIN edge e ON e.target = a.core
                     JOIN role r ON r.id = e.role JOIN artifact f ON f.id = e.artifact
                    WHERE a.core = ANY(?1) AND r.relation = ?2 AND f.id <> a.id";
        let parameters = [of.into(), relation::CONTAINS.into()];
        let mut found: HashMap<CoreHash, BTreeSet<CoreHash>> = HashMap::new();
        for (core, container) in self.read_rows(sql, &parameters, |row| Ok((row.core(0)?, row.core(1)?)))? {
            found.entry(core).or_default().insert(container);
        }
        Ok(in_order(of, &found))
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        let mut parameters = StatementParameters::default();
        parameters.bind(of);
        parameters.bind(relation);
        parameters.bind(attribute);
        let matching = sql::matching(self, filter, &mut parameters)?;
        let sql = format!(
            "SELECT DISTINCT t.core FROM edge e JOIN role r ON r.id = e.role
               JOIN artifact t ON t.core = e.target JOIN artifact f ON f.id = e.artifact
              WHERE t.core = ANY($1) AND r.relation = $2 AND t.id <> f.id
                AND EXISTS (SELECT 1 FROM attribute x JOIN attribute y ON y.name = x.name AND y.key = x.key AND y.value = x.value
                             WHERE x.artifact = t.id AND y.artifact = f.id AND x.name = $3)
                AND f.id IN (SELECT a.id FROM {matching})"
        );
        let rows = self.rows_planned_for(&sql, &parameters)?;
        self.answer(rows.iter().map(|row| Ok(row.core(0)?)).collect())
    }

    fn missing_digests(&self, after: Option<Digest>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let sql = "WITH missing AS (
                     SELECT e.target, f.core, e.role, e.index, e.pointer FROM edge e
                       JOIN role r ON r.id = e.role JOIN artifact f ON f.id = e.artifact
                      WHERE r.dangles AND e.target <> f.core AND ($1::bytea IS NULL OR e.target > $1)
                        AND NOT EXISTS (SELECT 1 FROM artifact t WHERE t.core = e.target)
                        AND NOT EXISTS (SELECT 1 FROM capture c WHERE c.digest = e.target))
                   SELECT DISTINCT target, core, role, index, pointer FROM missing
                    WHERE target IN (SELECT DISTINCT target FROM missing ORDER BY target LIMIT $2)";
        let reference = |row: &SqlRow| {
            let role = self.names.role(&self.session, row.integer(2)?)?;
            Ok(UnresolvedReference {
                missing: UnresolvedTarget::Digest(row.digest(0)?),
                artifact: row.core(1)?,
                relation: role.relation.clone().unwrap_or_default(),
                role: Some(role.name.to_string()),
                place: Some(place(row, 3)?),
            })
        };
        let rows = self.answer(self.session.rows(sql, &[after.into(), limit.into()]))?;
        let mut missing: Vec<_> = self.answer(rows.iter().map(reference).collect())?;
        sort_unresolved(&mut missing);
        Ok(missing)
    }
}
