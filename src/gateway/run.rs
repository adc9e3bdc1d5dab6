//! A run that is being recorded, and the recordings that it uses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::finish::FinishError;
use super::recordings::{ReplayScope, RunPackCache};
use super::spool::{Spool, SpoolDirectory, UNSTORED};
use crate::calls::recorded_run::AnsweredCall;
use crate::calls::run::{CallRecord, RunHead, StoredCall, TooManyLabels};
use crate::calls::spool_file::SpoolContent;
use crate::conversation::response::ResponseForm;
use crate::digest::{CoreHash, Digest};
use crate::vault::LookupError;

/// A request that was asked before in a run: how often decides which recording answers it.
pub(super) type ReplayRequestKey = (Option<CoreHash>, Digest, String, ResponseForm);

/// A run.
#[derive(Debug)]
pub(super) struct GatewayRun {
    state: Mutex<GatewayRunState>,
    /// The calls on disk. It is locked while one is synced, and apart from the state, so that other calls begin and end
    /// meanwhile; it is locked first.
    spool: Mutex<Option<Spool>>,
    /// Notified when a call ends.
    pub(super) ended: Notify,
}

#[derive(Debug)]
struct GatewayRunState {
    head: RunHead,
    next: u64,
    open: usize,
    last_activity: Instant,
    request_counts: HashMap<ReplayRequestKey, usize>,
    usage: RecordingUsage,
    is_closed: bool,
}

impl GatewayRun {
    pub(super) fn new(head: RunHead) -> Self {
        let state = GatewayRunState {
            head,
            next: 0,
            open: 0,
            last_activity: Instant::now(),
            request_counts: HashMap::new(),
            usage: RecordingUsage::default(),
            is_closed: false,
        };
        Self { state: Mutex::new(state), spool: Mutex::new(None), ended: Notify::new() }
    }

    /// Begins a call, and returns its number. Returns `None` if the run is being finished.
    ///
    /// # Errors
    /// Returns an error if the run would have too many labels.
    pub(super) fn begin(&self, labels: &BTreeMap<String, String>) -> Result<Option<u64>, TooManyLabels> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Ok(None);
        }
        state.head.add_labels(labels)?;
        let number = state.next;
        state.next += 1;
        state.open += 1;
        state.last_activity = Instant::now();
        Ok(Some(number))
    }

    /// Ends a call.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.open = state.open.saturating_sub(1);
        state.last_activity = Instant::now();
        drop(state);
        self.ended.notify_waiters();
    }

    /// Writes a call to disk, in `directory`, and the labels that the run got since the one before.
    pub(super) fn record(&self, directory: &SpoolDirectory, call: CallRecord) -> io::Result<()> {
        let mut spool = self.spool.lock();
        let head = self.state.lock().head.clone();
        if spool.is_none() {
            *spool = Some(Spool::create(directory, &head)?);
        }
        if let Some(spool) = spool.as_mut() {
            spool.update(&head)?;
            spool.append(call)?;
        }
        Ok(())
    }

    /// Adds labels to what will be stored.
    ///
    /// # Errors
    /// Returns an error if the run would have too many.
    pub(super) fn label(&self, labels: &BTreeMap<String, String>) -> Result<(), TooManyLabels> {
        self.state.lock().head.add_labels(labels)
    }

    /// Returns how often a request was made before in this run, and counts it.
    pub(super) fn count_request(&self, key: ReplayRequestKey) -> usize {
        let mut state = self.state.lock();
        let times = state.request_counts.entry(key).or_default();
        *times += 1;
        *times - 1
    }

    /// Takes back the last count of a request that was not answered.
    pub(super) fn was_not_answered(&self, key: &ReplayRequestKey) {
        if let Some(times) = self.state.lock().request_counts.get_mut(key) {
            *times = times.saturating_sub(1);
        }
    }

    /// Counts what was replayed, or was not recorded.
    pub(super) fn count(&self, count: impl FnOnce(&mut RecordingUsage)) {
        count(&mut self.state.lock().usage);
    }

    /// Returns what was replayed so far.
    pub(super) fn usage(&self) -> RecordingUsage {
        self.state.lock().usage.clone()
    }

    /// Returns whether no call is open and none was for `idle`.
    pub(super) fn is_idle(&self, idle: std::time::Duration) -> bool {
        let state = self.state.lock();
        state.open == 0 && state.last_activity.elapsed() >= idle
    }

    /// Refuses further calls, and returns whether calls are open.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.open > 0
    }

    /// Accepts further calls again.
    pub(super) fn reopen(&self) {
        let mut state = self.state.lock();
        state.is_closed = false;
        state.last_activity = Instant::now();
    }

    /// Stores what was recorded with `store`, if anything was, and removes its file. If that fails, the run keeps its file,
    /// unless no further attempt can succeed: then the file is set aside. The labels of the file on disk are brought up to
    /// date first.
    pub(super) fn store<T>(
        &self,
        store: impl FnOnce(&Spool, &RunHead, Vec<StoredCall>) -> Result<Option<T>, FinishError>,
    ) -> Result<Option<T>, FinishError> {
        let mut guard = self.spool.lock();
        let Some(spool) = guard.as_mut() else { return Ok(None) };
        let head = self.state.lock().head.clone();
        spool.update(&head)?;
        spool.forget_requests();
        let SpoolContent { calls, damage, .. } = spool.read()?;
        if let Some(damage) = damage {
            return Err(FinishError::Calls(io::Error::other(format!(
                "{}: {damage}",
                spool.path().display()
            ))));
        }
        match store(spool, &head, calls) {
            Ok(stored) => {
                spool.remove()?;
                *guard = None;
                Ok(stored)
            }
            Err(error) if error.is_permanent() => {
                let calls = spool.set_aside(UNSTORED)?;
                *guard = None;
                Err(FinishError::SetAside { run: head.id, calls, source: Box::new(error) })
            }
            Err(error) => Err(error),
        }
    }
}

/// Maximum number of misses whose reasons are kept.
const MISSES: usize = 100;

/// Maximum number of characters of the prompt of a recording that was not used.
const SHOWN: usize = 200;

/// The recordings that a run used so far, and the requests that were not recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordingUsage {
    /// The steps with the requests that were answered, by run pack.
    used: BTreeMap<CoreHash, BTreeSet<usize>>,
    replayed: u64,
    missed: u64,
    misses: Vec<String>,
}

/// The replayed calls of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedCalls {
    /// Number of calls that were answered from recordings.
    pub replayed: u64,
    /// Number of calls that were to be replayed and had no recording.
    pub missed: u64,
    /// The differences of the first 100 of them from the nearest recorded request.
    pub misses: Vec<String>,
    /// The recordings that no call used, in the run packs that were replayed.
    pub unused: Vec<UnusedRecording>,
}

/// A recording that no call used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedRecording {
    /// The run pack.
    pub core_hash: CoreHash,
    /// The number of the step with the request.
    pub step: usize,
    /// The provider.
    pub provider: String,
    /// The name of the request in the API.
    pub endpoint: String,
    /// The first 200 characters of the prompt; empty if the request is an attachment.
    pub prompt: String,
}

impl RecordingUsage {
    /// Counts an answer of the recording with the request at `step` of a run pack.
    pub(super) fn replayed(&mut self, from: CoreHash, step: usize) {
        self.used.entry(from).or_default().insert(step);
        self.replayed += 1;
    }

    /// Counts a request that was not recorded.
    pub(super) fn missed(&mut self, reason: String) {
        self.missed += 1;
        if self.misses.len() < MISSES {
            self.misses.push(reason);
        }
    }
}

/// Returns what was replayed; the recordings of the only run pack of a scope are expected to be used even if none was.
pub(super) fn replayed_calls(
    recordings: &RunPackCache,
    scope: ReplayScope,
    mut usage: RecordingUsage,
) -> Result<ReplayedCalls, LookupError> {
    if let Some(only) = scope.only {
        usage.used.entry(only).or_default();
    }
    let mut unused = Vec::new();
    // The run packs whose calls were looked through: those of a run are looked through together.
    let mut seen = BTreeSet::new();
    for core in usage.used.keys() {
        let Some(pack) = recordings.pack(*core)? else { continue };
        if !pack.core(0).is_some_and(|first| seen.insert(first)) {
            continue;
        }
        let is_used = |core, recorded: &AnsweredCall| {
            usage.used.get(&core).is_some_and(|steps| steps.contains(&recorded.request.step))
        };
        let mut left: BTreeMap<(CoreHash, usize), UnusedRecording> = pack
            .recorded()
            .filter(|(core, recorded)| scope.allows(&pack, recorded) && !is_used(*core, recorded))
            .map(|(core, recorded)| ((core, recorded.request.step), unused_recording(core, recorded)))
            .collect();
        if !left.is_empty() {
            recordings.visit_prompts(&pack, &mut |core, recorded, prompt| {
                if let Some(unused) = left.get_mut(&(core, recorded.request.step)) {
                    unused.prompt = prompt().chars().take(SHOWN).collect();
                }
            })?;
        }
        let order =
            pack.recorded().filter_map(|(core, recorded)| left.remove(&(core, recorded.request.step)));
        unused.extend(order.collect::<Vec<_>>());
    }
    Ok(ReplayedCalls { replayed: usage.replayed, missed: usage.missed, misses: usage.misses, unused })
}

fn unused_recording(core_hash: CoreHash, recorded: &AnsweredCall) -> UnusedRecording {
    UnusedRecording {
        core_hash,
        step: recorded.request.step,
        provider: recorded.request.provider.clone(),
        endpoint: recorded.request.endpoint.clone(),
        prompt: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::spool;
    use super::*;
    use crate::calls::run::{CallOutcome, CompleteRequest};
    use crate::clock;

    #[test]
    fn labels_of_later_calls_are_on_disk_with_the_call() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = SpoolDirectory::new(temporary.path().to_owned());
        let path = || directory.files().unwrap().0.remove(0);
        let run = GatewayRun::new(RunHead::new(Some("nightly"), 0, clock::now(), "{}".to_owned()));
        let mut lines = Vec::new();
        for labels in [&[][..], &[("late", "yes")], &[("late", "yes")], &[("late", "no"), ("job", "7")]] {
            let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let number = run.begin(&labels).unwrap().unwrap();
            run.record(&directory, call(number)).unwrap();
            lines.push(std::fs::read_to_string(path()).unwrap().lines().count());
        }
        // The labels are written again only if they have changed.
        assert_eq!(lines, [2, 4, 5, 7]);
        // While the process works on it, no other one does.
        assert!(spool::left_behind(path()).unwrap().is_none());
        let path = path();
        // The process ends without finishing the run.
        drop((run, directory));
        let content = spool::left_behind(path).unwrap().unwrap().spool.read().unwrap();
        let labels = content.head.unwrap().labels;
        assert_eq!((labels["late"].as_str(), labels["job"].as_str()), ("no", "7"));
        assert_eq!(content.calls.len(), 4);
    }

    fn call(number: u64) -> CallRecord {
        let request = CompleteRequest { prompt: "{}".to_owned(), payload: "{}".to_owned() };
        let outcome = CallOutcome::Failed { reason: String::new(), partial: String::new() };
        CallRecord::sample(number, request, outcome)
    }
}
