//! Finding of artifacts, and resolution of hashes and mentioned digests.

use std::collections::BTreeSet;

use crate::digest::{CaptureHash, CoreHash, Digest, DigestPrefix, PrefixResolution};
use crate::storage::{Cursor, Filter, Order, Page, Resolution, Result, Snapshot, StorageError};

pub(crate) use crate::storage::{Hit, Match};

/// A query for artifacts.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindQuery {
    /// The conditions that artifacts must match.
    pub(crate) filter: Filter,
    /// The order of the results.
    pub(crate) order: Order,
    /// Maximum number of results; unlimited if `None`.
    pub(crate) limit: Option<usize>,
}

/// The number of artifacts of the first page that [`find_until`] reads, and of the largest.
const PAGES: (usize, usize) = (64, 4_096);

/// Passes the artifacts that match `query` to `visit`, in its order from a position on, until it returns false. They are
/// read in pages, so that little more is read than needed.
///
/// # Errors
/// Returns the error of `visit`, or one if the database cannot be read.
pub(crate) fn find_until<E: From<StorageError>>(
    snapshot: &dyn Snapshot,
    query: &FindQuery,
    after: Option<Cursor>,
    visit: &mut dyn FnMut(Hit) -> std::result::Result<bool, E>,
) -> std::result::Result<(), E> {
    let mut left = query.limit.unwrap_or(usize::MAX);
    let mut page = Page { limit: PAGES.0.min(left), after };
    while left > 0 {
        let found = snapshot.find(&query.filter, query.order, &page)?;
        left -= found.items.len();
        for hit in found.items {
            if !visit(hit)? {
                return Ok(());
            }
        }
        let Some(next) = found.next else { return Ok(()) };
        page = Page { limit: (page.limit * 2).min(PAGES.1).min(left), after: Some(next) };
    }
    Ok(())
}

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
