//! Checks of a vault that do not trust its content.
//!
//! Each check returns findings. Damage that prevents reading is also a finding, and the other checks continue; an error
//! means that the check could not run, for example because the connection was lost.
//!
//! Tables are read as a whole in batches of rows, by cursors that use no index, which may be what is wrong. The rows of
//! artifacts are read ahead for many artifacts at once.

mod ahead;
mod derived;
mod read_ahead;
mod structure;

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::sync::Arc;

use postgres::error::SqlState;

use super::bytes::{self, BlobExamination};
use super::error::{PostgresError, PostgresResult};
use super::names::NameRegistry;
use super::pool::PostgresServer;
use super::session::DatabaseTransaction;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::catalog::Row as CatalogRow;
use crate::storage::check::finding::{DAMAGED_BYTES, Finding, Subject, UNREADABLE};
use crate::storage::check::{
    CaptureId, CheckedArtifact, Inspection, IntegrityLevel, JournaledTable, ReadCapture, StoredBytes,
    UnreadRows,
};
use crate::storage::sql::{self, DamagedValue, Dialect, SqlInspection, SqlRow, SqlSession as _};
use crate::storage::{PayloadDefect, Result};
use ahead::{ArtifactTable, InspectionPrefetch, of_row};

/// The number of rows of a batch, and of one whose rows may be large.
const ROWS: usize = 2_000;
const LARGE_ROWS: usize = 200;

/// A vault at one point in time, for checking.
pub(super) struct DatabaseInspection<'s> {
    session: DatabaseTransaction<'s>,
    /// The number of cursors so far.
    cursors: Cell<u32>,
    /// The kinds and roles, once they were read.
    names: RefCell<Option<Arc<NameRegistry>>>,
    ahead: RefCell<InspectionPrefetch>,
    /// What the role of the connection, or a standby, does not permit to check.
    unchecked: RefCell<Vec<String>>,
}

impl<'s> DatabaseInspection<'s> {
    pub(super) fn begin(server: &'s PostgresServer) -> PostgresResult<Self> {
        let session = DatabaseTransaction::to_inspect(server)?;
        let (cursors, names, ahead) = (Cell::default(), RefCell::default(), RefCell::default());
        Ok(Self { session, cursors, names, ahead, unchecked: RefCell::default() })
    }

    /// Returns the result of `look`, or `None` and a finding about `subject` if it fails because of damage. If it is not
    /// permitted, that is recorded as not checked.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    fn look<T>(
        &self,
        subject: Subject,
        findings: &mut Vec<Finding>,
        look: impl FnOnce() -> PostgresResult<T>,
    ) -> Result<Option<T>> {
        match look() {
            Ok(seen) => return Ok(Some(seen)),
            Err(failure) if failure.has_state(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                self.skip(&subject.to_string(), failure)?;
            }
            Err(failure) => findings.push(Finding::new(UNREADABLE, subject, self.recover(failure)?)),
        }
        Ok(None)
    }

    /// Returns the result of `look`, or what is damaged.
    fn attempt<T>(&self, look: impl FnOnce() -> PostgresResult<T>) -> Result<std::result::Result<T, String>> {
        match look() {
            Ok(seen) => Ok(Ok(seen)),
            Err(failure) => self.recover(failure).map(Err),
        }
    }

    /// Records that something cannot be checked.
    fn skip(&self, what: &str, failure: PostgresError) -> Result<()> {
        let name = self.session.server().name();
        let recovered = self.session.batch("ROLLBACK TO SAVEPOINT intact");
        recovered.map_err(|failure| failure.at(name))?;
        self.unchecked.borrow_mut().push(format!("{what}: {}", failure.at(name).cause()));
        Ok(())
    }

    /// Returns what is damaged, or an error if the reason is another one.
    fn recover(&self, failure: PostgresError) -> Result<String> {
        let name = self.session.server().name();
        if !failure.is_damage() {
            return Err(failure.at(name));
        }
        // An error of a statement ends everything that was begun after this point.
        let recovered = self.session.batch("ROLLBACK TO SAVEPOINT intact");
        recovered.map_err(|failure| failure.at(name))?;
        Ok(failure.at(name).cause())
    }

    /// Passes the rows of a query to `take`, at most `size` at a time. The query has no parameters and uses no index.
    fn scan(
        &self,
        sql: &str,
        size: usize,
        take: &mut dyn FnMut(&[SqlRow]) -> PostgresResult<()>,
    ) -> PostgresResult<()> {
        let number = self.cursors.get();
        self.cursors.set(number.wrapping_add(1));
        self.session.batch(&format!(
            "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
             DECLARE scan_{number} NO SCROLL CURSOR FOR {sql};
             SET LOCAL enable_indexscan TO DEFAULT; SET LOCAL enable_indexonlyscan TO DEFAULT;
             SET LOCAL enable_bitmapscan TO DEFAULT"
        ))?;
        loop {
            let rows = self.session.rows(&format!("FETCH {size} FROM scan_{number}"), &[])?;
            take(&rows)?;
            if rows.len() < size {
                break;
            }
        }
        self.session.batch(&format!("CLOSE scan_{number}"))
    }
}

impl SqlInspection for DatabaseInspection<'_> {
    const DIALECT: Dialect = Dialect::Postgres;

    fn query(
        &self,
        sql: &str,
        subject: &Subject,
        findings: &mut Vec<Finding>,
        take: &mut dyn FnMut(&SqlRow) -> std::result::Result<(), DamagedValue>,
    ) -> Result<bool> {
        let mut unreadable = Vec::new();
        let read = self.look(subject.clone(), findings, || {
            self.scan(sql, LARGE_ROWS, &mut |rows| {
                for row in rows {
                    if let Err(failure) = take(row) {
                        unreadable.push(Finding::new(UNREADABLE, subject.clone(), of_row(failure.into())));
                    }
                }
                Ok(())
            })
        })?;
        let is_whole = read.is_some() && unreadable.is_empty();
        findings.append(&mut unreadable);
        Ok(is_whole)
    }
}

impl Inspection for DatabaseInspection<'_> {
    fn unchecked(&self) -> Vec<String> {
        self.unchecked.borrow().clone()
    }

    /// The files are the server's, whose own tools check them.
    fn structures(&self, _: IntegrityLevel) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        self.schema(&mut findings)?;
        self.structure(&mut findings)?;
        self.search_index(&mut findings)?;
        sql::undeleted_artifacts(self, &mut findings)?;
        Ok(findings)
    }

    fn rows(
        &self,
        table: JournaledTable,
        of: Option<&RangeInclusive<Digest>>,
        take: &mut dyn FnMut(CatalogRow),
        findings: &mut Vec<Finding>,
    ) -> Result<UnreadRows> {
        sql::journaled_rows_of(self, table, of, take, findings)
    }

    fn mentions_index(&self, integrity: IntegrityLevel) -> Result<(Vec<Finding>, bool)> {
        match integrity {
            // The order is that of an index of the server.
            IntegrityLevel::Quick => Ok((Vec::new(), true)),
            IntegrityLevel::Full => self.compare_mentions(),
        }
    }

    fn unlisted(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<()> {
        self.unlisted_mentions(artifact, findings)
    }

    fn read_ahead(&self, artifacts: &[CheckedArtifact]) -> Result<()> {
        self.prefetch(artifacts)
    }

    fn capture_ids(&self, artifact: &CheckedArtifact, findings: &mut Vec<Finding>) -> Result<Vec<CaptureId>> {
        self.prefetch(std::slice::from_ref(artifact))?;
        let id = |row: &SqlRow| Ok(CaptureId(row.integer(1)?));
        Ok(self.ahead.borrow().read(ArtifactTable::Captures, artifact, findings, id))
    }

    fn capture(
        &self,
        artifact: &CheckedArtifact,
        id: CaptureId,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ReadCapture>> {
        self.prefetch(std::slice::from_ref(artifact))?;
        let read = |row: &SqlRow| {
            let is_it = row.integer(1)? == id.0;
            is_it.then(|| Ok(sql::captured(row)?)).transpose()
        };
        let read = self.ahead.borrow().read(ArtifactTable::Captures, artifact, findings, read);
        Ok(read.into_iter().flatten().next())
    }

    fn derived_rows(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<CatalogRow>>> {
        self.rows_of_artifact(artifact, findings)
    }

    fn has_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        let sql = "SELECT 1 FROM capture c JOIN artifact a ON a.id = c.artifact WHERE c.digest = $1 AND a.core = $2 LIMIT 1";
        let row = self.session.row(sql, &[capture.into(), core.into()]);
        Ok(row.map_err(|failure| failure.at(self.session.server().name()))?.is_some())
    }

    fn stored_bytes(&self, blob: BlobHash) -> Result<std::result::Result<StoredBytes, Finding>> {
        let read_ahead = self.ahead.borrow().blobs.get(&blob).cloned();
        let examined = match read_ahead {
            Some(examined) => Ok(Some(examined)),
            None => self.attempt(|| Ok(bytes::examine(&self.session, &[blob])?.remove(&blob)))?,
        };
        let missing = || PayloadDefect::Missing { blob };
        Ok(match examined {
            Ok(examined) => {
                let read = examined.ok_or_else(missing).and_then(|BlobExamination { bytes, size }| {
                    bytes.map(|bytes| StoredBytes { bytes, size })
                });
                read.map_err(|defect| Finding::of_bytes(blob, &defect))
            }
            Err(damage) => Err(Finding::new(DAMAGED_BYTES, Subject::Blob(blob), damage)),
        })
    }

    fn is_difference(&self, _: BlobHash) -> Result<bool> {
        Ok(false)
    }
}

fn table(name: &str) -> Subject {
    Subject::Table(name.to_owned())
}
