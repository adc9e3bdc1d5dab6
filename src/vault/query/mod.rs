//! Queries of a vault: resolving hashes, finding artifacts, following links.
//!
//! Each query reads one [`Snapshot`](crate::storage::Snapshot), so a result never mixes two states of the vault. It returns an
//! error if the vault cannot be read.

mod containers;
mod dependents;
mod exchanges;
mod facts;
mod find;
mod fork;
mod forks;
mod graph;
mod groups;
mod histories;
mod links;
mod location;
mod parts;
mod reach;
mod resolve;
mod stated;
mod unresolved;
mod versions;

pub use containers::ContainedArtifact;
pub(crate) use containers::{all_containers, contained};
pub(crate) use dependents::{BATCH as DEPENDENTS_BATCH, Dependency, DependentFinder, GroupDependency};
pub(crate) use find::{FindQuery, Hit, Match, find_until};
pub(crate) use fork::{Fork, HistoryIdentity};
pub(crate) use forks::{forks, forks_of};
pub(crate) use graph::{Graph, TraversalOptions, traverse};
pub(crate) use groups::RunGroups;
pub(crate) use links::{Direction, Linker, links};
pub use links::{Link, LinkOrigin, LinkStrength, LinkTarget};
pub(crate) use parts::{continuing, from_first};
pub use reach::MAX_SEARCHED;
pub(crate) use reach::{LinkPathStep, reachable, shortest_path};
pub use resolve::HashTarget;
pub(crate) use resolve::{resolve, resolve_mentioned};
pub(crate) use stated::stated;
pub(crate) use unresolved::{MissingTarget, UnresolvedQuery, UnresolvedReferences, unresolved};
pub(crate) use versions::{Extension, extended, extended_by_matching, longest_extensions};
