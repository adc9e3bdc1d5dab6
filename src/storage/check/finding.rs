//! The findings of a vault check. Each type is defined here once, with its meaning.

use std::fmt;

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

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
    fn key(&self) -> (&Subject, &'static str, &str) {
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
