//! The facts by which an artifact can be found, read from the tables that are derived from its bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::sync::Arc;

use postgres::Row;

use super::ahead::{ArtifactTable, InspectionPrefetch};
use super::{DatabaseInspection, read_all};
use crate::artifact::ArtifactLocation;
use crate::storage::Result;
use crate::storage::check::CheckedArtifact;
use crate::storage::check::facts::{
    ArtifactFacts, AttributeFact, MentionFact, NameFact, ReferenceFact, RoleFact,
};
use crate::storage::check::finding::{Finding, FindingInfo, MISSING_ROW, SURPLUS_ROW, Subject, UNREADABLE};
use crate::storage::postgres::columns::{digest, digests, optional_text, text, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::sql::text_key;

/// The roles by their numbers.
type RoleFactsById = HashMap<i32, Arc<RoleFact>>;

/// A list of mentions as stored.
struct MentionListRow {
    key: (i64, i32),
    entries: Vec<ListedMention>,
    /// Whether the list is what the entries are encoded to.
    is_canonical: bool,
}

/// The derived rows of one artifact.
struct DerivedRowReader<'d> {
    artifact: &'d CheckedArtifact,
    ahead: &'d InspectionPrefetch,
    findings: &'d mut Vec<Finding>,
    /// Whether everything could be read.
    is_complete: bool,
}

impl DatabaseInspection<'_> {
    /// Returns the indexed facts of an artifact, or `None` and a finding if they cannot be read.
    pub(super) fn indexed_facts(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ArtifactFacts>> {
        self.prefetch(std::slice::from_ref(artifact))?;
        let Some(roles) = self.roles(findings)? else { return Ok(None) };
        let ahead = self.ahead.borrow();
        let mut derived = DerivedRowReader { artifact, ahead: &ahead, findings, is_complete: true };
        let mentions = derived.mentions(&roles);
        let attributes = derived.attributes();
        let names = derived.names();
        let references = derived.references();
        Ok(derived.is_complete.then_some(ArtifactFacts { mentions, attributes, names, references }))
    }

    fn roles(&self, findings: &mut Vec<Finding>) -> Result<Option<RoleFactsById>> {
        if let Some(roles) = &*self.roles.borrow() {
            return Ok(Some(roles.clone()));
        }
        let read = self.look(super::table("role"), findings, || {
            let sql = "SELECT r.id, k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                         FROM role r LEFT JOIN kind k ON k.id = r.kind";
            let rows = self.session.rows(sql, &[])?;
            rows.iter()
                .map(|row| Ok((value(row, 0)?, Arc::new(role(row)?))))
                .collect::<PostgresResult<RoleFactsById>>()
        })?;
        self.roles.replace(read.clone());
        Ok(read)
    }
}

fn role(row: &Row) -> PostgresResult<RoleFact> {
    Ok(RoleFact {
        kind: optional_text(row, 1)?.unwrap_or_default(),
        name: text(row, 2)?,
        group: text(row, 3)?,
        unit: text(row, 4)?,
        relation: optional_text(row, 5)?,
        dangles: value(row, 6)?,
    })
}

/// Returns a role, or one that says that there is none with the number.
fn role_with(roles: &RoleFactsById, id: i32) -> Arc<RoleFact> {
    roles.get(&id).cloned().unwrap_or_else(|| {
        Arc::new(RoleFact {
            kind: String::new(),
            name: format!("role {id}, which does not exist,"),
            group: String::new(),
            unit: String::new(),
            relation: None,
            dangles: false,
        })
    })
}

fn list(row: &Row) -> PostgresResult<MentionListRow> {
    let (stored, entries): (&[u8], &[u8]) = (value(row, 3)?, value(row, 4)?);
    let firsts: Option<&[u8]> = value(row, 5)?;
    let decoded = lists::decode(stored, entries)?;
    let encoded = lists::encode(decoded.clone());
    let is_canonical = encoded.digests == digests(stored)?
        && encoded.entries == entries
        && lists::joined(&encoded.firsts) == firsts.unwrap_or_default()
        && encoded.firsts.is_empty() == firsts.is_none();
    Ok(MentionListRow { key: (value(row, 1)?, value(row, 2)?), entries: decoded, is_canonical })
}

/// Returns an edge as the entry that it is derived from.
fn edge(row: &Row) -> PostgresResult<ListedMention> {
    let (index, pointer) = (value::<Option<i64>>(row, 3)?, optional_text(row, 4)?);
    let place = match (index, pointer) {
        (Some(index), None) => ArtifactLocation::Index(
            u32::try_from(index).map_err(|_| PostgresError::damaged("a place is out of range"))?,
        ),
        (None, Some(pointer)) => ArtifactLocation::Pointer(pointer),
        _ => return Err(PostgresError::damaged("an edge does not have one place")),
    };
    Ok(ListedMention { role: value(row, 2)?, place, digest: digest(row, 1)? })
}

/// A row with a key that is derived from a text in it.
struct KeyedFact<T> {
    fact: T,
    has_right_key: bool,
}

fn keyed<T>(row: &Row, text: &str, key: usize, fact: T) -> PostgresResult<KeyedFact<T>> {
    Ok(KeyedFact { fact, has_right_key: value::<i64>(row, key)? == text_key(text) })
}

impl DerivedRowReader<'_> {
    fn subject(&self) -> Subject {
        Subject::Artifact(self.artifact.core)
    }

    fn report(&mut self, info: FindingInfo, detail: impl Into<String>) {
        self.findings.push(Finding::new(info, self.subject(), detail));
    }

    /// Returns what `read` makes of the rows of a part. Those that it cannot read are findings.
    fn rows<T>(&mut self, part: ArtifactTable, read: impl Fn(&Row) -> PostgresResult<T>) -> Vec<T> {
        let rows = match self.ahead.rows(part, self.artifact.id) {
            Ok(rows) => rows,
            Err(damage) => {
                self.report(UNREADABLE, damage);
                self.is_complete = false;
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        let all = read_all(rows, &self.subject(), &mut found, read);
        self.is_complete &= found.is_empty();
        self.findings.append(&mut found);
        all
    }

    /// Each capture has its own rows, so that none can be there more often than there are captures.
    fn captures(&self) -> usize {
        self.ahead.rows(ArtifactTable::Captures, self.artifact.id).map_or(usize::MAX, <[Row]>::len)
    }

    fn mentions(&mut self, roles: &RoleFactsById) -> Vec<MentionFact> {
        let lists = self.rows(ArtifactTable::Lists, list);
        if lists.iter().any(|list| !list.is_canonical) {
            self.report(SURPLUS_ROW, "a list of mentions does not match its entries");
        }
        let keys: BTreeSet<(i64, i32)> = lists.iter().map(|list| list.key).collect();
        if keys.len() < lists.len() {
            self.report(SURPLUS_ROW, "a list of mentions is there more than once");
        }
        self.compare_groups(&lists, roles);
        let entries: Vec<ListedMention> = lists.into_iter().flat_map(|list| list.entries).collect();
        if self.is_complete {
            self.compare_edges(&entries, roles);
        }
        let mention = |ListedMention { role, place, digest }| MentionFact {
            role: role_with(roles, role),
            place,
            digest,
        };
        entries.into_iter().map(mention).collect()
    }

    /// Checks that the mentions of a list have roles of one group, the list's.
    fn compare_groups(&mut self, lists: &[MentionListRow], roles: &RoleFactsById) {
        let mut groups: BTreeMap<i32, &str> = BTreeMap::new();
        for MentionListRow { key: (_, number), entries, .. } in lists {
            for entry in entries {
                let Some(role) = roles.get(&entry.role) else { continue };
                if *groups.entry(*number).or_insert(&role.group) != role.group {
                    self.report(
                        MISSING_ROW,
                        format!("a mention as {} is in the list of another group", role.name),
                    );
                    return;
                }
                let lowest =
                    roles.iter().filter(|(_, other)| other.group == role.group).map(|(id, _)| *id).min();
                if lowest != Some(*number) {
                    self.report(
                        MISSING_ROW,
                        format!("the list of mentions as {} has a wrong group", role.name),
                    );
                    return;
                }
            }
        }
    }

    /// Compares the edges with the mentions in roles that relate an artifact to another.
    fn compare_edges(&mut self, entries: &[ListedMention], roles: &RoleFactsById) {
        let is_edge =
            |entry: &&ListedMention| roles.get(&entry.role).is_some_and(|role| role.relation.is_some());
        let expected: BTreeSet<&ListedMention> = entries.iter().filter(is_edge).collect();
        let stored = self.rows(ArtifactTable::Edges, edge);
        let edges: BTreeSet<&ListedMention> = stored.iter().collect();
        let shown = |entry: &ListedMention| {
            format!("link {} {} {}", role_with(roles, entry.role).name, entry.place, entry.digest)
        };
        let missing = expected.difference(&edges).next().map(|entry| shown(entry));
        let surplus = edges.difference(&expected).next().map(|entry| shown(entry));
        if let Some(missing) = missing {
            self.report(MISSING_ROW, missing);
        }
        if let Some(surplus) = surplus {
            self.report(SURPLUS_ROW, surplus);
        }
        self.count(&stored, shown);
    }

    fn attributes(&mut self) -> Vec<AttributeFact> {
        let rows = self.rows(ArtifactTable::Attributes, |row| {
            let (name, value_of) = (text(row, 1)?, text(row, 2)?);
            let number = value(row, 3)?;
            keyed(row, &value_of.clone(), 4, AttributeFact { name, value: value_of, number })
        });
        self.facts("attribute", rows)
    }

    fn names(&mut self) -> Vec<NameFact> {
        let rows = self.rows(ArtifactTable::Identities, |row| {
            let handle = text(row, 1)?;
            keyed(row, &handle.clone(), 2, NameFact(handle))
        });
        self.facts("name", rows)
    }

    fn references(&mut self) -> Vec<ReferenceFact> {
        let rows = self.rows(ArtifactTable::References, |row| {
            let (relation, handle) = (text(row, 1)?, text(row, 2)?);
            let dangles = value(row, 3)?;
            keyed(row, &handle.clone(), 4, ReferenceFact { relation, handle, dangles })
        });
        self.facts("reference", rows)
    }

    /// Returns the facts of rows, after checking their keys and how often each is there.
    fn facts<T: Ord + Display>(&mut self, what: &str, rows: Vec<KeyedFact<T>>) -> Vec<T> {
        if let Some(wrong) = rows.iter().find(|row| !row.has_right_key) {
            let detail = format!("{what} {} has a wrong key", shortened(&wrong.fact));
            self.report(MISSING_ROW, detail);
        }
        let facts: Vec<T> = rows.into_iter().map(|row| row.fact).collect();
        self.count(&facts, |fact| format!("{what} {}", shortened(fact)));
        facts
    }

    /// Reports the first row that is there more often than there are captures.
    fn count<T: Ord>(&mut self, rows: &[T], shown: impl Fn(&T) -> String) {
        let mut counts: BTreeMap<&T, usize> = BTreeMap::new();
        for row in rows {
            *counts.entry(row).or_default() += 1;
        }
        let captures = self.captures();
        if let Some((row, count)) = counts.into_iter().find(|(_, count)| *count > captures) {
            self.report(SURPLUS_ROW, format!("{} is there {count} times", shown(row)));
        }
    }
}

/// Returns the beginning of a fact, which may be megabytes long.
fn shortened(fact: &impl Display) -> String {
    fact.to_string().chars().take(300).collect()
}
