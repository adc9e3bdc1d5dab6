//! The findings of a vault check. Each type is defined here once, with its meaning.

use std::fmt;

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

/// A type of finding and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingInfo {
    /// The id, such as `blob-damaged`.
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
    /// A dictionary, by its row id.
    Dictionary(i64),
    /// A kind, by its name.
    Kind(String),
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
    /// The note of an artifact.
    Note(CoreHash),
    /// The pin of an artifact.
    Pin(CoreHash),
    /// A label of an artifact.
    Label {
        /// The artifact.
        core: CoreHash,
        /// The key.
        key: String,
    },
    /// A manual link.
    Link {
        /// The source artifact.
        source: CoreHash,
        /// The relation.
        relation: String,
        /// The target artifact.
        target: CoreHash,
    },
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
            Self::Dictionary(_) => "dictionary",
            Self::Kind(_) => "kind",
            Self::Artifact(_) => "artifact",
            Self::Capture(_) => "capture",
            Self::Mentions | Self::Search => "index",
            Self::Tag(_) => "tag",
            Self::Note(_) => "note",
            Self::Pin(_) => "pin",
            Self::Label { .. } => "label",
            Self::Link { .. } => "link",
            Self::Tombstone(_) => "tombstone",
            Self::Entry(_) => "entry",
        }
    }

    /// Returns the name or hash of the subject.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(name) | Self::Table(name) | Self::Kind(name) | Self::Tag(name) => name.clone(),
            Self::Blob(blob) => blob.to_string(),
            Self::Artifact(core) | Self::Note(core) | Self::Pin(core) => core.to_string(),
            Self::Label { core, key } => format!("{core} {key}"),
            Self::Link { source, relation, target } => format!("{source} {relation} {target}"),
            Self::Tombstone(digest) => digest.to_string(),
            Self::Capture(capture) => capture.to_string(),
            Self::Dictionary(number) | Self::Entry(number) => number.to_string(),
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
        "SQLite's integrity check finds the file damaged.",
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
    REFERENCE_BROKEN, "reference-broken",
        "Rows refer to rows that do not exist.",
        "Rows were lost or changed.";
    ROW_NUMBER_INVALID, "row-number-invalid",
        "A row has a number that adding does not assign.",
        "Rows that are added later may be in the wrong order, or cannot be added.";
    DUPLICATE_ARTIFACT, "duplicate-artifact",
        "An artifact is in the vault more than once.",
        "Lookups show only one of them.";
    ARTIFACT_EMPTY, "artifact-empty",
        "An artifact has no captures.",
        "Its bytes are not in the vault, or are not recorded as its own.";
    DUPLICATE_CAPTURE, "duplicate-capture",
        "Several captures of artifacts of one kind have the same bytes.",
        "Nothing is lost, but adding does not do this: the vault was changed by other means.";
    DUPLICATE_BLOB, "duplicate-blob",
        "Bytes are in the vault more than once.",
        "Nothing is lost, but adding does not do this: the vault was changed by other means.";
    BLOB_UNREFERENCED, "blob-unreferenced",
        "Nothing refers to stored bytes.",
        "They take up space and belong to no known artifact.";
    BLOB_MISSING, "blob-missing",
        "Bytes that the vault should have are missing.",
        "The captures that they belong to cannot be retrieved.";
    BLOB_DAMAGED, "blob-damaged",
        "Stored bytes have changed.",
        "The captures that they belong to cannot be retrieved; reading them is an error.";
    BASE_WRONG, "base-wrong",
        "The delta base of a payload is not stored whole or not recorded.",
        "The bytes cannot be reconstructed.";
    PAYLOAD_SURPLUS, "payload-surplus",
        "A payload has digests or a dictionary that its encoding does not use.",
        "Its bytes are read without them, but the size of stored bytes that statistics report includes them.";
    FILE_SURPLUS, "file-surplus",
        "A capture of a document has files, which only captures of directories have.",
        "Its bytes are read without them, but the artifact is taken for one that contains the files.";
    DICTIONARY_DAMAGED, "dictionary-damaged",
        "A compression dictionary has changed.",
        "Blobs that were compressed with it cannot be read; each of them is a separate finding.";
    SIZE_WRONG, "size-wrong",
        "A recorded size does not match the bytes.",
        "Listings show a wrong size.";
    KIND_UNKNOWN, "kind-unknown",
        "This program does not know the kind of an artifact.",
        "Its bytes were hashed, but its index entries could not be checked.";
    KIND_WRONG, "kind-wrong",
        "An artifact is not of the recorded kind.",
        "It is not found by its kind, and is read as another kind.";
    KIND_DIFFERS, "kind-differs",
        "The recorded properties of a kind differ from those in this program.",
        "Some links are shown under another name or not at all. A newer program may have changed them.";
    CAPTURE_DAMAGED, "capture-damaged",
        "A capture does not consist of its original files.",
        "It cannot be retrieved; reading it is an error.";
    SEAL_BROKEN, "seal-broken",
        "The seal of a capture does not match its artifact.",
        "Reading it is an error. Either the capture or its artifact was changed.";
    CORE_DIFFERS, "core-differs",
        "The stored bytes have a different core hash.",
        "The artifact does not have its recorded hash.";
    NOT_ADMITTED, "not-admitted",
        "An artifact is not valid under the current rules.",
        "Its bytes are intact, but violate a rule of this program: because of a newer rule set, smaller limits, or because the \
         artifact was added by another program. It stays in the vault and is found as before.";
    WARNINGS_DIFFER, "warnings-differ",
        "The recorded warnings of a capture differ from those of a new check.",
        "Descriptions of it have the wrong ones. A newer rule set has different warnings.";
    SIGNATURE_WRONG, "signature-wrong",
        "The signature of a capture does not match its content under the given key.",
        "It was signed with another key, or its key id or signature was changed. Its content matches the core hash.";
    SIGNATURE_DIFFERS, "signature-differs",
        "The recorded signature state of a capture does not match its bytes or the journal.",
        "Descriptions and filters may use a wrong signature state.";
    INDEX_MISSING, "index-missing",
        "An artifact cannot be found by something that it contains.",
        "Query results omit it. Its bytes are intact.";
    INDEX_SURPLUS, "index-surplus",
        "The index has entries for an artifact that the artifact does not contain.",
        "Query results include false matches. Its bytes are intact.";
    INDEX_UNREADABLE, "index-unreadable",
        "The index entries of an artifact cannot be read.",
        "Queries that reach the artifact fail. Its bytes may be intact.";
    EMBEDDED_MISSING, "embedded-missing",
        "An artifact that is part of another one is not in the vault itself.",
        "It is not found by its hash or content. Its bytes are in the artifact that contains it.";
    REMOVED_PRESENT, "removed-present",
        "A removed artifact is still in the vault as part of another one.",
        "Removing the artifact erased its bytes. Data was added to the vault without a journal entry.";
    MENTIONS_MISSING, "mentions-missing",
        "Digest lookups do not find an artifact that mentions them.",
        "Queries and links miss it. Its bytes are intact.";
    MENTION_INDEX_UNSORTED, "mention-index-unsorted",
        "The mention index cannot be read or is not sorted.",
        "Lookups fail or miss results.";
    MENTIONS_SURPLUS, "mentions-surplus",
        "The mention index refers to captures that do not mention the digest.",
        "Results are correct, because the captures are checked, but queries take longer.";
    UNRESOLVED_MISSING, "unresolved-missing",
        "The table of unresolved references lacks some.",
        "Lists of references to missing artifacts omit them. The artifacts that refer to them are intact.";
    UNRESOLVED_SURPLUS, "unresolved-surplus",
        "The table of unresolved references has some that are resolved, or that no capture has.",
        "Results are correct, because the captures are checked, but queries take longer.";
    SEARCH_DAMAGED, "search-damaged",
        "The search index cannot be read, or its tables differ from the definitions in this program.",
        "Searches fail or miss results. Nothing else needs this index.";
    SEARCH_DIFFERS, "search-differs",
        "The search index does not match the artifacts.",
        "Searches miss results, or fail when they reach the artifact. Its bytes are intact.";
    CAPTURE_UNRECORDED, "capture-unrecorded",
        "The journal has no entry for a capture.",
        "It was added without a journal entry, or the journal was truncated.";
    TIME_DIFFERS, "time-differs",
        "The vault and its journal disagree on when a capture or artifact was added or last seen, or an entry was written.",
        "Its times may be wrong, and retention may keep the wrong artifact. The journal's times are chained.";
    SOURCE_PATH_DIFFERS, "source-path-differs",
        "The source path of a capture is not the one that the journal records.",
        "Descriptions show a path that it was not read from, or none.";
    CAPTURE_LOST, "capture-lost",
        "The journal records that a capture was added and not removed, but it is not in the vault.",
        "It was removed without a journal entry, or lost.";
    ORDER_DIFFERS, "order-differs",
        "Artifacts or captures are not in the order of arrival recorded in the journal.",
        "The latest artifact, and anything else that uses the order of arrival, names the wrong artifact.";
    ANNOTATION_LOST, "annotation-lost",
        "The journal records a tag, a note, a pin, a label or a manual link that is not in the vault.",
        "It was deleted without a journal entry.";
    ANNOTATION_UNRECORDED, "annotation-unrecorded",
        "The journal has no entry for a tag, a note, a pin, a label or a manual link.",
        "It was set without a journal entry, or the journal was truncated.";
    ANNOTATION_DIFFERS, "annotation-differs",
        "A tag, a note, a pin, a label or a manual link differs from the journal.",
        "It was changed without a journal entry. A tag may name the wrong artifact.";
    TOMBSTONE_DIFFERS, "tombstone-differs",
        "The tombstones differ from those in the journal.",
        "A removed artifact is not recorded as removed, or the reverse.";
    ENTRY_UNKNOWN, "entry-unknown",
        "This program does not understand an entry of the journal.",
        "The entry was not compared with the vault. A newer program may have written it.";
    ENTRY_DIFFERS, "entry-differs",
        "The action that is stored beside a journal entry differs from the one in its text.",
        "Lists of entries with an action omit it, or show one too many. The text is chained.";
    JOURNAL_BROKEN, "journal-broken",
        "The chain of the journal is broken.",
        "The entry or an earlier one was changed, inserted or deleted. The artifacts may be intact; their history is \
         not proven.";
}
