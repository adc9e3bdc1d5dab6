//! Vaults in the database that `RUNVAULT_TEST_ENGINE` names, and what only an engine with a server has to show.

mod connections;
mod proxy;
mod race;
mod round_trips;
#[path = "../../../../tests/it/postgres/schema.rs"]
mod schema;

use schema::Schema;

use super::{Vault, actor};
use crate::storage::postgres::PostgresStorage;

/// Returns an empty vault in a new schema, or `None` if there is no database.
pub(super) fn vault() -> Option<Vault> {
    let schema = Schema::new()?;
    let storage = PostgresStorage::create(&schema.address(), None).unwrap().acting_as(actor());
    Some(Vault { storage: Box::new(storage), _cleanup: Some(Box::new(schema)) })
}
