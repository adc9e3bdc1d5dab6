//! Records that checks and repairs take and return.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::finding::{Finding, Subject};
use crate::artifact::{Admitted, Signature};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::catalog::Row;
use crate::storage::entry::Entry;
use crate::storage::{JournalCheck, StoredMember};
use crate::validation::Violation;

/// The depth of SQLite's integrity check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityLevel {
    /// Pages and rows.
    Quick,
    /// Pages, rows and SQL indexes.
    Full,
}

/// A capture's row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaptureId(pub(in crate::storage) i64);

impl CaptureId {
    /// Returns the number, which is only meaningful within its vault.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }
}

/// An artifact to check.
#[derive(Clone, Debug)]
pub struct CheckedArtifact {
    /// Its row id.
    pub(in crate::storage) id: i64,
    /// The core hash that it should have.
    pub core: CoreHash,
    /// The name of its kind; `None` if the vault no longer has it.
    pub kind: Option<String>,
}

/// A capture with its files, as far as they could be read.
#[derive(Debug)]
pub struct ReadCapture {
    /// Its row id.
    pub id: CaptureId,
    /// The hash that it should have.
    pub capture: CaptureHash,
    /// The stored size.
    pub(in crate::storage) size: i64,
    /// Whether it is a directory of several files.
    pub is_directory: bool,
    /// The stored warnings; `None` if they cannot be read.
    pub warnings: Option<Vec<Violation>>,
    /// The stored signature state.
    pub signature: Option<Signature>,
    /// Its files; `None` if one of them is damaged.
    pub files: Option<Vec<StoredMember>>,
    /// The findings about its bytes.
    pub findings: Vec<Finding>,
}

/// The stored bytes of a blob, which have its hash.
#[derive(Debug)]
pub struct StoredBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The size that its row has.
    pub size: i64,
}

/// A kind as the vault records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindFacts {
    /// Its name.
    pub name: String,
    /// Its relation to the artifacts that state its core hash.
    pub inverse_relation: Option<String>,
    /// Whether its artifacts are directories.
    pub is_directory: bool,
    /// The name of the only file of its artifacts, if the vault records it with the kind.
    pub member: Option<String>,
}

/// Counts of the catalog rows that agree with the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogCounts {
    /// Artifacts.
    pub artifacts: u64,
    /// Captures.
    pub captures: u64,
    /// Tags.
    pub tags: u64,
    /// Notes.
    pub notes: u64,
    /// Pins.
    pub pins: u64,
    /// Labels.
    pub labels: u64,
    /// Manual links.
    pub links: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Number of captures with a signature.
    pub signatures: u64,
}

impl CatalogCounts {
    /// Counts a row.
    pub(in crate::storage) fn count(&mut self, row: &Row) {
        let rows = match row {
            Row::Artifact { .. } => &mut self.artifacts,
            Row::Capture { .. } => &mut self.captures,
            Row::Tag { .. } => &mut self.tags,
            Row::Note { .. } => &mut self.notes,
            Row::Pin { .. } => &mut self.pins,
            Row::Label { .. } => &mut self.labels,
            Row::Link { .. } => &mut self.links,
            Row::Tombstone(_) => &mut self.tombstones,
            Row::Signature { .. } => &mut self.signatures,
            _ => return,
        };
        *rows += 1;
    }
}

/// The result of comparing the journal with the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalInspection {
    /// The check of the chain.
    pub chain: JournalCheck,
    /// Counts of the catalog rows that agree with the journal.
    pub counts: CatalogCounts,
    /// Defects of the journal and differences between it and the catalog.
    pub findings: Vec<Finding>,
}

/// An artifact whose captures were admitted again.
#[derive(Debug)]
pub struct ReadmittedArtifact {
    /// The artifact.
    pub artifact: CheckedArtifact,
    /// All of its captures. Those that were not admitted keep their index data.
    pub captures: Vec<(CaptureId, Option<Admitted>)>,
}

impl ReadmittedArtifact {
    /// Returns the captures that were admitted, with their numbers.
    pub(in crate::storage) fn admitted(&self) -> impl Iterator<Item = (i64, &Admitted)> {
        self.captures.iter().filter_map(|(id, admitted)| Some((id.0, admitted.as_ref()?)))
    }

    /// Returns whether all captures were admitted, so that the rows of the artifact follow from them.
    pub(in crate::storage) fn is_complete(&self) -> bool {
        self.captures.iter().all(|(_, admitted)| admitted.is_some())
    }
}

/// The outcome of reindexing an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReindexOutcome {
    /// Its index data was rebuilt from its captures.
    Done,
    /// Captures were added to it or removed from it since it was read: it has to be read again.
    Changed,
}

/// A completed repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The repaired subject.
    pub subject: Subject,
    /// The action, such as `dropped`.
    pub did: &'static str,
}

impl From<&Repair> for Entry {
    fn from(Repair { subject, did }: &Repair) -> Self {
        Self::Repair { did: (*did).to_owned(), subject: subject.to_string() }
    }
}
