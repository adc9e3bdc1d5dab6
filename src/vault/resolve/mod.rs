//! Resolves what a person pastes: a hash, a prefix of one, a tag, a run id, or `latest`.

mod error;
mod lookup;
mod read;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::ArtifactSummary;
use super::query::HashTarget;
use super::tombstones::RemovedArtifact;
use crate::digest::{CaptureHash, CoreHash, Digest, DigestPrefix, PREFIX, pasted};
use crate::storage::{ArtifactRecord, Snapshot, StorageError, StoredMember};

pub use error::{LookupError, MentionedHash, MentioningArtifact, RemovedHash};
pub use lookup::{DigestsAnswer, DigestsRequest, LocatedCapture};
pub use read::{RecoveredFiles, RequestedHashes};

use lookup::{is_run_id, latest, locate_bytes, mentioned, no_such_name, of_run, tagged};
pub(super) use lookup::{locate, with_preferred_capture};
pub(super) use read::{core_of, core_of_members, document, expect_kind};

/// A request for what a text refers to.
///
/// ```
/// # use runvault::{Vault, intake::ExamineOptions, vault::resolve::ResolveRequest};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
/// let options = ExamineOptions::default();
/// let session = vault.add_document(std::fs::read("examples/session.json")?, &options)?;
/// let run = vault.add_document(std::fs::read("examples/run.rpk")?, &options)?;
/// assert_eq!(ResolveRequest::new("latest").locate(&vault)?.artifact.core, run.core);
/// assert_eq!(ResolveRequest::new("latest~1").locate(&vault)?.artifact.core, session.core);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// The text: a hash or the first digits of one, `@` and a tag, `latest`, `latest~1` for the artifact before it, `run:`
    /// and the id of a run, a tag or the id of a run alone, or the address of a page. A text that refers to different
    /// artifacts, as a hash, a tag or the id of a run, is ambiguous.
    pub text: String,
    /// Whether a hash that captures of several artifacts have refers to the first of them. They have the same bytes.
    #[serde(default)]
    pub any_artifact: bool,
}

/// What a text refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum ResolveAnswer {
    /// An artifact, with its preferred capture.
    Artifact {
        /// The artifact.
        artifact: ArtifactSummary,
        /// The preferred capture.
        capture_hash: CaptureHash,
    },
    /// A capture of an artifact.
    Capture {
        /// The artifact.
        artifact: ArtifactSummary,
        /// The capture.
        capture_hash: CaptureHash,
    },
    /// A hash that artifacts mention, such as that of a prompt.
    Mentioned(MentionedHash),
    /// Several artifacts, captures or mentioned hashes.
    Ambiguous {
        /// The first of them, in order.
        candidates: Vec<ResolveCandidate>,
        /// Their number, if it is known.
        count: Option<u64>,
    },
    /// An artifact or a capture that was removed.
    Removed {
        /// The artifact.
        removed: RemovedArtifact,
    },
    /// Nothing in the vault.
    NotFound {
        /// The reason.
        message: String,
    },
}

/// Something that a text may refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ResolveCandidate {
    /// An artifact.
    Artifact {
        /// Its core hash.
        core_hash: CoreHash,
    },
    /// A capture.
    Capture {
        /// The core hash of its artifact.
        core_hash: CoreHash,
        /// Its hash.
        capture_hash: CaptureHash,
    },
    /// A hash that artifacts mention.
    Mentioned {
        /// The hash.
        digest: Digest,
    },
}

/// A parsed text.
enum ArtifactSpecifier<'t> {
    Hash(DigestPrefix),
    Tag(&'t str),
    Run(&'t str),
    Latest(u64),
    Name,
}

impl ResolveRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ResolveAnswer, StorageError> {
        match self.locate(vault) {
            Ok(located) => Ok(self.found(&located)),
            Err(error) => ResolveAnswer::from_error(error),
        }
    }

    /// Creates a request for what `text` refers to.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), any_artifact: false }
    }

    /// Returns the artifact and the capture that the text refers to.
    ///
    /// # Errors
    /// Returns [`LookupError::NotFound`], [`LookupError::NoSuchTag`], [`LookupError::NoSuchName`] and
    /// [`LookupError::LatestOutOfRange`] if there is none, [`LookupError::Mentioned`] if the hash is only mentioned,
    /// [`LookupError::Ambiguous`], [`LookupError::AmbiguousName`], [`LookupError::AmbiguousHandle`] and [`LookupError::AmbiguousMention`] if there are
    /// several, [`LookupError::Removed`] if it was removed, and [`LookupError::Store`] if the vault cannot be read.
    pub fn locate(&self, vault: &Vault) -> Result<LocatedCapture, LookupError> {
        self.locate_in(&*vault.snapshot()?)
    }

    /// Returns the exact bytes of the document that the text refers to, hashed again. With a full hash, bytes that the
    /// catalog does not lead to are also found.
    ///
    /// # Errors
    /// Same as [`ResolveRequest::locate`] and [`Vault::read`].
    pub fn read(&self, vault: &Vault) -> Result<Vec<u8>, LookupError> {
        let quickly = self.prefix().map(|prefix| vault.get_quickly(&prefix)).transpose()?;
        if let Some(bytes) = quickly.flatten() {
            return Ok(bytes);
        }
        let found = self.locate(vault).and_then(|located| vault.read(&located));
        self.or_recovered(vault, found, RecoveredFiles::into_document)
    }

    /// Returns the files of what the text refers to by name, hashed again, as [`ResolveRequest::read`] does.
    ///
    /// # Errors
    /// Same as [`ResolveRequest::locate`] and [`Vault::members`].
    pub fn members(&self, vault: &Vault) -> Result<Vec<StoredMember>, LookupError> {
        let found = self.locate(vault).and_then(|located| Ok(vault.members(&located)?));
        self.or_recovered(vault, found, |recovered| Some(recovered.files))
    }

    /// Returns `found`, or what `take` makes of intact bytes, as [`Vault::or_recovered`] does.
    ///
    /// # Errors
    /// Same as [`Vault::or_recovered`].
    pub fn or_recovered<T>(
        &self,
        vault: &Vault,
        found: Result<T, LookupError>,
        take: impl FnOnce(RecoveredFiles) -> Option<T>,
    ) -> Result<T, LookupError> {
        let prefix = self.prefix();
        let requested = RequestedHashes { artifact: prefix.as_ref(), ..RequestedHashes::default() };
        vault.or_recovered(found, &requested, take)
    }

    /// Returns the hash, or the prefix of one, that the text is.
    #[must_use]
    pub fn prefix(&self) -> Option<DigestPrefix> {
        match ArtifactSpecifier::parse(&pasted(&self.text)) {
            ArtifactSpecifier::Hash(prefix) => Some(prefix),
            _ => None,
        }
    }

    /// Returns the hash that the text refers to: that of an artifact or a capture, also of a removed one, or one that is
    /// only mentioned. A complete hash refers to itself.
    ///
    /// # Errors
    /// Same as [`ResolveRequest::locate`], except for hashes that are mentioned or were removed.
    pub fn digest(&self, vault: &Vault) -> Result<Digest, LookupError> {
        match self.locate(vault) {
            Ok(located) if self.is_capture(&located) => Ok(located.capture.capture.0),
            Ok(located) => Ok(located.artifact.core.0),
            Err(LookupError::Mentioned(mentioned)) => Ok(mentioned.digest),
            Err(LookupError::Removed(hash)) => Ok(hash.digest),
            Err(LookupError::NotFound(prefix)) => prefix.whole().ok_or(LookupError::NotFound(prefix)),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the text is the hash of the located capture rather than of its artifact.
    fn is_capture(&self, LocatedCapture { artifact, capture }: &LocatedCapture) -> bool {
        let is_only_of_capture =
            |prefix: DigestPrefix| !prefix.matches(&artifact.core.0) && prefix.matches(&capture.capture.0);
        self.prefix().is_some_and(is_only_of_capture)
    }

    fn locate_in(&self, snapshot: &dyn Snapshot) -> Result<LocatedCapture, LookupError> {
        let text = pasted(&self.text);
        match ArtifactSpecifier::parse(&text) {
            ArtifactSpecifier::Tag(name) => tagged(snapshot, name),
            ArtifactSpecifier::Run(id) => match of_run(snapshot, id)? {
                Some(located) => Ok(located),
                None => Err(no_such_name(snapshot, id)?),
            },
            ArtifactSpecifier::Latest(back) => latest(snapshot, back),
            ArtifactSpecifier::Name => {
                let mut named = by_name(snapshot, &text)?;
                if named.is_empty() && text != self.text.trim() {
                    named = by_name(snapshot, self.text.trim())?;
                }
                match only(&text, named)? {
                    Some(located) => Ok(located),
                    None => Err(no_such_name(snapshot, &text)?),
                }
            }
            ArtifactSpecifier::Hash(prefix) => {
                let by_hash = self.by_hash(snapshot, &prefix);
                let named = if text.contains(':') { Vec::new() } else { by_name(snapshot, &text)? };
                let not_found = match by_hash {
                    Ok(located) => {
                        let form = format!("{PREFIX}{prefix}");
                        let all = std::iter::once((form, located)).chain(named).collect();
                        return only(&text, all)?.ok_or(LookupError::NotFound(prefix));
                    }
                    Err(error @ LookupError::NotFound(_)) => error,
                    Err(error) => return Err(error),
                };
                match only(&text, named)? {
                    Some(located) => Ok(located),
                    None => Err(mentioned(snapshot, &prefix)?.unwrap_or(not_found)),
                }
            }
        }
    }

    fn by_hash(&self, snapshot: &dyn Snapshot, prefix: &DigestPrefix) -> Result<LocatedCapture, LookupError> {
        if self.any_artifact { locate_bytes(snapshot, prefix) } else { locate(snapshot, prefix) }
    }

    fn found(&self, located: &LocatedCapture) -> ResolveAnswer {
        let (summary, capture_hash) = (ArtifactSummary::from(&located.artifact), located.capture.capture);
        if self.is_capture(located) {
            ResolveAnswer::Capture { artifact: summary, capture_hash }
        } else {
            ResolveAnswer::Artifact { artifact: summary, capture_hash }
        }
    }
}

/// Returns the artifacts that have this name, as a tag or as the id of their run, each with the form that only it has.
fn by_name(snapshot: &dyn Snapshot, name: &str) -> Result<Vec<(String, LocatedCapture)>, LookupError> {
    let tagged = match tagged(snapshot, name) {
        Err(LookupError::NoSuchTag(_)) => None,
        tagged => Some((format!("@{name}"), tagged?)),
    };
    let of_run = match of_run(snapshot, name) {
        Err(LookupError::AmbiguousName { candidates, .. }) if tagged.is_some() => {
            let form = |artifact: &ArtifactRecord| (format!("{:.12}", artifact.core), artifact.core);
            let tag = tagged.map(|(form, located)| (form, located.artifact.core));
            let meanings = tag.into_iter().chain(candidates.iter().map(form)).collect();
            return Err(LookupError::AmbiguousHandle { text: name.to_owned(), meanings });
        }
        of_run => of_run?.map(|located| (format!("run:{name}"), located)),
    };
    Ok(tagged.into_iter().chain(of_run).collect())
}

/// Returns the artifact that a text means in all its forms; `None` if it means nothing.
fn only(
    text: &str,
    mut meanings: Vec<(String, LocatedCapture)>,
) -> Result<Option<LocatedCapture>, LookupError> {
    meanings.dedup_by_key(|(_, located)| located.artifact.core);
    if meanings.len() > 1 {
        let meanings = meanings.into_iter().map(|(form, located)| (form, located.artifact.core)).collect();
        return Err(LookupError::AmbiguousHandle { text: text.to_owned(), meanings });
    }
    Ok(meanings.pop().map(|(_, located)| located))
}

/// Returns why a new tag must not have this name: it would also be read as a hash, as `latest` or as the id of a run.
pub(super) fn reserved_for(
    snapshot: Option<&dyn Snapshot>,
    name: &str,
) -> Result<Option<&'static str>, StorageError> {
    let is_run = || snapshot.map_or(Ok(false), |snapshot| is_run_id(snapshot, name));
    Ok(match ArtifactSpecifier::parse(name) {
        ArtifactSpecifier::Hash(_) => Some("it has the form of a hash"),
        ArtifactSpecifier::Latest(_) => {
            Some("it is the name of the artifact that was added or seen again last")
        }
        _ if is_run()? => Some("it is the id of a run"),
        _ => None,
    })
}

impl ResolveAnswer {
    /// Returns the answer for a failed lookup, unless the vault cannot be read.
    fn from_error(error: LookupError) -> Result<Self, StorageError> {
        Ok(match error {
            LookupError::Store(error) => return Err(error),
            LookupError::Removed(hash) => Self::Removed { removed: hash.removed },
            LookupError::Mentioned(mentioned) => Self::Mentioned(*mentioned),
            LookupError::Ambiguous { candidates, .. } => {
                // Further candidates are not looked for.
                let candidates = candidates.into_iter().map(ResolveCandidate::from).collect();
                Self::Ambiguous { candidates, count: None }
            }
            LookupError::AmbiguousMention { candidates, .. } => {
                let candidates = candidates.into_iter().map(|digest| ResolveCandidate::Mentioned { digest });
                Self::Ambiguous { candidates: candidates.collect(), count: None }
            }
            LookupError::AmbiguousName { candidates, count, .. } => {
                let candidates = candidates
                    .into_iter()
                    .map(|artifact| ResolveCandidate::Artifact { core_hash: artifact.core });
                Self::Ambiguous { candidates: candidates.collect(), count: Some(count) }
            }
            LookupError::AmbiguousHandle { meanings, .. } => {
                let candidates =
                    meanings.into_iter().map(|(_, core_hash)| ResolveCandidate::Artifact { core_hash });
                Self::Ambiguous { candidates: candidates.collect(), count: None }
            }
            error => Self::NotFound { message: error.to_string() },
        })
    }
}

impl From<HashTarget> for ResolveCandidate {
    fn from(target: HashTarget) -> Self {
        match target {
            HashTarget::Artifact(core_hash) => Self::Artifact { core_hash },
            HashTarget::Capture(core_hash, capture_hash) => Self::Capture { core_hash, capture_hash },
        }
    }
}

impl<'t> ArtifactSpecifier<'t> {
    fn parse(text: &'t str) -> Self {
        if let Some(name) = text.strip_prefix('@') {
            return Self::Tag(name);
        }
        if let Some(id) = text.strip_prefix("run:") {
            return Self::Run(id);
        }
        if let Some(back) = text.strip_prefix("latest").and_then(latest_back) {
            return Self::Latest(back);
        }
        text.parse().map_or(Self::Name, Self::Hash)
    }
}

/// Parses the rest of `latest`, such as `~2`.
fn latest_back(rest: &str) -> Option<u64> {
    if rest.is_empty() {
        return Some(0);
    }
    // Numbers can also have a sign.
    let digits = rest.strip_prefix('~').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parsed_as_what_they_look_like() {
        assert!(matches!(ArtifactSpecifier::parse("@base"), ArtifactSpecifier::Tag("base")));
        assert!(matches!(ArtifactSpecifier::parse("latest"), ArtifactSpecifier::Latest(0)));
        assert!(matches!(ArtifactSpecifier::parse("latest~12"), ArtifactSpecifier::Latest(12)));
        for name in ["latest~x", "latest~+1", "latest~", "latest~18446744073709551616"] {
            assert!(matches!(ArtifactSpecifier::parse(name), ArtifactSpecifier::Name), "{name}");
        }
        assert!(matches!(ArtifactSpecifier::parse("run:run-1"), ArtifactSpecifier::Run("run-1")));
        assert!(matches!(ArtifactSpecifier::parse("latest-run"), ArtifactSpecifier::Name));
        assert!(matches!(ArtifactSpecifier::parse("4df877dec7f4"), ArtifactSpecifier::Hash(_)));
        assert!(matches!(ArtifactSpecifier::parse("run-123"), ArtifactSpecifier::Name));
    }
}
