//! The facts that the links of many artifacts are derived from, as one statement.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::digest::CoreHash;
use crate::storage::interface::{
    Direction, ManualLink, NameMention, Neighborhood, Neighbors, NeighborsQuery, sort_references,
};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::postgres::snapshot::edges::{INCOMING as INCOMING_EDGES, OUTGOING as OUTGOING_EDGES};
use crate::storage::sql::{
    ARTIFACT as ARTIFACT_COLUMNS, Dialect, SqlRow, SqlSession as _, has_namesake_condition, is_original,
};

/// The parts of the answer, whose number follows the columns of artifacts. Those of references are next; the other parts use
/// those that have the types which they need.
const ARTIFACT: i64 = 0;
const MANUAL: i64 = 1;
const OUTGOING: i64 = 2;
const INCOMING: i64 = 3;
const OWN: i64 = 4;
const MENTIONED: i64 = 5;
const IDENTIFIED: i64 = 6;
const REFERRING: i64 = 7;
const NAMESAKE: i64 = 8;
const LIST: i64 = 9;

/// Returns the statement. What is asked for are the artifacts, the names whose uses are not wanted, the groups of mentions,
/// and whether namesakes are wanted.
fn statement() -> String {
    let no_artifact = "NULL, 0, 0, 0, 0";
    let no_edge = "NULL::integer, NULL::bigint, NULL";
    let is_original = is_original(Dialect::Postgres);
    let has_namesake = has_namesake_condition(Dialect::Postgres);
    format!(
        "WITH requested AS MATERIALIZED
           (SELECT a.* FROM artifact a WHERE a.core = ANY($1)),
         manual AS MATERIALIZED
           (SELECT l.* FROM requested a JOIN link l ON l.source = a.id
            UNION SELECT l.* FROM requested a JOIN link l ON l.target = a.id),
         outgoing AS MATERIALIZED
           ({OUTGOING_EDGES}),
         incoming AS MATERIALIZED
           ({INCOMING_EDGES}),
         own AS MATERIALIZED
           (SELECT DISTINCT a.core, i.handle, i.key, {is_original} AS is_original
              FROM requested a JOIN identity i ON i.artifact = a.id),
         mentioned AS MATERIALIZED
           (SELECT DISTINCT a.core, n.relation, n.handle, n.key, n.dangles
              FROM requested a JOIN name_mention n ON n.artifact = a.id),
         handle AS MATERIALIZED
           (SELECT h.* FROM (SELECT key, handle FROM own UNION SELECT key, handle FROM mentioned) h
             WHERE h.handle <> ALL($2)),
         identified AS MATERIALIZED
           (SELECT DISTINCT i.handle, i.artifact, {is_original} AS is_original
              FROM handle h JOIN identity i ON i.key = h.key AND i.handle = h.handle),
         referring AS MATERIALIZED
           (SELECT DISTINCT m.handle, m.relation, m.artifact
              FROM handle h JOIN name_mention m ON m.key = h.key AND m.handle = h.handle),
         known AS MATERIALIZED
           (SELECT id FROM requested UNION SELECT source FROM manual UNION SELECT target FROM manual
             UNION SELECT other FROM outgoing WHERE other IS NOT NULL UNION SELECT other FROM incoming
             UNION SELECT artifact FROM identified UNION SELECT artifact FROM referring)
         SELECT {ARTIFACT_COLUMNS}, {ARTIFACT} AS part, NULL::bytea AS other,
                NULL::integer AS role, NULL::bigint AS index, NULL AS pointer, NULL::bytea AS digest, NULL AS text,
                EXISTS (SELECT 1 FROM requested b WHERE b.id = a.id) AS flag, NULL AS name
           FROM known n JOIN artifact a ON a.id = n.id JOIN kind k ON k.id = a.kind
         UNION ALL
         SELECT s.core, {no_artifact}, {MANUAL}, t.core, {no_edge}, NULL, l.relation, false, l.note
           FROM manual l JOIN artifact s ON s.id = l.source JOIN artifact t ON t.id = l.target
         UNION ALL
         SELECT o.core, {no_artifact}, {OUTGOING}, a.core, o.role, o.index, o.pointer, o.target, o.stated_by, false, NULL
           FROM outgoing o LEFT JOIN artifact a ON a.id = o.other
         UNION ALL
         SELECT o.core, {no_artifact}, {INCOMING}, a.core, o.role, o.index, o.pointer, o.target, o.stated_by, false, NULL
           FROM incoming o JOIN artifact a ON a.id = o.other
         UNION ALL
         SELECT o.core, {no_artifact}, {OWN}, NULL, {no_edge}, NULL, o.handle, o.is_original, NULL FROM own o
         UNION ALL
         SELECT m.core, {no_artifact}, {MENTIONED}, NULL, {no_edge}, NULL, m.handle, m.dangles, m.relation FROM mentioned m
         UNION ALL
         SELECT a.core, {no_artifact}, {IDENTIFIED}, NULL, NULL, a.id, NULL, NULL, i.handle, i.is_original, NULL
           FROM identified i JOIN artifact a ON a.id = i.artifact
         UNION ALL
         SELECT a.core, {no_artifact}, {REFERRING}, NULL, NULL, a.id, NULL, NULL, m.handle, false, m.relation
           FROM referring m JOIN artifact a ON a.id = m.artifact
         UNION ALL
         SELECT a.core, {no_artifact}, {NAMESAKE}, NULL, {no_edge}, NULL, NULL, true, NULL
           FROM requested a WHERE $4 AND ({has_namesake})
         UNION ALL
         SELECT a.core, {no_artifact}, {LIST}, l.digests, {no_edge}, l.entries, NULL, false, NULL
           FROM requested a JOIN capture c ON c.artifact = a.id JOIN mention_list l ON l.capture = c.id
          WHERE l.group_id IN (SELECT r.group_id FROM role r WHERE r.role_group = ANY($3))"
    )
}

/// The facts read so far.
#[derive(Default)]
struct NeighborhoodFacts {
    neighborhood: Neighborhood,
    manual_links: Vec<ManualLink>,
    /// The entries of lists, without those that several captures have in common.
    entries: BTreeMap<CoreHash, BTreeSet<ListedMention>>,
    /// The artifacts that use a name, with the numbers by which they are ordered.
    identified: HashMap<String, BTreeMap<i64, (CoreHash, bool)>>,
    referring: HashMap<String, BTreeSet<(String, i64, CoreHash)>>,
}

impl PostgresSnapshot<'_> {
    pub(super) fn neighborhood(&self, query: &NeighborsQuery<'_>) -> PostgresResult<Neighborhood> {
        let parameters =
            [query.of.into(), query.known.iter().collect(), query.groups.into(), query.namesakes.into()];
        let mut found = NeighborhoodFacts::default();
        // The names of kinds and roles that others have added are read when all rows are there.
        for row in self.session.rows(&statement(), &parameters)? {
            self.take(&mut found, &row)?;
        }
        let NeighborhoodFacts { mut neighborhood, manual_links, entries, identified, referring } = found;
        add_manual_links(&mut neighborhood, &manual_links);
        for (name, users) in identified {
            let uses = neighborhood.uses.entry(name).or_default();
            uses.identified = users.values().map(|(artifact, _)| *artifact).collect();
            uses.originals = users.values().filter(|user| user.1).map(|(artifact, _)| *artifact).collect();
        }
        for (name, users) in referring {
            let uses = neighborhood.uses.entry(name).or_default();
            uses.referring = users.into_iter().map(|(relation, _, artifact)| (relation, artifact)).collect();
        }
        for (core, neighbors) in &mut neighborhood.neighbors {
            neighbors.mentions = self.by_group(*core, entries.get(core), query.groups)?;
            sort(neighbors);
        }
        Ok(neighborhood)
    }

    /// Adds a row to what was found.
    fn take(&self, found: &mut NeighborhoodFacts, row: &SqlRow) -> PostgresResult<()> {
        let artifact = row.core(0)?;
        let neighbors = found.neighborhood.neighbors.entry(artifact);
        match row.integer(6)? {
            ARTIFACT => {
                if row.flag(13)? {
                    neighbors.or_default();
                }
                found.neighborhood.artifacts.insert(artifact, row.artifact()?);
            }
            MANUAL => found.manual_links.push(ManualLink {
                source: artifact,
                relation: row.text(12)?,
                target: row.core(7)?,
                note: row.optional_text(14)?,
            }),
            OUTGOING => neighbors.or_default().outgoing.push(self.reference(row, 7, Direction::Out)?),
            INCOMING => neighbors.or_default().incoming.push(self.reference(row, 7, Direction::In)?),
            OWN => {
                let (handle, names) = (row.text(12)?, &mut neighbors.or_default().names);
                names.original.extend(row.flag(13)?.then(|| handle.clone()));
                names.own.push(handle);
            }
            MENTIONED => neighbors.or_default().names.mentioned.push(NameMention {
                relation: row.text(14)?,
                handle: row.text(12)?,
                dangles: row.flag(13)?,
            }),
            IDENTIFIED => {
                let user = (artifact, row.flag(13)?);
                found.identified.entry(row.text(12)?).or_default().insert(row.integer(9)?, user);
            }
            REFERRING => {
                let user = (row.text(14)?, row.integer(9)?, artifact);
                found.referring.entry(row.text(12)?).or_default().insert(user);
            }
            NAMESAKE => neighbors.or_default().has_namesake = true,
            _ => {
                let entries = lists::decode(row.bytes(7)?, row.bytes(11)?)?;
                found.entries.entry(artifact).or_default().extend(entries);
            }
        }
        Ok(())
    }
}

/// Adds each manual link to those of its ends that were asked for.
fn add_manual_links(neighborhood: &mut Neighborhood, links: &[ManualLink]) {
    for link in links {
        for end in BTreeSet::from([link.source, link.target]) {
            if let Some(neighbors) = neighborhood.neighbors.get_mut(&end) {
                neighbors.manual_links.push(link.clone());
            }
        }
    }
}

/// Sorts as the interface requires it.
fn sort(neighbors: &mut Neighbors) {
    let Neighbors { manual_links, outgoing, incoming, names, .. } = neighbors;
    manual_links.sort_by(|one, other| {
        (&one.relation, one.source, one.target).cmp(&(&other.relation, other.source, other.target))
    });
    sort_references(outgoing, Direction::Out);
    sort_references(incoming, Direction::In);
    names.own.sort_unstable();
    names.original.sort_unstable();
    names.mentioned.sort_by(|one, other| {
        (&one.relation, &one.handle, one.dangles).cmp(&(&other.relation, &other.handle, other.dangles))
    });
}
