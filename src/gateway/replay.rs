//! Finds the recorded answer to a request.

use super::miss::RecordingMiss;
use super::recordings::{RecordedRunPack, RecordingLookup, RunPackCache};
use super::run::GatewayRun;
use crate::calls::recorded_run::AnsweredCall;
use crate::digest::CoreHash;
use crate::vault::LookupError;
use crate::vault::Vault;
use crate::vault::links::{LinkDirection, LinksRequest};

/// The vault cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the vault cannot be read: {0}")]
pub(super) struct ReplayFailure(pub(super) String);

impl From<LookupError> for ReplayFailure {
    fn from(error: LookupError) -> Self {
        Self(error.to_string())
    }
}

/// A recorded answer, with the run pack that it is from.
#[derive(Debug)]
pub(super) struct RecordingMatch {
    pub(super) from: CoreHash,
    pub(super) recorded: AnsweredCall,
}

/// A request without a recorded answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnmatchedRequest {
    /// Number of recorded answers to it, all of which were used.
    pub(super) recordings: usize,
    /// Number of earlier requests of the run that they answered.
    pub(super) replayed_before: u64,
}

/// Finds the answer to a request: in the run pack `only`, or in all, last seen first. The n-th request for a prompt in a
/// run gets its n-th recording.
///
/// # Errors
/// The outer error says that the vault cannot be read, the inner one that the answer was not recorded.
pub(super) fn find(
    vault: &Vault,
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    (run, lookup): (&GatewayRun, &RecordingLookup),
) -> Result<Result<RecordingMatch, UnmatchedRequest>, ReplayFailure> {
    let key = (only, lookup.digest(), lookup.target(), lookup.form);
    let nth = run.count_request(key.clone());
    let mut order = RecordingOrder::default();
    let mut look = |pack: RecordedRunPack| {
        let own = (0..).zip(pack.recorded.iter()).filter(|(_, recorded)| lookup.is_answered_by(recorded));
        let own = own.map(|(index, recorded)| (index, recorded.replayed_before)).collect();
        !order.add(pack, own).is_known(nth)
    };
    match only {
        Some(core) => {
            if let Some(pack) = recordings.pack(vault, core)? {
                look(pack);
            }
        }
        None => recordings.visit(vault, Some(lookup.digest()), &mut look)?,
    }
    let recordings = order.count;
    if let Some(found) = order.nth(nth) {
        return Ok(Ok(found));
    }
    run.was_not_answered(&key);
    Ok(Err(UnmatchedRequest { recordings, replayed_before: nth as u64 }))
}

/// The order of the recordings of a request in run packs, of which each comes before those that were seen earlier. The
/// recordings of a run whose first requests were replayed come after as many of those.
#[derive(Debug, Default)]
struct RecordingOrder {
    /// The run packs with the positions of the recordings in them, and the number of requests that were replayed before.
    packs: Vec<(RecordedRunPack, Vec<usize>, usize)>,
    count: usize,
    /// Number of recordings that must still follow so that all of these have their places.
    missing: usize,
}

impl RecordingOrder {
    /// Adds a run pack that was seen before the others, with its recordings: their positions, and the numbers of requests
    /// that were replayed before.
    fn add(&mut self, pack: RecordedRunPack, own: Vec<(usize, u64)>) -> &Self {
        let before = own.iter().map(|(_, before)| *before).min().unwrap_or(0);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        self.count += own.len();
        self.missing = self.missing.saturating_sub(own.len()).max(before);
        self.packs.push((pack, own.into_iter().map(|(index, _)| index).collect(), before));
        self
    }

    /// Returns whether further run packs cannot change which recording is the n-th.
    fn is_known(&self, nth: usize) -> bool {
        self.count > nth && self.missing == 0
    }

    fn nth(self, nth: usize) -> Option<RecordingMatch> {
        let mut order: Vec<(&RecordedRunPack, usize)> = Vec::new();
        for (pack, own, before) in self.packs.iter().rev() {
            let at = order.len().min(*before);
            order.splice(at..at, own.iter().map(|index| (pack, *index)));
        }
        let (pack, index) = order.get(nth)?;
        Some(RecordingMatch { from: pack.core, recorded: pack.recorded.get(*index)?.clone() })
    }
}

/// Maximum number of run packs in which the nearest request is searched.
const SEARCHED: usize = 32;

/// Returns why a request has no recorded answer: for one that was not recorded, what differs from the recorded request
/// that differs least.
pub(super) fn miss(
    vault: &Vault,
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    (lookup, unmatched): (&RecordingLookup, UnmatchedRequest),
) -> Result<RecordingMiss, ReplayFailure> {
    match unmatched.recordings {
        0 => nearest(vault, recordings, only, lookup),
        recordings => Ok(RecordingMiss::Exhausted { recordings }),
    }
}

fn nearest(
    vault: &Vault,
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    lookup: &RecordingLookup,
) -> Result<RecordingMiss, ReplayFailure> {
    let mut nearest: Option<(usize, RecordingMiss)> = None;
    let mut searched = 0;
    let mut look = |pack: RecordedRunPack| {
        if let Some(unanswered) = pack.unanswered.iter().find(|unanswered| lookup.is(unanswered)) {
            nearest = Some((0, RecordingMiss::unanswered(pack.core, unanswered)));
            return false;
        }
        for recorded in pack.recorded.iter().filter(|recorded| lookup.is_same_api(recorded)) {
            let Some((count, miss)) = RecordingMiss::compared(pack.core, recorded, lookup) else { continue };
            if nearest.as_ref().is_none_or(|(least, _)| count < *least) {
                nearest = Some((count, miss));
            }
        }
        searched += 1;
        searched < SEARCHED
    };
    match only {
        Some(core) => {
            if let Some(pack) = recordings.pack(vault, core)? {
                look(pack);
            }
        }
        None => recordings.visit(vault, None, &mut look)?,
    }
    Ok(nearest.map_or(RecordingMiss::Nothing, |(_, miss)| miss))
}

/// Returns the run pack from which a recording is replayed: itself, or that of a session that a gateway recorded.
///
/// # Errors
/// Returns an error if the artifact is not in the vault or cannot be read.
pub(super) fn pack_of(
    vault: &Vault,
    recordings: &RunPackCache,
    core: CoreHash,
) -> Result<Option<CoreHash>, LookupError> {
    if recordings.pack(vault, core)?.is_some() {
        return Ok(Some(core));
    }
    let request = LinksRequest {
        relation: Some("replays".to_owned()),
        direction: Some(LinkDirection::In),
        ..LinksRequest::new(core)
    };
    for node in vault.run(&request)?.nodes {
        if let Some(other) = node.target.core_hash.filter(|other| *other != core)
            && recordings.pack(vault, other)?.is_some()
        {
            return Ok(Some(other));
        }
    }
    Ok(None)
}
