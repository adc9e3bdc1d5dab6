//! Finds the shortest path of links between two artifacts.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::links::LinkSummary;
use super::query::{LinkTarget, Linker};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Snapshot, StorageError};

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

impl PathRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if one of the artifacts is not in the
    /// vault, and another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<PathAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let (from, to) = (snapshot.expect_artifact(self.from)?, snapshot.expect_artifact(self.to)?);
        self.search(&*snapshot, &from, &to)
    }
}

/// Maximum number of artifacts whose links a search reads.
pub const MAX_SEARCHED: usize = 10_000;

impl PathRequest {
    /// Reads the links of the artifacts nearest to `one` until one of them leads to `other`.
    fn search(
        &self,
        snapshot: &dyn Snapshot,
        one: &ArtifactRecord,
        other: &ArtifactRecord,
    ) -> Result<PathAnswer, StorageError> {
        let mut reached_by: HashMap<CoreHash, Option<PathStep>> = HashMap::from([(one.core, None)]);
        let mut waiting = VecDeque::from([one.clone()]);
        let mut linker = Linker::searching(self.coincident);
        let mut searched = 0;
        while let Some(from) = waiting.pop_front().filter(|_| searched < MAX_SEARCHED) {
            if reached_by.contains_key(&other.core) {
                break;
            }
            searched += 1;
            let near = waiting.iter().map(|artifact| artifact.core);
            for link in linker.links(snapshot, &from, near)? {
                let LinkTarget::Artifact(target) = &link.target else { continue };
                if let Entry::Vacant(unknown) = reached_by.entry(target.core) {
                    waiting.push_back(target.clone());
                    unknown.insert(Some(PathStep { from: from.core, link: link.into() }));
                }
            }
        }
        let reached = reached_by.len() as u64;
        let mut path = Vec::new();
        let mut at = other.core;
        while let Some(step) = reached_by.remove(&at) {
            let Some(step) = step else {
                path.reverse();
                return Ok(PathAnswer { steps: Some(path), reached, is_complete: true });
            };
            at = step.from;
            path.push(step);
        }
        Ok(PathAnswer { steps: None, reached, is_complete: searched as u64 == reached })
    }
}
