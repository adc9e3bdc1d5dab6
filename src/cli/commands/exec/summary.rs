//! The summary of the calls of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use runvault::display::{counted, escaped};
use runvault::gateway::{GatewayEvent, GatewayOptions, ReplayedCalls, UnusedRecording};

use crate::cli::output::stdout;

/// Maximum number of recordings that are listed.
const LISTED: usize = 10;

/// When the status is not that of the program.
#[derive(Args)]
pub(super) struct FailureArgs {
    /// Exit with status 1 if a call that was to be replayed has no recording
    #[arg(long)]
    fail_on_miss: bool,

    /// Exit with status 1 if a recording was not used
    #[arg(long, hide_short_help = true)]
    fail_unused: bool,

    /// Exit with status 1 if no call arrived
    #[arg(long)]
    fail_if_empty: bool,
}

/// The number of requests so far, by what became of them.
#[derive(Default)]
pub(super) struct CallCounts {
    recorded: AtomicU64,
    not_recorded: AtomicU64,
    forwarded: AtomicU64,
}

impl CallCounts {
    /// Counts the requests that a gateway with these options reports.
    pub(super) fn of_events(options: &mut GatewayOptions) -> Arc<Self> {
        let counts = Arc::new(Self::default());
        let (for_gateway, report) = (Arc::clone(&counts), Arc::clone(&options.report));
        options.report = Arc::new(move |event| {
            match event {
                GatewayEvent::Recorded { .. } => for_gateway.recorded.fetch_add(1, Ordering::Relaxed),
                GatewayEvent::NotRecorded { .. } => for_gateway.not_recorded.fetch_add(1, Ordering::Relaxed),
                GatewayEvent::Forwarded { .. } => for_gateway.forwarded.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
            report(event);
        });
        counts
    }
}

/// The calls of a program that has ended.
pub(super) struct CallSummary {
    pub(super) counts: Arc<CallCounts>,
    pub(super) replayed: ReplayedCalls,
}

impl CallSummary {
    /// Prints what became of the calls; if none arrived, the variables by which the program could find the gateway.
    pub(super) fn print(&self, variables: &[String]) {
        if self.is_empty() {
            stdout::note(&format!("no call arrived; the program had {}", variables.join(", ")));
            return;
        }
        let [recorded, not_recorded, forwarded] =
            [&self.counts.recorded, &self.counts.not_recorded, &self.counts.forwarded]
                .map(|count| count.load(Ordering::Relaxed));
        let ReplayedCalls { replayed, missed, unused, .. } = &self.replayed;
        let if_any = |count: u64, what: &str| {
            if count > 0 { format!(", {count} {what}") } else { String::new() }
        };
        let not_recorded = if_any(not_recorded, "without a recorded answer");
        let forwarded = if_any(forwarded, "only forwarded");
        let unused = counted(unused.len() as u64, "recording");
        stdout::note(&format!(
            "calls: {recorded} recorded, {replayed} replayed, {missed} missed{not_recorded}{forwarded}; {unused} unused"
        ));
    }

    /// Prints why the status is one of failure. Returns false if it is that of the program.
    pub(super) fn fails(&self, failures: &FailureArgs) -> bool {
        let ReplayedCalls { missed, unused, .. } = &self.replayed;
        let mut fails = false;
        let mut fail = |reason: String| {
            stdout::error(&reason);
            fails = true;
        };
        if failures.fail_on_miss && *missed > 0 {
            fail(format!("{} was not recorded", counted(*missed, "call")));
        }
        if failures.fail_unused && !unused.is_empty() {
            let listed: String = unused.iter().take(LISTED).map(unused_line).collect();
            let more = unused.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            fail(format!("{} was not used:{listed}{more}", counted(unused.len() as u64, "recording")));
        }
        if failures.fail_if_empty && self.is_empty() {
            fail("no call arrived".to_owned());
        }
        fails
    }

    fn is_empty(&self) -> bool {
        let CallCounts { recorded, not_recorded, forwarded } = &*self.counts;
        let arrived = [recorded, not_recorded, forwarded].map(|count| count.load(Ordering::Relaxed));
        arrived == [0; 3] && self.replayed.replayed == 0 && self.replayed.missed == 0
    }
}

fn unused_line(recording: &UnusedRecording) -> String {
    let UnusedRecording { core_hash, step, provider, endpoint, prompt } = recording;
    format!("\n  {core_hash:.12} step {step}, {provider} {endpoint}: {}", escaped(prompt))
}
