//! Lists the forks of some artifacts, such as those that were just added.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::forks::ForkSummary;
use super::handle::Vault;
use super::query;
use crate::digest::CoreHash;
use crate::storage::StorageError;

/// A request for the forks of some artifacts, without the texts of their records and steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForksOfRequest {
    /// The artifacts. Those that are not in the vault are ignored.
    pub artifacts: Vec<CoreHash>,
    /// Maximum number of pairs; unlimited if there is none.
    pub limit: Option<u64>,
    /// Maximum number of comparisons of two artifacts; unlimited if there is none.
    pub comparisons: Option<u64>,
}

/// The forks of some artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForksOfAnswer {
    /// The pairs, each once, in the order of the requested artifacts, which are the first of their pairs.
    pub forks: Vec<ForkSummary>,
    /// Whether there are more than the limit.
    pub is_more: bool,
    /// Whether there were enough comparisons for all artifacts.
    pub is_complete: bool,
}

impl Operation for ForksOfRequest {
    type Answer = ForksOfAnswer;
    type Error = StorageError;

    const NAME: &'static str = "forks-of";
    const SUMMARY: &'static str = "List the forks of some artifacts";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<ForksOfAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let count = |count: Option<u64>| {
            count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let (limit, mut left) = (count(self.limit), count(self.comparisons));
        let mut answer = ForksOfAnswer { is_complete: true, ..ForksOfAnswer::default() };
        let mut known = HashSet::new();
        for core in &self.artifacts {
            let Some(artifact) = snapshot.artifact(*core)? else { continue };
            let (forks, compared) = query::forks_of(&*snapshot, &artifact, left)?;
            left -= compared;
            for fork in forks {
                let mut pair = fork.sides.each_ref().map(|(side, _)| side.core);
                pair.sort_unstable();
                if !known.insert(pair) {
                    continue;
                }
                if answer.forks.len() == limit {
                    return Ok(ForksOfAnswer { is_more: true, ..answer });
                }
                answer.forks.push(ForkSummary::new(&fork, [None, None]));
            }
            if left == 0 {
                return Ok(ForksOfAnswer { is_complete: false, ..answer });
            }
        }
        Ok(answer)
    }
}
