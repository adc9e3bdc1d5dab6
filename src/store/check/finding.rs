//! What checking a vault can find. Each sort of finding stands here once, with what it means and what to do.

use std::fmt;

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

/// A sort of finding as people read about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingInfo {
    /// The id, such as `blob-damaged`.
    pub id: &'static str,
    /// One line: what was found.
    pub summary: &'static str,
    /// What it means for the vault.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The vault as a whole, or one of its files.
    File(String),
    /// A table, or a row of it.
    Table(String),
    /// Stored bytes.
    Blob(BlobHash),
    /// A dictionary, by its number.
    Dictionary(i64),
    /// A kind, by its name.
    Kind(String),
    /// An artifact.
    Artifact(CoreHash),
    /// A capture.
    Capture(CaptureHash),
    /// The index of mentions.
    Mentions,
    /// The search index.
    Search,
    /// A tag, by its name.
    Tag(String),
    /// The note of an artifact.
    Note(CoreHash),
    /// The pin of an artifact.
    Pin(CoreHash),
    /// A link that a person stated.
    Link {
        /// The artifact that relates.
        source: CoreHash,
        /// How.
        relation: String,
        /// The artifact that it relates to.
        target: CoreHash,
    },
    /// The tombstone of a core hash or a capture hash.
    Tombstone(Digest),
    /// An entry of the journal, by its number.
    Entry(i64),
}

impl Subject {
    /// What sort of thing it is, such as `blob`.
    #[must_use]
    pub fn sort(&self) -> &'static str {
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
            Self::Link { .. } => "link",
            Self::Tombstone(_) => "tombstone",
            Self::Entry(_) => "entry",
        }
    }

    /// Which one it is.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(name) | Self::Table(name) | Self::Kind(name) | Self::Tag(name) => name.clone(),
            Self::Blob(blob) => blob.to_string(),
            Self::Artifact(core) | Self::Note(core) | Self::Pin(core) => core.to_string(),
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
        write!(f, "{} {}", self.sort(), self.name())
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its sort.
    pub info: FindingInfo,
    /// What it is about.
    pub subject: Subject,
    /// What is wrong there.
    pub detail: String,
}

impl Finding {
    /// A finding of the sort `info`.
    pub fn new(info: FindingInfo, subject: Subject, detail: impl Into<String>) -> Self {
        Self { info, subject, detail: detail.into() }
    }

    /// The order of reports: what it is about, sort, detail.
    pub(crate) fn key(&self) -> (&Subject, &'static str, &str) {
        (&self.subject, self.info.id, &self.detail)
    }
}

const BACKUP: &str = "Restore the vault from a backup, or add the artifacts to a new one.";
const FROM: &str = "`fsck --repair --from` another vault or a directory that has the same bytes puts them back; \
    without one, restore the vault from a backup.";
const REBUILD: &str = "`fsck --repair`, `reindex` or `search --build` makes it anew from the stored bytes.";
const REINDEX: &str = "`fsck --repair` or `reindex` makes it anew from the stored bytes.";

macro_rules! findings {
    ($($name:ident, $id:literal, $summary:literal, $meaning:literal, $remedy:expr;)*) => {
        $(
            #[doc = $summary]
            pub const $name: FindingInfo =
                FindingInfo { id: $id, summary: $summary, meaning: $meaning, remedy: $remedy };
        )*

        /// Every sort of finding, in the order in which the checks come.
        pub const ALL: &[FindingInfo] = &[$($name),*];
    };
}

findings! {
    OTHERS_CAN_WRITE, "others-can-write",
        "People other than its owner can write a file of the vault.",
        "Whoever can write the file can change or delete what it holds.",
        "`fsck --repair`, or `chmod go-w`, takes the permission away. Check the directory as well.";
    FILE_DAMAGED, "file-damaged",
        "SQLite's own check finds the file damaged.",
        "A disk, a copy or another program changed the file. What the other checks do not name may be intact.",
        "`fsck --repair` makes damaged SQL indexes anew. If the finding stays, copy the vault, try `fsck --repair` with \
         the copy, and otherwise restore it from a backup.";
    LOG_DAMAGED, "log-damaged",
        "The write-ahead log did not have all that was committed, and what there was of it was kept.",
        "The last artifacts and changes before the damage may be missing, although they were acknowledged.",
        "`fsck --repair` takes what the log still has, verifies it like anything that is added, and renames the copy.";
    SCHEMA_DIFFERS, "schema-differs",
        "A table, index or view is not as this program makes it.",
        "Another program changed it, or the file is damaged. What is read through it may be wrong.",
        "Restore the vault from a backup, or `export --all` what is intact and `import` it into a new vault.";
    UNREADABLE, "unreadable",
        "A part of the vault cannot be read, so that a check could not be finished.",
        "What stands there may be lost, and this check says nothing of it. The other checks went on.",
        BACKUP;
    REFERENCE_BROKEN, "reference-broken",
        "Rows refer to rows that do not exist.",
        "Rows were lost or changed.",
        "Those of the index are made anew by `fsck --repair`. If the finding stays, restore the vault from a backup.";
    ARTIFACT_TWICE, "artifact-twice",
        "An artifact is in the vault more than once.",
        "Look-ups show one of them only.",
        BACKUP;
    ARTIFACT_EMPTY, "artifact-empty",
        "An artifact has no captures.",
        "Its bytes are not in the vault, or nothing says which they are.",
        FROM;
    CAPTURE_TWICE, "capture-twice",
        "Several captures of artifacts of one kind have the same bytes.",
        "Nothing is lost, but `add` does not do this: somebody changed the vault.",
        BACKUP;
    BLOB_TWICE, "blob-twice",
        "Bytes are in the vault more than once.",
        "Nothing is lost, but `add` does not do this: somebody changed the vault.",
        BACKUP;
    BLOB_UNREFERENCED, "blob-unreferenced",
        "Nothing refers to stored bytes.",
        "They take up space and belong to no artifact that the vault knows.",
        "`fsck --repair` makes them an artifact again if the journal says that they are one, and else drops them.";
    BLOB_MISSING, "blob-missing",
        "Bytes that the vault should have are not there.",
        "The captures that they belong to cannot be given back.",
        FROM;
    BLOB_DAMAGED, "blob-damaged",
        "Stored bytes are not those that were stored.",
        "The captures that they belong to cannot be given back. `get` refuses them.",
        FROM;
    BASE_WRONG, "base-wrong",
        "What a payload is a difference to is not stored whole, or not named.",
        "The bytes cannot be put together.",
        FROM;
    PAYLOAD_SURPLUS, "payload-surplus",
        "A payload has digests or a dictionary that its encoding does not use.",
        "Its bytes are read without them, but the size that `stats` states for stored bytes includes them.",
        "`fsck --repair` removes them.";
    DICTIONARY_DAMAGED, "dictionary-damaged",
        "A dictionary for decompression is not what it was.",
        "Nothing that was compressed with it can be read; each of those blobs is a finding of its own.",
        FROM;
    SIZE_WRONG, "size-wrong",
        "A size in the vault is not that of the bytes.",
        "Listings show a wrong size.",
        "`fsck --repair` or `reindex` corrects it.";
    KIND_UNKNOWN, "kind-unknown",
        "This program does not know the kind of an artifact.",
        "Its bytes were hashed, but whether it is what the index says could not be checked.",
        "Use the runvault that added it. If the kind's name was changed, `fsck --repair` finds the right one.";
    KIND_WRONG, "kind-wrong",
        "An artifact is of another kind than the vault says.",
        "It is not found by its kind, and read as something else.",
        REINDEX;
    KIND_DIFFERS, "kind-differs",
        "What the vault says of a kind is not what this program says.",
        "Some links are shown under another name, or not at all. A newer program may have changed it.",
        REINDEX;
    CAPTURE_DAMAGED, "capture-damaged",
        "A capture is not of the files that it was of.",
        "It cannot be given back. `get` refuses it.",
        FROM;
    SEAL_BROKEN, "seal-broken",
        "A capture is not bound to its artifact.",
        "`get` refuses it. Either the capture or its artifact was changed.",
        "`fsck --repair` binds it again if its bytes give the artifact's core hash. Otherwise restore the vault from a \
         backup.";
    CORE_DIFFERS, "core-differs",
        "The stored bytes give another core hash.",
        "The artifact is not what the vault says it is.",
        "`fsck --repair` puts it right if the seal proves which it is. Otherwise restore the vault from a backup.";
    NOT_ADMITTED, "not-admitted",
        "An artifact would not be admitted today.",
        "Its bytes are intact, but break a rule of this program: of a newer rule set, of smaller limits, or because the \
         artifact was put there by another program. It stays in the vault and is found as before.",
        "Nothing has to be done. `runvault rules ID` explains the rule; `verify` says the same of the original file.";
    WARNINGS_DIFFER, "warnings-differ",
        "The warnings of a capture are not those that checking it gives.",
        "`show` tells the wrong ones. A newer rule set warns of other things.",
        "`fsck --repair` or `reindex` corrects them.";
    SIGNATURE_WRONG, "signature-wrong",
        "The signature of a capture is not that of its content under the key that was given.",
        "It was signed with another key, or its key id or signature was changed. Its content is what the core hash says.",
        "`reindex` with the same keys records it as wrong; `find --signature wrong` lists such captures. Ask who signed it, \
         and `rm` it if it should not be there.";
    SIGNATURE_DIFFERS, "signature-differs",
        "What the vault says of the signature of a capture is not what its bytes or the journal say.",
        "`show` and `find` may call something verified, unsigned or wrong that is not.",
        "`fsck --repair` restores what the journal records; `reindex` with the keys checks the signatures again.";
    INDEX_MISSING, "index-missing",
        "An artifact cannot be found by something that it says.",
        "Questions are answered without it. Its bytes are intact.",
        REINDEX;
    INDEX_SURPLUS, "index-surplus",
        "The index says more of an artifact than the artifact does.",
        "Questions are answered with things that are not so. Its bytes are intact.",
        REINDEX;
    INDEX_UNREADABLE, "index-unreadable",
        "What the index says of an artifact cannot be read.",
        "Questions that come upon the artifact fail. Its bytes may be intact.",
        REINDEX;
    EMBEDDED_MISSING, "embedded-missing",
        "An artifact that is part of another is not in the vault by itself.",
        "It is not found by its hash or content. Its bytes are in the artifact that contains it.",
        "`fsck --repair` adds it again.";
    REMOVED_PRESENT, "removed-present",
        "An artifact that was removed is still in the vault, as a part of another one.",
        "The artifact was removed with the promise that its bytes are gone. A runvault of an earlier version left them in \
         packs, or something was put into the vault without the journal.",
        "Remove what has its bytes as well, with `rm`; or take the removal back: `add --allow-removed`.";
    MENTIONS_MISSING, "mentions-missing",
        "Look-ups of digests do not lead to an artifact that mentions them.",
        "`find` and links overlook it. Its bytes are intact.",
        REINDEX;
    MENTIONS_DISORDERED, "mentions-disordered",
        "The index of mentions cannot be read or is not in order.",
        "Look-ups fail or overlook something.",
        REINDEX;
    MENTIONS_SURPLUS, "mentions-surplus",
        "The index of mentions leads to captures that do not mention the digest.",
        "Answers are right, for the captures are asked; they take longer.",
        REINDEX;
    SEARCH_DAMAGED, "search-damaged",
        "The search index cannot be read, or its tables are not as this program makes them.",
        "`search` fails or overlooks something. Nothing else needs this index.",
        REBUILD;
    SEARCH_DIFFERS, "search-differs",
        "The search index says something else than the artifacts do.",
        "`search` overlooks something, or fails when it comes upon the artifact. Its bytes are intact.",
        REBUILD;
    CAPTURE_UNRECORDED, "capture-unrecorded",
        "The journal has no entry for a capture.",
        "It was put into the vault behind the journal's back, or the end of the journal was cut off.",
        "Nobody can tell from the vault alone. Compare it with a backup, and the journal's head with one that was \
         written down.";
    TIME_DIFFERS, "time-differs",
        "The vault and its journal disagree on when a capture or an artifact was added or last seen, or an entry written.",
        "`show` may print a wrong time, and `forget` keep another artifact. The journal's times are chained.",
        "`fsck --repair` takes the journal's, if its chain is whole.";
    CAPTURE_LOST, "capture-lost",
        "The journal says that a capture was added, and not that it was removed, but it is not in the vault.",
        "It was removed behind the journal's back, or lost.",
        FROM;
    ORDER_DIFFERS, "order-differs",
        "Artifacts or captures are not in the order in which the journal says that they arrived.",
        "`latest`, and whatever else goes by arrival, names another one.",
        "`fsck --repair` puts them into the journal's order, if its chain is whole.";
    ANNOTATION_LOST, "annotation-lost",
        "The journal says that a tag, a note, a pin or a stated link was set, and it is not in the vault.",
        "It was deleted without an entry in the journal.",
        "`fsck --repair` sets it again, if the chain of the journal is whole and the artifact is there.";
    ANNOTATION_UNRECORDED, "annotation-unrecorded",
        "The journal has no entry for a tag, a note, a pin or a stated link.",
        "It was set without an entry in the journal, or the end of the journal was cut off.",
        "The vault alone does not show which. If it should not be there, remove it. If it should, remove it and set it \
         again, so that the journal has it.";
    ANNOTATION_DIFFERS, "annotation-differs",
        "A tag, a note, a pin or a stated link is not what the journal says.",
        "It was changed without an entry in the journal. A tag may name another artifact than it should.",
        "`fsck --repair` restores what the journal says, if its chain is whole.";
    TOMBSTONE_DIFFERS, "tombstone-differs",
        "The tombstones are not those that the journal says.",
        "Something that was removed is not known to be, or the other way round.",
        "`fsck --repair` restores those that the journal has, if its chain is whole.";
    ENTRY_UNKNOWN, "entry-unknown",
        "This program does not understand an entry of the journal.",
        "What the entry says was not compared with the vault. A newer program may have written it.",
        "Check the vault with the newest runvault that wrote to it.";
    JOURNAL_BROKEN, "journal-broken",
        "The chain of the journal is broken.",
        "The entry, or one before it, was changed, put in or taken out. The artifacts may be intact; their history is \
         not proven.",
        "Compare the vault with a backup. A broken chain cannot be mended, only explained.";
}
