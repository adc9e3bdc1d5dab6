//! The import of recordings.

use std::time::Instant;

use runvault::intake::ExamineOptions;
use runvault::vault::add::CommonAnnotations;

/// What is done with what files become.
pub(super) struct ImportTask {
    pub(super) started: Instant,
    pub(super) options: ExamineOptions,
    pub(super) annotations: CommonAnnotations,
    /// Whether the search index is to be built.
    pub(super) search: bool,
}
