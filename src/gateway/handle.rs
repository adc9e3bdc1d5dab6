//! Starts and stops a gateway.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;
use tokio::task;
use tokio::time::sleep;

use super::connection::UpstreamClient;
use super::finish::{FinishError, FinishedRun, RunDestination};
use super::http;
use super::open_calls::{self, OpenCallJournal, OpenCallRecord};
use super::otlp;
use super::recordings::{RecordingSearch, RunPackCache};
use super::recovery::{Recoverer, RecoveryOptions};
use super::route::Upstreams;
use super::run::ReplayedCalls;
use super::shared::{GatewayEvent, GatewayMode, GatewayOptions, GatewayState, ReplaySource};
use super::spool::SpoolDirectory;
use super::traces::{self, TraceReceiver};
use crate::digest::CoreHash;
use crate::server::{self, ConnectionLimits};
use crate::vault::{LookupError, Vault};

/// How often idle runs are looked for.
const IDLE_CHECK: Duration = Duration::from_millis(500);

/// The reason that a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is not one of this machine, or is in use; or the system permits no threads.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The vault cannot be read.
    #[error(transparent)]
    Vault(#[from] LookupError),
    /// There is no recording of a gateway to replay from.
    #[error("{0}")]
    NoRecording(String),
}

/// A gateway that runs on a thread of its own.
pub struct Gateway {
    shared: Arc<GatewayState>,
    /// There if spans are received.
    traces: Option<Arc<TraceReceiver>>,
    handle: Handle,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Listens at `address`, and answers requests on a thread of its own. The system chooses the port if it is 0. The runs
    /// that an earlier process did not finish are stored first. One that cannot be stored is set aside, and reported at
    /// every start.
    ///
    /// # Errors
    /// Returns an error if the address cannot be used, the vault cannot be read, or there is no recording to replay from.
    pub fn start(
        vault: impl Into<Arc<Vault>>,
        address: SocketAddr,
        options: GatewayOptions,
    ) -> Result<Self, StartError> {
        Self::start_shared(vault.into(), address, options)
    }

    fn start_shared(
        vault: Arc<Vault>,
        address: SocketAddr,
        options: GatewayOptions,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let destination = RunDestination::new(Arc::clone(&vault));
        let spool = SpoolDirectory::new(options.spool.clone());
        let recoverer = Recoverer {
            destination,
            directory: spool,
            options: RecoveryOptions { secrets: options.secrets, rules: &options.rules },
            report: &*options.report,
        };
        recoverer.recover_at_start();
        let Recoverer { destination, directory: spool, .. } = recoverer;
        report_lost(&options);
        let recordings = RunPackCache::new(Arc::clone(&vault), options.rules.clone(), options.compares_all);
        let loose =
            options.is_loose.then(|| RunPackCache::new(Arc::clone(&vault), options.rules.loosened(), true));
        let only = only(&recordings, options.source)?;
        let source = options.rerun_from.and(only).map(|core| recordings.pack(core)).transpose()?.flatten();
        let upstream = if options.mode == GatewayMode::Replay {
            None
        } else {
            Some(UpstreamClient::new().map_err(failed)?)
        };
        let labels = options.labels.clone();
        let shared = Arc::new(GatewayState {
            vault,
            destination,
            address,
            only,
            source_run_id: source.map(|pack| pack.run_id.to_string()),
            upstreams: Upstreams::new(&options.upstreams, options.mode == GatewayMode::Replay),
            upstream,
            open_calls: OpenCallJournal::new(&options.spool),
            spool,
            recordings,
            loose,
            options,
            runs: Mutex::new(HashMap::new()),
            usage: Mutex::default(),
            numbers: AtomicU64::new(0),
            labels: Mutex::new(labels),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (handle, stop) = (runtime.handle().clone(), Arc::new(Notify::new()));
        let traces = shared.options.otlp.then(|| Arc::new(TraceReceiver::new(Arc::clone(&shared))));
        let (for_thread, stopped) =
            (Served { shared: Arc::clone(&shared), traces: traces.clone() }, Arc::clone(&stop));
        let thread = thread::Builder::new().name("gateway".to_owned());
        let limits = ConnectionLimits::new(shared.options.head_timeout);
        let thread =
            thread.spawn(move || serve(&runtime, listener, for_thread, limits, &stopped)).map_err(failed)?;
        Ok(Self { shared, traces, handle, stop, thread: Some(thread) })
    }

    /// Returns what adds labels to its runs, also while it is stopped.
    #[must_use]
    pub fn labeler(&self) -> RunLabeler {
        RunLabeler(Arc::clone(&self.shared))
    }

    /// Returns the address at which the gateway listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Finishes a run: waits for the calls that are being answered, for up to half a minute, and stores it. Without a name,
    /// it is the run of all calls that name none. Returns `None` if nothing was recorded.
    ///
    /// # Errors
    /// Returns an error if the run cannot be stored. Its calls stay on disk until the next start.
    pub fn finish(&self, run: Option<&str>) -> Result<Option<FinishedRun>, FinishError> {
        let (sender, receiver) = mpsc::channel();
        let (shared, run) = (Arc::clone(&self.shared), run.map(str::to_owned));
        self.handle.spawn(async move {
            // The receiver waits for exactly this.
            let _ = sender.send(shared.finish(run.as_deref(), &BTreeMap::new()).await);
        });
        let ended = || FinishError::Calls(io::Error::other("the gateway has stopped"));
        receiver.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Returns what a run replayed so far, and the recordings that it did not use. Without a name, it is the run of all
    /// calls that name none. Nothing is known of a run that is finished.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn replayed(&self, run: Option<&str>) -> Result<ReplayedCalls, LookupError> {
        self.shared.replayed(None, self.shared.usage(run))
    }

    /// Returns what all runs replayed so far, including those that are finished, and the recordings that none of them used.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn replayed_in_all_runs(&self) -> Result<ReplayedCalls, LookupError> {
        self.shared.replayed(None, self.shared.total_usage())
    }

    /// Finishes all runs, and stops.
    ///
    /// # Errors
    /// Returns an error if a run cannot be stored. Its calls stay on disk until the next start.
    pub fn stop(mut self) -> Result<Vec<FinishedRun>, FinishError> {
        let names: Vec<Option<String>> = self.shared.runs.lock().keys().cloned().collect();
        let mut finished = Vec::new();
        let mut failure = None;
        for name in names {
            match self.finish(name.as_deref()) {
                Ok(run) => finished.extend(run),
                Err(error) => failure = Some(error),
            }
        }
        for stored in self.traces.iter().flat_map(|traces| traces.finish_all()) {
            match stored {
                Ok(run) => finished.extend(run),
                Err(error) => failure = Some(error),
            }
        }
        self.end();
        failure.map_or(Ok(finished), Err)
    }

    fn end(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end();
    }
}

/// Adds labels to the runs of a gateway.
#[derive(Clone)]
pub struct RunLabeler(Arc<GatewayState>);

impl RunLabeler {
    /// Adds labels to the runs that are being recorded, and to all later ones.
    ///
    /// # Errors
    /// Returns an error if a run would have too many, which gets none of them.
    pub fn add(&self, labels: &BTreeMap<String, String>) -> Result<(), FinishError> {
        Ok(self.0.add_labels(labels)?)
    }
}

/// Reports the calls that were not complete when the process of their gateway was killed.
fn report_lost(options: &GatewayOptions) {
    match open_calls::take_left_behind(&options.spool) {
        Ok(lost) => {
            for OpenCallRecord { provider, path, requested_at } in lost {
                (options.report)(&GatewayEvent::Lost { provider: &provider, path: &path, requested_at });
            }
        }
        Err(error) => {
            let reason = format!("the calls that a killed gateway lost cannot be read: {error}");
            (options.report)(&GatewayEvent::Failed { reason: &reason });
        }
    }
}

/// Returns the only run pack to replay from, if one was chosen.
fn only(recordings: &RunPackCache, source: ReplaySource) -> Result<Option<CoreHash>, StartError> {
    let mut found = None;
    match source {
        ReplaySource::All => return Ok(None),
        ReplaySource::Latest => recordings.visit(None, RecordingSearch::All, &mut |pack| {
            found = pack.core(0);
            false
        })?,
        ReplaySource::Artifact(core) => found = recordings.pack_of(core)?,
    }
    if found.is_none() {
        let missing = match source {
            ReplaySource::Artifact(core) => format!("{core} was not recorded by a gateway"),
            _ => "the vault has no run that a gateway recorded".to_owned(),
        };
        return Err(StartError::NoRecording(missing));
    }
    Ok(found)
}

/// What a gateway serves.
#[derive(Clone)]
struct Served {
    shared: Arc<GatewayState>,
    traces: Option<Arc<TraceReceiver>>,
}

fn serve(
    runtime: &Runtime,
    listener: std::net::TcpListener,
    gateway: Served,
    limits: ConnectionLimits,
    stop: &Notify,
) {
    runtime.block_on(async {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let routes = otlp::routes(gateway.traces.as_ref());
        let app = routes.fallback(handle).with_state(Arc::clone(&gateway.shared));
        let idle = task::spawn(finish_idle(gateway));
        let server = task::spawn(async move { server::serve(&listener, &app, limits, || false).await });
        stop.notified().await;
        server.abort();
        idle.abort();
    });
}

async fn handle(State(shared): State<Arc<GatewayState>>, request: Request<Body>) -> Response<Body> {
    http::answer(shared, request).await
}

/// Finishes runs that had no call for a while.
async fn finish_idle(Served { shared, traces }: Served) {
    loop {
        sleep(IDLE_CHECK.min(shared.options.idle)).await;
        let idle: Vec<Option<String>> = {
            let runs = shared.runs.lock();
            let idle = runs.iter().filter(|(_, run)| run.is_idle(shared.options.idle));
            idle.map(|(name, _)| name.clone()).collect()
        };
        if let Some(traces) = &traces {
            traces::finish_complete(traces).await;
        }
        for name in idle {
            if let Err(error) = shared.finish(name.as_deref(), &BTreeMap::new()).await {
                shared.report(&GatewayEvent::Failed { reason: &error.to_string() });
            }
        }
    }
}
