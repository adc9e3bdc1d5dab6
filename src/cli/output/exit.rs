//! Exit statuses, which are a public interface: 0 success, 1 negative result, 2 the command could not run, 3 usage
//! error.

use std::io::{self, ErrorKind};

use runvault::LookupError;
use runvault::digest::CoreHash;
use runvault::files;
use runvault::formats;
#[cfg(feature = "gateway")]
use runvault::gateway::{FinishError, StartError};
use runvault::recorders::ConvertError;
use runvault::storage::{ArtifactRecord, StorageError};
use runvault::vault::HashTarget;
use runvault::vault::add::Summary;
use runvault::vault::bundle::BundleError;
use runvault::vault::resolve::MentioningArtifact;

use crate::cli::hints;
use crate::cli::output::matches::match_text;

/// The status of a completed command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Done,
    /// Violations, nothing found, or differences.
    No,
    /// Something could not be read or recorded, and was already reported.
    Incomplete,
    /// A program ended with this status.
    #[cfg(feature = "gateway")]
    OfProgram(u8),
}

impl Status {
    /// Returns the worse of two statuses.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Incomplete, _) | (_, Self::Incomplete) => Self::Incomplete,
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Done, Self::Done) => Self::Done,
            #[cfg(feature = "gateway")]
            (program @ Self::OfProgram(_), _) | (_, program @ Self::OfProgram(_)) => program,
        }
    }

    /// Returns the status of a command that examined documents.
    pub(crate) fn from_summary(summary: &Summary) -> Self {
        match summary {
            Summary { unreadable: 1.., .. } | Summary { unrecorded: 1.., .. } => Self::Incomplete,
            Summary { rejected: 1.., .. } => Self::No,
            _ => Self::Done,
        }
    }
}

/// The reason that a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A negative result, with its reason.
    #[error("{0}")]
    No(String),
    /// A hash is ambiguous; contains the candidates.
    #[error("{message}")]
    Ambiguous { message: String, candidates: Vec<String> },
    /// A negative result, with its reasons.
    #[error("{message}")]
    Refused { message: String, because: Vec<String> },
    /// The command could not run.
    #[error("{0}")]
    CouldNotRun(String),
    /// A usage error.
    #[error("{0}")]
    Usage(String),
    /// Interrupted by Ctrl-C, with all unfinished work undone.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// Interrupted by Ctrl-C, with everything that was reported stored.
    #[error("interrupted; the other inputs were not examined")]
    Stopped,
    /// The output was closed by its reader.
    #[error("the output was closed")]
    ClosedPipe,
}

impl From<io::Error> for CommandError {
    /// Converts output errors; errors of named files are created where they occur.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::CouldNotRun(format!("cannot write the output: {}", files::describe(&error))),
        }
    }
}

impl From<StorageError> for CommandError {
    fn from(error: StorageError) -> Self {
        Self::CouldNotRun(hints::with_hint(&error))
    }
}

impl From<ConvertError> for CommandError {
    fn from(error: ConvertError) -> Self {
        Self::No(hints::for_recording(&error))
    }
}

impl From<BundleError> for CommandError {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Broken { .. } => Self::No(hints::for_bundle(&error)),
            BundleError::Io { .. } => Self::CouldNotRun(error.to_string()),
        }
    }
}

#[cfg(feature = "gateway")]
impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Vault(error) => error.into(),
            StartError::NoRecording(_) => Self::No(error.to_string()),
            StartError::Listen { .. } => Self::CouldNotRun(error.to_string()),
        }
    }
}

#[cfg(feature = "gateway")]
impl From<FinishError> for CommandError {
    fn from(error: FinishError) -> Self {
        Self::CouldNotRun(error.to_string())
    }
}

impl From<LookupError> for CommandError {
    fn from(error: LookupError) -> Self {
        let message = hints::with_hint(&error);
        match error {
            LookupError::Store(_) | LookupError::Unreadable { .. } => Self::CouldNotRun(message),
            LookupError::Ambiguous { candidates, .. } => {
                let line = |candidate: &HashTarget| match candidate {
                    HashTarget::Artifact(core) => format!("{core} artifact"),
                    HashTarget::Capture(core, capture) => format!("{capture} capture of {core}"),
                };
                Self::Ambiguous { message, candidates: candidates.iter().map(line).collect() }
            }
            LookupError::AmbiguousName { candidates, .. } => {
                let line = |artifact: &ArtifactRecord| {
                    format!("{} {}", artifact.core, formats::bare_noun(&artifact.kind))
                };
                Self::Ambiguous { message, candidates: candidates.iter().map(line).collect() }
            }
            LookupError::AmbiguousHandle { meanings, .. } => {
                let line = |(form, core): &(String, CoreHash)| format!("{core} {form}");
                Self::Ambiguous { message, candidates: meanings.iter().map(line).collect() }
            }
            LookupError::AmbiguousMention { candidates, .. } => {
                Self::Ambiguous { message, candidates: candidates.iter().map(ToString::to_string).collect() }
            }
            LookupError::Mentioned(mentioned) => Self::Refused {
                message: format!(
                    "{message}; \"runvault find --mentions {:.12}\" lists them",
                    mentioned.digest
                ),
                because: mentioned.artifacts.iter().map(mentioning).collect(),
            },
            LookupError::SeveralMembers { .. } => Self::Usage(message),
            LookupError::NotFound(_)
            | LookupError::NoSuchName { .. }
            | LookupError::NotMentioned { .. }
            | LookupError::Removed(_)
            | LookupError::NoSuchTag(_)
            | LookupError::LatestOutOfRange { .. }
            | LookupError::CaptureNotFound { .. }
            | LookupError::KindMismatch { .. }
            | LookupError::NotARun { .. }
            | LookupError::NoRecording { .. } => Self::No(message),
        }
    }
}

/// Describes an artifact that mentions a hash.
fn mentioning(MentioningArtifact { artifact, matches }: &MentioningArtifact) -> String {
    let place = matches.first().map(match_text).unwrap_or_default();
    format!("{:.12} {} {place}", artifact.core_hash, formats::bare_noun(&artifact.kind))
}
