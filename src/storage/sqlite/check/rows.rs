//! The journal, and the rows of the tables that follow from it or from the bytes of an artifact. Damaged rows do not prevent
//! reading the others.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rusqlite::Row as SqliteRow;

use super::FileInspection;
use crate::digest::{CoreHash, Digest};
use crate::storage::catalog::{MentionRole, Row};
use crate::storage::check::finding::{Finding, Subject, UNREADABLE};
use crate::storage::check::{CheckedArtifact, JournaledTable, UnreadRows};
use crate::storage::sql::{self, DerivedTable, Dialect, SqlSession as _, derived_row, derived_rows};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::mentions::MentionRow;
use crate::storage::sqlite::rows::mention_role;
use crate::storage::sqlite::shared_statements::shared_row;
use crate::storage::sqlite::{Result, StorageError};

/// The query for the row ids of artifacts.
const ARTIFACT_IDS: &str =
    "SELECT id FROM artifact INDEXED BY artifact_by_arrival WHERE id >= ?1 ORDER BY id";

/// The query for the row ids of captures.
const CAPTURE_IDS: &str = "SELECT id FROM capture INDEXED BY capture_by_artifact WHERE id >= ?1 ORDER BY id";

impl FileInspection<'_> {
    /// Passes the rows of a table, or those of artifacts with core hashes in a range, to `take`, and returns those that cannot be
    /// read.
    pub(super) fn rows_of(
        &self,
        table: JournaledTable,
        of: Option<&RangeInclusive<Digest>>,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        let (alias, ids) = match table {
            JournaledTable::Artifact => ("a", ARTIFACT_IDS),
            JournaledTable::Capture => ("c", CAPTURE_IDS),
            _ => return sql::journaled_rows_of(self, table, of, take, findings),
        };
        let rows = sql::journaled_rows(Dialect::Sqlite, table, of);
        let scan = TableScan {
            table: table.name(),
            sql: format!("{rows} AND {alias}.id BETWEEN ?1 AND ?2 ORDER BY {alias}.id"),
            id: 1,
            ids,
        };
        let mut different = Vec::new();
        let visit =
            |row: &SqliteRow<'_>| Ok(sql::take_journaled(table, &shared_row(row)?, take, &mut different)?);
        let unread = self.scan(&scan, findings, visit)?;
        findings.append(&mut different);
        Ok(unread)
    }
}

/// Maximum number of row ids in a finding.
const LISTED: usize = 10;

/// A scan of a table in the order of its row ids.
struct TableScan {
    table: &'static str,
    /// The query for the rows with row ids from `?1` to `?2`.
    sql: String,
    /// The column of the query that has the row id.
    id: usize,
    /// The query for the row ids from `?1` on, which reads an index: those in the table may be out of reach.
    ids: &'static str,
}

impl FileInspection<'_> {
    /// Calls `take` with each row that `sql` returns, also after a row whose values are damaged. Returns false and adds a
    /// finding if there was one, or if reading ended early.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub(super) fn each_row(
        &self,
        sql: &str,
        subject: Subject,
        findings: &mut Vec<Finding>,
        mut take: impl FnMut(&SqliteRow<'_>) -> rusqlite::Result<()>,
    ) -> Result<bool> {
        let mut damaged = None;
        let read = self.look(subject.clone(), findings, || {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(error) = damage(take(row))? {
                    damaged.get_or_insert(error);
                }
            }
            Ok(())
        })?;
        let is_whole = read.is_some() && damaged.is_none();
        findings.extend(damaged.map(|error| Finding::new(UNREADABLE, subject, error.to_string())));
        Ok(is_whole)
    }

    /// Calls `take` with each row of a table, also after a row or a page that is damaged. Returns the rows that could not be
    /// read, about which it adds findings.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    fn scan(
        &self,
        scan: &TableScan,
        findings: &mut Vec<Finding>,
        mut take: impl FnMut(&SqliteRow<'_>) -> rusqlite::Result<()>,
    ) -> Result<UnreadRows> {
        let subject = || Subject::Table(scan.table.to_owned());
        let failed = |error| StorageError::from_sqlite(self.path, error);
        let (mut unread, mut cause) = (UnreadRows::default(), None);
        let mut next = i64::MIN;
        let read = self.look(subject(), findings, || {
            let mut statement = self.connection.prepare(&scan.sql)?;
            let mut rows = statement.query((i64::MIN, i64::MAX))?;
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(scan.id)?;
                next = id.saturating_add(1);
                if let Some(error) = damage(take(row))? {
                    unread.numbers.push(id);
                    cause.get_or_insert(error);
                }
            }
            Ok(())
        })?;
        if read.is_none() {
            let ids = || {
                let mut statement = self.connection.prepare(scan.ids)?;
                statement.query_map([next], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()
            };
            let ids = match ids() {
                Err(error) if is_damage(&error) => {
                    unread.are_incomplete = true;
                    Vec::new()
                }
                ids => ids.map_err(failed)?,
            };
            for id in ids {
                let row = self.connection.prepare_cached(&scan.sql).and_then(|mut row| {
                    let mut rows = row.query((id, id))?;
                    rows.next()?.map_or(Ok(()), &mut take)
                });
                if let Some(error) = damage(row).map_err(failed)? {
                    unread.numbers.push(id);
                    cause.get_or_insert(error);
                }
            }
        }
        if let Some(error) = cause {
            findings.push(Finding::new(
                UNREADABLE,
                subject(),
                format!("{}: {error}", named(&unread.numbers)),
            ));
        }
        Ok(unread)
    }
}

/// Returns the error if it is caused by damage.
fn damage(outcome: rusqlite::Result<()>) -> rusqlite::Result<Option<rusqlite::Error>> {
    match outcome {
        Err(error) if is_damage(&error) => Ok(Some(error)),
        outcome => outcome.map(|()| None),
    }
}

/// Returns row ids for a finding.
fn named(ids: &[i64]) -> String {
    let listed: Vec<String> = ids.iter().take(LISTED).map(i64::to_string).collect();
    let listed = listed.join(", ");
    match ids.len() {
        1 => format!("row {listed}"),
        count if count > LISTED => format!("rows {listed} and {} more", count - LISTED),
        _ => format!("rows {listed}"),
    }
}

impl FileInspection<'_> {
    /// Returns the rows of an artifact that follow from its bytes, or `None` and a finding if they cannot be read.
    pub(super) fn rows_of_artifact(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<Row>>> {
        let core = artifact.core;
        let mut rows = self.look(Subject::Artifact(core), findings, || self.mentions(core, artifact.id))?;
        for table in DerivedTable::ALL {
            let mut found = Vec::new();
            let read = self.look(Subject::Artifact(core), &mut found, || {
                let read =
                    self.connection.rows(&derived_rows(Dialect::Sqlite, table), &[artifact.id.into()])?;
                read.iter()
                    .map(|row| Ok(derived_row(table, core, row)?))
                    .collect::<rusqlite::Result<Vec<_>>>()
            })?;
            for finding in &mut found {
                finding.detail.insert_str(0, &format!("{}: ", table.name()));
            }
            findings.append(&mut found);
            rows = rows.zip(read).map(|(mut rows, read)| {
                rows.extend(read.into_iter().flatten());
                rows
            });
        }
        Ok(rows)
    }

    fn mentions(&self, core: CoreHash, artifact: i64) -> rusqlite::Result<Vec<Row>> {
        let mentions = self.lists().for_artifact(artifact)?.into_iter();
        mentions
            .map(|MentionRow { role, place, digest }| {
                Ok(Row::Mention { core, place, digest, role: self.role(role)? })
            })
            .collect()
    }

    /// Returns a role, which is read once.
    fn role(&self, id: i64) -> rusqlite::Result<Arc<MentionRole>> {
        if let Some(known) = self.roles.borrow().get(&id) {
            return Ok(known.clone());
        }
        let role = mention_role(&self.connection, id)?.unwrap_or_else(|| MentionRole::missing(id));
        let role = Arc::new(role);
        self.roles.borrow_mut().insert(id, role.clone());
        Ok(role)
    }
}
