//! From paths to verdicts: finding files, recognizing kinds by content, admitting documents.

mod agents;
pub mod archive;
mod document;
mod file;
mod inputs;
mod opened;
mod original;
pub mod pipeline;
mod polling;
mod removal;
mod tree;
mod verdict;
mod writers;

pub use crate::formats::{recognize, recognize_all};

pub use agents::{AgentContent, AgentDirectory, agent_directories};
pub use document::{examine_document, nothing_recognized};
pub(crate) use inputs::examine as examine_declared;
pub use inputs::{DECLARED_IDENTITY, DeclaredCapture, Input, InputItem, Inputs};
pub use opened::{OpenedInput, examine};
pub use original::{ArtifactSource, KeepReason, MoveOptions, MoveOutcome};
pub(crate) use original::{InputLocation, attach};
pub use polling::{PollingWatcher, Scan};
pub use tree::FoundPath;
pub use verdict::{Continuation, DocumentVerdict, ExamineOptions, Predecessor, Rejection, SourceError};
