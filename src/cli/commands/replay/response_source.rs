//! Sources of responses: one recording, or all in the vault.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use runvault::artifact::{Arguments, Exchange};
use runvault::digest::{CoreHash, Digest};
use runvault::vault::recordings::{RecordingFilter, RecordingsRequest};
use runvault::vault::replay::{Occurrence, PlayedResponse, Player, PlayerRequest, Repeat, ReplayMiss};
use runvault::{LookupError, Vault};

use crate::cli::commands::captures;

/// Maximum number of other recordings named when a prompt is not found.
pub(super) const NAMED: usize = 5;

/// A source of responses.
pub(crate) trait ResponseSource {
    /// Returns the response, and the artifact that recorded it.
    fn play(&mut self, request: &PlayerRequest) -> Result<(CoreHash, PlayedResponse<'_>), PlaybackError>;

    /// Returns the vault with the recordings.
    fn vault(&self) -> &Vault;

    /// Returns the digests of the arguments of the recorded calls.
    fn arguments(&self) -> Vec<Digest>;

    /// Returns other recordings in which a missing prompt can be looked up.
    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash>;

    /// Returns the number of recorded exchanges, and the unused ones; `None` if unknown.
    fn unused(&self) -> Option<(usize, Vec<&Exchange>)>;

    /// Returns the occurrence number of an exchange among those of its prompt, if there are several.
    fn occurrence(&self, exchange: &Exchange) -> Option<Occurrence>;

    /// Returns the unit of the recording.
    fn unit(&self) -> &'static str;
}

/// The reason that nothing was played.
pub(crate) enum PlaybackError {
    Miss(ReplayMiss),
    /// The recorded call failed, in this artifact.
    Recorded(CoreHash, Box<Exchange>),
    Failed(LookupError),
}

impl From<LookupError> for PlaybackError {
    fn from(error: LookupError) -> Self {
        Self::Failed(error)
    }
}

/// Returns some recordings of a prompt, newest first. Best effort: nothing depends on it.
fn elsewhere(vault: &Vault, prompt: Digest) -> Vec<CoreHash> {
    let request = RecordingsRequest { limit: Some(NAMED as u64), ..RecordingsRequest::new(prompt) };
    let recordings = vault.run(&request).unwrap_or_default().recordings.into_iter();
    recordings.map(|recording| recording.artifact.core_hash).collect()
}

/// One recording.
pub(crate) struct SingleRecordingSource<'v> {
    pub(crate) vault: &'v Vault,
    pub(crate) core: CoreHash,
    pub(crate) player: Player,
}

impl ResponseSource for SingleRecordingSource<'_> {
    fn play(&mut self, request: &PlayerRequest) -> Result<(CoreHash, PlayedResponse<'_>), PlaybackError> {
        let core = self.core;
        self.player.play(request).map(|played| (core, played)).map_err(|miss| match miss {
            ReplayMiss::RecordedError { exchange, .. } => PlaybackError::Recorded(core, exchange),
            miss => PlaybackError::Miss(miss),
        })
    }

    fn vault(&self) -> &Vault {
        self.vault
    }

    fn arguments(&self) -> Vec<Digest> {
        let arguments = self.player.exchanges().filter_map(|exchange| exchange.arguments.as_ref());
        arguments.map(Arguments::digest).collect()
    }

    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash> {
        let mut others = elsewhere(self.vault, prompt);
        others.retain(|core| *core != self.core);
        others
    }

    fn unused(&self) -> Option<(usize, Vec<&Exchange>)> {
        Some((self.player.exchanges().len(), self.player.unused().collect()))
    }

    fn occurrence(&self, exchange: &Exchange) -> Option<Occurrence> {
        let recorded = || exchange.prompts.last().map(|prompt| self.player.recorded(*prompt));
        let (of, before) =
            (recorded()?.count(), recorded()?.position(|other| std::ptr::eq(other, exchange))?);
        (of > 1).then_some(Occurrence { number: before + 1, of })
    }

    fn unit(&self) -> &'static str {
        self.player.unit()
    }
}

/// All recordings that contain a prompt, newest first.
pub(crate) struct AnyRecordingSource<'v> {
    vault: &'v Vault,
    filter: RecordingFilter,
    repeat: Repeat,
    /// The recently used players, the most recent one last.
    ready: Vec<(CoreHash, Player)>,
    /// Number of requests for a prompt per recording, cached or not. Only recorded prompts are counted.
    request_counts: HashMap<(CoreHash, Digest), usize>,
}

/// Maximum number of cached players. They may have 100 MB each.
const READY: usize = 4;

impl<'v> AnyRecordingSource<'v> {
    pub(crate) fn new(vault: &'v Vault, filter: RecordingFilter, repeat: Repeat) -> Self {
        Self { vault, filter, repeat, ready: Vec::new(), request_counts: HashMap::new() }
    }

    fn player(&mut self, core: CoreHash) -> Result<Option<&mut Player>, LookupError> {
        if let Some(at) = self.ready.iter().position(|(ready, _)| *ready == core) {
            let ready = self.ready.remove(at);
            self.ready.push(ready);
        } else {
            let located = self.vault.locate(&core.0.into())?;
            captures::say_which(self.vault, core, located.capture.capture)?;
            let player = self.vault.player(&located)?;
            self.ready.drain(..self.ready.len().saturating_sub(READY - 1));
            self.ready.push((core, player));
        }
        Ok(self.ready.last_mut().map(|(_, player)| player))
    }

    /// Returns the number of the next occurrence of the prompt, which is kept when its player is evicted.
    fn next(&mut self, core: CoreHash, prompt: Digest) -> Result<usize, LookupError> {
        let of = self.player(core)?.map_or(0, |player| player.recorded(prompt).count());
        let count = self.request_counts.entry((core, prompt)).or_default();
        *count = count.saturating_add(1);
        Ok(if self.repeat == Repeat::Last { (*count).min(of) } else { *count })
    }
}

impl ResponseSource for AnyRecordingSource<'_> {
    fn play(&mut self, request: &PlayerRequest) -> Result<(CoreHash, PlayedResponse<'_>), PlaybackError> {
        let prompt = request.prompt.ok_or(PlaybackError::Miss(ReplayMiss::NoPrompt))?;
        let missing = PlaybackError::Miss(ReplayMiss::NotRecorded { prompt });
        let filter = self.filter.clone();
        let request_newest = RecordingsRequest { filter, limit: Some(1), ..RecordingsRequest::new(prompt) };
        let newest = self.vault.run(&request_newest).map_err(LookupError::from)?.recordings.pop();
        let Some(newest) = newest else { return Err(missing) };
        let core = newest.artifact.core_hash;
        let occurrence = match request.occurrence {
            None => NonZeroUsize::new(self.next(core, prompt)?),
            given => given,
        };
        let player = self.player(core)?.ok_or(missing)?;
        let request = PlayerRequest { occurrence, ..request.clone() };
        player.play(&request).map(|played| (core, played)).map_err(PlaybackError::Miss)
    }

    fn vault(&self) -> &Vault {
        self.vault
    }

    fn arguments(&self) -> Vec<Digest> {
        // Sessions record prompts only.
        Vec::new()
    }

    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash> {
        elsewhere(self.vault, prompt)
    }

    fn unused(&self) -> Option<(usize, Vec<&Exchange>)> {
        None
    }

    fn occurrence(&self, _: &Exchange) -> Option<Occurrence> {
        None
    }

    fn unit(&self) -> &'static str {
        "interaction"
    }
}
