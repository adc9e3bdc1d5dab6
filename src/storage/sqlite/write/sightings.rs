//! Captures that are added again, until they are recorded.

use std::collections::HashSet;

use crate::digest::{CaptureHash, CoreHash};

/// Captures that were seen again and are not in the journal yet.
pub(super) struct PendingSightings {
    /// The first entry of this transaction.
    pub(super) next: i64,
    pub(super) captures: Vec<CaptureHash>,
    /// The artifact of each capture, in the same order.
    pub(super) cores: Vec<CoreHash>,
    /// Their row ids and those of their artifacts.
    pub(super) numbers: Vec<(i64, i64)>,
    pub(super) pending: HashSet<i64>,
}

impl PendingSightings {
    pub(super) fn before(entry: i64) -> Self {
        Self {
            next: entry,
            captures: Vec::new(),
            cores: Vec::new(),
            numbers: Vec::new(),
            pending: HashSet::new(),
        }
    }
}
