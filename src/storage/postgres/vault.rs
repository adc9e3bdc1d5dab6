//! An open vault.

use super::address::PostgresAddress;
use super::attach;
use super::names::{NameCache, NameRegistry};
use super::pool::PostgresServer;
use super::schema::PostgresCreatePolicy;
use super::session::DatabaseTransaction;
use crate::storage::interface::Adoption as _;
use crate::storage::{Actor, Result, recorded};

/// A vault in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStorage {
    pub(super) server: PostgresServer,
    pub(super) names: NameCache,
    pub(super) actor: Option<Actor>,
}

impl PostgresStorage {
    /// Opens the vault at an address. The password is that of the address, else `password`.
    ///
    /// # Errors
    /// Returns an error of the kind [`NoDatabase`](crate::storage::ErrorKind::NoDatabase) if the database does not exist,
    /// [`Missing`](crate::storage::ErrorKind::Missing) if the vault does not exist, [`Connection`](crate::storage::ErrorKind::Connection) if the server cannot be reached or refuses the
    /// connection, [`Newer`](crate::storage::ErrorKind::Newer) or [`Older`](crate::storage::ErrorKind::Older) if another
    /// version of this program made the vault, [`Incomplete`](crate::storage::ErrorKind::Incomplete) if it is a copy that
    /// was not completed, and [`Invalid`](crate::storage::ErrorKind::Invalid) if the address is not valid.
    pub fn open(address: &str, password: Option<String>) -> Result<Self> {
        Self::connect(address, password, PostgresCreatePolicy::Open)?.expect_complete()
    }

    /// Creates a vault at an address. The database must exist; the schema is created if it does not.
    ///
    /// # Errors
    /// Returns an error of the kind [`Exists`](crate::storage::ErrorKind::Exists) if there is a vault; otherwise the same
    /// as [`PostgresStorage::open`].
    pub fn create(address: &str, password: Option<String>) -> Result<Self> {
        Self::connect(address, password, PostgresCreatePolicy::Create)
    }

    /// Opens the vault at an address, and creates it if it does not exist.
    ///
    /// # Errors
    /// Same as [`PostgresStorage::open`], except that the vault need not exist.
    pub fn open_or_create(address: &str, password: Option<String>) -> Result<Self> {
        Self::connect(address, password, PostgresCreatePolicy::OpenOrCreate)?.expect_complete()
    }

    /// Opens the vault at an address to copy another vault into it, and creates it if it does not exist. It may be an
    /// incomplete copy.
    ///
    /// # Errors
    /// Same as [`PostgresStorage::open_or_create`], except [`Incomplete`](crate::storage::ErrorKind::Incomplete).
    pub fn open_for_copy(address: &str, password: Option<String>) -> Result<Self> {
        Self::connect(address, password, PostgresCreatePolicy::OpenOrCreate)
    }

    fn expect_complete(self) -> Result<Self> {
        if self.is_incomplete()? {
            return Err(recorded::incomplete(self.address()));
        }
        Ok(self)
    }

    fn connect(address: &str, password: Option<String>, policy: PostgresCreatePolicy) -> Result<Self> {
        Self::connect_to(&PostgresAddress::parse(address)?.with_default_password(password), policy)
    }

    /// Creates a vault without testing its object storage, which takes long and is the same for all of a server.
    #[cfg(all(test, feature = "objects"))]
    pub(in crate::storage) fn create_without_race(address: &str) -> Result<Self> {
        Self::connect_to(
            &PostgresAddress { is_raced: false, ..PostgresAddress::parse(address)? },
            PostgresCreatePolicy::Create,
        )
    }

    fn connect_to(address: &PostgresAddress, policy: PostgresCreatePolicy) -> Result<Self> {
        let mut server = PostgresServer::connect(address)?;
        let blobs = attach::prepare(&server, address, policy)?;
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

    /// Sets the actor that the journal records for all further changes.
    #[must_use]
    pub fn acting_as(self, actor: Actor) -> Self {
        Self { actor: Some(actor), ..self }
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
