//! The options, the events and the state of a gateway, which all requests share.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::task;
use tokio::time::timeout;

use super::connection::UpstreamClient;
use super::difference::RuleSuggestion;
use super::finish::{FinishError, FinishedRun, RunDestination, StoredTrace};
use super::open_calls::OpenCallJournal;
use super::recordings::{ReplayScope, ReplayedFailures, RunPackCache};
use super::route::{Upstream, Upstreams};
use super::run::{GatewayRun, RecordingUsage, ReplayedCalls, replayed_calls};
use super::signing::AwsKey;
use super::spool::SpoolDirectory;
use crate::calls::matching::MatchingRules;
use crate::calls::run::{RunHead, TooManyLabels};
use crate::clock;
use crate::digest::CoreHash;
use crate::json::compact;
use crate::secrets::{SecretMatch, SecretPolicy};
use crate::server::HEAD_TIMEOUT;
use crate::vault::{LookupError, Vault};

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

/// Something that a gateway reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum GatewayEvent<'e> {
    /// A call was recorded.
    Recorded {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The status of the answer.
        status: u16,
    },
    /// A call was answered from a run pack.
    Replayed {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The run pack.
        from: CoreHash,
        /// The number of the step with the request there.
        step: usize,
    },
    /// A call was answered from the recording of another one, from which it differs in results of tools, dates or
    /// identifiers alone.
    ReplayedLoosely {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The run pack.
        from: CoreHash,
        /// The number of the step with the request there.
        step: usize,
        /// The difference.
        difference: &'e str,
    },
    /// A call is forwarded although it was recorded: only with a failure.
    AskedAgain {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The failure.
        reason: &'e str,
    },
    /// A request that is no call, or any in the mode `pass`, was forwarded. Nothing of it is recorded.
    Forwarded {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
    },
    /// A call was not recorded before and could not be replayed.
    Missed {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// The difference from the nearest recorded request.
        reason: &'e str,
    },
    /// A call was forwarded and not recorded, or only as a failure.
    NotRecorded {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// Why not.
        reason: &'e str,
    },
    /// A call contains what looks like a key or a card number.
    Secrets {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// Where it is, and what it looks like.
        secrets: &'e [SecretMatch],
        /// Whether the call was not recorded for that.
        refused: bool,
    },
    /// A call was not complete when the process of its gateway was killed.
    Lost {
        /// The provider.
        provider: &'e str,
        /// The path of the request.
        path: &'e str,
        /// When the request arrived.
        requested_at: DateTime<Utc>,
    },
    /// Spans or events of a trace that was received have no place in its run.
    Skipped {
        /// The trace.
        trace: &'e str,
        /// Why not.
        reason: &'e str,
        /// How many.
        count: usize,
    },
    /// A run was stored in the vault.
    Finished(&'e FinishedRun),
    /// A file with the calls of a run was set aside, because they could not be stored or the file is damaged. It is
    /// reported at every start.
    SetAside {
        /// The file.
        file: &'e Path,
        /// What is known of it.
        reason: &'e str,
    },
    /// A run could not be stored, or only a part of it. Its calls stay on disk.
    Failed {
        /// Why not.
        reason: &'e str,
    },
}

/// Reports what became of a trace, and returns its run.
pub(super) fn reported(stored: StoredTrace, report: &dyn Fn(&GatewayEvent<'_>)) -> Option<FinishedRun> {
    let StoredTrace { trace, run, skipped } = stored;
    for (reason, count) in &skipped {
        report(&GatewayEvent::Skipped { trace: &trace, reason, count: *count });
    }
    run
}

/// A receiver of what a gateway reports. It is called on the threads of the gateway.
type GatewayEventHandler = Arc<dyn Fn(&GatewayEvent<'_>) + Send + Sync>;

/// The default of [`GatewayOptions::idle`].
const IDLE: Duration = Duration::from_mins(5);

/// The recordings that calls are replayed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplaySource {
    /// All of the vault, last seen first.
    #[default]
    All,
    /// The run that a gateway recorded last.
    Latest,
    /// A run pack that a gateway recorded, or its session.
    Artifact(CoreHash),
}

/// The options of a gateway.
#[derive(Clone)]
pub struct GatewayOptions {
    /// The mode: how it handles calls.
    pub mode: GatewayMode,
    /// The recordings that calls are replayed from.
    pub source: ReplaySource,
    /// The number of the step of the only recording from which on calls are made again, in the mode that records what it
    /// does not replay; `None` to replay all. What is recorded states the run that it was derived from.
    pub rerun_from: Option<usize>,
    /// How fast streams are replayed.
    pub pace: Pace,
    /// How requests are compared, and what is not stored.
    pub rules: MatchingRules,
    /// Whether a request is compared with recordings that were made with other rules although there can be one with the
    /// same rules, or the server can be asked. All recordings are read for that.
    pub compares_all: bool,
    /// Whether a request that was not recorded is answered from the recording of one from which it differs in results of
    /// tools, dates or identifiers alone: the n-th such request in a run from the n-th recording.
    pub is_loose: bool,
    /// Servers, in addition to those of the known providers or in their place.
    pub upstreams: Vec<Upstream>,
    /// The key with which requests to AWS are signed again that a client signed with it, for the address of the gateway.
    pub aws_key: Option<AwsKey>,
    /// The directory with the calls of runs that are not finished. It is created when a call is recorded.
    pub spool: PathBuf,
    /// The policy for text in calls that looks like a key or a card number. A call that is refused is answered, and not
    /// recorded.
    pub secrets: SecretPolicy,
    /// Whether spans of OpenTelemetry are received and stored.
    pub otlp: bool,
    /// Labels of all recorded runs.
    pub labels: BTreeMap<String, String>,
    /// A run is finished when it had no call for so long.
    pub idle: Duration,
    /// A connection is closed when no complete head of a request arrived on it for so long.
    pub head_timeout: Duration,
    /// Returns a rule of comparison in the form in which it is given to the program.
    pub rule_format: fn(&RuleSuggestion) -> String,
    /// Receives what the gateway reports.
    pub report: GatewayEventHandler,
}

impl GatewayOptions {
    /// Returns the default options for a mode, with a directory for the calls of runs that are not finished.
    #[must_use]
    pub fn new(mode: GatewayMode, spool: &Path) -> Self {
        Self {
            mode,
            source: ReplaySource::All,
            rerun_from: None,
            pace: Pace::Fast,
            rules: MatchingRules::default(),
            compares_all: true,
            is_loose: false,
            upstreams: Vec::new(),
            aws_key: None,
            spool: spool.to_owned(),
            secrets: SecretPolicy::Report,
            otlp: false,
            labels: BTreeMap::new(),
            idle: IDLE,
            head_timeout: HEAD_TIMEOUT,
            rule_format: ToString::to_string,
            report: Arc::new(|_| {}),
        }
    }
}

/// The state that all requests share.
pub(super) struct GatewayState {
    pub(super) vault: Arc<Vault>,
    /// Where runs are stored: the same vault.
    pub(super) destination: RunDestination,
    pub(super) options: GatewayOptions,
    pub(super) address: SocketAddr,
    /// The only run pack to replay from, if there is one.
    pub(super) only: Option<CoreHash>,
    /// The id of the run of which calls are made again.
    pub(super) source_run_id: Option<String>,
    pub(super) upstreams: Upstreams,
    /// The client; there is none if only recordings are replayed.
    pub(super) upstream: Option<UpstreamClient>,
    pub(super) spool: SpoolDirectory,
    pub(super) recordings: RunPackCache,
    /// The recordings for loose comparisons, if there are any.
    pub(super) loose: Option<RunPackCache>,
    pub(super) runs: Mutex<HashMap<Option<String>, Arc<GatewayRun>>>,
    /// What all runs replayed, including those that are finished.
    pub(super) usage: Mutex<RecordingUsage>,
    pub(super) numbers: AtomicU64,
    /// The labels of all runs.
    pub(super) labels: Mutex<BTreeMap<String, String>>,
    pub(super) open_calls: Arc<OpenCallJournal>,
}

impl GatewayState {
    pub(super) fn report(&self, event: &GatewayEvent<'_>) {
        (self.options.report)(event);
    }

    /// Adds labels to the runs that are being recorded, and to all later ones.
    ///
    /// # Errors
    /// Returns an error if a run would have too many, which gets none of them.
    pub(super) fn add_labels(&self, labels: &BTreeMap<String, String>) -> Result<(), TooManyLabels> {
        let runs = self.runs.lock();
        self.labels.lock().extend(labels.clone());
        runs.values().try_for_each(|run| run.label(labels))
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
        let mut runs = self.runs.lock();
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
        let run = self.runs.lock().get(&name.map(str::to_owned)).cloned();
        run.map(|run| run.usage()).unwrap_or_default()
    }

    /// Counts what a run replayed, or what was not recorded.
    pub(super) fn count(&self, run: &GatewayRun, count: impl Fn(&mut RecordingUsage)) {
        count(&mut self.usage.lock());
        run.count(count);
    }

    /// Returns what all runs replayed so far.
    pub(super) fn total_usage(&self) -> RecordingUsage {
        self.usage.lock().clone()
    }

    /// Returns whether calls are answered from recordings alone; `only` is the one that a call names.
    pub(super) fn only_replays(&self, only: Option<CoreHash>) -> bool {
        self.options.mode == GatewayMode::Replay || only.is_some()
    }

    /// Returns the run pack that a call names; `None` if it names none, or no recording.
    pub(super) fn chosen(&self, only: Option<CoreHash>) -> Result<Option<CoreHash>, LookupError> {
        only.map_or(Ok(None), |core| self.recordings.pack_of(core))
    }

    /// Returns what calls replayed, of a run or of all, and what was not used of the recordings of a scope.
    pub(super) fn replayed(
        &self,
        chosen: Option<CoreHash>,
        usage: RecordingUsage,
    ) -> Result<ReplayedCalls, LookupError> {
        replayed_calls(&self.recordings, self.scope(chosen), usage)
    }

    /// Returns the recordings that calls are answered from; with `chosen`, only that run pack.
    pub(super) fn scope(&self, chosen: Option<CoreHash>) -> ReplayScope {
        let failures = match self.options.mode {
            GatewayMode::Auto if chosen.is_none() => ReplayedFailures::None,
            _ if chosen.or(self.only).is_some() => ReplayedFailures::All,
            _ => ReplayedFailures::ErrorStatus,
        };
        let rerun_from = self.options.rerun_from.filter(|_| chosen.is_none());
        ReplayScope { only: chosen.or(self.only), failures, rerun_from }
    }

    fn new_run(&self, name: Option<&str>) -> GatewayRun {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut head = RunHead::new(name, number, clock::now(), compact::text(&self.options.rules.to_json()));
        head.labels.clone_from(&self.labels.lock());
        head.source_run_id.clone_from(&self.source_run_id);
        GatewayRun::new(head)
    }

    /// Finishes a run, after the calls that are being answered.
    pub(super) async fn finish(
        self: &Arc<Self>,
        name: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<FinishedRun>, FinishError> {
        let run = {
            let mut runs = self.runs.lock();
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
                shared.destination.store(spool, head, calls, &warn)
            })
        });
        let finished = match stored.await {
            Ok(Ok(finished)) => finished,
            Ok(Err(error @ FinishError::SetAside { .. })) => return Err(error),
            Ok(Err(error)) => {
                // The next attempt stores it, unless the calls of another run with this name have begun.
                run.reopen();
                self.runs.lock().entry(name.map(str::to_owned)).or_insert(run);
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
