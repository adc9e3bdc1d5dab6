//! Vaults in the database that `RUNVAULT_TEST_ENGINE` names, and what only an engine with a server has to show.

mod connections;
mod mentioned;
#[cfg(feature = "objects")]
mod objects;
mod round_trips;
#[path = "../../../../tests/it/postgres/schema.rs"]
mod schema;

pub(in crate::storage) use schema::Schema;

use super::{TestVault, acting};
use crate::storage::CreationPolicy;
use crate::storage::postgres::PostgresStorage;

/// Returns an empty vault in a new schema, or `None` if there is no database.
pub(super) fn vault() -> Option<TestVault> {
    let schema = Schema::new()?;
    let storage = acting(PostgresStorage::open(&schema.address(), None, CreationPolicy::New).unwrap());
    Some(TestVault { storage: Box::new(storage), _cleanup: Some(Box::new(schema)) })
}

/// Returns an empty vault in a new schema whose bytes are in a new directory, or `None` if there is no database.
#[cfg(feature = "objects")]
pub(super) fn vault_with_directory() -> Option<TestVault> {
    objects::Place::directory().vault()
}

/// Returns an empty vault in a new schema whose bytes are in a bucket, or `None` if there is no database or no bucket.
#[cfg(feature = "objects")]
pub(super) fn vault_with_bucket() -> Option<TestVault> {
    objects::Place::bucket()?.vault()
}
