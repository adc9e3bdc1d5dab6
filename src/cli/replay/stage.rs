//! What is played from: one recording, or any in the vault.

use runvault::artifact::Exchange;
use runvault::digest::{CoreHash, Digest};
use runvault::replay::{Miss, Played, Player, Request};
use runvault::{LookupError, Vault, Wanted};

/// So many other recordings are named where a prompt was not found.
pub(super) const NAMED: usize = 5;

/// Where responses come from.
pub(crate) trait Stage {
    /// The response, and which artifact recorded it.
    fn play(&mut self, request: &Request) -> Result<(CoreHash, Played<'_>), Unplayed>;

    /// Others in which a prompt that was not found here can be looked up.
    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash>;

    /// How much was recorded, and what of it nobody asked for; nothing if that cannot be told.
    fn unused(&self) -> Option<(usize, Vec<&Exchange>)>;

    /// What the recording counts.
    fn unit(&self) -> &'static str;
}

/// Why nothing was played.
pub(crate) enum Unplayed {
    Miss(Miss),
    Failed(LookupError),
}

impl From<LookupError> for Unplayed {
    fn from(error: LookupError) -> Self {
        Self::Failed(error)
    }
}

/// One recording.
pub(crate) struct One<'v> {
    pub(crate) vault: &'v Vault,
    pub(crate) core: CoreHash,
    pub(crate) player: Player,
}

impl Stage for One<'_> {
    fn play(&mut self, request: &Request) -> Result<(CoreHash, Played<'_>), Unplayed> {
        self.player.play(request).map(|played| (self.core, played)).map_err(Unplayed::Miss)
    }

    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash> {
        let wanted = Wanted { limit: Some(NAMED), ..Wanted::default() };
        // This helps, nothing depends on it.
        let hits = self.vault.recordings_of(prompt, &wanted).unwrap_or_default();
        hits.into_iter().map(|hit| hit.artifact.core).filter(|core| *core != self.core).collect()
    }

    fn unused(&self) -> Option<(usize, Vec<&Exchange>)> {
        Some((self.player.exchanges().len(), self.player.unused().collect()))
    }

    fn unit(&self) -> &'static str {
        self.player.unit()
    }
}

/// All recordings in which prompts are looked up, newest first.
pub(crate) struct Any<'v> {
    vault: &'v Vault,
    wanted: Wanted,
    /// The recordings that were played last, the newest use at the end.
    ready: Vec<(CoreHash, Player)>,
}

/// So many recordings are kept ready. They may have 100 MB each.
const READY: usize = 4;

impl<'v> Any<'v> {
    pub(crate) fn new(vault: &'v Vault, wanted: Wanted) -> Self {
        Self { vault, wanted: Wanted { limit: Some(1), ..wanted }, ready: Vec::new() }
    }

    fn player(&mut self, core: CoreHash) -> Result<Option<&mut Player>, LookupError> {
        if let Some(at) = self.ready.iter().position(|(ready, _)| *ready == core) {
            let ready = self.ready.remove(at);
            self.ready.push(ready);
        } else {
            let player = self.vault.player(&self.vault.locate(&core.0.into())?)?;
            self.ready.drain(..self.ready.len().saturating_sub(READY - 1));
            self.ready.push((core, player));
        }
        Ok(self.ready.last_mut().map(|(_, player)| player))
    }
}

impl Stage for Any<'_> {
    fn play(&mut self, request: &Request) -> Result<(CoreHash, Played<'_>), Unplayed> {
        let prompt = request.prompt.ok_or(Unplayed::Miss(Miss::NoPrompt))?;
        let missing = Unplayed::Miss(Miss::NotRecorded { prompt });
        let newest = self.vault.recordings_of(prompt, &self.wanted).map_err(LookupError::from)?;
        let Some(hit) = newest.first() else { return Err(missing) };
        let core = hit.artifact.core;
        let player = self.player(core)?.ok_or(missing)?;
        player.play(request).map(|played| (core, played)).map_err(Unplayed::Miss)
    }

    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash> {
        let wanted = Wanted { limit: Some(NAMED), ..Wanted::default() };
        let hits = self.vault.recordings_of(prompt, &wanted).unwrap_or_default();
        hits.into_iter().map(|hit| hit.artifact.core).collect()
    }

    fn unused(&self) -> Option<(usize, Vec<&Exchange>)> {
        None
    }

    fn unit(&self) -> &'static str {
        "interaction"
    }
}
