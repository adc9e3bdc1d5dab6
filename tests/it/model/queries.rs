//! The answers of operations.

use std::fmt::{Debug, Display};

use proptest::sample::Index;
use runvault::vault::api::Operation;
use runvault::vault::forks::ForksRequest;
use runvault::vault::links::{Direction, LinksRequest};
use runvault::vault::path::PathRequest;
use runvault::vault::remove::RemoveRequest;
use runvault::vault::resolve::ResolveRequest;
use runvault::vault::unresolved::UnresolvedRequest;
use runvault::{RemoveError, Vault};

use super::answers::Answers;
use super::universe::UNIVERSE;

/// Returns the answers of operations about everything.
pub(super) fn all(vault: &Vault) -> Answers {
    let mut answers = Answers::new();
    for artifact in UNIVERSE.cores.iter().copied() {
        let links = LinksRequest::new(artifact);
        answer(vault, &mut answers, &links);
        let removal = RemoveRequest {
            artifacts: vec![artifact],
            reason: None,
            ignore_links: false,
            with_containers: false,
            dry_run: true,
        };
        // An error of the storage may have a reason of the engine.
        let outcome = match vault.run(&removal) {
            Err(RemoveError::Store(error)) => error.to_string(),
            outcome => format!("{outcome:#?}"),
        };
        answers.insert(format!("{removal:?}"), outcome);
    }
    answer(vault, &mut answers, &UnresolvedRequest { all: true, ..UnresolvedRequest::default() });
    answer(vault, &mut answers, &ForksRequest::default());
    answers
}

/// Returns the answers of operations about two artifacts and a prefix.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "probes are passed by reference")]
pub(super) fn probed(vault: &Vault, one: &Index, other: &Index, depth: u8) -> Answers {
    let mut answers = Answers::new();
    let (from, to) = (*one.get(&UNIVERSE.cores), *other.get(&UNIVERSE.cores));
    answer(vault, &mut answers, &ResolveRequest::new(&from.0.hex()[..6 + usize::from(depth)]));
    for coincident in [false, true] {
        answer(vault, &mut answers, &PathRequest { from, to, coincident });
        answer(vault, &mut answers, &LinksRequest { depth, coincident, ..LinksRequest::new(from) });
    }
    for direction in [None, Some(Direction::In), Some(Direction::Out)] {
        let limit = Some(3 * u64::from(depth));
        answer(vault, &mut answers, &LinksRequest { depth, direction, limit, ..LinksRequest::new(from) });
    }
    answers
}

/// Adds the answer to a request.
fn answer<O>(vault: &Vault, answers: &mut Answers, request: &O)
where
    O: Operation + Debug,
    O::Answer: Debug,
    O::Error: Display,
{
    let told = match vault.run(request) {
        Ok(answer) => format!("{answer:#?}"),
        Err(error) => error.to_string(),
    };
    answers.insert(format!("{request:?}"), told);
}
