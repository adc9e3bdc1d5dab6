//! The rows of an artifact that follow from its bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use postgres::Row as PostgresRow;

use super::DatabaseInspection;
use super::ahead::{ArtifactTable, InspectionPrefetch, RolesByNumber};
use crate::artifact::ArtifactLocation;
use crate::storage::Result;
use crate::storage::catalog::{MentionRole, Row};
use crate::storage::check::CheckedArtifact;
use crate::storage::check::compare::lacking;
use crate::storage::check::finding::{DIFFERENT_ROW, Finding, MISSING_ROW, SURPLUS_ROW, Subject};
use crate::storage::postgres::columns::{digest, optional_text, text, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention, StoredList};
use crate::storage::postgres::shared_statements::shared_row;
use crate::storage::sql::{DerivedTable, derived_row, differently_derived};

/// The rows of one artifact.
struct DerivedRowReader<'d> {
    artifact: &'d CheckedArtifact,
    ahead: &'d InspectionPrefetch,
    roles: &'d RolesByNumber,
    findings: &'d mut Vec<Finding>,
    /// Whether everything could be read.
    is_complete: bool,
}

impl DatabaseInspection<'_> {
    /// Returns the rows of an artifact that follow from its bytes, or `None` and a finding if they cannot be read.
    pub(super) fn rows_of_artifact(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<Row>>> {
        self.prefetch(std::slice::from_ref(artifact))?;
        let Some(roles) = self.roles(findings)? else { return Ok(None) };
        let ahead = self.ahead.borrow();
        let mut reader =
            DerivedRowReader { artifact, ahead: &ahead, roles: &roles, findings, is_complete: true };
        let mut rows = reader.mentions();
        for table in DerivedTable::ALL {
            let read = reader.rows(ArtifactTable::Derived(table), |row| {
                let values = shared_row(row)?;
                let stored = derived_row(table, artifact.core, &values)?;
                let differs = stored.as_ref().and_then(|stored| differently_derived(stored, &values));
                Ok((stored, differs))
            });
            let (stored, differ): (Vec<_>, Vec<_>) = read.into_iter().unzip();
            rows.extend(stored.into_iter().flatten());
            // Any number of rows may differ.
            reader.findings.extend(differ.into_iter().flatten().next());
        }
        Ok(reader.is_complete.then_some(rows))
    }

    fn roles(&self, findings: &mut Vec<Finding>) -> Result<Option<Arc<RolesByNumber>>> {
        if let Some(roles) = &*self.roles.borrow() {
            return Ok(Some(roles.clone()));
        }
        let read = self.look(super::table("role"), findings, || {
            let sql = "SELECT r.id, r.group_id, k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                         FROM role r LEFT JOIN kind k ON k.id = r.kind";
            let rows = self.session.rows(sql, &[])?;
            let role = |row| Ok((value(row, 0)?, (Arc::new(role(row)?), value(row, 1)?)));
            rows.iter().map(role).collect::<PostgresResult<RolesByNumber>>().map(Arc::new)
        })?;
        self.roles.replace(read.clone());
        Ok(read)
    }
}

fn role(row: &PostgresRow) -> PostgresResult<MentionRole> {
    Ok(MentionRole {
        kind: optional_text(row, 2)?.unwrap_or_default(),
        name: text(row, 3)?,
        group: text(row, 4)?,
        unit: text(row, 5)?,
        relation: optional_text(row, 6)?,
        dangles: value(row, 7)?,
    })
}

/// Returns a list with the number of its capture, and its entries.
fn list(row: &PostgresRow) -> PostgresResult<((i64, StoredList), Vec<ListedMention>)> {
    let (digests, entries): (Vec<u8>, Vec<u8>) = (value(row, 3)?, value(row, 4)?);
    let decoded = lists::decode(&digests, &entries)?;
    let list = StoredList { group: value(row, 2)?, digests, entries, firsts: value(row, 5)? };
    Ok(((value(row, 1)?, list), decoded))
}

/// Returns an edge as the entry that it is derived from.
fn edge(row: &PostgresRow) -> PostgresResult<ListedMention> {
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

impl DerivedRowReader<'_> {
    /// Returns what `read` makes of the rows of a table. Those that it cannot read are findings.
    fn rows<T>(&mut self, part: ArtifactTable, read: impl Fn(&PostgresRow) -> PostgresResult<T>) -> Vec<T> {
        let mut found = Vec::new();
        let rows = self.ahead.read(part, self.artifact, &mut found, read);
        self.is_complete &= found.is_empty();
        if let ArtifactTable::Derived(table) = part {
            for finding in &mut found {
                finding.detail.insert_str(0, &format!("{}: ", table.name()));
            }
        }
        self.findings.append(&mut found);
        rows
    }

    /// Returns the rows of mentions, after comparing how they are stored with how they are written.
    fn mentions(&mut self) -> Vec<Row> {
        let (mut stored, entries): (Vec<_>, Vec<_>) =
            self.rows(ArtifactTable::Lists, list).into_iter().unzip();
        let mut by_capture: BTreeMap<i64, Vec<ListedMention>> = BTreeMap::new();
        for ((capture, _), entries) in stored.iter().zip(&entries) {
            by_capture.entry(*capture).or_default().extend(entries.iter().cloned());
        }
        let group = |entry: &ListedMention| self.roles.get(&entry.role).map_or(0, |(_, group)| *group);
        let written = by_capture.into_iter().flat_map(|(capture, entries)| {
            let lists = lists::by_group(entries.into_iter().map(|entry| (group(&entry), entry)));
            lists.into_iter().map(move |list| (capture, list))
        });
        let written: Vec<_> = written.collect();
        stored.sort_unstable();
        if stored != written {
            let detail = "mention_list: its lists are not those that are written for what they have";
            let subject = Subject::Artifact(self.artifact.core);
            self.findings.push(Finding::new(DIFFERENT_ROW, subject, detail));
        }
        let entries: Vec<ListedMention> = entries.into_iter().flatten().collect();
        if self.is_complete {
            self.compare_edges(&entries);
        }
        let mut rows = self.mention_rows(entries);
        // Several captures mention the same.
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Compares the edges with the mentions in roles that relate an artifact to another, of which each capture has its own.
    fn compare_edges(&mut self, entries: &[ListedMention]) {
        let is_edge = |entry: &&ListedMention| {
            self.roles.get(&entry.role).is_some_and(|(role, _)| role.relation.is_some())
        };
        let mut expected = self.mention_rows(entries.iter().filter(is_edge).cloned().collect());
        let stored = self.rows(ArtifactTable::Edges, edge);
        let mut stored = self.mention_rows(stored);
        expected.sort_unstable();
        stored.sort_unstable();
        for mut finding in lacking(MISSING_ROW, &expected, &stored).into_iter().chain(lacking(
            SURPLUS_ROW,
            &stored,
            &expected,
        )) {
            finding.detail.insert_str(0, "edge: ");
            self.findings.push(finding);
        }
    }

    fn mention_rows(&self, entries: Vec<ListedMention>) -> Vec<Row> {
        let row = |ListedMention { role, place, digest }| {
            let known = self.roles.get(&role).map(|(row, _)| row.clone());
            let role = known.unwrap_or_else(|| Arc::new(MentionRole::missing(i64::from(role))));
            Row::Mention { core: self.artifact.core, role, place, digest }
        };
        entries.into_iter().map(row).collect()
    }
}
