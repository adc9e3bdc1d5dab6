//! Queries of a vault: resolving hashes, finding artifacts, following links.
//!
//! Each query reads one [`Snapshot`](crate::storage::Snapshot), so a result never mixes two states of the vault.

mod containers;
mod dependents;
mod exchanges;
mod facts;
mod find;
mod fork;
mod forks;
mod graph;
mod histories;
mod links;
mod location;
mod reach;
mod resolve;
mod unresolved;
mod versions;

pub(crate) use containers::all_containers;
pub use containers::{Contained, contained};
pub(crate) use dependents::{DependentFinder, Hold, Holding};
pub(crate) use find::find_until;
pub use find::{Hit, Match, Query, find};
pub use fork::{Fork, Shared};
pub(crate) use forks::forks_of;
pub use forks::{Forks, forks};
pub use graph::{Edge, Graph, Node, Traversal, traverse};
pub(crate) use links::Linker;
pub use links::{Direction, Link, LinkTarget, Origin, links};
pub(crate) use reach::reachable;
pub use reach::{MAX_SEARCHED, PathStep, shortest_path};
pub(crate) use resolve::resolve_mentioned;
pub use resolve::{HashTarget, resolve};
pub use unresolved::{Missing, Referrer, UnresolvedQuery, UnresolvedReferences, unresolved};
pub(crate) use versions::{Extension, extended, extended_by_matching, longest_extensions};
