//! The findings of a vault check, each type of which is defined here once, with its meaning, and the records that checks and
//! repairs take and return.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{Admitted, Signature};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::catalog::Row;
use crate::storage::entry::Entry;
use crate::storage::{JournalCheck, StoredMember};
use crate::validation::Violation;

/// A type of finding and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingInfo {
    /// The id, such as `damaged-bytes`.
    pub id: &'static str,
    /// A one-line summary of what was found.
    pub summary: &'static str,
    /// The consequence for the vault.
    pub meaning: &'static str,
}

/// The subject of a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The vault as a whole, or one of its files.
    File(String),
    /// A table, or a row of it.
    Table(String),
    /// Stored bytes.
    Blob(BlobHash),
    /// An artifact.
    Artifact(CoreHash),
    /// A capture.
    Capture(CaptureHash),
    /// The mention index.
    Mentions,
    /// The search index.
    Search,
    /// A tag, by its name.
    Tag(String),
    /// The tombstone of a core hash or a capture hash.
    Tombstone(Digest),
    /// An entry of the journal, by its number.
    Entry(i64),
}

impl Subject {
    /// Returns the type of the subject, such as `blob`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Table(_) => "table",
            Self::Blob(_) => "blob",
            Self::Artifact(_) => "artifact",
            Self::Capture(_) => "capture",
            Self::Mentions | Self::Search => "index",
            Self::Tag(_) => "tag",
            Self::Tombstone(_) => "tombstone",
            Self::Entry(_) => "entry",
        }
    }

    /// Returns the name or hash of the subject.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(name) | Self::Table(name) | Self::Tag(name) => name.clone(),
            Self::Blob(blob) => blob.to_string(),
            Self::Artifact(core) => core.to_string(),
            Self::Tombstone(digest) => digest.to_string(),
            Self::Capture(capture) => capture.to_string(),
            Self::Entry(number) => number.to_string(),
            Self::Mentions => "mentions".to_owned(),
            Self::Search => "search".to_owned(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.type_name(), self.name())
    }
}

/// A defect found in a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its type.
    pub info: FindingInfo,
    /// Its subject.
    pub subject: Subject,
    /// The details.
    pub detail: String,
}

impl Finding {
    /// Creates a finding of the type `info`.
    pub fn new(info: FindingInfo, subject: Subject, detail: impl Into<String>) -> Self {
        Self { info, subject, detail: detail.into() }
    }

    /// Returns the sort key of reports: subject, type, detail.
    pub(crate) fn key(&self) -> (&Subject, &'static str, &str) {
        (&self.subject, self.info.id, &self.detail)
    }
}

/// Sorts the findings of a report.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|one, other| one.key().cmp(&other.key()));
}

macro_rules! findings {
    ($($name:ident, $id:literal, $summary:literal, $meaning:literal;)*) => {
        $(
            #[doc = $summary]
            pub const $name: FindingInfo =
                FindingInfo { id: $id, summary: $summary, meaning: $meaning };
        )*

        /// Every type of finding, in the order of the checks.
        pub const ALL: &[FindingInfo] = &[$($name),*];
    };
}

findings! {
    INSECURE_PERMISSIONS, "insecure-permissions",
        "Users other than the owner can write to a file of the vault.",
        "Anyone who can write to the file can change or delete its contents.";
    FILE_DAMAGED, "file-damaged",
        "The engine's own check finds its file damaged.",
        "A disk, a copy or another program changed the file. Anything that the other checks do not report may be intact.";
    PAGE_SHARED, "page-shared",
        "A page of the file is used twice.",
        "Writing to one table can overwrite rows of another, so nothing is repaired in this file.";
    LOG_DAMAGED, "log-damaged",
        "A part of the write-ahead log with committed changes could not be read, and the log was saved.",
        "Artifacts and changes that were acknowledged last are missing.";
    SCHEMA_DIFFERS, "schema-differs",
        "A table, index or view differs from the definition in this program.",
        "Another program changed it, or the file is damaged. Data read through it may be wrong.";
    UNREADABLE, "unreadable",
        "A part of the vault cannot be read, so a check could not be completed.",
        "The data there may be lost, and this check does not cover it. The other checks continued.";
    MISSING_ROW, "missing-row",
        "A table lacks a row that follows from the journal or from stored bytes.",
        "Queries, listings or links omit it. The journal and the bytes are intact unless another finding says otherwise.";
    SURPLUS_ROW, "surplus-row",
        "A table has a row that follows neither from the journal nor from stored bytes.",
        "It was added without a journal entry, or an entry, or the row that it belongs to, was lost.";
    DIFFERENT_ROW, "different-row",
        "A row differs from what follows from the journal or from stored bytes.",
        "It was changed without a journal entry. Answers that depend on the named column are wrong.";
    MISSING_BYTES, "missing-bytes",
        "Bytes that the vault should have are missing.",
        "The captures that they belong to cannot be retrieved.";
    DAMAGED_BYTES, "damaged-bytes",
        "Stored bytes have changed.",
        "The captures that they belong to cannot be retrieved; reading them is an error.";
    NOT_ADMITTED, "not-admitted",
        "An artifact is not valid under the current rules, or is of a kind that this program does not know.",
        "Its bytes are intact, but violate a rule of this program: because of a newer rule set, smaller limits, or because the \
         artifact was added by another program. It stays in the vault and is found as before.";
    WRONG_SIGNATURE, "wrong-signature",
        "The signature of a capture does not match its content under the given key.",
        "It was signed with another key, or its key id or signature was changed. Its content matches the core hash.";
    INDEX_DIFFERS, "index-differs",
        "The index of mentions or the search index cannot be read, or does not match what it is built from.",
        "Lookups or searches fail, miss results, or take longer. The artifacts are intact.";
    BROKEN_CHAIN, "broken-chain",
        "The chain of the journal is broken.",
        "The entry or an earlier one was changed, inserted or deleted. The artifacts may be intact; their history is \
         not proven.";
    UNKNOWN_ENTRY, "unknown-entry",
        "This program does not understand an entry of the journal.",
        "What follows from the entry was not compared with the vault. A newer program may have written it.";
}

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

impl CheckedArtifact {
    /// Returns its position in the order in which artifacts are checked.
    #[must_use]
    pub fn position(&self) -> (CoreHash, i64) {
        (self.core, self.id)
    }
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

impl Repair {
    /// The action of leaving out rows of a table that cannot be read.
    pub const LEFT_OUT: &str = "left out rows that cannot be read";
}

impl From<&Repair> for Entry {
    fn from(Repair { subject, did }: &Repair) -> Self {
        Self::Repair { did: (*did).to_owned(), subject: subject.to_string() }
    }
}
