//! Retention of artifacts that kept artifacts depend on.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::reason::{ArtifactDecision, RetentionReason};
use crate::digest::CoreHash;
use crate::storage::{Result, Snapshot};
use crate::vault::query::{DEPENDENTS_BATCH, Dependency, DependentFinder, GroupDependency};

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
            let holds: Vec<GroupDependency> = container.into_iter().chain(linking).collect();
            if !holds.is_empty() {
                waiting.push(ForgetCandidate { number: *number, holds });
            }
        }
    }
    let groups = DependentGroups::new(&finder, &waiting, &leaving);
    settle(snapshot, decisions, &finder, &waiting, groups)
}

/// An artifact that is removed unless a kept artifact depends on it.
struct ForgetCandidate {
    /// The number of its decision.
    number: usize,
    holds: Vec<GroupDependency>,
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
            for GroupDependency { group, .. } in &waiting.holds {
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

fn settle(
    snapshot: &dyn Snapshot,
    decisions: &mut [ArtifactDecision],
    finder: &DependentFinder,
    waiting: &[ForgetCandidate],
    mut groups: DependentGroups,
) -> Result<()> {
    // Start with the artifacts that have a dependent kept by a rule, each with the first such reason.
    let mut due: VecDeque<(usize, usize, CoreHash)> = VecDeque::new();
    for (at, one) in waiting.iter().enumerate() {
        let held = one.holds.iter().find_map(|hold| Some((hold.group, *groups.kept.get(&hold.group)?)));
        due.extend(held.map(|(group, dependent)| (at, group, dependent)));
    }
    while let Some((at, group, dependent)) = due.pop_front() {
        let Some(ForgetCandidate { number, holds }) = waiting.get(at) else { continue };
        let Some(decision) = decisions.get_mut(*number).filter(|decision| !decision.is_kept()) else {
            continue;
        };
        let Some(hold) = holds.iter().find(|hold| hold.group == group) else { continue };
        let Some(holding) = finder.holding(snapshot, hold, dependent)? else { continue };
        decision.reasons.push(reason(holding));
        let kept = decision.artifact.core;
        for group in groups.groups_by_dependent.remove(&kept).unwrap_or_default() {
            let waiting = groups.held.remove(&group).unwrap_or_default();
            due.extend(waiting.into_iter().map(|at| (at, group, kept)));
        }
    }
    Ok(())
}

fn reason(holding: Dependency) -> RetentionReason {
    match holding {
        Dependency::Contained(container) => RetentionReason::Contained(Box::new(container)),
        Dependency::Linked(link) => RetentionReason::Linked(Box::new(link)),
    }
}
