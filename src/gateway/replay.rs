//! Finds the recorded answer to a request.

use super::miss::RecordingMiss;
use super::recordings::{
    RecordedFailure, RecordedRunPack, RecordingLookup, ReplayScope, ReplayedFailures, RunPackCache,
};
use super::run::GatewayRun;
use crate::calls::recorded_run::{AnsweredCall, UnansweredCall};
use crate::digest::CoreHash;
use crate::storage::ErrorKind;
use crate::vault::LookupError;
use crate::vault::Vault;
use crate::vault::links::{Direction, LinksRequest};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnmatchedRequest {
    /// Number of recorded answers to it, all of which were used.
    pub(super) recordings: usize,
    /// Number of earlier requests of the run that they answered.
    pub(super) replayed_before: u64,
    /// The failure that was recorded last, if there is one that is not replayed.
    pub(super) failure: Option<RecordedFailure>,
}

/// Finds the answer to a request, in run packs that were seen last first. The n-th request for a prompt in a run gets its
/// n-th recording.
///
/// # Errors
/// The outer error says that the vault cannot be read, the inner one that the answer was not recorded.
pub(super) fn find(
    vault: &Vault,
    recordings: &RunPackCache,
    scope: ReplayScope,
    (run, lookup): (&GatewayRun, &RecordingLookup),
) -> Result<Result<RecordingMatch, UnmatchedRequest>, ReplayFailure> {
    let ReplayScope { only, failures } = scope;
    let key = (only, lookup.digest(), lookup.target(), lookup.form);
    let nth = run.count_request(key.clone());
    let (mut order, mut failure) = (RecordingOrder::default(), None);
    let mut look = |pack: RecordedRunPack| {
        if failure.is_none() {
            failure = recorded_failure(&pack, failures, lookup);
        }
        let own = (0..).zip(pack.recorded.iter());
        let own = own.filter(|(_, recorded)| lookup.is_answered_by(recorded) && failures.allow(recorded));
        let own = own.map(|(index, recorded)| OrderedRecording {
            index,
            replayed_before: recorded.replayed_before,
            is_failure: recorded.failure.is_some(),
        });
        let own = own.collect();
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
    // A number of tokens is the same each time.
    let repeats = lookup.endpoint.count.is_some() && failures != ReplayedFailures::None;
    let nth = if repeats { nth.min(recordings.saturating_sub(1)) } else { nth };
    if let Some(mut found) = order.nth(nth) {
        if let Some(body) = found.recorded.attached_answer {
            let body = vault.get(&body.into())?;
            found.recorded.answer.body =
                String::from_utf8(body).map_err(|error| ReplayFailure(error.to_string()))?;
        }
        return Ok(Ok(found));
    }
    run.was_not_answered(&key);
    Ok(Err(UnmatchedRequest { recordings, replayed_before: nth as u64, failure }))
}

/// Returns the last failure of a request in a run pack that is not replayed.
fn recorded_failure(
    pack: &RecordedRunPack,
    failures: ReplayedFailures,
    lookup: &RecordingLookup,
) -> Option<RecordedFailure> {
    let answered = pack.recorded.iter().rev();
    let mut answered =
        answered.filter(|recorded| lookup.is_answered_by(recorded) && !failures.allow(recorded));
    let answered = answered.next().and_then(|recorded| {
        let failure = RecordedFailure {
            run: pack.core(recorded.pack)?,
            step: recorded.step,
            reason: recorded.failure.clone().unwrap_or_default(),
            is_complete: true,
        };
        Some((recorded.pack, failure))
    });
    let unanswered = pack.unanswered.iter().rev().find(|unanswered| lookup.is(unanswered));
    let unanswered = unanswered.and_then(|UnansweredCall { pack: position, step, reason, .. }| {
        let run = pack.core(*position)?;
        let failure = RecordedFailure { run, step: *step, reason: reason.clone(), is_complete: false };
        Some((*position, failure))
    });
    let last = answered.into_iter().chain(unanswered).max_by_key(|(pack, failure)| (*pack, failure.step));
    last.map(|(_, failure)| failure)
}

/// The order of the recordings of a request in run packs, of which each comes before those that were seen earlier. The
/// recordings of a run whose first requests were replayed come after as many of those.
#[derive(Debug, Default)]
struct RecordingOrder {
    /// The run packs with the recordings in them, and the number of requests that were replayed before.
    packs: Vec<(RecordedRunPack, Vec<OrderedRecording>, usize)>,
    count: usize,
    /// Number of answers that must still follow so that all of these have their places.
    missing: usize,
}

/// A recording of a request in a run pack.
#[derive(Clone, Copy, Debug)]
struct OrderedRecording {
    index: usize,
    /// Number of requests of the run that were answered from recordings before. Failures are not among them.
    replayed_before: u64,
    is_failure: bool,
}

impl RecordingOrder {
    /// Adds a run pack that was seen before the others, with its recordings.
    fn add(&mut self, pack: RecordedRunPack, own: Vec<OrderedRecording>) -> &Self {
        let before = own.iter().map(|recording| recording.replayed_before).min().unwrap_or(0);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let answers = own.iter().filter(|recording| !recording.is_failure).count();
        self.count += own.len();
        self.missing = self.missing.saturating_sub(answers).max(before);
        self.packs.push((pack, own, before));
        self
    }

    /// Returns whether further run packs cannot change which recording is the n-th.
    fn is_known(&self, nth: usize) -> bool {
        self.count > nth && self.missing == 0
    }

    fn nth(self, nth: usize) -> Option<RecordingMatch> {
        let mut order: Vec<(&RecordedRunPack, OrderedRecording)> = Vec::new();
        for (pack, own, before) in self.packs.iter().rev() {
            let answers = (1..).zip(&order).filter(|(_, (_, recording))| !recording.is_failure);
            let mut ends = answers.map(|(end, _)| end);
            let at = before.checked_sub(1).map_or(0, |last| ends.nth(last).unwrap_or(order.len()));
            order.splice(at..at, own.iter().map(|recording| (pack, *recording)));
        }
        let (pack, recording) = order.get(nth)?;
        let recorded = pack.recorded.get(recording.index)?.clone();
        Some(RecordingMatch { from: pack.core(recorded.pack)?, recorded })
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
    match unmatched {
        UnmatchedRequest { recordings: recordings @ 1.., .. } => Ok(RecordingMiss::Exhausted { recordings }),
        UnmatchedRequest { failure: Some(failure), .. } => Ok(RecordingMiss::Failed(failure)),
        UnmatchedRequest { .. } => nearest(vault, recordings, only, lookup),
    }
}

fn nearest(
    vault: &Vault,
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    lookup: &RecordingLookup,
) -> Result<RecordingMiss, ReplayFailure> {
    let mut nearest: Option<(usize, RecordingMiss, (AnsweredCall, String))> = None;
    let mut searched = 0;
    let mut failure = None;
    let mut look = |pack: RecordedRunPack| {
        if pack.recorded.iter().any(|recorded| lookup.is_same_api(recorded)) {
            let compared = recordings.visit_prompts(vault, &pack, &mut |core, recorded, prompt| {
                if !lookup.is_same_api(recorded) {
                    return;
                }
                let prompt = prompt();
                let compared = RecordingMiss::compared(core, (recorded, &prompt), lookup);
                if let Some((count, miss)) = compared
                    && nearest.as_ref().is_none_or(|(least, ..)| count < *least)
                {
                    nearest = Some((count, miss, (recorded.clone(), prompt)));
                }
            });
            failure = compared.err();
        }
        searched += 1;
        searched < SEARCHED && failure.is_none()
    };
    match only {
        Some(core) => {
            if let Some(pack) = recordings.pack(vault, core)? {
                look(pack);
            }
        }
        None => recordings.visit(vault, None, &mut look)?,
    }
    match failure {
        // It was removed since.
        Some(LookupError::Store(error)) if error.kind() == ErrorKind::Gone => {}
        Some(error) => return Err(error.into()),
        None => {}
    }
    Ok(match nearest {
        Some((_, miss, (recorded, prompt))) => miss.with_rules((&recorded, &prompt), lookup),
        None => RecordingMiss::Nothing,
    })
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
        direction: Some(Direction::In),
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
