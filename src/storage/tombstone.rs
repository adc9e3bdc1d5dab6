//! Records of removals.

use chrono::{DateTime, Utc};

use super::entry::Entry;
use crate::digest::{CoreHash, Digest};

/// The journal's record of a removal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tombstone {
    /// The removed core hash or capture hash.
    pub digest: Digest,
    /// The number of the entry.
    pub entry: u64,
    /// The time of the removal.
    pub at: DateTime<Utc>,
    /// The core hash of the artifact.
    pub core: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// The actor.
    pub actor: Option<String>,
    /// The reason.
    pub reason: Option<String>,
    /// Number of remaining captures of the artifact.
    pub left: u64,
    /// Number of bytes that were removed.
    pub size: u64,
}

impl Tombstone {
    /// Returns the tombstone of a digest that an entry removes; `None` if the entry removes nothing. Times have milliseconds.
    pub(super) fn new(
        change: &Entry,
        digest: Digest,
        entry: u64,
        at: DateTime<Utc>,
        actor: Option<&str>,
    ) -> Option<Self> {
        let Entry::Remove { core, kind, left, reason, size, .. } = change else { return None };
        let (actor, kind, reason) = (actor.map(str::to_owned), kind.clone(), reason.clone());
        let at = DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at);
        Some(Self { digest, entry, at, core: *core, kind, actor, reason, left: *left, size: *size })
    }

    /// Describes the removal: `removed by dana on 2026-11-20 13:04:03 UTC: names a customer`, with the actor and the
    /// reason if they are recorded.
    #[must_use]
    pub fn removal(&self) -> String {
        let by = self.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("removed{by} on {}{why}", self.at.format("%Y-%m-%d %H:%M:%S UTC"))
    }
}
