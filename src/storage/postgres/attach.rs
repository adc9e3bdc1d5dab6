//! Finding where the bytes of a vault are: what the catalog says and what the address says must be the same, and object
//! storage must be that of this vault. Otherwise bytes would be in two places, and found in neither.

use super::address::PostgresAddress;
use super::blob_store::BlobStore;
use super::error::{PostgresError, PostgresResult};
use super::pool::PostgresServer;
use super::schema;
use super::session::DatabaseTransaction;
use crate::storage::{CreationPolicy, Result, StorageError};

/// The object storage that the catalog records.
struct ObjectStorageRecord {
    #[cfg(feature = "objects")]
    vault: [u8; 16],
    url: String,
    #[cfg(feature = "objects")]
    is_claimed: bool,
}

/// Opens or creates the vault of a server, and returns where its bytes are.
///
/// # Errors
/// Returns the errors of [`schema::prepare`], an error of the kind `Invalid` if the address and the catalog differ about
/// object storage, and of the kind `Exists` if the object storage has the bytes of another vault.
pub(super) fn prepare(
    server: &PostgresServer,
    address: &PostgresAddress,
    creation: CreationPolicy,
) -> Result<Option<Box<dyn BlobStore>>> {
    match &address.blobs {
        None => {
            schema::prepare(server, creation, None)?;
            match recorded(server).map_err(|failure| failure.at(server.name()))? {
                None => Ok(None),
                Some(ObjectStorageRecord { url, .. }) => Err(StorageError::invalid(format!(
                    "{}: the bytes of this vault are in object storage, which its address must name with blobs=; it was \
                     created with {url}",
                    server.name()
                ))),
            }
        }
        #[cfg(feature = "objects")]
        Some(blobs) => object_storage::prepare(server, blobs, address.is_raced, creation),
        #[cfg(not(feature = "objects"))]
        Some(never) => match *never {},
    }
}

fn recorded(server: &PostgresServer) -> PostgresResult<Option<ObjectStorageRecord>> {
    let session = DatabaseTransaction::to_read(server)?;
    let Some(row) = session.row("SELECT vault, url, is_claimed FROM blob_store", &[])? else {
        return Ok(None);
    };
    let vault: std::result::Result<[u8; 16], _> = row.bytes(0)?.try_into();
    let vault =
        vault.map_err(|_| PostgresError::damaged("the number of the vault does not have 16 bytes"))?;
    #[cfg(not(feature = "objects"))]
    let _ = vault;
    Ok(Some(ObjectStorageRecord {
        #[cfg(feature = "objects")]
        vault,
        url: row.text(1)?,
        #[cfg(feature = "objects")]
        is_claimed: row.flag(2)?,
    }))
}

#[cfg(feature = "objects")]
mod object_storage {
    //! Vaults with object storage.

    use super::{ObjectStorageRecord, recorded};
    use crate::storage::objects::{
        Cache, ObjectAddress, ObjectName, ObjectStore, claim, claimed, expect_exclusive,
    };
    use crate::storage::postgres::blob_store::BlobStore;
    use crate::storage::postgres::error::PostgresResult;
    use crate::storage::postgres::object_blob_store::ObjectBlobStore;
    use crate::storage::postgres::pool::PostgresServer;
    use crate::storage::postgres::schema::{self, NewBlobStore};
    use crate::storage::postgres::session::DatabaseTransaction;
    use crate::storage::sql::SqlSession as _;
    use crate::storage::{BUSY_TIMEOUT, CreationPolicy, ErrorKind, Result, StorageError};

    pub(super) fn prepare(
        server: &PostgresServer,
        address: &ObjectAddress,
        is_raced: bool,
        creation: CreationPolicy,
    ) -> Result<Option<Box<dyn BlobStore>>> {
        let store = ObjectStore::open(address)?;
        let exists = || schema::exists(server).map_err(|failure| failure.at(server.name()));
        let new =
            if creation == CreationPolicy::Never || exists()? { None } else { Some(new(&store, is_raced)?) };
        // A claim that was found is that of this vault if another process has created it in the meantime.
        let new = match new {
            Some(StorageAvailability::Claimed) if !exists()? => return Err(other_vault(&store)),
            Some(StorageAvailability::Free(new)) => Some(new),
            _ => None,
        };
        schema::prepare(server, creation, new.as_ref())?;
        let failed = |failure: crate::storage::postgres::error::PostgresError| failure.at(server.name());
        let recorded = recorded(server).map_err(failed)?.ok_or_else(|| {
            StorageError::invalid(format!(
                "{}: the bytes of this vault are in the database, but its address names object storage",
                server.name()
            ))
        })?;
        expect_own(server, &store, &recorded)?;
        Ok(Some(Box::new(ObjectBlobStore::new(store, Cache::from_env()?))))
    }

    /// Object storage for a new vault.
    enum StorageAvailability {
        Free(NewBlobStore),
        Claimed,
    }

    /// Checks that a new vault can use a storage.
    fn new(store: &ObjectStore, is_raced: bool) -> Result<StorageAvailability> {
        if claimed(store)?.is_some() {
            return Ok(StorageAvailability::Claimed);
        }
        if is_raced {
            expect_exclusive(store)?;
        }
        Ok(StorageAvailability::Free(NewBlobStore {
            vault: ObjectName::new()?.0,
            url: store.name().to_owned(),
        }))
    }

    /// Checks that a storage is that of the vault, and claims it if no vault has.
    fn expect_own(
        server: &PostgresServer,
        store: &ObjectStore,
        recorded: &ObjectStorageRecord,
    ) -> Result<()> {
        let vault = ObjectName(recorded.vault);
        match claimed(store)? {
            Some(found) if found == vault && recorded.is_claimed => Ok(()),
            Some(found) if found != vault => Err(other_vault(store)),
            None if recorded.is_claimed => Err(StorageError::new(
                ErrorKind::Invalid,
                format!(
                    "{}: the bytes of the vault are not here; it was created with {}",
                    store.name(),
                    recorded.url
                ),
            )),
            _ => {
                if claim(store, vault)? != vault {
                    return Err(other_vault(store));
                }
                set_claimed(server).map_err(|failure| failure.at(server.name()))
            }
        }
    }

    fn set_claimed(server: &PostgresServer) -> PostgresResult<()> {
        let session = DatabaseTransaction::to_write(server, BUSY_TIMEOUT)?;
        session.execute("UPDATE blob_store SET is_claimed = true", &[])?;
        session.commit()
    }

    fn other_vault(store: &ObjectStore) -> StorageError {
        let message = format!("{}: the bytes of another vault are here", store.name());
        StorageError::new(ErrorKind::Exists, message)
    }
}
