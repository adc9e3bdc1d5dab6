//! Looks up the recorded response to a prompt, and lists the responses of a recording.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Occurrence, PlayedResponse, Player, PlayerError, PlayerRequest, ReplayMiss, ReplayMode};
use crate::artifact::{Arguments, Exchange};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::storage::{Snapshot, StorageError};
use crate::vault::Vault;
use crate::vault::api::JsonText;
use crate::vault::recordings::{RecordingFilter, recordings};
use crate::vault::resolve::{LocatedCapture, LookupError, document, locate};

/// A request for the recorded response to a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// The SHA-256 of the prompt.
    pub prompt: Digest,
    /// The recording; the one that was last added or seen again if there is none.
    #[serde(default)]
    pub artifact: Option<CoreHash>,
    /// The capture of the recording; the preferred one if there is none.
    #[serde(default)]
    pub capture_hash: Option<CaptureHash>,
    /// What the recording must match, if none is given.
    #[serde(default)]
    pub filter: RecordingFilter,
    /// Which recording of the prompt, from 1; the first if there is none.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub occurrence: Option<NonZeroUsize>,
    /// The number of the call, from 0, if calls must be in recorded order.
    #[serde(default)]
    pub call: Option<usize>,
}

/// The recorded response to a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayAnswer {
    /// The recording.
    pub core_hash: CoreHash,
    /// Its capture.
    pub capture_hash: CaptureHash,
    /// The number of the interaction or step, from 0.
    pub index: usize,
    /// The SHA-256 of the prompt.
    pub prompt_hash: Digest,
    /// The SHA-256 of the response.
    pub response_hash: Digest,
    /// The response.
    pub response: String,
    /// Which recording of the prompt this is, from 1.
    pub occurrence: usize,
    /// Number of recordings of the prompt.
    pub occurrences: usize,
}

/// The reason that there is no recorded response.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording cannot be read.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// There is no response, or an error was recorded.
    #[error("{miss}")]
    Miss {
        /// The recording, if there is one.
        core: Option<CoreHash>,
        /// The reason.
        miss: Box<ReplayMiss>,
    },
}

impl From<StorageError> for ReplayError {
    fn from(error: StorageError) -> Self {
        Self::Lookup(error.into())
    }
}

impl ReplayRequest {
    /// Creates a request for the response to a prompt in the newest recording.
    #[must_use]
    pub fn new(prompt: Digest) -> Self {
        let filter = RecordingFilter::default();
        Self { prompt, artifact: None, capture_hash: None, filter, occurrence: None, call: None }
    }

    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`ReplayError::Miss`] if there is no response, or an error was recorded, and [`ReplayError::Lookup`] if the
    /// artifact records no responses or cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ReplayAnswer, ReplayError> {
        let snapshot = vault.snapshot()?;
        let missed =
            |core: Option<CoreHash>, miss: ReplayMiss| ReplayError::Miss { core, miss: Box::new(miss) };
        let core = if let Some(core) = self.artifact {
            core
        } else {
            let newest = recordings(&*snapshot, self.prompt, &self.filter, None, 1)?.pop();
            let not_recorded = || missed(None, ReplayMiss::NotRecorded { prompt: self.prompt });
            newest.ok_or_else(not_recorded)?.artifact.core
        };
        let located = stored_capture(&*snapshot, core, self.capture_hash)?;
        let mut player = player(&*snapshot, &located)?;
        if let Some(call) = self.call {
            player = player.in_mode(ReplayMode::Sequential).from_call(call);
        }
        let request = PlayerRequest { occurrence: self.occurrence, ..PlayerRequest::prompt(self.prompt) };
        let response = player.play(&request).map_err(|miss| missed(self.artifact, miss))?;
        Ok(ReplayAnswer::new(&located, self.prompt, response))
    }
}

/// Returns a stored artifact and the capture with this hash, or its preferred one.
fn stored_capture(
    snapshot: &dyn Snapshot,
    core: CoreHash,
    capture: Option<CaptureHash>,
) -> Result<LocatedCapture, LookupError> {
    let artifact = snapshot.expect_artifact(core)?;
    let Some(hash) = capture else { return locate(snapshot, &core.0.into()) };
    let capture = snapshot.capture(core, hash)?;
    let capture = capture.ok_or(LookupError::CaptureNotFound { core, capture: hash.0.into() })?;
    Ok(LocatedCapture { artifact, capture })
}

impl ReplayAnswer {
    fn new(located: &LocatedCapture, prompt_hash: Digest, played: PlayedResponse<'_>) -> Self {
        let PlayedResponse { exchange: Exchange { index, response, .. }, occurrence } = played;
        let Occurrence { number, of } = occurrence.unwrap_or(Occurrence { number: 1, of: 1 });
        Self {
            core_hash: located.artifact.core,
            capture_hash: located.capture.capture,
            index: *index,
            prompt_hash,
            response_hash: Digest::from_content(response.as_bytes()),
            response: response.clone(),
            occurrence: number,
            occurrences: of,
        }
    }
}

/// A request for the recorded responses of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponsesRequest {
    /// The recording.
    pub artifact: CoreHash,
    /// Its capture; the preferred one if there is none.
    #[serde(default)]
    pub capture_hash: Option<CaptureHash>,
    /// Maximum number of responses; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    #[serde(default)]
    pub after: Option<u64>,
}

/// The recorded responses of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResponsesAnswer {
    /// The unit in which they are counted: `interaction` or `step`.
    pub unit: String,
    /// The responses, in recorded order.
    pub responses: Vec<RecordedResponse>,
    /// Number of all responses.
    pub count: u64,
    /// The end of this page; `None` if it is the last one.
    pub next: Option<u64>,
}

/// A recorded response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedResponse {
    /// The number of the interaction or step, from 0.
    pub index: usize,
    /// `model` or `tool`.
    pub responder: String,
    /// The name of the tool, if it was recorded.
    pub tool: Option<String>,
    /// The complete recorded response; `None` for interactions of sessions.
    #[schema(value_type = JsonText, required = false)]
    pub output: Option<JsonText>,
    /// The digests of the texts in the request, with the actual prompt last.
    pub prompt_hashes: Vec<Digest>,
    /// The arguments of the tool call, in the form in which calls are compared; `None` if they are not known.
    #[schema(value_type = JsonText, required = false)]
    pub arguments: Option<JsonText>,
    /// The digest of the arguments.
    pub arguments_hash: Option<Digest>,
    /// The text of the response.
    pub response: String,
    /// Whether the call failed: the response is then the recorded error message.
    pub is_error: bool,
}

impl ResponsesRequest {
    /// Creates a request for all responses of an artifact.
    #[must_use]
    pub fn new(artifact: CoreHash) -> Self {
        Self { artifact, capture_hash: None, limit: None, after: None }
    }

    /// Runs the request, and passes the responses to `visit` one at a time. The answer contains everything else.
    ///
    /// # Errors
    /// Same as [`ResponsesRequest::run`], and any error that `visit` returns.
    pub fn visit<E: From<LookupError>>(
        &self,
        vault: &Vault,
        visit: &mut dyn FnMut(&str, RecordedResponse) -> Result<(), E>,
    ) -> Result<ResponsesAnswer, E> {
        let player = self.player(vault)?;
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (after, limit) = (self.after.unwrap_or(0), self.limit.unwrap_or(u64::MAX));
        for exchange in player.exchanges().skip(count(after)).take(count(limit)) {
            visit(player.unit(), exchange.into())?;
        }
        let all = player.exchanges().len() as u64;
        let end = after.saturating_add(limit);
        let next = (end < all).then_some(end);
        Ok(ResponsesAnswer { unit: player.unit().to_owned(), responses: Vec::new(), count: all, next })
    }

    fn player(&self, vault: &Vault) -> Result<Player, LookupError> {
        let snapshot = vault.snapshot()?;
        player(&*snapshot, &stored_capture(&*snapshot, self.artifact, self.capture_hash)?)
    }

    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::NoRecording`] if the artifact records no responses, [`LookupError::CaptureNotFound`] if it has
    /// no such capture, [`LookupError::Unreadable`] if this program cannot interpret it, and [`LookupError::Store`] if it
    /// cannot be read: of the kind [`Gone`](crate::storage::ErrorKind::Gone) if it is not in the vault.
    pub fn run(&self, vault: &Vault) -> Result<ResponsesAnswer, LookupError> {
        let mut responses = Vec::new();
        let answer = self.visit::<LookupError>(vault, &mut |_, response| {
            responses.push(response);
            Ok(())
        })?;
        Ok(ResponsesAnswer { responses, ..answer })
    }
}

impl From<&Exchange> for RecordedResponse {
    fn from(exchange: &Exchange) -> Self {
        let Exchange { index, responder, prompts, tool, arguments, response, output, is_error, .. } =
            exchange;
        Self {
            index: *index,
            responder: responder.name().to_owned(),
            tool: tool.clone(),
            output: output.as_deref().and_then(JsonText::parse),
            prompt_hashes: prompts.clone(),
            arguments: arguments.as_ref().and_then(|arguments| JsonText::parse(arguments.as_json())),
            arguments_hash: arguments.as_ref().map(Arguments::digest),
            response: response.clone(),
            is_error: *is_error,
        }
    }
}

impl Vault {
    /// Returns a player of a located artifact: by prompt for a session, in sequence for a run.
    ///
    /// ```
    /// # use runvault::{Vault, intake::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let mut player = vault.player(&vault.locate(&"4df877dec7f4".parse()?)?)?;
    /// assert_eq!(player.respond("Which label fits ticket 4711: bug, question or billing?")?, "bug");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`LookupError::NoRecording`] if its kind records no responses; otherwise the same as [`Vault::read`].
    pub fn player(&self, located: &LocatedCapture) -> Result<Player, LookupError> {
        player(&*self.snapshot()?, located)
    }
}

/// Returns a player of a located artifact.
pub(super) fn player(snapshot: &dyn Snapshot, located: &LocatedCapture) -> Result<Player, LookupError> {
    let (core, kind) = (located.artifact.core, &located.artifact.kind);
    let none = || LookupError::NoRecording { core, kind: kind.clone() };
    let known = formats::named(kind).filter(|kind| kind.info().playback.is_some()).ok_or_else(none)?;
    let document = document(snapshot, located)?;
    Player::for_admitted(known, &document).map_err(|error| match error {
        PlayerError::RecordsNothing(_) => none(),
        error => LookupError::Unreadable { core, message: error.to_string() },
    })
}
