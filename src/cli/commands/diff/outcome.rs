//! A comparison to print.

use runvault::vault::diff::{ArtifactComparison, DiffAnswer, DiffExtent};

/// The comparison to print.
pub(super) struct DiffOutput<'d> {
    pub(super) comparison: &'d ArtifactComparison<'d>,
    /// Everything except the changes.
    pub(super) answer: &'d DiffAnswer,
    /// Whether the first artifact is the expected one.
    pub(super) expected: bool,
    pub(super) extent: DiffExtent,
}
