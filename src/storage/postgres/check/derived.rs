//! The rows of an artifact that follow from its bytes, and the keys by which mentions are found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ahead::{ArtifactTable, InspectionPrefetch};
use super::{DatabaseInspection, LARGE_ROWS, ROWS, table};
use crate::artifact::ArtifactLocation;
use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::catalog::{MentionRole, Row};
use crate::storage::check::CheckedArtifact;
use crate::storage::check::compare::{IndexFingerprint, lacking};
use crate::storage::check::finding::{
    DIFFERENT_ROW, Finding, INDEX_DIFFERS, MISSING_ROW, SURPLUS_ROW, Subject,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention, StoredList};
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::parameters::digests;
use crate::storage::sql::{
    DerivedTable, SqlParameter, SqlRow, SqlSession as _, derived_row, differently_derived,
};

/// The rows of one artifact.
struct DerivedRowReader<'d> {
    artifact: &'d CheckedArtifact,
    ahead: &'d InspectionPrefetch,
    names: &'d NameRegistry,
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
        let Some(names) = self.names(findings)? else { return Ok(None) };
        let ahead = self.ahead.borrow();
        let mut reader =
            DerivedRowReader { artifact, ahead: &ahead, names: &names, findings, is_complete: true };
        let mut rows = reader.mentions();
        for table in DerivedTable::ALL {
            let read = reader.rows(ArtifactTable::Derived(table), |row| {
                let stored = derived_row(table, artifact.core, row)?;
                let differs = stored.as_ref().and_then(|stored| differently_derived(stored, row));
                Ok((stored, differs))
            });
            let (stored, differ): (Vec<_>, Vec<_>) = read.into_iter().unzip();
            rows.extend(stored.into_iter().flatten());
            // Any number of rows may differ.
            reader.findings.extend(differ.into_iter().flatten().next());
        }
        Ok(reader.is_complete.then_some(rows))
    }

    fn names(&self, findings: &mut Vec<Finding>) -> Result<Option<Arc<NameRegistry>>> {
        if let Some(names) = &*self.names.borrow() {
            return Ok(Some(names.clone()));
        }
        let read = self.look(super::table("role"), findings, || NameRegistry::read(&self.session))?;
        let read = read.map(Arc::new);
        self.names.replace(read.clone());
        Ok(read)
    }
}

/// Returns a list with the number of its capture, and its entries.
fn list(row: &SqlRow) -> PostgresResult<((i64, StoredList), Vec<ListedMention>)> {
    let (digests, entries) = (row.bytes(3)?.to_vec(), row.bytes(4)?.to_vec());
    let decoded = lists::decode(&digests, &entries)?;
    let firsts = row.optional_bytes(5)?.map(<[u8]>::to_vec);
    let list = StoredList { group: row.integer(2)?, digests, entries, firsts };
    Ok(((row.integer(1)?, list), decoded))
}

/// Returns an edge as the entry that it is derived from.
fn edge(row: &SqlRow) -> PostgresResult<ListedMention> {
    let (index, pointer) = (row.optional_integer(3)?, row.optional_text(4)?);
    let place = match (index, pointer) {
        (Some(index), None) => ArtifactLocation::Index(
            u32::try_from(index).map_err(|_| PostgresError::damaged("a place is out of range"))?,
        ),
        (None, Some(pointer)) => ArtifactLocation::Pointer(pointer),
        _ => return Err(PostgresError::damaged("an edge does not have one place")),
    };
    Ok(ListedMention { role: row.integer(2)?, place, digest: row.digest(1)? })
}

impl DerivedRowReader<'_> {
    /// Returns what `read` makes of the rows of a table. Those that it cannot read are findings.
    fn rows<T>(&mut self, part: ArtifactTable, read: impl Fn(&SqlRow) -> PostgresResult<T>) -> Vec<T> {
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
        let group = |entry: &ListedMention| self.names.group_of(entry.role).unwrap_or(0);
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
        let is_edge =
            |entry: &&ListedMention| self.names.role(entry.role).is_some_and(|role| role.relation.is_some());
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
            let known = self.names.role(role).cloned();
            let role = known.unwrap_or_else(|| Arc::new(MentionRole::missing(role)));
            Row::Mention { core: self.artifact.core, role, place, digest }
        };
        entries.into_iter().map(row).collect()
    }
}

impl DatabaseInspection<'_> {
    /// Checks whether there is exactly one key for every beginning of a digest in a list. If the returned flag is false,
    /// [`Inspection::unlisted`](crate::storage::check::Inspection::unlisted) should be called for every artifact.
    pub(super) fn compare_mentions(&self) -> Result<(Vec<Finding>, bool)> {
        let mut findings = Vec::new();
        let (mut listed, mut indexed, mut unread) =
            (IndexFingerprint::default(), IndexFingerprint::default(), 0);
        let lists = self.look(table("mention_list"), &mut findings, || {
            self.scan("SELECT capture, group_id, digests FROM mention_list", LARGE_ROWS, &mut |rows| {
                for row in rows {
                    let (capture, group) = (row.integer(0)?, row.integer(1)?);
                    // An unreadable list is a finding about its artifact.
                    match digests(row.bytes(2)?) {
                        Ok(digests) => {
                            for key in digests.iter().map(Digest::key).collect::<BTreeSet<_>>() {
                                listed.add(key.cast_unsigned(), capture, group);
                            }
                        }
                        Err(_) => unread += 1,
                    }
                }
                Ok(())
            })
        })?;
        let keys = self.look(table("mention_key"), &mut findings, || {
            self.scan("SELECT key, capture, group_id FROM mention_key", ROWS, &mut |rows| {
                for row in rows {
                    indexed.add(row.integer(0)?.cast_unsigned(), row.integer(1)?, row.integer(2)?);
                }
                Ok(())
            })
        })?;
        let is_complete = lists.is_some() && keys.is_some() && unread == 0;
        let surplus = indexed.count().saturating_sub(listed.count());
        if surplus > 0 && is_complete {
            findings.push(Finding::new(SURPLUS_ROW, Subject::Mentions, format!("{surplus} entries")));
        }
        Ok((findings, indexed == listed))
    }

    /// Adds a finding if the artifact's captures mention digests that have no key.
    pub(super) fn unlisted_mentions(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let subject = || Subject::Artifact(artifact.core);
        let missing = self.look(subject(), findings, || self.count_unlisted(artifact.id))?.unwrap_or(0);
        if missing > 0 {
            let detail = format!("{missing} of the digests it mentions");
            findings.push(Finding::new(INDEX_DIFFERS, subject(), detail));
        }
        Ok(())
    }

    fn count_unlisted(&self, artifact: i64) -> PostgresResult<usize> {
        let mut expected = BTreeSet::new();
        let sql =
            "SELECT l.capture, l.group_id, l.digests FROM capture c JOIN mention_list l ON l.capture = c.id
                    WHERE c.artifact = $1";
        for row in self.session.rows(sql, &[artifact.into()])? {
            let (capture, group) = (row.integer(0)?, row.integer(1)?);
            // An unreadable list is reported with the other facts of the artifact.
            let digests = digests(row.bytes(2)?).unwrap_or_default();
            expected.extend(digests.iter().map(|digest| (digest.key(), capture, group)));
        }
        let keys: SqlParameter = expected.iter().map(|(key, ..)| *key).collect();
        let captures: BTreeSet<i64> = expected.iter().map(|(_, capture, _)| *capture).collect();
        let sql = "SELECT key, capture, group_id FROM mention_key WHERE key = ANY($1) AND capture = ANY($2)";
        self.session.each(sql, &[keys, captures.into_iter().collect()], &mut |row| {
            expected.remove(&(row.integer(0)?, row.integer(1)?, row.integer(2)?));
            Ok(())
        })?;
        Ok(expected.len())
    }
}
