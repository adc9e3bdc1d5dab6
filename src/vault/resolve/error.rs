//! The reasons that a lookup fails.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::formats;
use crate::storage::{ArtifactRecord, StorageError, Tombstone};
use crate::vault::api::ArtifactSummary;
use crate::vault::find::ArtifactMatch;
use crate::vault::query::HashTarget;
use crate::vault::tombstones::RemovedArtifact;

/// The reason that a lookup failed.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No hash in the vault begins with the prefix.
    #[error("{}", unknown(.0))]
    NotFound(DigestPrefix),
    /// The artifact or capture with this hash was removed.
    #[error("{0}")]
    Removed(Box<RemovedHash>),
    /// No artifact has this tag.
    #[error("there is no tag {0} in the vault")]
    NoSuchTag(String),
    /// No artifact has this tag, and no run has this id.
    #[error("no tag or run in the vault has the name {name}{}", similar_names(similar))]
    NoSuchName {
        /// The name.
        name: String,
        /// Similar tags and ids of runs, the most similar first.
        similar: Vec<String>,
    },
    /// Several artifacts have this run id.
    #[error("{name} is ambiguous: {count} artifacts have this run id; give a hash")]
    AmbiguousName {
        /// The run id.
        name: String,
        /// The number of artifacts.
        count: u64,
        /// The first of them, newest first.
        candidates: Vec<ArtifactRecord>,
    },
    /// The text is a hash, a tag or a run id of different artifacts.
    #[error("{text} is ambiguous: {}; give one of these forms", forms(.meanings))]
    AmbiguousHandle {
        /// The text.
        text: String,
        /// What it can mean: an unambiguous form, and the artifact.
        meanings: Vec<(String, CoreHash)>,
    },
    /// No artifact has a hash that begins with the prefix, but artifacts mention one.
    #[error("{:.12} is not the hash of an artifact, but {} it", .0.digest, mentioning(.0))]
    Mentioned(Box<MentionedHash>),
    /// No artifact has a hash that begins with the prefix, but artifacts mention several.
    #[error(
        "{prefix} is ambiguous: artifacts mention {} hashes that begin with it; give more digits",
        candidates.len()
    )]
    AmbiguousMention {
        /// The prefix.
        prefix: DigestPrefix,
        /// The mentioned hashes that begin with it, in order.
        candidates: Vec<Digest>,
    },
    /// No artifact mentions a hash that begins with the prefix.
    #[error("no artifact mentions a {}hash that begins with {prefix}", group_text(group.as_deref()))]
    NotMentioned {
        /// The prefix.
        prefix: DigestPrefix,
        /// The group of the roles in which it was looked for; any if `None`.
        group: Option<String>,
    },
    /// The vault has too few artifacts.
    #[error("there is no latest~{back}: the vault has {count} artifact{}", if *count == 1 { "" } else { "s" })]
    LatestOutOfRange {
        /// The requested position, counted back from the latest artifact.
        back: u64,
        /// The number of artifacts.
        count: u64,
    },
    /// Several hashes begin with the prefix.
    #[error("{}", ambiguity(prefix, candidates))]
    Ambiguous {
        /// The prefix.
        prefix: DigestPrefix,
        /// The hashes that begin with it, in order.
        candidates: Vec<HashTarget>,
    },
    /// The artifact has no such capture.
    #[error("{core} has no capture whose hash begins with {capture}")]
    CaptureNotFound {
        /// The artifact.
        core: CoreHash,
        /// The prefix of the capture's hash.
        capture: DigestPrefix,
    },
    /// The artifact is not of the requested kind.
    #[error("{core} is {}, not {}", formats::noun(found), formats::noun(expected))]
    KindMismatch {
        /// The artifact.
        core: CoreHash,
        /// The requested kind.
        expected: &'static str,
        /// Its kind.
        found: String,
    },
    /// The artifact records no run.
    #[error(
        "{core} is {}, not a run; contracts are audited against run packs, traces or export packs",
        formats::noun(kind)
    )]
    NotARun {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The artifact has several files, but one document was requested.
    #[error("{core} is {}, which has several files", formats::noun(kind))]
    SeveralMembers {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The artifact itself records no responses.
    #[error("{core} is {}, which records no responses itself", formats::noun(kind))]
    NoRecording {
        /// The artifact.
        core: CoreHash,
        /// Its kind.
        kind: String,
    },
    /// The stored document is intact, but this program cannot interpret it.
    #[error("the document of {core} cannot be read by this version of runvault: {message}")]
    Unreadable {
        /// The artifact.
        core: CoreHash,
        /// The cause.
        message: String,
    },
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

/// Describes that no hash begins with `prefix`, which may be a whole hash.
fn unknown(prefix: &DigestPrefix) -> String {
    let begins = if prefix.whole().is_some() { "the hash" } else { "a hash that begins with" };
    format!("nothing in the vault has {begins} {prefix}")
}

fn similar_names(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) }
}

/// Returns the name of a group of roles, before a noun.
fn group_text(group: Option<&str>) -> String {
    group.map_or_else(String::new, |group| format!("{group} "))
}

/// Describes what a handle can mean.
fn forms(meanings: &[(String, CoreHash)]) -> String {
    let forms = meanings.iter().map(|(form, core)| format!("{form} is {core:.12}"));
    forms.collect::<Vec<_>>().join(", ")
}

/// Describes the ambiguity of `prefix`.
fn ambiguity(prefix: &DigestPrefix, candidates: &[HashTarget]) -> String {
    let count = candidates.len();
    if is_one_hash(candidates) {
        return format!(
            "{prefix} is ambiguous: {count} artifacts of different kinds have a capture with this hash; give the core hash \
             of one"
        );
    }
    format!("{prefix} is ambiguous: {count} hashes begin with it; give more digits")
}

/// Returns whether all `candidates` are captures with the same hash, and so with the same bytes.
pub(super) fn is_one_hash(candidates: &[HashTarget]) -> bool {
    candidates.windows(2).all(|pair| match pair {
        [one, next] => one.digest() == next.digest(),
        _ => false,
    })
}

/// The hash of an artifact or a capture that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedHash {
    /// The core hash or the capture hash.
    pub digest: Digest,
    /// The removal.
    pub removed: RemovedArtifact,
}

impl From<Tombstone> for RemovedHash {
    fn from(tombstone: Tombstone) -> Self {
        Self { digest: tombstone.digest, removed: tombstone.into() }
    }
}

/// Describes the removal: `sha256:… (session) was removed on …`.
impl fmt::Display for RemovedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, removed } = self;
        let RemovedArtifact { core_hash: core, kind, removed_at, actor, reason, seq, .. } = removed;
        let kind = formats::bare_noun(kind);
        let whose = if *digest == core.0 { String::new() } else { format!(", a capture of {core:.12}") };
        let at = removed_at.0.format("%Y-%m-%d %H:%M:%S UTC");
        let by = actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
        let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        write!(f, "{digest} ({kind}{whose}) was removed on {at}{by}{why} (entry {seq} of the journal)")
    }
}

/// A hash that artifacts mention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MentionedHash {
    /// The hash.
    pub digest: Digest,
    /// The artifacts that were last added or seen again, newest first.
    pub artifacts: Vec<MentioningArtifact>,
    /// Number of artifacts that mention it, counted up to 1000.
    pub count: u64,
    /// Whether there are more.
    pub is_more: bool,
}

/// An artifact that mentions a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MentioningArtifact {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// Where it mentions it.
    pub matches: Vec<ArtifactMatch>,
}

/// Describes how many artifacts mention a hash.
pub(super) fn mentioning(mentioned: &MentionedHash) -> String {
    match mentioned {
        MentionedHash { is_more: true, count, .. } => format!("more than {count} artifacts mention"),
        MentionedHash { count: 1, .. } => "1 artifact mentions".to_owned(),
        MentionedHash { count, .. } => format!("{count} artifacts mention"),
    }
}
