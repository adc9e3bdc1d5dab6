//! Retention policies.
//!
//! The rules are those of backup programs: artifacts are divided into groups, and an artifact is kept if any rule keeps
//! it within its group. Pinned artifacts are kept, and so are artifacts that a kept artifact contains or links to.

mod period;
mod policy;
mod reason;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::CoreHash;
use crate::storage::{
    Annotations, ArtifactRecord, AttributeRecord, Filter, Label, Order, Page, Result, Snapshot, Tag,
    TimeBasis, declared_time,
};

pub use period::Period;
pub use policy::{GroupKey, LabelRule, PatternError, PeriodRule, Policy, TagPattern};
pub use reason::{ArtifactDecision, GroupValues, length_text};

use period::PeriodRuleResult;

/// The decisions of a policy on every artifact of its kinds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The policy.
    pub policy: Policy,
    /// The decisions, by group, newest first.
    pub decisions: Vec<ArtifactDecision>,
}

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
    /// Applies `policy` to the artifacts of a snapshot at the time `now`.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn new(snapshot: &dyn Snapshot, policy: Policy, now: DateTime<Utc>) -> Result<Self> {
        let mut groups: BTreeMap<Vec<GroupValues>, Vec<TimedArtifact>> = BTreeMap::new();
        let conditions = policy.labels.iter().map(LabelRule::condition).collect();
        let filter = Filter { kinds: policy.kinds.clone(), conditions, ..Filter::default() };
        // Newest first, and so are the artifacts of each group.
        let basis = policy.by;
        for hit in snapshot.find(&filter, Order::Newest(basis), &Page::all())?.items {
            let artifact = hit.artifact;
            let needs_attributes = basis.attribute().is_some() || policy.has_attributes();
            let attributes =
                if needs_attributes { snapshot.attributes_of(artifact.core)? } else { Vec::new() };
            let at = match basis {
                TimeBasis::FirstSeen => Some(artifact.added_at),
                TimeBasis::LastSeen => Some(artifact.seen_at),
                TimeBasis::Created | TimeBasis::Finished => declared_time(&attributes, basis),
            };
            let labels = if policy.has_label_groups() {
                snapshot.annotations_of(artifact.core)?.labels
            } else {
                Vec::new()
            };
            let group = group(&policy, &artifact, &attributes, &labels);
            groups.entry(group).or_default().push(TimedArtifact { artifact, at });
        }
        let mut decisions = Vec::new();
        for (group, artifacts) in groups {
            decisions.append(&mut decide(snapshot, &policy, now, &group, artifacts)?);
        }
        reason::keep_dependencies(snapshot, &mut decisions, policy.ignore_links)?;
        Ok(Self { policy, decisions })
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

/// An artifact with the time that a policy uses.
struct TimedArtifact {
    artifact: ArtifactRecord,
    at: Option<DateTime<Utc>>,
}

/// Returns the group of an artifact.
fn group(
    policy: &Policy,
    artifact: &ArtifactRecord,
    attributes: &[AttributeRecord],
    labels: &[Label],
) -> Vec<GroupValues> {
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
        GroupValues { name: key.name(), values }
    };
    policy.group_by.iter().map(values).collect()
}

/// Decides on the artifacts of a group, which are sorted newest first.
fn decide(
    snapshot: &dyn Snapshot,
    policy: &Policy,
    now: DateTime<Utc>,
    group: &[GroupValues],
    artifacts: Vec<TimedArtifact>,
) -> Result<Vec<ArtifactDecision>> {
    let mut decisions = Vec::with_capacity(artifacts.len());
    let dated: Vec<DateTime<Utc>> = artifacts.iter().filter_map(|artifact| artifact.at).collect();
    // Artifacts without a time come last.
    let mut verdicts = policy.by_time(&dated, now).into_iter();
    let cores: Vec<CoreHash> = artifacts.iter().map(|dated| dated.artifact.core).collect();
    let captures = snapshot.captures(&cores)?;
    let annotations = snapshot.annotations(&cores)?;
    for ((TimedArtifact { artifact, at }, captures), annotations) in
        artifacts.into_iter().zip(captures).zip(annotations)
    {
        let undated = || TimeRuleResult {
            reasons: vec![format!("states no {}", policy.by.noun())],
            misses: Vec::new(),
        };
        let TimeRuleResult { mut reasons, mut misses } = verdicts.next().unwrap_or_else(undated);
        let tagged = policy.by_tags(&annotations);
        if tagged.is_empty() && !policy.keep_tags.is_empty() {
            misses.push(format!("no tag {}", alternatives(&policy.keep_tags)));
        }
        reasons.extend(tagged);
        let labeled = policy.by_labels(&annotations);
        if labeled.is_empty() && !policy.keep_labels.is_empty() {
            misses.push(format!("no label {}", alternatives(&policy.keep_labels)));
        }
        reasons.extend(labeled);
        if annotations.pin.is_some() {
            reasons.push("pinned".to_owned());
        }
        let size = captures.iter().map(|capture| capture.size).sum();
        decisions.push(ArtifactDecision { artifact, group: group.to_vec(), at, size, reasons, misses });
    }
    Ok(decisions)
}

fn alternatives(texts: &[impl ToString]) -> String {
    texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// The result of the time rules for an artifact: why they keep it, and why they do not.
#[derive(Clone, Default)]
struct TimeRuleResult {
    reasons: Vec<String>,
    misses: Vec<String>,
}

impl TimeRuleResult {
    fn add(&mut self, kept: std::result::Result<String, String>) {
        match kept {
            Ok(reason) => self.reasons.push(reason),
            Err(miss) => self.misses.push(miss),
        }
    }
}

impl Policy {
    /// Applies the time rules to the artifacts of a group with these times, newest first.
    fn by_time(&self, times: &[DateTime<Utc>], now: DateTime<Utc>) -> Vec<TimeRuleResult> {
        let mut verdicts = vec![TimeRuleResult::default(); times.len()];
        if let Some(last) = self.keep_last {
            for (age, verdict) in verdicts.iter_mut().enumerate() {
                verdict.add(match last {
                    usize::MAX => Ok("last unlimited".to_owned()),
                    _ if age < last => Ok(format!("last {last}")),
                    _ => Err(format!("not among the last {last}")),
                });
            }
        }
        if let Some(within) = self.keep_within {
            // A cutoff before the earliest representable time keeps everything.
            let since = now.checked_sub_signed(within);
            for (verdict, time) in verdicts.iter_mut().zip(times) {
                let text = format!("within {}", length_text(within));
                let is_kept = since.is_none_or(|since| *time >= since);
                verdict.add(if is_kept { Ok(text) } else { Err(format!("not {text}")) });
            }
        }
        for PeriodRule { period, count } in &self.keep_periods {
            let (adjective, plural) = (period.adjective(), if *count == 1 { "" } else { "s" });
            for (verdict, choice) in verdicts.iter_mut().zip(period.choose(times, *count)) {
                verdict.add(match choice {
                    PeriodRuleResult::Newest(span) => Ok(format!("{adjective} snapshot {span}")),
                    PeriodRuleResult::Oldest(span) => Ok(format!("oldest {adjective} snapshot {span}")),
                    PeriodRuleResult::Superseded(span) => Err(format!("not the {adjective} snapshot {span}")),
                    PeriodRuleResult::TooOld => {
                        Err(format!("not among the last {count} {adjective} snapshot{plural}"))
                    }
                });
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

    fn by_labels(&self, annotations: &Annotations) -> Vec<String> {
        let is_kept = |label: &&Label| self.keep_labels.iter().any(|rule| rule.matches(label));
        let reason = |Label { key, value, .. }: &Label| format!("label {key}={value}");
        annotations.labels.iter().filter(is_kept).map(reason).collect()
    }

    fn by_tags(&self, annotations: &Annotations) -> Vec<String> {
        let reason = |Tag { name, .. }: &Tag| {
            let pattern = self.keep_tags.iter().find(|pattern| pattern.matches(name))?;
            Some(if pattern.is_prefix() { format!("tag {pattern} ({name})") } else { format!("tag {name}") })
        };
        annotations.tags.iter().filter_map(reason).collect()
    }
}
