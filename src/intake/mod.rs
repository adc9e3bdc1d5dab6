//! From paths to verdicts: finding files, recognizing kinds by content, admitting documents.

pub mod archive;
mod candidate;
mod continuation;
mod declared_capture;
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
mod referenced_files;
mod removal;
mod tree;
mod verdict;
mod writers;

pub use crate::formats::{recognize, recognize_all};

pub use continuation::{Continuation, Predecessor};
pub(crate) use declared_capture::examine as examine_declared;
pub use declared_capture::{DECLARED_IDENTITY, DeclaredCapture};
pub use document::{examine_document, nothing_recognized};
pub use error::SourceError;
pub use inputs::Inputs;
pub use item::{Input, InputItem};
pub use opened::{OpenedInput, examine};
pub use options::ExamineOptions;
pub(crate) use original::InputLocation;
pub use original::{ArtifactSource, KeepReason, MoveOptions, MoveOutcome};
pub use polling::{PollingWatcher, Scan};
pub(crate) use referenced_files::attach;
pub use tree::FoundPath;
pub use verdict::{DocumentVerdict, Rejection};
