//! The result of an audit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::formats::Effect;
use crate::json::Value;
use crate::validation::Report;

/// The result of an audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The effects of the contract, in order.
    pub effects: Vec<AuditedEffect>,
    /// Violations of the contract, and what could not be checked. Errors are breaches, warnings are not.
    pub report: Report,
}

impl Audit {
    /// Returns whether there is at least one effect, all effects are verified, and the run does not violate the
    /// contract.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_verified = |effect: &AuditedEffect| effect.verdict == Verdict::Verified;
        self.report.is_acceptable() && !self.effects.is_empty() && self.effects.iter().all(is_verified)
    }
}

/// The audit result of one effect.
#[derive(Clone, Debug)]
pub struct AuditedEffect {
    /// The effect.
    pub effect: Effect,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub because: String,
    /// The value that determined the verdict, unless it is pending.
    pub source: Option<EvidenceSource>,
}

/// The verdict on an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The run has no source of evidence.
    Pending,
    /// There is a source, but no proof of success.
    Inconclusive,
    /// The source proves the effect.
    Verified,
    /// The source disproves the effect.
    Failed,
}

impl Verdict {
    /// Returns the machine-readable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Inconclusive => "inconclusive",
            Self::Verified => "verified",
            Self::Failed => "failed",
        }
    }
}

/// A value used as evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceSource {
    /// Its location as text, such as `step 6`.
    pub place: String,
    /// The value, unless it is a list or an object.
    pub value: Option<Value<'static>>,
}
