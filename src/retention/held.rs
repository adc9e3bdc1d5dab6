//! Retention of artifacts that kept artifacts depend on.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Decision, Reason};
use crate::query::{DependentFinder, Hold, Holding};
use crate::store::{ArtifactId, Result, Snapshot};

/// Keeps what something that is kept has the bytes of or links to, until nothing more is kept for that. Every group of
/// holders is looked at once, and again when the first of them is kept.
pub(super) fn keep_held(
    snapshot: &Snapshot<'_>,
    decisions: &mut [Decision],
    ignores_links: bool,
) -> Result<()> {
    let leaving = decisions.iter().filter(|decision| !decision.is_kept());
    let leaving: HashSet<ArtifactId> = leaving.map(|decision| decision.artifact.id).collect();
    let mut finder = DependentFinder::default();
    let mut waiting = Vec::new();
    for (number, decision) in decisions.iter().enumerate().filter(|(_, decision)| !decision.is_kept()) {
        let mut holds = Vec::from_iter(finder.containers(snapshot, &decision.artifact)?);
        if !ignores_links {
            holds.extend(finder.linking(snapshot, &decision.artifact)?);
        }
        if !holds.is_empty() {
            waiting.push(Waiting { number, holds });
        }
    }
    let groups = Groups::new(&finder, &waiting, &leaving);
    settle(snapshot, decisions, &finder, (waiting, groups))
}

/// An artifact that is to be removed unless something that is kept holds it.
struct Waiting {
    /// The number of its decision.
    number: usize,
    holds: Vec<Hold>,
}

/// The groups of holders.
struct Groups {
    /// The first holder of each that is kept.
    kept: HashMap<usize, ArtifactId>,
    /// Which of the waiting artifacts the others hold.
    held: HashMap<usize, Vec<usize>>,
    /// Which of the others an artifact is a holder of.
    of_holder: HashMap<ArtifactId, Vec<usize>>,
}

impl Groups {
    fn new(finder: &DependentFinder, waiting: &[Waiting], leaving: &HashSet<ArtifactId>) -> Self {
        let mut groups = Self { kept: HashMap::new(), held: HashMap::new(), of_holder: HashMap::new() };
        for (at, waiting) in waiting.iter().enumerate() {
            for Hold { group, .. } in &waiting.holds {
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

    fn look_at(&mut self, finder: &DependentFinder, group: usize, leaving: &HashSet<ArtifactId>) {
        let holders = finder.group(group).map(|group| group.holders.as_slice()).unwrap_or_default();
        if let Some(holder) = holders.iter().find(|holder| !leaving.contains(holder)) {
            self.kept.insert(group, *holder);
            return;
        }
        self.held.insert(group, Vec::new());
        for holder in holders {
            self.of_holder.entry(*holder).or_default().push(group);
        }
    }
}

fn settle(
    snapshot: &Snapshot<'_>,
    decisions: &mut [Decision],
    finder: &DependentFinder,
    (waiting, mut groups): (Vec<Waiting>, Groups),
) -> Result<()> {
    // First what others hold that are kept by a rule, each for the first of its reasons.
    let mut due: VecDeque<(usize, usize, ArtifactId)> = VecDeque::new();
    for (at, one) in waiting.iter().enumerate() {
        let held = one.holds.iter().find_map(|hold| Some((hold.group, *groups.kept.get(&hold.group)?)));
        due.extend(held.map(|(group, holder)| (at, group, holder)));
    }
    while let Some((at, group, holder)) = due.pop_front() {
        let Some(Waiting { number, holds }) = waiting.get(at) else { continue };
        let Some(decision) = decisions.get_mut(*number).filter(|decision| !decision.is_kept()) else {
            continue;
        };
        let Some(hold) = holds.iter().find(|hold| hold.group == group) else { continue };
        let Some(holding) = finder.holding(snapshot, hold, holder)? else { continue };
        decision.reasons.push(reason(holding));
        let kept = decision.artifact.id;
        for group in groups.of_holder.remove(&kept).unwrap_or_default() {
            let waiting = groups.held.remove(&group).unwrap_or_default();
            due.extend(waiting.into_iter().map(|at| (at, group, kept)));
        }
    }
    Ok(())
}

fn reason(holding: Holding) -> Reason {
    match holding {
        Holding::Contained(container) => Reason::Contained(Box::new(container)),
        Holding::Linked(link) => Reason::Linked(Box::new(link)),
    }
}
