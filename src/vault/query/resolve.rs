use std::collections::BTreeSet;

use crate::digest::{CaptureHash, CoreHash, Digest, DigestPrefix, PrefixResolution};
use crate::storage::{Resolution, Result, Snapshot};

/// The target of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HashTarget {
    /// An artifact, by its core hash.
    Artifact(CoreHash),
    /// A capture of the artifact with this core hash.
    Capture(CoreHash, CaptureHash),
}

impl HashTarget {
    /// Returns the hash.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Artifact(core) => core.0,
            Self::Capture(_, capture) => capture.0,
        }
    }
}

/// Maximum number of candidates listed for an ambiguous prefix.
const MAX_CANDIDATES: usize = 20;

/// Resolves `prefix` among the core hashes and capture hashes in the vault. For an ambiguous prefix, the first 20
/// candidates of each type are returned. A complete capture hash is ambiguous if artifacts of several kinds have those
/// bytes.
pub(crate) fn resolve(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
) -> Result<PrefixResolution<HashTarget>> {
    if let Some(digest) = prefix.whole()
        && snapshot.artifact(CoreHash(digest))?.is_some()
    {
        return Ok(PrefixResolution::One(HashTarget::Artifact(CoreHash(digest))));
    }
    let Resolution { artifacts, captures, .. } = snapshot.resolve(prefix, MAX_CANDIDATES)?;
    let artifacts: BTreeSet<CoreHash> = artifacts.into_iter().collect();
    // A document in canonical form has its core hash as its capture hash too. The artifact takes precedence: adding
    // that document must not change what its hash resolves to.
    let captures = captures.into_iter().filter(|target| !artifacts.contains(&CoreHash(target.capture.0)));
    let captures: Vec<HashTarget> =
        captures.map(|target| HashTarget::Capture(target.artifact, target.capture)).collect();
    let mut candidates: Vec<HashTarget> =
        artifacts.into_iter().map(HashTarget::Artifact).chain(captures).collect();
    candidates.sort_unstable_by_key(|candidate| (candidate.digest(), *candidate));
    Ok(candidates.into_iter().collect())
}

/// Resolves `prefix` among the mentioned digests, in any role or in those of one group. A full digest resolves to
/// itself, mentioned or not. If the prefix is ambiguous, returns the first 20 candidates.
pub(crate) fn resolve_mentioned(
    snapshot: &dyn Snapshot,
    prefix: &DigestPrefix,
    group: Option<&str>,
) -> Result<PrefixResolution<Digest>> {
    if let Some(digest) = prefix.whole() {
        return Ok(PrefixResolution::One(digest));
    }
    Ok(snapshot.mentioned_with_prefix(prefix, group, MAX_CANDIDATES)?.into_iter().collect())
}
