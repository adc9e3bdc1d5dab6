//! Sources of responses: one recording, or all in the vault.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use runvault::LookupError;
use runvault::Vault;
use runvault::artifact::{Arguments, Exchange};
use runvault::digest::{CoreHash, Digest};
use runvault::display::escaped;
use runvault::vault::columns::identifying_values;
use runvault::vault::details::Detail;
use runvault::vault::find::{ArtifactMatch, FoundArtifact};
use runvault::vault::recordings::{RecordingFilter, RecordingsAnswer, RecordingsRequest};
use runvault::vault::replay::{Occurrence, PlayedResponse, Player, PlayerRequest, Repeat, ReplayMiss};

use crate::cli::args::hash::Prompt;
use crate::cli::output::exit::CommandError;
use crate::cli::output::matches::artifact_label;
use crate::cli::output::report;
use crate::cli::output::stdout::{self, HASH};

/// Maximum number of other recordings named when a prompt is not found.
pub(super) const NAMED: usize = 5;

/// A source of responses.
pub(crate) trait ResponseSource {
    /// Returns the response, and the artifact that recorded it.
    fn play(&mut self, request: &PlayerRequest) -> Result<(CoreHash, PlayedResponse<'_>), PlaybackError>;

    /// Returns the vault with the recordings.
    fn vault(&self) -> &Vault;

    /// Returns the digests of the arguments of the recorded calls. Sessions record prompts only.
    fn arguments(&self) -> Vec<Digest> {
        Vec::new()
    }

    /// Returns other recordings in which a missing prompt can be looked up.
    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash>;

    /// Returns the number of recorded exchanges, and the unused ones; `None` if unknown.
    fn unused(&self) -> Option<(usize, Vec<&Exchange>)> {
        None
    }

    /// Returns the occurrence number of an exchange among those of its prompt, if there are several.
    fn occurrence(&self, exchange: &Exchange) -> Option<Occurrence> {
        let _ = exchange;
        None
    }

    /// Returns the unit of the recording.
    fn unit(&self) -> &'static str {
        "interaction"
    }
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
            report::say_which(self.vault, core, located.capture.capture)?;
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

    fn elsewhere(&self, prompt: Digest) -> Vec<CoreHash> {
        elsewhere(self.vault, prompt)
    }
}

/// The number up to which recordings are counted.
const COUNTED: u64 = 1_000;

/// Reports what is missing, and which other recordings contain it.
pub(super) fn report(
    vault: &Vault,
    miss: &ReplayMiss,
    prompt: &Prompt,
    tried: Option<CoreHash>,
) -> Result<(), CommandError> {
    match tried {
        Some(core) => stdout::error(&format!("{core:.12}: {miss}")),
        None if matches!(miss, ReplayMiss::NotRecorded { .. }) => {
            stdout::error(&format!("none of the selected sessions recorded the prompt {}", prompt.digest));
        }
        None => stdout::error(&miss.to_string()),
    }
    if !matches!(miss, ReplayMiss::NotRecorded { .. }) {
        return Ok(());
    }
    if let Some((how, hit)) = spelled_otherwise(vault, prompt, tried)? {
        stdout::message(&format!("  {} has it {how}", text(&hit)));
    }
    let RecordingsAnswer { recordings: mut others, next } = recordings(vault, prompt.digest)?;
    others.retain(|hit| Some(hit.artifact.core_hash) != tried);
    for hit in others.iter().take(NAMED) {
        stdout::message(&format!("  {} has it", text(hit)));
    }
    match (others.as_slice(), others.len().saturating_sub(NAMED)) {
        ([], _) if tried.is_some() => stdout::message("  no other session in the vault has it"),
        ([], _) => {}
        ([first, ..], more) => {
            let than = if next.is_some() { "more than " } else { "" };
            if more > 0 {
                stdout::message(&format!("  and {than}{more} more, which \"runvault find sessions\" lists"));
            }
            let (core, digest) = (first.artifact.core_hash, prompt.digest);
            stdout::message(&format!("\"runvault replay {core:.12} --prompt-hash {digest}\" replays it"));
        }
    }
    Ok(())
}

/// Returns the recordings of a prompt, with their labels.
fn recordings(vault: &Vault, prompt: Digest) -> Result<RecordingsAnswer, CommandError> {
    let details = vec![Detail::Attributes];
    let request = RecordingsRequest { limit: Some(COUNTED), details, ..RecordingsRequest::new(prompt) };
    Ok(vault.run(&request)?)
}

/// Describes a session: its hash, the location of the prompt, and its label.
fn text(hit: &FoundArtifact) -> String {
    let first = hit.matches.iter().find_map(|found| match found {
        ArtifactMatch::Mention { place, .. } => Some(escaped(&place.to_string()).to_string()),
        _ => None,
    });
    let label = artifact_label(identifying_values(hit.details.attributes.as_deref().unwrap_or_default()));
    let (core, place) = (hit.artifact.core_hash, first.unwrap_or_default());
    format!("{HASH}{core:.12}{HASH:#} ({place}, {label})")
}

/// Returns a variant of the prompt that was recorded, and where: editors and shells change white space and line ends.
fn spelled_otherwise(
    vault: &Vault,
    prompt: &Prompt,
    tried: Option<CoreHash>,
) -> Result<Option<(&'static str, FoundArtifact)>, CommandError> {
    let Some(text) = prompt.bytes.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return Ok(None);
    };
    let spellings = [
        ("without surrounding white space", text.trim().to_owned()),
        ("with a trailing line feed", format!("{text}\n")),
        ("with LF line endings", text.replace("\r\n", "\n")),
    ];
    for (how, spelling) in spellings {
        let hits = recordings(vault, Digest::from_content(spelling.as_bytes()))?.recordings;
        let here = |hit: &FoundArtifact| tried.is_none_or(|core| core == hit.artifact.core_hash);
        if let Some(hit) = hits.into_iter().find(here).filter(|_| spelling != text) {
            return Ok(Some((how, hit)));
        }
    }
    Ok(None)
}
