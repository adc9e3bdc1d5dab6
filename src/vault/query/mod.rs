//! Queries of a vault: resolving hashes, finding artifacts, following links.
//!
//! Each query reads one [`Snapshot`](crate::storage::Snapshot), so a result never mixes two states of the vault. It returns an
//! error if the vault cannot be read.

mod dependents;
mod exchanges;
mod facts;
mod forks;
mod groups;
mod histories;
mod links;
mod stated;

pub use dependents::ContainedArtifact;
pub(crate) use dependents::{
    BATCH as DEPENDENTS_BATCH, Dependency, DependentFinder, all_containers, contained,
};
pub(crate) use exchanges::location_text;
pub(crate) use forks::{forks, forks_of};
pub(crate) use groups::{
    Extension, RunGroups, continuing, extended, extended_by_matching, from_first, longest_extensions,
};
pub(crate) use histories::{Fork, HistoryIdentity};
pub(crate) use links::{Direction, Linker, links, reachable};
pub use links::{Link, LinkOrigin, LinkStrength, LinkTarget};
pub use stated::HashTarget;
pub(crate) use stated::{FindQuery, Hit, Match, find_until, resolve_hash, resolve_mentioned, stated};
