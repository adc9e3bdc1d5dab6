//! Questions to a vault: what a hash stands for, which artifacts match, what is linked to what.
//!
//! Everything here is asked of one [`Snapshot`](crate::store::Snapshot), so an answer never mixes two states of the
//! vault.

mod find;
mod links;
mod resolve;

pub use find::{Filter, Hit, Match, Query, Sort, find};
pub use links::{Direction, Link, LinkTarget, links};
pub use resolve::{HashTarget, resolve, resolve_mentioned};
