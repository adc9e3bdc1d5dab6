//! A gateway in this process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use runvault::gateway::{
    FinishError, FinishedRun, Gateway as Running, GatewayEvent, GatewayMode, GatewayOptions, MatchingRules,
    Pace, REPLAY_KEY, ReplaySource, Upstream, base_url_variables,
};
use serde_json::{Value, json};

use crate::errors::{Failure, to_json};
use crate::interrupt::{self, OnInterrupt};
use crate::vault::{Vault, located};

/// Returns the environment variables in which clients expect a key, and the one for clients that only replay.
#[pyfunction]
pub(crate) fn key_variables() -> (Vec<&'static str>, &'static str) {
    (runvault::gateway::key_variables().collect(), REPLAY_KEY)
}

/// The options of a gateway.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    mode: String,
    recording: Option<String>,
    recorded_pace: bool,
    upstreams: BTreeMap<String, String>,
    ignore: Vec<String>,
    normalize: Vec<String>,
    redact: Vec<String>,
    labels: BTreeMap<String, String>,
    spool: PathBuf,
    idle: f64,
    address: String,
}

/// A gateway that runs on a thread of its own.
#[pyclass(frozen, module = "runvault._native")]
pub(crate) struct Gateway {
    running: Mutex<Option<Arc<Running>>>,
    address: SocketAddr,
    variables: BTreeMap<&'static str, String>,
    events: Arc<Mutex<Vec<Value>>>,
}

#[pymethods]
impl Gateway {
    /// Starts a gateway.
    #[staticmethod]
    fn start(py: Python<'_>, vault: &Vault, options: Options) -> PyResult<Self> {
        let vault = vault.opened(py)?;
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let work = move || -> Result<(Running, BTreeMap<&'static str, String>), Failure> {
            let address: SocketAddr = options.address.parse().map_err(|_| {
                Failure::invalid(format!("{:?} is not an address and a port", options.address))
            })?;
            let mut started = GatewayOptions::new(mode(&options.mode)?, &options.spool);
            started.source = match options.recording.as_deref() {
                None => ReplaySource::All,
                Some("latest") => ReplaySource::Latest,
                Some(text) => ReplaySource::Artifact(located(&vault, text)?.artifact.core),
            };
            started.pace = if options.recorded_pace { Pace::Recorded } else { Pace::Fast };
            started.rules = rules(&options)?;
            for (name, url) in &options.upstreams {
                let upstream =
                    Upstream::parse(&format!("{name}={url}")).map_err(|error| Failure::of(&error))?;
                started.upstreams.push(upstream);
            }
            started.labels = options.labels;
            started.idle = Duration::try_from_secs_f64(options.idle)
                .map_err(|_| Failure::invalid(format!("{} is not a number of seconds", options.idle)))?;
            started.report = Arc::new(move |event| {
                seen.lock().unwrap_or_else(PoisonError::into_inner).extend(document(event));
            });
            let (upstreams, only_replays) = (started.upstreams.clone(), started.mode == GatewayMode::Replay);
            let running = Running::start(vault, address, started).map_err(|error| Failure::of(&error))?;
            let variables = base_url_variables(running.address(), &upstreams, only_replays);
            Ok((running, variables.into_iter().collect()))
        };
        let (running, variables) = interrupt::run(py, &OnInterrupt::complete(), work)??;
        let address = running.address();
        Ok(Self { running: Mutex::new(Some(Arc::new(running))), address, variables, events })
    }

    /// Returns the address at which the gateway listens.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the environment variables that point clients at the gateway.
    fn variables(&self) -> BTreeMap<&'static str, String> {
        self.variables.clone()
    }

    /// Returns what the gateway reported since the last call, as JSON.
    fn take_events(&self, py: Python<'_>) -> PyResult<String> {
        let events = self.events.lock_py_attached(py).map(|mut events| std::mem::take(&mut *events));
        to_json(&events.unwrap_or_default())
    }

    /// Finishes a run, and returns it as JSON; `None` if nothing was recorded.
    fn finish(&self, py: Python<'_>, run: Option<String>) -> PyResult<Option<String>> {
        let running = self.running(py, false)?;
        let finish = move || running.finish(run.as_deref());
        let finished = interrupt::run(py, &OnInterrupt::complete(), finish)?.map_err(failed)?;
        finished.as_ref().map(to_json).transpose()
    }

    /// Returns what a run replayed so far, as JSON.
    fn replayed(&self, py: Python<'_>, run: Option<String>) -> PyResult<String> {
        let running = self.running(py, false)?;
        let read = move || running.replayed(run.as_deref()).map_err(|error| Failure::of(&error));
        to_json(&interrupt::run(py, &OnInterrupt::complete(), read)??)
    }

    /// Finishes all runs, stops, and returns the runs as JSON. A gateway that was stopped before has none.
    fn stop(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(running) = self.running(py, true) else { return Ok("[]".to_owned()) };
        let stop = move || -> Result<Vec<FinishedRun>, FinishError> {
            // Another thread is finishing a run: the gateway stops after that.
            Arc::into_inner(running).map_or(Ok(Vec::new()), Running::stop)
        };
        to_json(&interrupt::run(py, &OnInterrupt::complete(), stop)?.map_err(failed)?)
    }
}

impl Gateway {
    fn running(&self, py: Python<'_>, taken: bool) -> PyResult<Arc<Running>> {
        let running = self.running.lock_py_attached(py).ok();
        let running = running.and_then(|mut running| if taken { running.take() } else { running.clone() });
        running.ok_or_else(|| Failure::new("GatewayError", "stopped", "the gateway has stopped").into())
    }
}

fn failed(error: FinishError) -> Failure {
    Failure::of(&error)
}

fn mode(name: &str) -> Result<GatewayMode, Failure> {
    let modes = [GatewayMode::Record, GatewayMode::Replay, GatewayMode::Auto, GatewayMode::Pass];
    let mode = modes.into_iter().find(|mode| mode.name() == name);
    mode.ok_or_else(|| Failure::invalid(format!("a gateway has no mode {name:?}")))
}

fn rules(options: &Options) -> Result<MatchingRules, Failure> {
    let mut rules = MatchingRules::default();
    for location in &options.ignore {
        rules.ignore(location).map_err(|error| Failure::of(&error))?;
    }
    for rule in &options.normalize {
        rules.normalize(rule).map_err(|error| Failure::of(&error))?;
    }
    for pattern in &options.redact {
        rules.redact(pattern).map_err(|error| Failure::of(&error))?;
    }
    Ok(rules)
}

/// Returns what a gateway reports as JSON.
fn document(event: &GatewayEvent<'_>) -> Option<Value> {
    Some(match event {
        GatewayEvent::Recorded { provider, path, status } => {
            json!({"event": "recorded", "provider": provider, "path": path, "status": status})
        }
        GatewayEvent::Replayed { provider, path, from, step } => {
            json!({"event": "replayed", "provider": provider, "path": path, "core_hash": from, "step": step})
        }
        GatewayEvent::Missed { provider, path, reason } => {
            json!({"event": "missed", "provider": provider, "path": path, "reason": reason})
        }
        GatewayEvent::NotRecorded { provider, path, reason } => {
            json!({"event": "not-recorded", "provider": provider, "path": path, "reason": reason})
        }
        GatewayEvent::Finished(run) => json!({"event": "finished", "run": run}),
        GatewayEvent::SetAside { file, reason } => {
            json!({"event": "set_aside", "file": file, "reason": reason})
        }
        GatewayEvent::Failed { reason } => json!({"event": "failed", "reason": reason}),
        _ => return None,
    })
}
