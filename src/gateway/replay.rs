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
) -> Result<Result<RecordingMatch, RecordingMiss>, ReplayFailure> {
    let key = (only, lookup.digest(), lookup.target(), lookup.form);
    let nth = run.count_request(key.clone());
    let mut before = 0;
    let mut found = None;
    let mut look = |pack: RecordedRunPack| {
        for recorded in pack.recorded.iter().filter(|recorded| lookup.is_answered_by(recorded)) {
            if before == nth {
                found = Some(RecordingMatch { from: pack.core, recorded: recorded.clone() });
                return false;
            }
            before += 1;
        }
        true
    };
    match only {
        Some(core) => {
            if let Some(pack) = recordings.pack(vault, core)? {
                look(pack);
            }
        }
        None => recordings.visit(vault, Some(lookup.digest()), &mut look)?,
    }
    if let Some(found) = found {
        return Ok(Ok(found));
    }
    run.was_not_answered(&key);
    if before > 0 {
        return Ok(Err(RecordingMiss::Exhausted { recordings: before }));
    }
    nearest(vault, recordings, only, lookup).map(Err)
}

/// Maximum number of run packs in which the nearest request is searched.
const SEARCHED: usize = 32;

/// Returns what differs from the recorded request that differs least.
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
