//! Retention policies.
//!
//! The rules are those of backup programs: artifacts are divided into groups, and an artifact is kept if any rule keeps
//! it within its group. Pinned artifacts are kept, and so are artifacts that a kept artifact contains or links to.

mod period;
mod policy;
mod reason;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::CoreHash;
use crate::storage::{
    Annotations, ArtifactRecord, AttributeRecord, Filter, Label, Order, Page, Result, Snapshot, Tag,
    TimeBasis, declared_time,
};

pub use period::{Period, RetentionSpan};
pub use policy::{GroupKey, LabelRule, PatternError, PeriodRule, Policy, TagPattern};
pub use reason::{ArtifactDecision, RetentionGroup, RetentionReason, RetentionRuleMiss, length_text};

use period::PeriodRuleResult;

/// The decisions of a policy on every artifact of its kinds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The policy.
    pub policy: Policy,
    /// The time from which ages are measured.
    pub at: DateTime<Utc>,
    /// The decisions, by group, newest first.
    pub decisions: Vec<ArtifactDecision>,
}

/// Number of artifacts that are read at a time. The decision on an artifact takes less memory than what it follows from.
const PAGE: usize = 10_000;

/// Number of artifacts of a kind that would be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RetentionShare)]
pub struct Share {
    /// The kind.
    pub kind: String,
    /// Number of artifacts to be removed.
    pub removed: u64,
    /// Total number.
    pub total: u64,
}

impl Plan {
    /// Applies `policy` to the artifacts of a snapshot at the time `at`.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn new(snapshot: &dyn Snapshot, policy: Policy, at: DateTime<Utc>) -> Result<Self> {
        let mut groups: BTreeMap<Arc<RetentionGroup>, Vec<ArtifactDecision>> = BTreeMap::new();
        let conditions = policy.labels.iter().map(LabelRule::condition).collect();
        let filter = Filter { kinds: policy.kinds.clone(), conditions, ..Filter::default() };
        let mut page = Page::first(PAGE);
        loop {
            // Newest first, and so are the artifacts of each group.
            let found = snapshot.find(&filter, Order::Newest(policy.by), &page)?;
            let artifacts = found.items.into_iter().map(|hit| hit.artifact).collect();
            for mut decision in policy.by_annotations(snapshot, artifacts)? {
                let known = groups.get_key_value(&decision.group);
                decision.group = known.map_or(decision.group, |(group, _)| Arc::clone(group));
                groups.entry(Arc::clone(&decision.group)).or_default().push(decision);
            }
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
        for group in groups.values_mut() {
            policy.by_time(group, at);
        }
        let joined = groups.into_values().reduce(|mut all, mut group| {
            all.append(&mut group);
            all
        });
        let mut decisions = joined.unwrap_or_default();
        reason::keep_dependencies(snapshot, &mut decisions, policy.ignore_links)?;
        Ok(Self { policy, at, decisions })
    }

    /// Returns the artifacts that would be removed.
    pub fn removed(&self) -> impl Iterator<Item = &ArtifactDecision> {
        self.decisions.iter().filter(|decision| !decision.is_kept())
    }

    /// Returns the number of artifacts to be removed of each kind, by kind.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut shares: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for decision in &self.decisions {
            let (removed, total) = shares.entry(&decision.artifact.kind).or_default();
            *removed += u64::from(!decision.is_kept());
            *total += 1;
        }
        let share = |(kind, (removed, total)): (&str, _)| Share { kind: kind.to_owned(), removed, total };
        shares.into_iter().map(share).collect()
    }
}

/// Returns the group of an artifact.
fn group(
    policy: &Policy,
    artifact: &ArtifactRecord,
    attributes: &[AttributeRecord],
    labels: &[Label],
) -> RetentionGroup {
    let values = |key: &GroupKey| {
        let values = match key {
            GroupKey::Kind => vec![artifact.kind.clone()],
            GroupKey::Label(key) => {
                let values = labels.iter().filter(|label| label.key == *key);
                values.map(|label| label.value.clone()).collect()
            }
            GroupKey::Attribute(name) => {
                let values = attributes.iter().filter(|attribute| attribute.name == *name);
                values.map(|attribute| attribute.value.clone()).collect()
            }
        };
        (key.name(), values)
    };
    policy.group_by.iter().map(values).collect()
}

/// The results of rules for an artifact.
#[derive(Clone, Default)]
struct RuleResults {
    reasons: Vec<RetentionReason>,
    misses: Vec<RetentionRuleMiss>,
}

impl RuleResults {
    fn add(&mut self, is_kept: bool, reason: RetentionReason, miss: RetentionRuleMiss) {
        if is_kept { self.reasons.push(reason) } else { self.misses.push(miss) }
    }
}

impl Policy {
    /// Returns decisions on these artifacts by their tags, labels and pins only.
    fn by_annotations(
        &self,
        snapshot: &dyn Snapshot,
        artifacts: Vec<ArtifactRecord>,
    ) -> Result<Vec<ArtifactDecision>> {
        let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
        let captures = snapshot.captures(&cores)?;
        let annotations = snapshot.annotations(&cores)?;
        let needs_attributes = self.by.attribute().is_some() || self.has_attributes();
        let attributes =
            if needs_attributes { snapshot.attributes(&cores)? } else { vec![Vec::new(); cores.len()] };
        let mut decisions = Vec::with_capacity(artifacts.len());
        for (((artifact, captures), annotations), attributes) in
            artifacts.into_iter().zip(captures).zip(annotations).zip(attributes)
        {
            let at = match self.by {
                TimeBasis::FirstSeen => Some(artifact.added_at),
                TimeBasis::LastSeen => Some(artifact.seen_at),
                TimeBasis::Created | TimeBasis::Finished => declared_time(&attributes, self.by),
            };
            let group = Arc::new(group(self, &artifact, &attributes, &annotations.labels));
            let size = captures.iter().map(|capture| capture.size).sum();
            let RuleResults { reasons, misses } = self.rules_of_annotations(&annotations);
            decisions.push(ArtifactDecision { artifact, group, at, size, reasons, misses });
        }
        Ok(decisions)
    }

    fn rules_of_annotations(&self, annotations: &Annotations) -> RuleResults {
        let (mut reasons, mut misses) = (self.by_tags(annotations), Vec::new());
        if reasons.is_empty() && !self.keep_tags.is_empty() {
            misses.push(RetentionRuleMiss::Tag);
        }
        let labeled = self.by_labels(annotations);
        if labeled.is_empty() && !self.keep_labels.is_empty() {
            misses.push(RetentionRuleMiss::Label);
        }
        reasons.extend(labeled);
        reasons.extend(annotations.pin.is_some().then_some(RetentionReason::Pinned));
        RuleResults { reasons, misses }
    }

    /// Adds the results of the time rules to the decisions on a group, newest first. They come before those of other rules.
    fn by_time(&self, group: &mut [ArtifactDecision], now: DateTime<Utc>) {
        // Artifacts without a time come last.
        let times: Vec<DateTime<Utc>> = group.iter().filter_map(|decision| decision.at).collect();
        let undated = || RuleResults { reasons: vec![RetentionReason::Undated(self.by)], misses: Vec::new() };
        let results = self.by_times(&times, now).into_iter().chain(std::iter::repeat_with(undated));
        for (decision, RuleResults { mut reasons, mut misses }) in group.iter_mut().zip(results) {
            reasons.append(&mut decision.reasons);
            misses.append(&mut decision.misses);
            reasons.shrink_to_fit();
            misses.shrink_to_fit();
            (decision.reasons, decision.misses) = (reasons, misses);
        }
    }

    /// Applies the time rules to the artifacts of a group with these times, newest first.
    fn by_times(&self, times: &[DateTime<Utc>], now: DateTime<Utc>) -> Vec<RuleResults> {
        let mut verdicts = vec![RuleResults::default(); times.len()];
        if let Some(last) = self.keep_last {
            for (age, verdict) in verdicts.iter_mut().enumerate() {
                verdict.add(age < last, RetentionReason::Last(last), RetentionRuleMiss::Last(last));
            }
        }
        if let Some(within) = self.keep_within {
            // A cutoff before the earliest representable time keeps everything.
            let since = now.checked_sub_signed(within);
            for (verdict, time) in verdicts.iter_mut().zip(times) {
                let is_kept = since.is_none_or(|since| *time >= since);
                verdict.add(is_kept, RetentionReason::Within(within), RetentionRuleMiss::Within(within));
            }
        }
        for PeriodRule { period, count } in &self.keep_periods {
            for (verdict, choice) in verdicts.iter_mut().zip(period.choose(times, *count)) {
                match choice {
                    PeriodRuleResult::Newest(span) => verdict.reasons.push(RetentionReason::Newest(span)),
                    PeriodRuleResult::Oldest(span) => verdict.reasons.push(RetentionReason::Oldest(span)),
                    PeriodRuleResult::Superseded(span) => {
                        verdict.misses.push(RetentionRuleMiss::Superseded(span));
                    }
                    PeriodRuleResult::TooOld => {
                        verdict.misses.push(RetentionRuleMiss::TooOld(*period, *count));
                    }
                }
            }
        }
        verdicts
    }

    /// Returns whether the policy neither keeps an artifact because of its tags and labels, nor ceased to apply to it
    /// because it lost a label.
    pub(crate) fn applies_to_annotations(
        &self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
    ) -> Result<bool> {
        if self.keep_tags.is_empty() && self.keep_labels.is_empty() && self.labels.is_empty() {
            return Ok(true);
        }
        let annotations = snapshot.annotations_of(artifact.core)?;
        let has_it = |rule: &LabelRule| annotations.labels.iter().any(|label| rule.matches(label));
        let is_kept = !self.by_tags(&annotations).is_empty() || !self.by_labels(&annotations).is_empty();
        Ok(!is_kept && self.labels.iter().all(has_it))
    }

    fn by_labels(&self, annotations: &Annotations) -> Vec<RetentionReason> {
        let is_kept = |label: &&Label| self.keep_labels.iter().any(|rule| rule.matches(label));
        let reason =
            |label: &Label| RetentionReason::Label { key: label.key.clone(), value: label.value.clone() };
        annotations.labels.iter().filter(is_kept).map(reason).collect()
    }

    fn by_tags(&self, annotations: &Annotations) -> Vec<RetentionReason> {
        let reason = |tag: &Tag| {
            let pattern = self.keep_tags.iter().find(|pattern| pattern.matches(&tag.name))?.clone();
            Some(RetentionReason::Tag { pattern, tag: tag.name.clone() })
        };
        annotations.tags.iter().filter_map(reason).collect()
    }
}
