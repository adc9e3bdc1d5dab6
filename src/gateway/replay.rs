//! Finds the recorded answer to a request, and sends it.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use http_body_util::channel::{Channel, Sender};
use tokio::task;
use tokio::time::{Instant, sleep_until};

use super::miss::{Distance, RecordingMiss};
use super::recordings::{
    RecordedFailure, RecordedRunPack, RecordingLookup, RecordingSearch, ReplayScope, ReplayedFailures,
    RunPackCache,
};
use super::responses::problem;
use super::run::GatewayRun;
use super::shared::Pace;
use crate::calls::aws_events;
use crate::calls::recorded_run::AnsweredCall;
use crate::conversation::providers::mcp;
use crate::conversation::response::{AWS_EVENTS, CallResponse, ResponseForm};
use crate::digest::{CoreHash, Digest};
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};
use crate::storage::ErrorKind;
use crate::vault::LookupError;

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
    /// The difference from the request, if it is not the same one.
    pub(super) difference: Option<String>,
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
/// n-th recording. If only recordings are replayed, those that were made with other rules are looked through, too, if no
/// other one answers the request.
///
/// # Errors
/// The outer error says that the vault cannot be read, the inner one that the answer was not recorded.
pub(super) fn find(
    recordings: &RunPackCache,
    scope: ReplayScope,
    run: &GatewayRun,
    lookup: &RecordingLookup,
    only_replays: bool,
) -> Result<Result<RecordingMatch, UnmatchedRequest>, ReplayFailure> {
    let key = (scope.only, lookup.digest, lookup.target(), lookup.form);
    let nth = run.count_request(key.clone());
    let mut found = nth_recording(recordings, scope, lookup, nth, RecordingSearch::Stating)?;
    if found.is_err() && only_replays && recordings.can_have_others() {
        found = nth_recording(recordings, scope, lookup, nth, RecordingSearch::Having)?;
    }
    if found.is_err() {
        run.was_not_answered(&key);
    }
    Ok(found)
}

/// Finds the answer to a request that differs from a recorded one in what a loose comparison leaves out, in recordings for
/// loose comparisons. Each request is counted, also one that was recorded as it is.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub(super) fn find_loosely(
    recordings: &RunPackCache,
    scope: ReplayScope,
    run: &GatewayRun,
    lookup: &RecordingLookup,
) -> Result<Option<RecordingMatch>, ReplayFailure> {
    let Ok(request) = reader::read(lookup.payload.as_bytes(), &Limits::most()) else { return Ok(None) };
    let digest = recordings.rules.prompt_digest(lookup.endpoint, &lookup.path, &request);
    let Some(digest) = digest else { return Ok(None) };
    let loose = RecordingLookup { digest, ..lookup.clone() };
    Ok(find(recordings, scope, run, &loose, true)?.ok())
}

/// Returns how a request differs from the recorded one that answers it; an empty text if one of them cannot be read.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub(super) fn difference(
    recordings: &RunPackCache,
    found: &RecordingMatch,
    lookup: &RecordingLookup,
) -> Result<String, ReplayFailure> {
    let requested = lookup.prompt(&recordings.rules).unwrap_or_default();
    let requested = reader::read(requested.as_bytes(), &Limits::most());
    let (Ok(requested), Some(pack)) = (requested, recordings.pack(found.from)?) else {
        return Ok(String::new());
    };
    let place = (found.from, found.recorded.request.step);
    let mut difference = None;
    recordings.visit_prompts(&pack, &mut |run, recorded, prompt| {
        if (run, recorded.request.step) == place {
            difference = RecordingMiss::compared(run, recorded, &prompt(), lookup, &requested);
        }
    })?;
    Ok(difference.map(|(_, miss)| miss.reason(ToString::to_string)).unwrap_or_default())
}

/// Finds the n-th recording of a request.
///
/// # Errors
/// The outer error says that the vault cannot be read, the inner one that the answer was not recorded.
fn nth_recording(
    recordings: &RunPackCache,
    scope: ReplayScope,
    lookup: &RecordingLookup,
    nth: usize,
    search: fn(Digest) -> RecordingSearch,
) -> Result<Result<RecordingMatch, UnmatchedRequest>, ReplayFailure> {
    let ReplayScope { only, failures, .. } = scope;
    let (mut order, mut failure) = (RecordingOrder::default(), None);
    let mut look = |pack: RecordedRunPack| {
        if failure.is_none() {
            failure = recorded_failure(&pack, failures, lookup);
        }
        let own = (0..).zip(pack.recorded.iter());
        let own =
            own.filter(|(_, recorded)| lookup.is_answered_by(recorded) && scope.allows(&pack, recorded));
        let own = own.map(|(index, recorded)| OrderedRecording {
            index,
            replayed_before: recorded.replayed_before,
            is_failure: recorded.failure.is_some(),
        });
        let own = own.collect();
        !order.add(pack, own).is_known(nth)
    };
    recordings.visit(only, search(lookup.digest), &mut look)?;
    let count = order.count;
    // A number of tokens is the same each time, and so is what a server of tools says of itself.
    let repeats = lookup.endpoint.count.is_some() && failures != ReplayedFailures::None
        || mcp::asks_for_description(lookup.endpoint);
    let nth = if repeats { nth.min(count.saturating_sub(1)) } else { nth };
    if let Some((pack, mut found)) = order.nth(nth) {
        if let Some(body) = found.recorded.attached_answer {
            let body = recordings.attachment(body)?;
            found.recorded.answer.body =
                String::from_utf8(body).map_err(|error| ReplayFailure(error.to_string()))?;
        }
        let body = std::mem::take(&mut found.recorded.answer.body);
        found.recorded.answer.body = pack.moved(recordings.rules.directories(), body);
        return Ok(Ok(found));
    }
    Ok(Err(UnmatchedRequest { recordings: count, replayed_before: nth as u64, failure }))
}

/// Returns the last failure of a request in a run pack that is not replayed.
fn recorded_failure(
    pack: &RecordedRunPack,
    failures: ReplayedFailures,
    lookup: &RecordingLookup,
) -> Option<RecordedFailure> {
    let is_failure = |call: &&AnsweredCall| lookup.is_answered_by(call) && !failures.allow(call);
    let answered = pack.recorded.iter().rev().find(is_failure);
    let answered = answered.map(|call| (&call.request, call.failure.clone().unwrap_or_default(), true));
    let unanswered = pack.unanswered.iter().rev().find(|unanswered| lookup.is(&unanswered.request));
    let unanswered = unanswered.map(|call| (&call.request, call.reason.clone(), false));
    let both = answered.into_iter().chain(unanswered);
    let (request, reason, is_complete) = both.max_by_key(|(request, ..)| (request.pack, request.step))?;
    Some(RecordedFailure { run: pack.core(request.pack)?, step: request.step, reason, is_complete })
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

    /// Returns the n-th recording, and its run pack.
    fn nth(self, nth: usize) -> Option<(RecordedRunPack, RecordingMatch)> {
        let mut order: Vec<(&RecordedRunPack, OrderedRecording)> = Vec::new();
        for (pack, own, before) in self.packs.iter().rev() {
            let answers = (1..).zip(&order).filter(|(_, (_, recording))| !recording.is_failure);
            let mut ends = answers.map(|(end, _)| end);
            let at = before.checked_sub(1).map_or(0, |last| ends.nth(last).unwrap_or(order.len()));
            order.splice(at..at, own.iter().map(|recording| (pack, *recording)));
        }
        let (pack, recording) = order.get(nth)?;
        let recorded = pack.recorded.get(recording.index)?.clone();
        let found = RecordingMatch { from: pack.core(recorded.request.pack)?, recorded, difference: None };
        Some(((*pack).clone(), found))
    }
}

/// Maximum number of run packs in which the nearest request is searched.
const SEARCHED: usize = 32;

/// Returns why a request has no recorded answer: for one that was not recorded, what differs from the nearest recorded
/// request.
pub(super) fn miss(
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    lookup: &RecordingLookup,
    unmatched: UnmatchedRequest,
) -> Result<RecordingMiss, ReplayFailure> {
    match unmatched {
        UnmatchedRequest { recordings: recordings @ 1.., .. } => Ok(RecordingMiss::Exhausted { recordings }),
        UnmatchedRequest { failure: Some(failure), .. } => Ok(RecordingMiss::Failed(failure)),
        UnmatchedRequest { .. } => nearest(recordings, only, lookup),
    }
}

/// Returns whether what a client sent over a live connection so far is the beginning of a recorded request.
pub(super) fn is_beginning(
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    lookup: &RecordingLookup,
) -> Result<bool, ReplayFailure> {
    let requested = lookup.prompt(&recordings.rules).unwrap_or_default();
    let (mut is_found, mut searched, mut failure) = (false, 0, None);
    let mut look = |pack: RecordedRunPack| {
        if pack.recorded.iter().any(|recorded| lookup.is_same_api(&recorded.request)) {
            let compared = recordings.visit_prompts(&pack, &mut |_, recorded, prompt| {
                is_found |= lookup.is_same_api(&recorded.request) && begins(&prompt(), &requested);
            });
            failure = compared.err();
        }
        searched += 1;
        !is_found && searched < SEARCHED && failure.is_none()
    };
    recordings.visit(only, RecordingSearch::All, &mut look)?;
    failure.map_or(Ok(is_found), |error| Err(error.into()))
}

/// Returns whether the messages of a prompt begin with those of another one, and are more.
fn begins(prompt: &str, requested: &str) -> bool {
    let read = |text| reader::read(text, &Limits::most()).ok();
    let (prompt, requested) = (read(prompt.as_bytes()), read(requested.as_bytes()));
    let frames = |prompt: &Option<Value<'_>>| {
        let frames = prompt.as_ref().and_then(|prompt| prompt.get("frames")?.as_array());
        frames.unwrap_or_default().iter().map(compact::text).collect::<Vec<_>>()
    };
    let (prompt, requested) = (frames(&prompt), frames(&requested));
    prompt.len() > requested.len() && prompt.starts_with(&requested)
}

fn nearest(
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    lookup: &RecordingLookup,
) -> Result<RecordingMiss, ReplayFailure> {
    let requested = lookup.prompt(&recordings.rules).unwrap_or_default();
    let Ok(requested) = reader::read(requested.as_bytes(), &Limits::most()) else {
        return Ok(RecordingMiss::Nothing);
    };
    let mut nearest: Option<(Distance, RecordingMiss, AnsweredCall, String)> = None;
    let mut searched = 0;
    let mut failure = None;
    let mut look = |pack: RecordedRunPack| {
        if pack.recorded.iter().any(|recorded| lookup.is_same_api(&recorded.request)) {
            let compared = recordings.visit_prompts(&pack, &mut |run, recorded, prompt| {
                if !lookup.is_same_api(&recorded.request) {
                    return;
                }
                let prompt = prompt();
                let compared = RecordingMiss::compared(run, recorded, &prompt, lookup, &requested);
                if let Some((distance, miss)) = compared
                    && nearest.as_ref().is_none_or(|(least, ..)| distance < *least)
                {
                    nearest = Some((distance, miss, recorded.clone(), prompt));
                }
            });
            failure = compared.err();
        }
        searched += 1;
        searched < SEARCHED && failure.is_none()
    };
    recordings.visit(only, RecordingSearch::All, &mut look)?;
    match failure {
        // It was removed since.
        Some(LookupError::Store(error)) if error.kind() == ErrorKind::Gone => {}
        Some(error) => return Err(error.into()),
        None => {}
    }
    Ok(match nearest {
        Some((_, miss, recorded, prompt)) => miss.with_rules(&recorded, &prompt, lookup, &requested),
        None => RecordingMiss::Nothing,
    })
}

/// The header of an answer that was replayed: the run pack that it is from.
pub(super) const REPLAYED: &str = "x-runvault-replayed";

/// How long before its time a part is sent at most: timers wake up to two milliseconds late.
const EARLY: Duration = Duration::from_millis(1);

/// Sends a recorded answer, a stream in the chunks in which it arrived. With the recorded pace, they are due as long after
/// `arrived`, when the request arrived, as they were when they were recorded.
pub(super) fn play(found: RecordingMatch, pace: Pace, arrived: Instant) -> Response<Body> {
    let RecordingMatch { from, recorded, .. } = found;
    let CallResponse { status, content_type, retry, body, chunks } = recorded.answer;
    let (body, chunks, content_type) = if aws_events::is_recorded_type(content_type.as_deref()) {
        let Some((body, chunks)) = aws_events::encoded(&body, &chunks) else {
            let reason = "a message of the recorded event stream is too long";
            return problem(StatusCode::INTERNAL_SERVER_ERROR, "not replayed", reason);
        };
        (body, chunks, Some(AWS_EVENTS.to_owned()))
    } else {
        (body.into_bytes(), chunks, content_type)
    };
    let is_whole = ResponseForm::from_content_type(content_type.as_deref()) == ResponseForm::Whole;
    let fits = chunks.iter().map(|chunk| chunk.bytes).sum::<u64>() == body.len() as u64;
    let mut response = if is_whole || !fits {
        Response::new(Body::from(body))
    } else {
        let (sender, channel) = Channel::<Bytes, std::io::Error>::new(1);
        let chunks = chunks.into_iter().map(move |chunk| {
            let wait = (pace == Pace::Recorded).then(|| Duration::from_micros(chunk.at_us));
            // Offsets are those of a file: one that is too large for the clock is not waited for.
            let at = wait.and_then(|wait| arrived.checked_add(wait)?.checked_sub(EARLY));
            (at, usize::try_from(chunk.bytes).unwrap_or(usize::MAX))
        });
        task::spawn(send(Bytes::from(body), chunks, sender));
        Response::new(Body::new(channel))
    };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    let core = from.to_string();
    let values = [("content-type", &content_type), (REPLAYED, &Some(core))];
    for (name, value) in values.into_iter().chain(retry.iter()) {
        if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}

async fn send(
    mut body: Bytes,
    chunks: impl Iterator<Item = (Option<Instant>, usize)>,
    mut sender: Sender<Bytes, std::io::Error>,
) {
    for (at, bytes) in chunks {
        // A timer takes up to two milliseconds, also for a time that has passed.
        if let Some(at) = at.filter(|at| *at > Instant::now()) {
            sleep_until(at).await;
        }
        if sender.send_data(body.split_to(bytes.min(body.len()))).await.is_err() {
            return;
        }
    }
}
