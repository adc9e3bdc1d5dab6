//! An open vault.

use super::address::PostgresAddress;
use super::attach;
use super::names::{NameCache, NameRegistry};
use super::pool::PostgresServer;
use super::session::DatabaseTransaction;
use crate::storage::interface::Adoption as _;
use crate::storage::{Actor, CreationPolicy, Result, recorded};

/// A vault in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStorage {
    pub(super) server: PostgresServer,
    pub(super) names: NameCache,
    pub(super) actor: Option<Actor>,
}

impl PostgresStorage {
    /// Opens the vault at an address, or creates it, as `creation` says. The password is that of the address, else `password`.
    /// The database must exist; the schema is created if it does not.
    ///
    /// # Errors
    /// Returns an error if the address is not valid, the database cannot be reached, or the vault cannot be opened or
    /// created: [`Missing`](crate::storage::ErrorKind::Missing), [`Exists`](crate::storage::ErrorKind::Exists),
    /// [`Newer`](crate::storage::ErrorKind::Newer) or [`Incomplete`](crate::storage::ErrorKind::Incomplete), for example.
    pub fn open(address: &str, password: Option<String>, creation: CreationPolicy) -> Result<Self> {
        let address = PostgresAddress::parse(address)?.with_default_password(password);
        let storage = Self::connect_to(&address, creation)?;
        if creation != CreationPolicy::ForCopy && storage.is_incomplete()? {
            return Err(recorded::incomplete(storage.address()));
        }
        Ok(storage)
    }

    /// Creates a vault without testing its object storage, which takes long and is the same for all of a server.
    #[cfg(all(test, feature = "objects"))]
    pub(in crate::storage) fn create_without_race(address: &str) -> Result<Self> {
        Self::connect_to(
            &PostgresAddress { is_raced: false, ..PostgresAddress::parse(address)? },
            CreationPolicy::New,
        )
    }

    fn connect_to(address: &PostgresAddress, creation: CreationPolicy) -> Result<Self> {
        let mut server = PostgresServer::connect(address)?;
        let blobs = attach::prepare(&server, address, creation)?;
        server.set_blobs(blobs);
        let names = NameCache::default();
        let read = DatabaseTransaction::to_read(&server).and_then(|session| NameRegistry::read(&session));
        match read {
            // They are read again when they are needed. A check can tell what is damaged.
            Err(failure) if failure.is_damage() => {}
            read => names.set(read.map_err(|failure| failure.at(server.name()))?.into()),
        }
        // Who is not named is the role of the database.
        let actor = server.role().and_then(|role| Actor::new(role).ok());
        Ok(Self { server, names, actor })
    }

    pub(super) fn actor(&self) -> Option<&Actor> {
        self.actor.as_ref()
    }

    /// Returns the number of round trips to the server so far.
    #[cfg(test)]
    pub(in crate::storage) fn round_trips(&self) -> u64 {
        self.server.round_trips()
    }

    /// Returns the address, without a password.
    #[must_use]
    pub fn address(&self) -> &str {
        self.server.name()
    }
}
