//! Verdicts on effects, from the collected evidence.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::collect::{CollectedEvidence, EvidenceCollector, EvidenceValue, ExpectedContent};
use super::judge::{EvidenceJudgment, ObservedValue, judge};
use crate::digest::Digest;
use crate::formats::{Effect, Evidence};
use crate::json::Value;
use crate::json::reader::excerpt;
use crate::validation::Report;

/// Resolved digests: descriptions of the bytes that they were computed from.
type ResolvedDigests = HashMap<Digest, String>;

/// Returns the digests that are evidence and have no otherwise defined content.
pub(super) fn digests_to_resolve(collector: &EvidenceCollector<'_>) -> HashSet<Digest> {
    let own = sightings_of(collector)
        .own
        .iter()
        .flat_map(|(effect, sightings)| sightings.iter().map(|one| (*effect, one)));
    let unexplained = own.filter_map(|(effect, sighting)| {
        let evidence = collector.terms.effects.get(effect)?.evidence.as_ref()?;
        match (judge(evidence, &sighting.seen), &sighting.expected) {
            (EvidenceJudgment::Digest(digest), None) => Some(digest),
            _ => None,
        }
    });
    unexplained.collect()
}

/// Returns the evidence that counts: if a run names any call, only that of named calls.
fn sightings_of<'c>(collector: &'c EvidenceCollector<'_>) -> &'c CollectedEvidence {
    if collector.is_named { &collector.of_named } else { &collector.of_unnamed }
}

/// Returns the audit results of all effects.
pub(super) fn audited_effects(
    collector: &EvidenceCollector<'_>,
    known: &ResolvedDigests,
) -> Vec<AuditedEffect> {
    let effects = collector.terms.effects.iter().enumerate();
    effects.map(|(index, effect)| EffectEvaluation { collector, known, index, effect }.audited()).collect()
}

/// An effect with the data to judge it.
struct EffectEvaluation<'c, 't> {
    collector: &'c EvidenceCollector<'t>,
    known: &'c ResolvedDigests,
    index: usize,
    effect: &'t Effect,
}

/// The decisive value for an effect.
struct DecisiveEvidence<'c> {
    verdict: Verdict,
    why: String,
    sighting: &'c EvidenceValue,
}

impl<'c> EffectEvaluation<'c, '_> {
    fn audited(&self) -> AuditedEffect {
        let effect = self.effect.clone();
        let Some(evidence) = &self.effect.evidence else {
            return pending(effect, "the contract states no evidence".to_owned());
        };
        let Some(name) = name_of(evidence) else { return pending(effect, unusable(evidence)) };
        let Some(DecisiveEvidence { verdict, why, sighting }) = self.decision(evidence) else {
            let why = self.why_pending(&name);
            return pending(effect, why);
        };
        let EvidenceValue { place, seen, .. } = sighting;
        let because = format!("{name} is {} at {place}, {why}", seen.shown());
        let value = match seen {
            ObservedValue::Plain(value) => Some(value.clone()),
            ObservedValue::Other(_) => None,
        };
        let source = Some(EvidenceSource { place: place.clone(), value });
        AuditedEffect { effect, verdict, because, source }
    }

    fn decision(&self, evidence: &Evidence) -> Option<DecisiveEvidence<'c>> {
        let own = self.own(evidence);
        let Some((others, sighting)) = self.shared() else { return own };
        match own {
            Some(decision) if decision.verdict != Verdict::Verified => Some(decision),
            _ => {
                let why =
                    format!("which could also belong to {others}: neither the run nor the contract decides");
                Some(DecisiveEvidence { verdict: Verdict::Inconclusive, why, sighting })
            }
        }
    }

    /// Decides by the values that are evidence of this effect only.
    fn own(&self, evidence: &Evidence) -> Option<DecisiveEvidence<'c>> {
        let sightings = sightings_of(self.collector).own.get(&self.index)?;
        // For each attempt, only the values of its last call count.
        let mut last: BTreeMap<(Digest, bool), usize> = BTreeMap::new();
        for sighting in sightings {
            let call = last.entry((sighting.attempt, sighting.is_keyed)).or_default();
            *call = sighting.call.max(*call);
        }
        let counts = |one: &&EvidenceValue| last.get(&(one.attempt, one.is_keyed)) == Some(&one.call);
        let latest = sightings.iter().map(|one| one.call).max()?;
        let decisions = sightings.iter().filter(counts).map(|sighting| {
            let (verdict, why) = self.judged(evidence, sighting);
            DecisiveEvidence { verdict, why, sighting }
        });
        // A later success makes up for an attempt that is not known to have failed, unless that attempt has its own
        // key.
        let matters = |one: &DecisiveEvidence<'_>| {
            one.verdict == Verdict::Failed || one.sighting.is_keyed || one.sighting.call == latest
        };
        decisions.filter(matters).max_by_key(|one| (rank(one.verdict), one.sighting.call))
    }

    fn judged(&self, evidence: &Evidence, sighting: &EvidenceValue) -> (Verdict, String) {
        match judge(evidence, &sighting.seen) {
            EvidenceJudgment::Verified(why) => (Verdict::Verified, why),
            EvidenceJudgment::Inconclusive(why) => (Verdict::Inconclusive, why),
            EvidenceJudgment::Failed(why) => (Verdict::Failed, why),
            EvidenceJudgment::Digest(digest) => self.judged_digest(digest, sighting.expected.as_ref()),
        }
    }

    fn judged_digest(&self, digest: Digest, expected: Option<&ExpectedContent>) -> (Verdict, String) {
        if let Some(ExpectedContent { what, digests }) = expected {
            return match digests.first() {
                Some(_) if digests.contains(&digest) => (Verdict::Verified, format!("the digest of {what}")),
                Some(is) => (Verdict::Failed, format!("which is not the digest of {what}: that is {is}")),
                None => (
                    Verdict::Inconclusive,
                    format!("which must be the digest of {what}, which does not exist"),
                ),
            };
        }
        match self.known.get(&digest) {
            Some(what) => (Verdict::Verified, format!("the digest of {what}")),
            None if digest == Digest::from_content(b"") => {
                (Verdict::Inconclusive, "the digest of zero bytes".to_owned())
            }
            None => (
                Verdict::Inconclusive,
                "which is not the digest of anything in the run or the vault".to_owned(),
            ),
        }
    }

    /// Returns a value that may be evidence of this effect or of others, and the names of the others.
    fn shared(&self) -> Option<(String, &'c EvidenceValue)> {
        let sightings = sightings_of(self.collector);
        let pools = self.collector.pools.with(self.index, self.collector.is_named).iter();
        let found = pools.flat_map(|pool| {
            let classes = self.collector.pools.classes_of(*pool, self.index, self.collector.terms);
            classes.into_iter().filter_map(|class| Some((*pool, sightings.shared.get(&(*pool, class))?)))
        });
        let (pool, sighting) = found.max_by_key(|(_, sighting)| sighting.call)?;
        let other = self.collector.pools.another(pool, self.index)?;
        let other = self.collector.terms.effects.get(other).map(|effect| excerpt(&effect.name));
        Some((other.unwrap_or_default(), sighting))
    }

    fn why_pending(&self, name: &str) -> String {
        let sightings = sightings_of(self.collector);
        let pools = self.collector.pools.with(self.index, self.collector.is_named);
        let owner = pools.iter().find_map(|pool| sightings.owned.get(pool));
        if let Some((owner, place)) = owner.filter(|(owner, _)| *owner != self.index) {
            let owner = self.collector.terms.effects.get(*owner).map(|effect| excerpt(&effect.name));
            let owner = owner.unwrap_or_default();
            return format!(
                "{name} at {place} is assigned to {owner}; no call is known to belong to this effect"
            );
        }
        if let Some(message) = pools.iter().find_map(|pool| sightings.discounted.get(pool)) {
            return format!("{name} is {message}");
        }
        if !self.collector.is_named {
            return format!("no result of the run has {name}");
        }
        let target = excerpt(&self.effect.target);
        let state = self.collector.targets.io_ref(&self.effect.target);
        let state = state.and_then(|index| self.collector.refs.state_of(index));
        match state.and_then(|state| Some((state, state.called.as_ref()?))) {
            None => format!("the run never calls {target}"),
            Some((state, place)) if !state.answered => {
                let why = state.unanswered.as_deref().unwrap_or("no result is recorded");
                format!("{target} is called at {place}, and {why}")
            }
            Some(_) if self.effect.tools.is_empty() => format!("no result of {target} has {name}"),
            Some(_) => format!("no result of the tools of this effect has {name}"),
        }
    }
}

fn pending(effect: Effect, because: String) -> AuditedEffect {
    AuditedEffect { effect, verdict: Verdict::Pending, because, source: None }
}

fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 3,
        Verdict::Inconclusive => 2,
        Verdict::Verified => 1,
        Verdict::Pending => 0,
    }
}

/// Returns the name of the source of evidence for messages; `None` if there is no usable one.
fn name_of(evidence: &Evidence) -> Option<String> {
    let path = evidence.path.as_ref().filter(|path| path.is_empty() || path.starts_with('/'));
    match (&evidence.path, path, &evidence.metric) {
        (Some(_), Some(path), Some(metric)) => Some(format!("{} at {}", excerpt(metric), excerpt(path))),
        (Some(_), Some(path), None) => Some(excerpt(path)),
        (None, _, Some(metric)) => Some(excerpt(metric)),
        _ => None,
    }
}

fn unusable(evidence: &Evidence) -> String {
    match &evidence.path {
        Some(path) => format!("the path of its evidence, {}, is not a JSON Pointer", excerpt(path)),
        None => "its evidence has neither a path nor a metric".to_owned(),
    }
}

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
