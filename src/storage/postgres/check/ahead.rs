//! Artifacts that were read ahead of their check, of which some rows may be damaged.

use std::collections::{HashMap, HashSet};

use crate::digest::BlobHash;
use crate::storage::check::CheckedArtifact;
use crate::storage::check::finding::{Finding, Subject, UNREADABLE};
use crate::storage::postgres::bytes::BlobExamination;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::sql::{DerivedTable, SqlRow};

/// The tables that have rows of artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ArtifactTable {
    Captures,
    Lists,
    Edges,
    Derived(DerivedTable),
}

impl ArtifactTable {
    /// Returns all of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [Self::Captures, Self::Lists, Self::Edges].into_iter().chain(DerivedTable::ALL.map(Self::Derived))
    }
}

/// The rows of a table by artifact, or what is damaged.
pub(super) type RowsByArtifact = std::result::Result<HashMap<i64, Vec<SqlRow>>, String>;

/// The rows and blobs that were read ahead.
#[derive(Default)]
pub(super) struct InspectionPrefetch {
    pub(super) artifacts: HashSet<i64>,
    pub(super) parts: HashMap<ArtifactTable, RowsByArtifact>,
    pub(super) blobs: HashMap<BlobHash, BlobExamination>,
}

impl InspectionPrefetch {
    /// Returns what `read` makes of the rows of an artifact. Those that it cannot read are findings.
    pub(super) fn read<T>(
        &self,
        table: ArtifactTable,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
        read: impl Fn(&SqlRow) -> PostgresResult<T>,
    ) -> Vec<T> {
        let subject = Subject::Artifact(artifact.core);
        match self.parts.get(&table) {
            Some(Ok(rows)) => {
                let rows = rows.get(&artifact.id).map_or(&[][..], Vec::as_slice);
                read_all(rows, &subject, findings, read)
            }
            Some(Err(damage)) => {
                findings.push(Finding::new(UNREADABLE, subject, damage.clone()));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.parts.values().any(std::result::Result::is_err)
    }

    /// Drops the rows of an artifact.
    pub(super) fn forget(&mut self, artifact: i64) {
        for rows in self.parts.values_mut().flatten() {
            rows.remove(&artifact);
        }
    }
}

/// Returns what `read` makes of each row. A row that it cannot read is a finding.
pub(super) fn read_all<T>(
    rows: &[SqlRow],
    subject: &Subject,
    found: &mut Vec<Finding>,
    read: impl Fn(&SqlRow) -> PostgresResult<T>,
) -> Vec<T> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        match read(row) {
            Ok(value) => all.push(value),
            Err(failure) => found.push(Finding::new(UNREADABLE, subject.clone(), of_row(failure))),
        }
    }
    all
}

/// Returns the reason that a row cannot be read.
pub(super) fn of_row(failure: PostgresError) -> String {
    format!("a row: {}", failure.at("the vault").cause())
}
