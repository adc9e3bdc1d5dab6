//! The decision of a policy on an artifact.

use chrono::{DateTime, Utc};

use super::policy::Policy;
use super::reason::{RetentionReason, RetentionRuleMiss};
use crate::storage::ArtifactRecord;

/// The group of an artifact: the name and the values of each key of the policy.
pub type RetentionGroup = Vec<(String, Vec<String>)>;

/// The decision on an artifact.
#[derive(Clone, Debug)]
pub struct ArtifactDecision {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The group.
    pub group: RetentionGroup,
    /// The time that is used, if the artifact has it.
    pub at: Option<DateTime<Utc>>,
    /// The total size of its captures in bytes.
    pub size: u64,
    /// The reasons to keep it; it is to be removed if there are none.
    pub reasons: Vec<RetentionReason>,
    /// The reasons that rules do not keep it.
    pub misses: Vec<RetentionRuleMiss>,
}

impl ArtifactDecision {
    /// Returns whether it is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// Returns why it is kept, or why no rule of `policy` keeps it.
    #[must_use]
    pub fn descriptions(&self, policy: &Policy) -> Vec<String> {
        if self.is_kept() {
            self.reasons.iter().map(RetentionReason::text).collect()
        } else {
            self.misses.iter().map(|miss| miss.text(policy)).collect()
        }
    }
}
