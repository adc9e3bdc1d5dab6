//! The traces whose spans are received: each in a file until it is complete, and then stored as a run.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task;

use super::finish::{FinishError, FinishedRun};
use super::recovery::set_trace_aside;
use super::shared::{GatewayEvent, GatewayState, reported};
use super::spool::Spool;
use crate::calls::run::RunHead;
use crate::recorders::ReceivedRecord;

/// How long nothing of a trace was received, once its outermost span has ended, until it is complete. Programs export spans
/// every few seconds.
const SETTLED: Duration = Duration::from_secs(10);

/// The traces that are not complete, and where they are stored.
pub(super) struct TraceReceiver {
    pub(super) shared: Arc<GatewayState>,
    open: Mutex<OpenTraces>,
}

#[derive(Debug, Default)]
struct OpenTraces {
    traces: HashMap<String, OpenTrace>,
    is_stopped: bool,
}

#[derive(Debug)]
struct OpenTrace {
    spool: Spool,
    has_root: bool,
    last_received: Instant,
}

impl OpenTrace {
    fn is_complete(&self, idle: Duration) -> bool {
        self.last_received.elapsed() >= if self.has_root { SETTLED.min(idle) } else { idle }
    }
}

impl TraceReceiver {
    pub(super) fn new(shared: Arc<GatewayState>) -> Self {
        Self { shared, open: Mutex::default() }
    }

    /// Writes records to the files of their traces. They survive a crash when this function returns.
    pub(super) fn receive(&self, records: Vec<ReceivedRecord>) -> io::Result<()> {
        let mut by_trace: HashMap<String, (String, bool)> = HashMap::new();
        for ReceivedRecord { trace, line, is_root } in records {
            let (lines, has_root) = by_trace.entry(trace).or_default();
            lines.push_str(&line);
            lines.push('\n');
            *has_root |= is_root;
        }
        let mut open = self.open.lock();
        if open.is_stopped {
            return Err(io::Error::other("the gateway is being stopped"));
        }
        for (trace, (lines, has_root)) in by_trace {
            if !open.traces.contains_key(&trace) {
                let spool = Spool::create_for_spans(&self.shared.spool, &self.head(&trace))?;
                let new = OpenTrace { spool, has_root: false, last_received: Instant::now() };
                open.traces.insert(trace.clone(), new);
            }
            let Some(trace) = open.traces.get_mut(&trace) else { continue };
            trace.spool.append_lines(lines.as_bytes())?;
            trace.has_root |= has_root;
            trace.last_received = Instant::now();
        }
        Ok(())
    }

    fn head(&self, trace: &str) -> RunHead {
        RunHead {
            id: trace.to_owned(),
            name: None,
            started_at: None,
            labels: self.shared.options.labels.clone(),
            rules: String::new(),
            source_run_id: None,
        }
    }

    /// Stores the traces that are complete.
    fn finish_some(&self) -> Vec<Result<Option<FinishedRun>, FinishError>> {
        let idle = self.shared.options.idle;
        let complete: Vec<_> =
            self.open.lock().traces.extract_if(|_, trace| trace.is_complete(idle)).collect();
        complete.into_iter().map(|(name, trace)| self.store(name, trace)).collect()
    }

    /// Stores all traces, and accepts no more.
    pub(super) fn finish_all(&self) -> Vec<Result<Option<FinishedRun>, FinishError>> {
        let all = {
            let mut open = self.open.lock();
            open.is_stopped = true;
            std::mem::take(&mut open.traces)
        };
        all.into_iter().map(|(name, trace)| self.store(name, trace)).collect()
    }

    fn store(&self, name: String, trace: OpenTrace) -> Result<Option<FinishedRun>, FinishError> {
        let shared = &self.shared;
        let warn = |reason: &str| shared.report(&GatewayEvent::Failed { reason });
        let stored = shared.destination.store_trace(&trace.spool, &shared.options.rules, &warn);
        match stored {
            Ok(stored) => {
                trace.spool.remove()?;
                let run = reported(stored, &*shared.options.report);
                if let Some(run) = &run {
                    shared.report(&GatewayEvent::Finished(run));
                }
                Ok(run)
            }
            Err(error) if error.is_permanent() => Err(set_trace_aside(&trace.spool, error)),
            Err(error) => {
                // A later attempt stores it: the next start, if spans of the trace were received meanwhile.
                let trace = OpenTrace { last_received: Instant::now(), ..trace };
                self.open.lock().traces.entry(name).or_insert(trace);
                Err(error)
            }
        }
    }
}

/// Stores the traces that are complete, on a thread of its own.
pub(super) async fn finish_complete(traces: &Arc<TraceReceiver>) {
    let for_thread = Arc::clone(traces);
    let stored = task::spawn_blocking(move || for_thread.finish_some()).await;
    for error in stored.unwrap_or_default().into_iter().filter_map(Result::err) {
        traces.shared.report(&GatewayEvent::Failed { reason: &error.to_string() });
    }
}
