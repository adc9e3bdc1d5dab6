//! Storage of vaults.

pub mod sqlite;

pub use sqlite::*;
