//! Decisions of a policy: the reasons to keep or remove an artifact, and what is kept because kept artifacts depend on it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};

use super::period::{Period, RetentionSpan};
use super::{Policy, TagPattern};
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{ArtifactRecord, Result, Snapshot, TimeBasis};
use crate::vault::query::{DEPENDENTS_BATCH, Dependency, DependentFinder, Link};

/// The reason that an artifact is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionReason {
    /// It is among this number of newest artifacts.
    Last(usize),
    /// Its time is within this duration before now.
    Within(Duration),
    /// It is the newest of this span.
    Newest(RetentionSpan),
    /// It is the oldest of its group, and there are fewer spans than the rule keeps.
    Oldest(RetentionSpan),
    /// It has a matching tag.
    Tag {
        /// The pattern.
        pattern: TagPattern,
        /// The tag.
        tag: String,
    },
    /// It has a label that is kept.
    Label {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// It is pinned.
    Pinned,
    /// It does not have the time that the policy uses, because it does not state it.
    Undated(TimeBasis),
    /// A kept artifact contains its bytes, as a pack contains its session, so that they would remain.
    Contained(Box<ArtifactRecord>),
    /// A kept artifact links to it.
    Linked(Box<Link>),
}

/// The reason that a rule does not keep an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionRuleMiss {
    /// It is not among this number of newest artifacts.
    Last(usize),
    /// It is older than this duration.
    Within(Duration),
    /// A newer artifact of this span is kept.
    Superseded(RetentionSpan),
    /// It is older than this number of kept periods.
    TooOld(Period, usize),
    /// It has no matching tag.
    Tag,
    /// It has no label that is kept.
    Label,
}

impl RetentionReason {
    /// Returns a description, such as `daily snapshot 2026-11-20`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Last(usize::MAX) => "last unlimited".to_owned(),
            Self::Last(count) => format!("last {count}"),
            Self::Within(length) => format!("within {}", length_text(*length)),
            Self::Newest(span) => format!("{} snapshot {span}", span.period().adjective()),
            Self::Oldest(span) => format!("oldest {} snapshot {span}", span.period().adjective()),
            Self::Tag { pattern, tag } if pattern.is_prefix() => format!("tag {pattern} ({tag})"),
            Self::Tag { tag, .. } => format!("tag {tag}"),
            Self::Label { key, value } => format!("label {key}={value}"),
            Self::Pinned => "pinned".to_owned(),
            Self::Undated(basis) => format!("states no {}", basis.noun()),
            Self::Contained(artifact) => {
                format!("contained in {} {:.12}", formats::bare_noun(&artifact.kind), artifact.core)
            }
            Self::Linked(link) => format!("linked from {} ({})", link.target, link.relation),
        }
    }
}

impl RetentionRuleMiss {
    /// Returns a description, such as `not among the last 3`.
    #[must_use]
    pub fn text(&self, policy: &Policy) -> String {
        match self {
            Self::Last(count) => format!("not among the last {count}"),
            Self::Within(length) => format!("not within {}", length_text(*length)),
            Self::Superseded(span) => format!("not the {} snapshot {span}", span.period().adjective()),
            Self::TooOld(period, count) => {
                let plural = if *count == 1 { "" } else { "s" };
                format!("not among the last {count} {} snapshot{plural}", period.adjective())
            }
            Self::Tag => {
                let patterns: Vec<String> = policy.keep_tags.iter().map(ToString::to_string).collect();
                format!("no tag {}", patterns.join(" or "))
            }
            Self::Label => {
                let labels: Vec<String> = policy.keep_labels.iter().map(ToString::to_string).collect();
                format!("no label {}", labels.join(" or "))
            }
        }
    }
}

/// Formats a duration in its largest whole unit, such as `90m`, `36h`, `7d` or `1y`. A year has 365.25 days, and a month
/// (`M`) 30.44.
#[must_use]
pub fn length_text(length: Duration) -> String {
    const UNITS: [(i64, &str); 5] =
        [(31_557_600, "y"), (2_630_016, "M"), (24 * 3600, "d"), (3600, "h"), (60, "m")];
    let seconds = length.num_seconds();
    let unit = UNITS.into_iter().find(|(unit, _)| seconds % unit == 0 && seconds != 0);
    let (unit, name) = unit.unwrap_or(if seconds == 0 { (1, "d") } else { (1, "s") });
    format!("{}{name}", seconds / unit)
}

/// The group of an artifact: the name and the values of each key of the policy.
pub type RetentionGroup = Vec<(String, Vec<String>)>;

/// The decision on an artifact.
#[derive(Clone, Debug)]
pub struct ArtifactDecision {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The group.
    pub group: Arc<RetentionGroup>,
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

/// Keeps artifacts whose bytes a kept artifact contains or that it links to, until no further artifact is kept for
/// this. Each group of dependents is examined once, and again when its first member is kept.
pub(super) fn keep_dependencies(
    snapshot: &dyn Snapshot,
    decisions: &mut [ArtifactDecision],
    ignores_links: bool,
) -> Result<()> {
    let core = |number: &usize| decisions.get(*number).map(|decision| decision.artifact.core);
    let leaving = decisions.iter().enumerate().filter(|(_, decision)| !decision.is_kept());
    let leaving: Vec<usize> = leaving.map(|(number, _)| number).collect();
    let mut finder = DependentFinder::deciding_on(leaving.iter().filter_map(core).collect());
    let mut waiting = Vec::new();
    for numbers in leaving.chunks(DEPENDENTS_BATCH) {
        let cores: Vec<CoreHash> = numbers.iter().filter_map(core).collect();
        let containers = finder.containers(snapshot, &cores)?;
        let linking =
            if ignores_links { vec![Vec::new(); cores.len()] } else { finder.linking(snapshot, &cores)? };
        for ((number, container), linking) in numbers.iter().zip(containers).zip(linking) {
            let holds: Vec<usize> = container.into_iter().chain(linking).collect();
            if !holds.is_empty() {
                waiting.push(ForgetCandidate { number: *number, holds });
            }
        }
    }
    let groups = DependentGroups::new(&finder, &waiting);
    settle_candidates(snapshot, decisions, &finder, &waiting, groups)
}

/// An artifact that is removed unless a kept artifact depends on it.
struct ForgetCandidate {
    /// The number of its decision.
    number: usize,
    holds: Vec<usize>,
}

/// The groups of dependents.
struct DependentGroups {
    /// The first kept dependent of each group that has one.
    kept: HashMap<usize, CoreHash>,
    /// The waiting artifacts that the members of each other group depend on.
    held: HashMap<usize, Vec<usize>>,
    /// The other groups that each artifact is a member of.
    groups_by_dependent: HashMap<CoreHash, Vec<usize>>,
}

impl DependentGroups {
    fn new(finder: &DependentFinder, waiting: &[ForgetCandidate]) -> Self {
        let mut groups =
            Self { kept: HashMap::new(), held: HashMap::new(), groups_by_dependent: HashMap::new() };
        for (at, waiting) in waiting.iter().enumerate() {
            for group in &waiting.holds {
                if !groups.kept.contains_key(group) && !groups.held.contains_key(group) {
                    groups.look_at(finder, *group);
                }
                if let Some(held) = groups.held.get_mut(group) {
                    held.push(at);
                }
            }
        }
        groups
    }

    fn look_at(&mut self, finder: &DependentFinder, group: usize) {
        let dependents = finder.group(group).map(|group| group.dependents.as_slice()).unwrap_or_default();
        if let Some(dependent) = dependents.iter().find(|dependent| !finder.is_leaving(dependent)) {
            self.kept.insert(group, *dependent);
            return;
        }
        self.held.insert(group, Vec::new());
        for dependent in dependents {
            self.groups_by_dependent.entry(*dependent).or_default().push(group);
        }
    }
}

fn settle_candidates(
    snapshot: &dyn Snapshot,
    decisions: &mut [ArtifactDecision],
    finder: &DependentFinder,
    waiting: &[ForgetCandidate],
    mut groups: DependentGroups,
) -> Result<()> {
    // Start with the artifacts that have a dependent kept by a rule, each with the first such reason.
    let mut due: VecDeque<(usize, usize, CoreHash)> = VecDeque::new();
    for (at, one) in waiting.iter().enumerate() {
        let held = one.holds.iter().find_map(|group| Some((*group, *groups.kept.get(group)?)));
        due.extend(held.map(|(group, dependent)| (at, group, dependent)));
    }
    while let Some((at, group, dependent)) = due.pop_front() {
        let Some(ForgetCandidate { number, holds }) = waiting.get(at) else { continue };
        let Some(decision) = decisions.get_mut(*number).filter(|decision| !decision.is_kept()) else {
            continue;
        };
        if !holds.contains(&group) {
            continue;
        }
        let Some(holding) = finder.holding(snapshot, group, dependent)? else { continue };
        decision.reasons.push(reason_for(holding));
        let kept = decision.artifact.core;
        for group in groups.groups_by_dependent.remove(&kept).unwrap_or_default() {
            let waiting = groups.held.remove(&group).unwrap_or_default();
            due.extend(waiting.into_iter().map(|at| (at, group, kept)));
        }
    }
    Ok(())
}

fn reason_for(holding: Dependency) -> RetentionReason {
    match holding {
        Dependency::Contained(container) => RetentionReason::Contained(Box::new(container)),
        Dependency::Linked(link) => RetentionReason::Linked(Box::new(link)),
    }
}
