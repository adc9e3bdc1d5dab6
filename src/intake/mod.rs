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
pub use item::{Input, Item};
pub use opened::{Opened, examine};
pub use options::ExamineOptions;
pub(crate) use original::Place;
pub use original::{KeepReason, MoveOptions, MoveOutcome, Original};
pub use polling::{PollingWatcher, Scan};
pub use stated::{STATED, Stated};
pub use tree::FoundPath;
pub use verdict::{Rejection, Verdict};
