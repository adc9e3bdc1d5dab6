//! Finds the shortest path of links between two artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::handle::Vault;
use super::links::LinkSummary;
use super::query;
use crate::digest::CoreHash;
use crate::storage::StorageError;

/// A request for the shortest path of links between two artifacts, in any direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PathRequest {
    /// Where the path starts.
    pub from: CoreHash,
    /// Where it ends.
    pub to: CoreHash,
    /// Whether coincident links are followed as well.
    #[serde(default)]
    pub coincident: bool,
}

/// The shortest path. Of equally short ones, it is the first by relation and hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathAnswer {
    /// The steps; `None` if no path was found.
    pub steps: Option<Vec<PathStep>>,
    /// Number of artifacts that were reached from the start, which is one of them.
    pub reached: u64,
    /// Whether the search is complete: a path was found, or the links of all reached artifacts were read. It ends before
    /// that after those of 10,000 artifacts.
    pub is_complete: bool,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathStep {
    /// The artifact from which the link is seen.
    pub from: CoreHash,
    /// The link to the next artifact.
    #[serde(flatten)]
    pub link: LinkSummary,
}

impl Operation for PathRequest {
    type Answer = PathAnswer;
    type Error = StorageError;

    const NAME: &'static str = "path";
    const SUMMARY: &'static str = "Find the shortest path of links between two artifacts";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if one of the artifacts is not in the
    /// vault, and another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<PathAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let (from, to) = (snapshot.expect_artifact(self.from)?, snapshot.expect_artifact(self.to)?);
        let found = query::shortest_path(&*snapshot, &from, &to, self.coincident)?;
        let step = |step: query::LinkPathStep| PathStep { from: step.from.core, link: step.link.into() };
        Ok(PathAnswer {
            steps: found.steps.map(|steps| steps.into_iter().map(step).collect()),
            reached: found.reached as u64,
            is_complete: found.is_complete,
        })
    }
}
