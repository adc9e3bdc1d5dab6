//! From paths to verdicts: finding files, recognizing kinds by content, admitting documents.

pub mod archive;
mod beside;
mod candidate;
mod continuation;
mod directory;
mod document;
mod error;
mod file;
mod found;
mod inputs;
mod item;
mod opened;
mod options;
mod original;
mod packed;
pub mod pipeline;
mod polling;
mod removing;
mod stated;
mod tree;
mod verdict;
mod writers;

pub use crate::formats::{recognize, recognize_all};

pub(crate) use beside::attach;
pub use continuation::{Continuation, Predecessor};
pub use document::{examine_document, nothing_recognized};
pub use error::SourceError;
pub use inputs::Inputs;
pub use item::{Input, InputItem};
pub use opened::{OpenedInput, examine};
pub use options::ExamineOptions;
pub(crate) use original::InputLocation;
pub use original::{ArtifactSource, KeepReason, MoveOptions, MoveOutcome};
pub use polling::{PollingWatcher, Scan};
pub use stated::{DECLARED_IDENTITY, DeclaredCapture};
pub use tree::FoundPath;
pub use verdict::{DocumentVerdict, Rejection};
