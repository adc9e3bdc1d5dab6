//! A comparison to print.

use runvault::vault::diff::{Comparison, DiffAnswer, DiffExtent};

/// The comparison to print.
pub(super) struct Outcome<'d> {
    pub(super) comparison: &'d Comparison<'d>,
    /// Everything except the changes.
    pub(super) answer: &'d DiffAnswer,
    /// Whether the first artifact is the expected one.
    pub(super) expected: bool,
    pub(super) extent: DiffExtent,
}
