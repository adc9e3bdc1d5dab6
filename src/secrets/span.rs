//! A match before it is described.

use super::rules::SecretRule;

/// A match in bytes: the rule, and where it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretSpan {
    pub(super) rule: &'static SecretRule,
    pub(super) start: usize,
    pub(super) end: usize,
}
