//! The object that says which vault a storage belongs to.

use super::name::ObjectName;
use super::store::{ObjectCreation, ObjectStore};
use crate::storage::{ErrorKind, Result, StorageError};

/// The key of the object.
pub(super) const KEY: &str = "runvault-vault";

/// The text before the number of the vault, for people who find the object.
const TEXT: &str = "The bytes of a runvault vault are here. Its number: ";

/// Returns the number of the vault whose bytes are in a storage, or `None` if no vault has claimed it.
///
/// # Errors
/// Returns an error if the storage cannot be read, or if the object has other content.
pub(in crate::storage) fn claimed(store: &ObjectStore) -> Result<Option<ObjectName>> {
    let Some(bytes) = store.read_whole(KEY)? else { return Ok(None) };
    let text = String::from_utf8(bytes).ok();
    let number = text.as_deref().and_then(|text| text.strip_prefix(TEXT)).map(str::trim_end);
    number.and_then(ObjectName::parse).map(Some).ok_or_else(|| {
        let message = format!("{}: the object {KEY} does not name a vault", store.name());
        StorageError::new(ErrorKind::VaultDamaged, message)
    })
}

/// Claims a storage for a vault, and returns the number of the vault that has claimed it, which may be another one.
///
/// # Errors
/// Returns an error if the storage cannot be read or written.
pub(in crate::storage) fn claim(store: &ObjectStore, vault: ObjectName) -> Result<ObjectName> {
    match store.create(KEY, &[format!("{TEXT}{vault}\n").as_bytes()])? {
        ObjectCreation::Created => Ok(vault),
        ObjectCreation::Exists => claimed(store)?.ok_or_else(|| {
            let message = format!("{}: the object {KEY} exists and cannot be read", store.name());
            StorageError::new(ErrorKind::Io, message)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::objects::ObjectAddress;

    #[test]
    fn a_storage_is_claimed_once() {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("file://{}/new/blobs", directory.path().display());
        let store = ObjectStore::open(&ObjectAddress::parse(&address).unwrap()).unwrap();
        let (first, second) = (ObjectName::new().unwrap(), ObjectName::new().unwrap());
        assert_eq!(claimed(&store).unwrap(), None);
        assert_eq!(claim(&store, first).unwrap(), first);
        assert_eq!(claim(&store, second).unwrap(), first);
        assert_eq!(claimed(&store).unwrap(), Some(first));
        std::fs::write(directory.path().join("new/blobs").join(KEY), "x").unwrap();
        assert_eq!(claimed(&store).unwrap_err().kind(), ErrorKind::VaultDamaged);
    }
}
