//! The answers of operations, each of which reads a snapshot.

use proptest::sample::Index;
use runvault::digest::DigestPrefix;
use runvault::storage::interface::Snapshot;
use runvault::vault::query::{
    self, Missing, Traversal, UnresolvedQuery, forks, links, resolve, shortest_path, traverse, unresolved,
};

use super::answers::Answers;
use super::universe::UNIVERSE;

/// Returns the answers of operations about everything.
pub(super) fn all(snapshot: &dyn Snapshot) -> Answers {
    let mut answers = Answers::new();
    let stored: Vec<_> = snapshot.artifacts(&UNIVERSE.cores).unwrap().into_iter().flatten().collect();
    for artifact in &stored {
        answers.insert(
            format!("links of {}", artifact.core),
            format!("{:#?}", links(snapshot, artifact).unwrap()),
        );
    }
    let every = UnresolvedQuery { all: true, ..UnresolvedQuery::default() };
    let missing: Vec<Missing> = unresolved(snapshot, &every).unwrap().missing;
    answers.insert("missing".to_owned(), format!("{missing:?}"));
    let forks: Vec<_> = forks(snapshot).unwrap().iter().collect();
    answers.insert("forks".to_owned(), format!("{forks:?}"));
    let containers = query::contained(snapshot, &stored, &std::collections::BTreeSet::new()).unwrap();
    answers.insert("contained".to_owned(), format!("{containers:?}"));
    answers
}

/// Returns the answers of operations about two artifacts and a prefix.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "probes are passed by reference")]
pub(super) fn probed(snapshot: &dyn Snapshot, one: &Index, other: &Index, depth: usize) -> Answers {
    let mut answers = Answers::new();
    let (one, other) = (*one.get(&UNIVERSE.cores), *other.get(&UNIVERSE.cores));
    let prefix: DigestPrefix = one.0.hex()[..6 + depth].parse().unwrap();
    answers.insert(format!("resolved {prefix}"), format!("{:?}", resolve(snapshot, &prefix).unwrap()));
    if let [Some(one), Some(other)] = &snapshot.artifacts(&[one, other]).unwrap()[..] {
        let path = shortest_path(snapshot, one, other).unwrap();
        answers.insert(format!("path from {} to {}", one.core, other.core), format!("{path:#?}"));
        let limits = Traversal { depth, relation: None, direction: None, limit: 3 * depth };
        let graph = traverse(snapshot, one.core, &limits).unwrap();
        answers.insert(format!("graph of {} with {limits:?}", one.core), format!("{graph:#?}"));
    }
    answers
}
