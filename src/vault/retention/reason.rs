//! Decisions of a policy, and what is kept because kept artifacts depend on it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{ArtifactRecord, Result, Snapshot};
use crate::vault::query::{DEPENDENTS_BATCH, Dependency, DependentFinder};

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

/// The values of a key by which artifacts are grouped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct GroupValues {
    /// `kind`, `label:` and the key of a label, or the name of an attribute.
    pub name: String,
    /// The kind, or the values of the label or the attribute; there may be none.
    pub values: Vec<String>,
}

/// The decision on an artifact.
#[derive(Clone, Debug)]
pub struct ArtifactDecision {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The values that define its group.
    pub group: Vec<GroupValues>,
    /// The time that is used, if the artifact has it.
    pub at: Option<DateTime<Utc>>,
    /// The total size of its captures in bytes.
    pub size: u64,
    /// Why it is kept, such as `daily snapshot 2026-11-20`; it is to be removed if there are no reasons.
    pub reasons: Vec<String>,
    /// Why rules do not keep it, such as `not among the last 3`.
    pub misses: Vec<String>,
}

impl ArtifactDecision {
    /// Returns whether it is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.reasons.is_empty()
    }
}

/// Keeps artifacts whose bytes a kept artifact contains or that it links to, until no further artifact is kept for
/// this. Each group of dependents is examined once, and again when its first member is kept.
pub(super) fn keep_dependencies(
    snapshot: &dyn Snapshot,
    decisions: &mut [ArtifactDecision],
    ignores_links: bool,
) -> Result<()> {
    let leaving = decisions.iter().filter(|decision| !decision.is_kept());
    let leaving: BTreeSet<CoreHash> = leaving.map(|decision| decision.artifact.core).collect();
    let mut finder = DependentFinder::deciding_on(leaving.clone());
    let mut waiting = Vec::new();
    let undecided = decisions.iter().enumerate().filter(|(_, decision)| !decision.is_kept());
    let undecided: Vec<(usize, CoreHash)> =
        undecided.map(|(number, decision)| (number, decision.artifact.core)).collect();
    for undecided in undecided.chunks(DEPENDENTS_BATCH) {
        let cores: Vec<CoreHash> = undecided.iter().map(|(_, core)| *core).collect();
        let containers = finder.containers(snapshot, &cores)?;
        let linking =
            if ignores_links { vec![Vec::new(); cores.len()] } else { finder.linking(snapshot, &cores)? };
        for (((number, _), container), linking) in undecided.iter().zip(containers).zip(linking) {
            let holds: Vec<usize> = container.into_iter().chain(linking).collect();
            if !holds.is_empty() {
                waiting.push(ForgetCandidate { number: *number, holds });
            }
        }
    }
    let groups = DependentGroups::new(&finder, &waiting, &leaving);
    settle_candidates(snapshot, decisions, &finder, &waiting, groups)
}

/// An artifact that is removed unless a kept artifact depends on it.
struct ForgetCandidate {
    /// The number of its decision.
    number: usize,
    /// The numbers of the groups of its dependents.
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
    fn new(finder: &DependentFinder, waiting: &[ForgetCandidate], leaving: &BTreeSet<CoreHash>) -> Self {
        let mut groups =
            Self { kept: HashMap::new(), held: HashMap::new(), groups_by_dependent: HashMap::new() };
        for (at, waiting) in waiting.iter().enumerate() {
            for group in &waiting.holds {
                if !groups.kept.contains_key(group) && !groups.held.contains_key(group) {
                    groups.look_at(finder, *group, leaving);
                }
                if let Some(held) = groups.held.get_mut(group) {
                    held.push(at);
                }
            }
        }
        groups
    }

    fn look_at(&mut self, finder: &DependentFinder, group: usize, leaving: &BTreeSet<CoreHash>) {
        let dependents = finder.group(group).map(|group| group.dependents.as_slice()).unwrap_or_default();
        if let Some(dependent) = dependents.iter().find(|dependent| !leaving.contains(dependent)) {
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

fn reason_for(holding: Dependency) -> String {
    match holding {
        Dependency::Contained(container) => {
            format!("contained in {} {:.12}", formats::bare_noun(&container.kind), container.core)
        }
        Dependency::Linked(link) => format!("linked from {} ({})", link.target, link.relation),
    }
}
