//! The runs that are being recorded. Their calls are not in the vault until they are finished, but in files of a directory.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::Timestamp;
use super::find::{ArtifactFilter, Condition, FindPeriod};
use super::view::Conversation;
use crate::calls::request_store::RequestRestorer;
use crate::calls::run::{CallOutcome, RunHead, StoredCall};
use crate::calls::spool_file::{self, SpoolOutline};
use crate::conversation::reader::{CallBodies, CallHead, ConversationReader, RequestBody};
use crate::conversation::response::CallResponse;
use crate::formats;
use crate::storage::interface::matches_pattern;
use crate::storage::{StorageError, TimeBasis};

/// A request for the runs that are not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UnfinishedRunsRequest {
    /// The directory with their calls; the one beside the vault if none is given.
    #[schema(value_type = Option<String>)]
    pub directory: Option<PathBuf>,
    /// What the runs must match. Their kinds are those that calls are stored as, their time of creation is that at which they
    /// began, and they have labels; nothing else is known of them, so that other conditions and times select none.
    pub filter: ArtifactFilter,
}

/// The runs that are not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnfinishedRunsAnswer {
    /// The runs, latest begun first. A run is one of them once its first call has ended.
    pub runs: Vec<UnfinishedRun>,
}

/// A run that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnfinishedRun {
    /// Whether a process records it.
    pub state: UnfinishedRunState,
    /// Its id, which its artifacts will have.
    pub run_id: String,
    /// The name that a client gave it.
    pub name: Option<String>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When its last call was made.
    pub last_call_at: Option<Timestamp>,
    /// Number of calls that have ended.
    pub calls: u64,
    /// Number of calls without a complete answer, or with an error status.
    pub failed: u64,
    /// The models that were asked, sorted.
    pub models: Vec<String>,
    /// The labels that its artifacts will have, by key.
    pub labels: BTreeMap<String, String>,
}

impl UnfinishedRun {
    fn matches(&self, filter: &ArtifactFilter) -> bool {
        let ArtifactFilter { kinds, conditions, period, digits } = filter;
        let is_stored_as =
            |name: &String| formats::named(name).is_some_and(|kind| kind.info().playback.is_some());
        let is_within = |period: &FindPeriod| {
            self.started_at.is_some_and(|at| {
                period.by == TimeBasis::Created
                    && period.since.is_none_or(|since| at >= since)
                    && period.until.is_none_or(|until| at < until)
            })
        };
        digits.is_none()
            && (kinds.is_empty() || kinds.iter().any(is_stored_as))
            && period.as_ref().is_none_or(is_within)
            && conditions.iter().all(|condition| self.has(condition))
    }

    fn has(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Label { key, value } => {
                self.labels.get(key).is_some_and(|label| value.as_ref().is_none_or(|value| value == label))
            }
            Condition::LabelLike { key, pattern } => {
                self.labels.get(key).is_some_and(|label| matches_pattern(pattern, label))
            }
            _ => false,
        }
    }
}

/// The state of a run that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnfinishedRunState {
    /// It is being recorded.
    Recording,
    /// The process that recorded it has ended. The next one stores its calls.
    Interrupted,
}

impl UnfinishedRunState {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A request for the calls so far of a run that is not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UnfinishedConversationRequest {
    /// The directory with the calls of runs; the one beside the vault if none is given.
    #[schema(value_type = Option<String>)]
    pub directory: Option<PathBuf>,
    /// The id of the run, or its name; the run that began last if none is given.
    pub run: Option<String>,
}

/// The calls so far of a run that is not finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UnfinishedConversationAnswer {
    /// The run; `None` if none that is not finished has the id or the name.
    pub run: Option<UnfinishedRun>,
    /// Its calls, in the order of their requests. The step of each is its number in the run.
    pub conversation: Conversation,
}

impl UnfinishedRunsRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the directory, or a file in it, cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<UnfinishedRunsAnswer, StorageError> {
        let files = unfinished(vault, self.directory.as_deref())?;
        let runs = files.into_iter().map(|(_, run)| run).filter(|run| run.matches(&self.filter));
        Ok(UnfinishedRunsAnswer { runs: runs.collect() })
    }
}

impl UnfinishedConversationRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the directory, or a file in it, cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<UnfinishedConversationAnswer, StorageError> {
        let is_meant = |run: &UnfinishedRun| {
            self.run.as_ref().is_none_or(|name| run.run_id == *name || run.name.as_ref() == Some(name))
        };
        let mut files = unfinished(vault, self.directory.as_deref())?.into_iter();
        let Some((path, run)) = files.find(|(_, run)| is_meant(run)) else {
            return Ok(UnfinishedConversationAnswer::default());
        };
        match spool_file::read(&path) {
            Ok(content) => {
                Ok(UnfinishedConversationAnswer { run: Some(run), conversation: conversation(content.calls) })
            }
            // It was finished in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(UnfinishedConversationAnswer::default())
            }
            Err(error) => Err(StorageError::io(&path, error)),
        }
    }
}

/// Returns the runs that are not finished, latest begun first, each with its file.
fn unfinished(
    vault: &Vault,
    directory: Option<&Path>,
) -> Result<Vec<(PathBuf, UnfinishedRun)>, StorageError> {
    let Some(directory) = directory.map(Path::to_owned).or_else(|| Vault::recordings_beside(vault.path()))
    else {
        return Ok(Vec::new());
    };
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StorageError::io(&directory, error)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| StorageError::io(&directory, error))?.path();
        if path.extension().is_none_or(|ending| ending != spool_file::ENDING) {
            continue;
        }
        match spool_file::outline(&path) {
            Ok(SpoolOutline { head: Some(head), calls }) => {
                let run = described(&path, head, &calls);
                runs.push((path, run));
            }
            // Its first line is not complete.
            Ok(_) => {}
            // It was finished in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StorageError::io(&path, error)),
        }
    }
    runs.sort_by(|(_, one), (_, other)| {
        (other.started_at, &other.run_id).cmp(&(one.started_at, &one.run_id))
    });
    Ok(runs)
}

fn described(path: &Path, head: RunHead, calls: &[spool_file::CallOutline]) -> UnfinishedRun {
    let models: BTreeSet<&String> = calls.iter().filter_map(|call| call.model.as_ref()).collect();
    UnfinishedRun {
        state: state(path),
        labels: head.all_labels(),
        run_id: head.id,
        name: head.name,
        started_at: head.started_at.map(Timestamp),
        last_call_at: calls.iter().filter_map(|call| call.requested_at).max().map(Timestamp),
        calls: calls.len() as u64,
        failed: calls.iter().filter(|call| call.is_failed()).count() as u64,
        models: models.into_iter().cloned().collect(),
    }
}

/// Returns whether a process has locked the file that says that it works on a run. The lock is shared and lasts for a moment.
fn state(path: &Path) -> UnfinishedRunState {
    let owner = File::open(spool_file::owner_of(path));
    let is_free = owner.map_or(true, |owner| owner.try_lock_shared().is_ok());
    if is_free { UnfinishedRunState::Interrupted } else { UnfinishedRunState::Recording }
}

/// Returns calls as a conversation.
fn conversation(mut calls: Vec<StoredCall>) -> Conversation {
    calls.sort_unstable_by_key(|call| call.number);
    let mut restorer = RequestRestorer::new(&calls);
    let mut reader = ConversationReader::default();
    for call in &calls {
        let payload = restorer.payload(call.number);
        let request = payload.as_deref().map(RequestBody::new);
        // Whether an answer is a failure is found out when it is read.
        let (error, answer) = match &call.outcome {
            CallOutcome::Answered(answer) => (None, Some(Cow::Borrowed(answer))),
            CallOutcome::Failed { reason, partial } => {
                let arrived = (!partial.is_empty()).then(|| CallResponse::from_text(partial.clone()));
                (Some(reason.as_str()), arrived.map(Cow::Owned))
            }
        };
        let head = CallHead {
            step: call.number,
            provider: &call.provider,
            endpoint: &call.endpoint,
            model: &call.request.model,
            prompt_hash: None,
            requested_at: call.requested_at.map(Timestamp),
            duration_ms: call.latency_ms,
            error,
            ..CallHead::default()
        };
        reader.add(&CallBodies { head, request, answer: answer.as_deref() });
    }
    reader.finish()
}
