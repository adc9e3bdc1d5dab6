//! Everything that looks like a secret.

use super::span::SecretSpan;
use super::{card, words};

/// Returns whether something in `bytes` looks like a secret.
pub(super) fn is_found(bytes: &[u8]) -> bool {
    !spans(bytes).is_empty()
}

/// Returns what looks like a secret in `bytes`: keys, then card numbers.
pub(super) fn spans(bytes: &[u8]) -> Vec<SecretSpan> {
    let mut spans = words::find(bytes);
    spans.extend(card::find(bytes));
    spans
}
