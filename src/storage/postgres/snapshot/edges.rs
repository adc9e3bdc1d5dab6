//! References between artifacts by digest, manual links and containment.

use std::collections::{BTreeSet, HashMap};

use postgres::Row;

use crate::artifact::{ArtifactLocation, relation};
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{
    Containment, Direction, Filter, ReferenceEdge, UnresolvedReference, UnresolvedTarget, digests_then_names,
    sort_references, sort_unresolved,
};
use crate::storage::postgres::columns::{core, digest, limit as limit_of, optional_text, text, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::ListedMention;
use crate::storage::postgres::view::PostgresSnapshot;
use crate::storage::sql::{self, FindSnapshot as _, StatementParameters, in_order};

/// Two artifacts `t` and `f` have a value of the attribute that the third parameter names in common.
const SHARE_ATTRIBUTE: &str = "EXISTS (SELECT 1 FROM attribute x JOIN attribute y
      ON y.name = x.name AND y.key = x.key AND y.value = x.value
   WHERE x.artifact = t.id AND y.artifact = f.id AND x.name = $3)";

/// Returns the place in two columns from `first` on.
fn place(row: &Row, first: usize) -> PostgresResult<ArtifactLocation> {
    if let Some(index) = value::<Option<i64>>(row, first)? {
        let index = u32::try_from(index).map_err(|_| PostgresError::damaged("a place is out of range"))?;
        return Ok(ArtifactLocation::Index(index));
    }
    Ok(ArtifactLocation::Pointer(text(row, first + 1)?))
}

impl PostgresSnapshot<'_> {
    /// Returns the reference in the columns from `first` on: the artifact, the role, the place in two columns, the digest, the
    /// inverse relation, and whether the digest is that of an artifact.
    pub(super) fn reference(&self, row: &Row, first: usize) -> PostgresResult<ReferenceEdge> {
        let role: i32 = value(row, first + 1)?;
        let entry = ListedMention { role, place: place(row, first + 2)?, digest: digest(row, first + 4)? };
        let relation = self.names.role(&self.session, role)?.relation.clone();
        Ok(ReferenceEdge {
            mention: self.mention(core(row, first)?, &entry)?,
            relation: relation.unwrap_or_default(),
            inverse: optional_text(row, first + 5)?,
            is_resolved: value(row, first + 6)?,
        })
    }

    pub(super) fn references(
        &self,
        of: &[CoreHash],
        direction: Direction,
    ) -> PostgresResult<Vec<Vec<ReferenceEdge>>> {
        let (requested_core, condition) = match direction {
            Direction::Out => {
                ("f.core", "f.core = ANY($1) AND e.target <> f.core AND (t.id IS NOT NULL OR r.dangles)")
            }
            Direction::In => ("t.core", "t.core = ANY($1) AND e.target <> f.core"),
        };
        let sql = format!(
            "SELECT DISTINCT {requested_core}, f.core, e.role, e.index, e.pointer, e.target, k.stated_by, t.id IS NOT NULL
               FROM edge e JOIN role r ON r.id = e.role JOIN artifact f ON f.id = e.artifact
               LEFT JOIN artifact t ON t.core = e.target LEFT JOIN kind k ON k.id = t.kind
              WHERE {condition} AND r.relation IS NOT NULL"
        );
        let mut found: HashMap<CoreHash, Vec<ReferenceEdge>> = HashMap::new();
        for row in self.session.rows(&sql, &[&of])? {
            let edge = self.reference(&row, 1)?;
            found.entry(core(&row, 0)?).or_default().push(edge);
        }
        for edges in found.values_mut() {
            sort_references(edges, direction);
        }
        Ok(in_order(of, &found))
    }

    pub(super) fn containers(&self, of: &[CoreHash], by: Containment) -> PostgresResult<Vec<Vec<CoreHash>>> {
        let mentions_sql = "SELECT a.core, f.core FROM artifact a JOIN edge e ON e.target = a.core
                        JOIN role r ON r.id = e.role JOIN artifact f ON f.id = e.artifact
                       WHERE a.core = ANY($1) AND r.relation = $2 AND f.id <> a.id";
        // Files that directories share do not make one part of another.
        let bytes = "UNION SELECT a.core, f.core FROM artifact a JOIN kind k ON k.id = a.kind
                        JOIN capture c ON c.artifact = a.id JOIN member m ON m.capture = c.id
                        JOIN member n ON n.blob = m.blob JOIN capture d ON d.id = n.capture
                        JOIN artifact f ON f.id = d.artifact
                       WHERE a.core = ANY($1) AND NOT k.is_directory AND f.id <> a.id";
        let sql = match by {
            Containment::Declared => format!("SELECT DISTINCT * FROM ({mentions_sql}) x ORDER BY 1, 2"),
            Containment::Bytes => format!("{mentions_sql} {bytes} ORDER BY 1, 2"),
        };
        // Both have the same names for their columns.
        let sql = sql.replacen("a.core, f.core", "a.core AS contained, f.core AS container", 1);
        let mut found: HashMap<CoreHash, Vec<CoreHash>> = HashMap::new();
        for row in self.session.rows(&sql, &[&of, &relation::CONTAINS])? {
            found.entry(core(&row, 0)?).or_default().push(core(&row, 1)?);
        }
        Ok(in_order(of, &found))
    }

    pub(super) fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> PostgresResult<BTreeSet<CoreHash>> {
        let sql = format!(
            "SELECT DISTINCT t.core FROM edge e JOIN role r ON r.id = e.role
               JOIN artifact t ON t.core = e.target JOIN artifact f ON f.id = e.artifact
              WHERE t.core = ANY($1) AND f.core = ANY($1) AND r.relation = $2 AND t.id <> f.id AND {SHARE_ATTRIBUTE}"
        );
        self.session.rows(&sql, &[&among, &relation, &attribute])?.iter().map(|row| core(row, 0)).collect()
    }

    pub(super) fn related_to_matching(
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
              WHERE t.core = ANY($1) AND r.relation = $2 AND t.id <> f.id AND {SHARE_ATTRIBUTE}
                AND f.id IN (SELECT a.id FROM {matching})"
        );
        let rows = self.rows_planned_for(&sql, &parameters)?;
        self.answer(rows.iter().map(|row| Ok(row.core(0)?)).collect())
    }

    /// Returns the references to digests and names that the vault does not have.
    pub(super) fn unresolved(
        &self,
        after: Option<&UnresolvedTarget>,
        limit: usize,
    ) -> PostgresResult<Vec<UnresolvedReference>> {
        let digests = |after, limit| self.missing_digests(after, limit);
        let names = |after: Option<&str>, limit| sql::missing_names(&self.session, after, limit);
        digests_then_names(after, limit, digests, names)
    }

    /// Returns the references to the first `limit` missing digests after `after`, sorted.
    fn missing_digests(
        &self,
        after: Option<Digest>,
        limit: usize,
    ) -> PostgresResult<Vec<UnresolvedReference>> {
        let after = after.as_ref().map(|digest| digest.as_bytes().as_slice());
        let sql = "WITH missing AS (
                     SELECT e.target, f.core, e.role, e.index, e.pointer FROM edge e
                       JOIN role r ON r.id = e.role JOIN artifact f ON f.id = e.artifact
                      WHERE r.dangles AND e.target <> f.core AND ($1::bytea IS NULL OR e.target > $1)
                        AND NOT EXISTS (SELECT 1 FROM artifact t WHERE t.core = e.target))
                   SELECT DISTINCT target, core, role, index, pointer FROM missing
                    WHERE target IN (SELECT DISTINCT target FROM missing ORDER BY target LIMIT $2)";
        let mut missing = Vec::new();
        for row in self.session.rows(sql, &[&after, &limit_of(limit)])? {
            let role = self.names.role(&self.session, value(&row, 2)?)?;
            missing.push(UnresolvedReference {
                missing: UnresolvedTarget::Digest(digest(&row, 0)?),
                artifact: core(&row, 1)?,
                relation: role.relation.clone().unwrap_or_default(),
                role: Some(role.name.clone()),
                place: Some(place(&row, 3)?),
            });
        }
        sort_unresolved(&mut missing);
        Ok(missing)
    }
}
