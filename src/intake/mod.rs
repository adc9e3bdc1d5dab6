//! From paths to verdicts: finding files, recognizing kinds by content, admitting documents.

pub mod archive;
mod document;
mod file;
mod inputs;
mod item;
mod opened;
mod original;
mod packed;
pub mod pipeline;
mod polling;
mod referenced_files;
mod removal;
mod tree;
mod verdict;
mod writers;

pub use crate::formats::{recognize, recognize_all};

pub use document::{examine_document, nothing_recognized};
pub use inputs::Inputs;
pub(crate) use item::examine as examine_declared;
pub use item::{DECLARED_IDENTITY, DeclaredCapture, Input, InputItem};
pub use opened::{OpenedInput, examine};
pub(crate) use original::InputLocation;
pub use original::{ArtifactSource, KeepReason, MoveOptions, MoveOutcome};
pub use polling::{PollingWatcher, Scan};
pub(crate) use referenced_files::attach;
pub use tree::FoundPath;
pub use verdict::{Continuation, DocumentVerdict, ExamineOptions, Predecessor, Rejection, SourceError};
