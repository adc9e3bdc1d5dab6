//! The state that all requests to a gateway share.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task;
use tokio::time::timeout;

use super::connection::UpstreamClient;
use super::events::GatewayEvent;
use super::finish::{self, FinishError, FinishedRun, RunDestination};
use super::open_calls::OpenCallJournal;
use super::recordings::{ReplayScope, ReplayedFailures, RunPackCache};
use super::route::Upstreams;
use super::run::GatewayRun;
use super::spool::SpoolDirectory;
use super::suggestion::RuleFormat;
use super::usage::RecordingUsage;
use crate::calls::matching::MatchingRules;
use crate::calls::run::{RunHead, TooManyLabels};
use crate::clock;
use crate::digest::CoreHash;
use crate::json::compact;
use crate::secrets::SecretPolicy;
use crate::vault::Vault;

/// How long calls that are being answered may take once their run is to be finished.
const GRACE: Duration = Duration::from_secs(30);

/// The mode of a gateway: how it handles calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayMode {
    /// It forwards and records all of them.
    Record,
    /// It answers from recordings, and never asks a server.
    Replay,
    /// It answers what was recorded, and forwards and records everything else.
    Auto,
    /// It forwards all of them and records nothing.
    Pass,
}

impl GatewayMode {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Replay => "replay",
            Self::Auto => "auto",
            Self::Pass => "pass",
        }
    }
}

/// How fast streams are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the client reads.
    #[default]
    Fast,
    /// Each part after the time that it took.
    Recorded,
}

/// A receiver of what a gateway reports. It is called on the threads of the gateway.
pub(super) type GatewayEventHandler = Arc<dyn Fn(&GatewayEvent<'_>) + Send + Sync>;

/// The state that all requests share.
pub(super) struct GatewayState {
    pub(super) vault: Arc<Vault>,
    /// Where runs are stored: the same vault.
    pub(super) destination: RunDestination,
    pub(super) address: SocketAddr,
    pub(super) mode: GatewayMode,
    pub(super) pace: Pace,
    /// The only run pack to replay from, if there is one.
    pub(super) only: Option<CoreHash>,
    pub(super) rules: MatchingRules,
    pub(super) upstreams: Upstreams,
    /// The client; there is none if only recordings are replayed.
    pub(super) upstream: Option<UpstreamClient>,
    pub(super) spool: SpoolDirectory,
    pub(super) recordings: RunPackCache,
    pub(super) secrets: SecretPolicy,
    /// Labels of all runs.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) idle: Duration,
    pub(super) rule_format: RuleFormat,
    pub(super) receiver: GatewayEventHandler,
    pub(super) runs: Mutex<HashMap<Option<String>, Arc<GatewayRun>>>,
    /// What all runs replayed, including those that are finished.
    pub(super) usage: Mutex<RecordingUsage>,
    pub(super) numbers: AtomicU64,
    pub(super) open_calls: Arc<OpenCallJournal>,
}

impl GatewayState {
    pub(super) fn report(&self, event: &GatewayEvent<'_>) {
        (self.receiver)(event);
    }

    /// A panic of another thread leaves nothing half changed.
    pub(super) fn lock_runs(&self) -> std::sync::MutexGuard<'_, HashMap<Option<String>, Arc<GatewayRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call in a run, which is created by its first one.
    ///
    /// # Errors
    /// Returns an error if the run would have too many labels.
    pub(super) fn begin(
        &self,
        name: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<(Arc<GatewayRun>, u64), TooManyLabels> {
        let mut runs = self.lock_runs();
        loop {
            let run = runs.entry(name.map(str::to_owned)).or_insert_with(|| Arc::new(self.new_run(name)));
            if let Some(number) = run.begin(labels)? {
                return Ok((Arc::clone(run), number));
            }
            // It is being finished.
            *run = Arc::new(self.new_run(name));
        }
    }

    /// Returns what a run replayed so far: nothing if there is no such run.
    pub(super) fn usage(&self, name: Option<&str>) -> RecordingUsage {
        let run = self.lock_runs().get(&name.map(str::to_owned)).cloned();
        run.map(|run| run.usage()).unwrap_or_default()
    }

    /// Counts what a run replayed, or what was not recorded.
    pub(super) fn count(&self, run: &GatewayRun, count: impl Fn(&mut RecordingUsage)) {
        count(&mut self.usage.lock().unwrap_or_else(PoisonError::into_inner));
        run.count(count);
    }

    /// Returns what all runs replayed so far.
    pub(super) fn total_usage(&self) -> RecordingUsage {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether calls are answered from recordings alone; `only` is the one that a call names.
    pub(super) fn only_replays(&self, only: Option<CoreHash>) -> bool {
        self.mode == GatewayMode::Replay || only.is_some()
    }

    /// Returns the recordings that calls are answered from; with `chosen`, only that run pack.
    pub(super) fn scope(&self, chosen: Option<CoreHash>) -> ReplayScope {
        let failures = match self.mode {
            GatewayMode::Auto if chosen.is_none() => ReplayedFailures::None,
            _ if chosen.or(self.only).is_some() => ReplayedFailures::All,
            _ => ReplayedFailures::ErrorStatus,
        };
        ReplayScope { only: chosen.or(self.only), failures }
    }

    fn new_run(&self, name: Option<&str>) -> GatewayRun {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut head = RunHead::new(name, number, clock::now(), compact::text(&self.rules.to_json()));
        head.labels.clone_from(&self.labels);
        GatewayRun::new(head)
    }

    /// Finishes a run, after the calls that are being answered.
    pub(super) async fn finish(
        self: &Arc<Self>,
        name: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<FinishedRun>, FinishError> {
        let run = {
            let mut runs = self.lock_runs();
            let key = name.map(str::to_owned);
            let Some(run) = runs.get(&key) else { return Ok(None) };
            run.label(labels)?;
            let Some(run) = runs.remove(&key) else { return Ok(None) };
            run
        };
        let all_ended = async {
            loop {
                let ended = run.ended.notified();
                if !run.close() {
                    return;
                }
                ended.await;
            }
        };
        // What takes longer is recorded in a file that the next start stores.
        let _ = timeout(GRACE, all_ended).await;
        let (shared, for_thread) = (Arc::clone(self), Arc::clone(&run));
        let stored = task::spawn_blocking(move || {
            for_thread.store(|spool, head, calls| {
                let warn = |reason: &str| shared.report(&GatewayEvent::Failed { reason });
                finish::store(&shared.destination, (spool, head, calls), &warn)
            })
        });
        let finished = match stored.await {
            Ok(Ok(finished)) => finished,
            Ok(Err(error @ FinishError::SetAside { .. })) => return Err(error),
            Ok(Err(error)) => {
                // The next attempt stores it, unless the calls of another run with this name have begun.
                run.reopen();
                self.lock_runs().entry(name.map(str::to_owned)).or_insert(run);
                return Err(error);
            }
            Err(error) => return Err(FinishError::Calls(io::Error::other(error))),
        };
        if let Some(finished) = &finished {
            self.report(&GatewayEvent::Finished(finished));
        }
        Ok(finished)
    }
}
