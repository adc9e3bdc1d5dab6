//! The facts that the links of many artifacts are derived from, as one statement.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postgres::Row;

use crate::digest::CoreHash;
use crate::storage::interface::{
    Direction, ManualLink, NameMention, Neighborhood, Neighbors, NeighborsQuery, sort_references,
};
use crate::storage::postgres::columns::{core, optional_text, text, to_stored, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{Dialect, has_namesake_condition, is_original};

/// The parts of the answer, whose number is the first column. The columns of artifacts are next, and those of references after
/// them; the other parts use those that have the types which they need.
const ARTIFACT: i32 = 0;
const MANUAL: i32 = 1;
const OUTGOING: i32 = 2;
const INCOMING: i32 = 3;
const OWN: i32 = 4;
const MENTIONED: i32 = 5;
const IDENTIFIED: i32 = 6;
const REFERRING: i32 = 7;
const NAMESAKE: i32 = 8;
const LIST: i32 = 9;

/// Returns the statement. What is asked for are the artifacts, the names whose uses are not wanted, the groups of mentions,
/// and whether namesakes are wanted.
fn statement() -> String {
    let no_artifact = "0::smallint, 0::bigint, 0::bigint, 0::bigint, 0::bigint";
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
           (SELECT DISTINCT f.core, e.role, e.index, e.pointer, e.target, t.id, k.stated_by
              FROM requested f JOIN edge e ON e.artifact = f.id JOIN role r ON r.id = e.role
              LEFT JOIN artifact t ON t.core = e.target LEFT JOIN kind k ON k.id = t.kind
             WHERE e.target <> f.core AND (t.id IS NOT NULL OR r.dangles) AND r.relation IS NOT NULL),
         incoming AS MATERIALIZED
           (SELECT DISTINCT t.core, e.role, e.index, e.pointer, e.artifact, k.stated_by
              FROM requested t JOIN edge e ON e.target = t.core JOIN role r ON r.id = e.role JOIN kind k ON k.id = t.kind
             WHERE e.artifact <> t.id AND r.relation IS NOT NULL),
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
             UNION SELECT id FROM outgoing WHERE id IS NOT NULL UNION SELECT artifact FROM incoming
             UNION SELECT artifact FROM identified UNION SELECT artifact FROM referring)
         SELECT {ARTIFACT} AS part, a.core, a.kind, a.added_at, a.seen_at, a.id, a.arrival, NULL::bytea AS other,
                NULL::integer AS role, NULL::bigint AS index, NULL AS pointer, NULL::bytea AS digest, NULL AS text,
                EXISTS (SELECT 1 FROM requested b WHERE b.id = a.id) AS flag, NULL AS name
           FROM known n JOIN artifact a ON a.id = n.id
         UNION ALL
         SELECT {MANUAL}, s.core, {no_artifact}, t.core, {no_edge}, NULL, l.relation, false, l.note
           FROM manual l JOIN artifact s ON s.id = l.source JOIN artifact t ON t.id = l.target
         UNION ALL
         SELECT {OUTGOING}, o.core, {no_artifact}, o.core, o.role, o.index, o.pointer, o.target, o.stated_by,
                o.id IS NOT NULL, NULL
           FROM outgoing o
         UNION ALL
         SELECT {INCOMING}, o.core, {no_artifact}, f.core, o.role, o.index, o.pointer, o.core, o.stated_by, true, NULL
           FROM incoming o JOIN artifact f ON f.id = o.artifact
         UNION ALL
         SELECT {OWN}, o.core, {no_artifact}, NULL, {no_edge}, NULL, o.handle, o.is_original, NULL FROM own o
         UNION ALL
         SELECT {MENTIONED}, m.core, {no_artifact}, NULL, {no_edge}, NULL, m.handle, m.dangles, m.relation FROM mentioned m
         UNION ALL
         SELECT {IDENTIFIED}, a.core, {no_artifact}, NULL, NULL, a.id, NULL, NULL, i.handle, i.is_original, NULL
           FROM identified i JOIN artifact a ON a.id = i.artifact
         UNION ALL
         SELECT {REFERRING}, a.core, {no_artifact}, NULL, NULL, a.id, NULL, NULL, m.handle, false, m.relation
           FROM referring m JOIN artifact a ON a.id = m.artifact
         UNION ALL
         SELECT {NAMESAKE}, a.core, {no_artifact}, NULL, {no_edge}, NULL, NULL, true, NULL
           FROM requested a WHERE $4 AND ({has_namesake})
         UNION ALL
         SELECT {LIST}, a.core, {no_artifact}, l.digests, {no_edge}, l.entries, NULL, false, NULL
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
        let known: Vec<_> = query.known.iter().map(|name| to_stored(name)).collect();
        let mut found = NeighborhoodFacts::default();
        // The names of kinds and roles that others have added are read when all rows are there.
        for row in self.session.rows(&statement(), &[&query.of, &known, &query.groups, &query.namesakes])? {
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
    fn take(&self, found: &mut NeighborhoodFacts, row: &Row) -> PostgresResult<()> {
        let part: i32 = value(row, 0)?;
        let artifact = core(row, 1)?;
        let neighbors = found.neighborhood.neighbors.entry(artifact);
        match part {
            ARTIFACT => {
                if value(row, 13)? {
                    neighbors.or_default();
                }
                found.neighborhood.artifacts.insert(artifact, self.artifact_record(row, 1)?);
            }
            MANUAL => found.manual_links.push(ManualLink {
                source: artifact,
                relation: text(row, 12)?,
                target: core(row, 7)?,
                note: optional_text(row, 14)?,
            }),
            OUTGOING => neighbors.or_default().outgoing.push(self.reference(row, 7)?),
            INCOMING => neighbors.or_default().incoming.push(self.reference(row, 7)?),
            OWN => {
                let (handle, names) = (text(row, 12)?, &mut neighbors.or_default().names);
                names.original.extend(Some(handle.clone()).filter(|_| value(row, 13).unwrap_or(false)));
                names.own.push(handle);
            }
            MENTIONED => neighbors.or_default().names.mentioned.push(NameMention {
                relation: text(row, 14)?,
                handle: text(row, 12)?,
                dangles: value(row, 13)?,
            }),
            IDENTIFIED => {
                let user = (artifact, value(row, 13)?);
                found.identified.entry(text(row, 12)?).or_default().insert(value(row, 9)?, user);
            }
            REFERRING => {
                let user = (text(row, 14)?, value(row, 9)?, artifact);
                found.referring.entry(text(row, 12)?).or_default().insert(user);
            }
            NAMESAKE => neighbors.or_default().has_namesake = true,
            _ => {
                let entries = lists::decode(value(row, 7)?, value(row, 11)?)?;
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
