//! Lookup of artifacts by hashes, tags, run ids and arrival, and of mentioned digests by their first digits.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::{LookupError, MentionedHash, MentioningArtifact, RemovedHash, is_one_hash};
use crate::artifact::Playback;
use crate::digest::{Digest, DigestPrefix, PrefixResolution};
use crate::display::similar;
use crate::formats;
use crate::storage::{
    ArtifactRecord, CaptureRecord, Condition, Filter, Order, Page, Snapshot, StorageError, TimeBasis,
};
use crate::vault::Vault;
use crate::vault::details::RUN_IDS;
use crate::vault::find::ArtifactMatch;
use crate::vault::query::{self, HashTarget, Hit};

/// The result of a lookup: an artifact and one of its captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedCapture {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The capture that the hash identifies, or the artifact's preferred one: the one of the lowest [`preference`](crate::storage::preference).
    pub capture: CaptureRecord,
}

impl Vault {
    /// Resolves `prefix` to an artifact by its core hash, or to a capture by its own hash.
    ///
    /// # Errors
    /// Returns [`LookupError::NotFound`], [`LookupError::Ambiguous`], [`LookupError::Removed`] if the artifact was
    /// removed, and [`LookupError::Store`] if the vault cannot be read.
    pub fn locate(&self, prefix: &DigestPrefix) -> Result<LocatedCapture, LookupError> {
        locate(&*self.snapshot()?, prefix)
    }

    /// Returns another capture of a located artifact.
    ///
    /// # Errors
    /// Returns [`LookupError::CaptureNotFound`] if no capture of the artifact has the prefix, [`LookupError::Ambiguous`]
    /// if several have it, and [`LookupError::Store`] if the vault cannot be read.
    pub fn capture_of(
        &self,
        located: &LocatedCapture,
        prefix: &DigestPrefix,
    ) -> Result<LocatedCapture, LookupError> {
        let snapshot = self.snapshot()?;
        snapshot.expect_artifact(located.artifact.core)?;
        let captures = snapshot.captures_of(located.artifact.core)?.into_iter();
        match captures.filter(|capture| prefix.matches(&capture.capture.0)).collect() {
            PrefixResolution::None => {
                Err(LookupError::CaptureNotFound { core: located.artifact.core, capture: *prefix })
            }
            PrefixResolution::One(capture) => {
                Ok(LocatedCapture { artifact: located.artifact.clone(), capture })
            }
            PrefixResolution::Ambiguous(captures) => {
                let target = |row: &CaptureRecord| HashTarget::Capture(located.artifact.core, row.capture);
                let candidates = captures.iter().map(target).collect();
                Err(LookupError::Ambiguous { prefix: *prefix, candidates })
            }
        }
    }
}

pub(in crate::vault) fn locate(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<LocatedCapture, LookupError> {
    let target = match query::resolve_hash(snapshot, prefix)? {
        PrefixResolution::None => {
            let tombstone = snapshot.resolve(prefix, 1)?.tombstones.into_iter().next();
            let removed = tombstone.map(|tombstone| LookupError::Removed(Box::new(tombstone.into())));
            return Err(removed.unwrap_or(LookupError::NotFound(*prefix)));
        }
        PrefixResolution::Ambiguous(candidates) => {
            return Err(LookupError::Ambiguous { prefix: *prefix, candidates });
        }
        PrefixResolution::One(target) => target,
    };
    located(snapshot, target)?.ok_or(LookupError::NotFound(*prefix))
}

/// Like [`locate`], but resolves a hash shared by captures of several artifacts, which have the same bytes, to the capture
/// with the smallest core hash.
pub(super) fn locate_bytes(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<LocatedCapture, LookupError> {
    match locate(snapshot, prefix) {
        Err(LookupError::Ambiguous { candidates, .. }) if is_one_hash(&candidates) => {
            let first = candidates.first().copied().ok_or(LookupError::NotFound(*prefix))?;
            located(snapshot, first)?.ok_or(LookupError::NotFound(*prefix))
        }
        outcome => outcome,
    }
}

/// Returns an artifact with its preferred capture.
pub(in crate::vault) fn with_preferred_capture(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
) -> Result<LocatedCapture, StorageError> {
    let capture = snapshot.preferred_capture(artifact.core)?;
    let capture = capture.ok_or_else(|| StorageError::gone(artifact.core))?;
    Ok(LocatedCapture { artifact: artifact.clone(), capture })
}

fn located(snapshot: &dyn Snapshot, target: HashTarget) -> Result<Option<LocatedCapture>, LookupError> {
    let found = match target {
        HashTarget::Artifact(core) => match snapshot.artifact(core)? {
            Some(artifact) => snapshot.preferred_capture(core)?.zip(Some(artifact)),
            None => None,
        },
        HashTarget::Capture(core, capture) => match snapshot.capture(core, capture)? {
            Some(capture) => Some((capture, snapshot.expect_artifact(core)?)),
            None => None,
        },
    };
    Ok(found.map(|(capture, artifact)| LocatedCapture { artifact, capture }))
}

/// The number of artifacts that are read at a time.
const PAGE: usize = 1_000;

/// Maximum number of artifacts listed that mention a hash.
const LISTED: usize = 5;

/// The number up to which artifacts are counted, and candidates are listed.
const COUNTED: usize = 1_000;

/// Returns the artifact with this tag, and its preferred capture.
pub(super) fn tagged(snapshot: &dyn Snapshot, name: &str) -> Result<LocatedCapture, LookupError> {
    let core = snapshot.with_tag(name)?;
    let core = core.ok_or_else(|| LookupError::NoSuchTag(name.to_owned()))?;
    locate(snapshot, &core.0.into())
}

/// Returns the artifact that arrived `back` artifacts before the last one, and its preferred capture.
pub(super) fn latest(snapshot: &dyn Snapshot, back: u64) -> Result<LocatedCapture, LookupError> {
    let mut page = Page::first(PAGE);
    let mut left = back;
    loop {
        let found = snapshot.find(&Filter::default(), Order::Newest(TimeBasis::LastSeen), &page)?;
        let hit = usize::try_from(left).ok().and_then(|left| found.items.get(left));
        if let Some(hit) = hit {
            return locate(snapshot, &hit.artifact.core.0.into());
        }
        left -= found.items.len() as u64;
        let Some(next) = found.next else {
            let count = snapshot.count(&Filter::default())?;
            return Err(LookupError::LatestOutOfRange { back, count });
        };
        page.after = Some(next);
    }
}

/// Returns the artifact of the run with this id; `None` if there is none.
pub(super) fn of_run(snapshot: &dyn Snapshot, name: &str) -> Result<Option<LocatedCapture>, LookupError> {
    for attribute in RUN_IDS {
        let has_id = Condition::Attribute { name: attribute.to_owned(), value: name.to_owned() };
        let hits = snapshot.find(&has_id.into(), Order::default(), &Page::all())?.items;
        match originals(snapshot, hits)?.as_slice() {
            [] => {}
            [only] => return locate(snapshot, &only.core.0.into()).map(Some),
            several => {
                let candidates = several.iter().take(COUNTED).cloned().collect();
                let (name, count) = (name.to_owned(), several.len() as u64);
                return Err(LookupError::AmbiguousName { name, count, candidates });
            }
        }
    }
    Ok(None)
}

/// Returns whether an artifact is one of a run with this id.
pub(super) fn is_run_id(snapshot: &dyn Snapshot, name: &str) -> Result<bool, StorageError> {
    for attribute in RUN_IDS {
        let has_id = Condition::Attribute { name: attribute.to_owned(), value: name.to_owned() };
        if !snapshot.find(&has_id.into(), Order::default(), &Page::first(1))?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Maximum number of ids of runs that are compared with a name.
const COMPARED: usize = 100_000;

/// Returns the error that no artifact has this tag and no run this id.
pub(super) fn no_such_name(snapshot: &dyn Snapshot, name: &str) -> Result<LookupError, StorageError> {
    let mut known: Vec<String> = snapshot.tags()?.into_iter().map(|(tag, _)| tag.name).collect();
    for attribute in RUN_IDS {
        known.extend(snapshot.attribute_values(attribute, "", COMPARED)?);
    }
    let similar = similar(name, known.iter().map(String::as_str), LISTED).into_iter().map(str::to_owned);
    Ok(LookupError::NoSuchName { name: name.to_owned(), similar: similar.collect() })
}

/// Returns the recordings among the artifacts of a run, without those that others extend, and of its parts the first; all
/// if there are none. Other artifacts of a run, such as its export pack, have its id too.
fn originals(snapshot: &dyn Snapshot, hits: Vec<Hit>) -> Result<Vec<ArtifactRecord>, StorageError> {
    let mut artifacts: Vec<ArtifactRecord> = hits.into_iter().map(|hit| hit.artifact).collect();
    let extended = query::extended(snapshot, &artifacts.iter(), &formats::versions())?;
    artifacts.retain(|artifact| !extended.contains(&artifact.core));
    let is_recording = |artifact: &ArtifactRecord| {
        formats::named(&artifact.kind).is_some_and(|kind| kind.info().playback == Some(Playback::InOrder))
    };
    if artifacts.iter().any(is_recording) {
        artifacts.retain(is_recording);
    }
    let cores: Vec<_> = artifacts.iter().map(|artifact| artifact.core).collect();
    let continuing = query::continuing(snapshot, &[cores])?;
    artifacts.retain(|artifact| !continuing.contains(&artifact.core));
    Ok(artifacts)
}

/// Returns the error for a hash that no artifact has, but that artifacts mention, such as that of a prompt; `None` if
/// there are none.
pub(super) fn mentioned(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<Option<LookupError>, StorageError> {
    let digest = match query::resolve_mentioned(snapshot, prefix, None)? {
        PrefixResolution::One(digest) => digest,
        PrefixResolution::None => return Ok(None),
        PrefixResolution::Ambiguous(candidates) => {
            return Ok(Some(LookupError::AmbiguousMention { prefix: *prefix, candidates }));
        }
    };
    let mentions = Condition::Mention { group: None, digest };
    let hits = snapshot.find(&mentions.into(), Order::default(), &Page::first(COUNTED + 1))?.items;
    if hits.is_empty() {
        return Ok(None);
    }
    let artifacts = hits.iter().take(LISTED).map(|Hit { artifact, matches }| MentioningArtifact {
        artifact: artifact.into(),
        matches: matches.iter().map(ArtifactMatch::from).collect(),
    });
    Ok(Some(LookupError::Mentioned(Box::new(MentionedHash {
        digest,
        artifacts: artifacts.collect(),
        count: hits.len().min(COUNTED) as u64,
        is_more: hits.len() > COUNTED,
    }))))
}

/// A request for the mentioned digests that begin with given digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestsRequest {
    /// The first digits, or all.
    pub prefix: DigestPrefix,
    /// The group of the role in which they are mentioned, such as `prompt`; any if there is none.
    #[serde(default)]
    pub group: Option<String>,
}

/// Mentioned digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DigestsAnswer {
    /// The digests, sorted; at most 20. A complete digest is returned whether it is mentioned or not.
    pub digests: Vec<Digest>,
    /// The last removal of an artifact or a capture whose hash begins with the digits; `None` if something in the vault has
    /// such a hash.
    pub removed: Option<RemovedHash>,
}

impl DigestsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<DigestsAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let digests = match query::resolve_mentioned(&*snapshot, &self.prefix, self.group.as_deref())? {
            PrefixResolution::None => Vec::new(),
            PrefixResolution::One(digest) => vec![digest],
            PrefixResolution::Ambiguous(digests) => digests,
        };
        let removed = snapshot.resolve(&self.prefix, 1)?.tombstones.into_iter().next();
        Ok(DigestsAnswer { digests, removed: removed.map(RemovedHash::from) })
    }

    /// Returns the only mentioned digest that begins with the digits.
    ///
    /// # Errors
    /// Returns [`LookupError::NotMentioned`] if there is none, or [`LookupError::Removed`] if an artifact or a capture with
    /// such a hash was removed, [`LookupError::AmbiguousMention`] if there are several, and [`LookupError::Store`] if the
    /// vault cannot be read.
    pub fn only(&self, vault: &Vault) -> Result<Digest, LookupError> {
        let snapshot = vault.snapshot()?;
        match query::resolve_mentioned(&*snapshot, &self.prefix, self.group.as_deref())? {
            PrefixResolution::One(digest) => Ok(digest),
            PrefixResolution::Ambiguous(candidates) => {
                Err(LookupError::AmbiguousMention { prefix: self.prefix, candidates })
            }
            PrefixResolution::None => Err(match snapshot.resolve(&self.prefix, 1)?.tombstones.pop() {
                Some(tombstone) => LookupError::Removed(Box::new(tombstone.into())),
                None => LookupError::NotMentioned { prefix: self.prefix, group: self.group.clone() },
            }),
        }
    }
}
