//! Exit statuses, which are a public interface: 0 success, 1 negative result, 2 the command could not run, 3 usage
//! error.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use runvault::LookupError;
use runvault::files;
use runvault::storage::{ArtifactRecord, StorageError};
use runvault::vault::add::Summary;
use runvault::vault::bundle::BundleError;
use runvault::vault::query::HashTarget;
use runvault::vault::resolve::MentioningArtifact;

use crate::cli::commands::find::match_text;
use crate::cli::hints;
use crate::cli::output::escape::escaped;
use crate::cli::output::stdout::{self, BAD};
use crate::cli::output::stop;
use crate::cli::suggestions;

/// The status of a completed command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Done,
    /// Violations, nothing found, or differences.
    No,
    /// Something could not be read or recorded, and was already reported.
    Incomplete,
}

impl Status {
    /// Returns the worse of two statuses.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Incomplete, _) | (_, Self::Incomplete) => Self::Incomplete,
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Done, Self::Done) => Self::Done,
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
pub(crate) enum Failure {
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

impl From<io::Error> for Failure {
    /// Converts output errors; errors of named files are created where they occur.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::CouldNotRun(format!("cannot write the output: {}", files::describe(&error))),
        }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::CouldNotRun(hints::with_hint(&error))
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Broken { .. } => Self::No(hints::for_bundle(&error)),
            BundleError::Io { .. } => Self::CouldNotRun(error.to_string()),
        }
    }
}

impl From<LookupError> for Failure {
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
                let line = |artifact: &ArtifactRecord| format!("{} {}", artifact.core, artifact.kind);
                Self::Ambiguous { message, candidates: candidates.iter().map(line).collect() }
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
            | LookupError::NoSuchName(_)
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
    format!("{:.12} {} {place}", artifact.core_hash, artifact.kind)
}

/// Prints the failure, if any, and returns the exit code of the process.
pub(crate) fn exit_code(outcome: Result<Status, Failure>) -> ExitCode {
    let failure = match outcome {
        Ok(Status::Done) | Err(Failure::ClosedPipe) => return ExitCode::SUCCESS,
        Ok(Status::No) => return ExitCode::from(1),
        Ok(Status::Incomplete) => return ExitCode::from(2),
        Err(failure) => failure,
    };
    stdout::error(&failure.to_string());
    if let Failure::Ambiguous { candidates: lines, .. } | Failure::Refused { because: lines, .. } = &failure {
        for line in lines {
            stdout::message(&format!("  {}", escaped(line)));
        }
    }
    ExitCode::from(match failure {
        Failure::No(_) | Failure::Ambiguous { .. } | Failure::Refused { .. } => 1,
        Failure::CouldNotRun(_) => 2,
        Failure::Usage(_) => 3,
        Failure::Interrupted | Failure::Stopped => stop::INTERRUPTED,
        Failure::ClosedPipe => 0,
    })
}

/// Prints help, or a usage error.
pub(crate) fn usage_exit_code(error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        stdout::help(&error.render().ansi().to_string());
        return ExitCode::SUCCESS;
    }
    match suggestion(&error) {
        Some(suggestion) => stdout::error(&suggestion),
        None => stdout::message(&usage_text(error)),
    }
    ExitCode::from(3)
}

/// Returns the error for a command that does not exist here but is known from other programs.
fn suggestion(error: &clap::Error) -> Option<String> {
    let ContextValue::String(name) = error.get(ContextKind::InvalidSubcommand)? else { return None };
    Some(format!("there is no command {name}; {}", suggestions::for_command(name)?))
}

/// Returns the text of a usage error. Arguments may be file names from untrusted sources, so they are escaped in place,
/// and the complete text once more.
fn usage_text(mut error: clap::Error) -> String {
    let harmless = |text: &String| escaped(text).to_string();
    let context: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(harmless(text)))),
            ContextValue::Strings(texts) => {
                Some((kind, ContextValue::Strings(texts.iter().map(harmless).collect())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in context {
        error.insert(kind, value);
    }
    let text = error.to_string();
    let lines: Vec<String> = text.trim_end().lines().map(|line| escaped(line).to_string()).collect();
    let text = lines.join("\n");
    match text.strip_prefix("error:") {
        Some(rest) => format!("{BAD}error:{BAD:#}{rest}"),
        None => text,
    }
}
