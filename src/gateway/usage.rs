//! The use of recordings in a run: the recordings that it used, and the requests that were not recorded.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::recordings::{ReplayScope, RunPackCache};
use crate::calls::recorded_run::AnsweredCall;
use crate::digest::CoreHash;
use crate::vault::{LookupError, Vault};

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
    vault: &Vault,
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
        let Some(pack) = recordings.pack(vault, *core)? else { continue };
        if !pack.core(0).is_some_and(|first| seen.insert(first)) {
            continue;
        }
        let is_used = |core, recorded: &AnsweredCall| {
            usage.used.get(&core).is_some_and(|steps| steps.contains(&recorded.step))
        };
        let mut left: BTreeMap<(CoreHash, usize), UnusedRecording> = pack
            .recorded()
            .filter(|(core, recorded)| scope.failures.allow(recorded) && !is_used(*core, recorded))
            .map(|(core, recorded)| ((core, recorded.step), unused_recording(core, recorded)))
            .collect();
        if !left.is_empty() {
            recordings.visit_prompts(vault, &pack, &mut |core, recorded, prompt| {
                if let Some(unused) = left.get_mut(&(core, recorded.step)) {
                    unused.prompt = prompt().chars().take(SHOWN).collect();
                }
            })?;
        }
        let order = pack.recorded().filter_map(|(core, recorded)| left.remove(&(core, recorded.step)));
        unused.extend(order.collect::<Vec<_>>());
    }
    Ok(ReplayedCalls { replayed: usage.replayed, missed: usage.missed, misses: usage.misses, unused })
}

fn unused_recording(core_hash: CoreHash, recorded: &AnsweredCall) -> UnusedRecording {
    UnusedRecording {
        core_hash,
        step: recorded.step,
        provider: recorded.provider.clone(),
        endpoint: recorded.endpoint.clone(),
        prompt: String::new(),
    }
}
