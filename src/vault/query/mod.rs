//! Queries of a vault: resolving hashes, finding artifacts, following links.
//!
//! Each query reads one [`Snapshot`](crate::storage::Snapshot), so a result never mixes two states of the vault.

mod containers;
mod dangling;
mod dependents;
mod exchanges;
mod find;
mod fork;
mod forks;
mod graph;
mod histories;
mod links;
mod location;
mod reach;
mod resolve;
mod versions;

pub use containers::{Contained, all_containers, contained};
pub use dangling::{Dangling, DanglingQuery, DanglingReferences, Referrer, dangling};
pub use dependents::{DependentFinder, Group, Hold, Holding};
pub use find::{Hit, Match, Query, find, find_until};
pub use fork::{Fork, Shared};
pub use forks::{Forks, forks, forks_of};
pub use graph::{Edge, Graph, Node, Traversal, traverse};
pub use links::{Direction, Link, LinkTarget, Linker, Origin, links};
pub use reach::{MAX_SEARCHED, PathStep, reachable, shortest_path};
pub use resolve::{HashTarget, resolve, resolve_mentioned};
pub use versions::{Extension, extended, extended_by_matching, longest_extensions};
