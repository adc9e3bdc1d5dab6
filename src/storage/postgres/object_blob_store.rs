//! Bytes in object storage: small blobs together in packs, large ones alone.

use chrono::{DateTime, Utc};

use super::blob_store::{BlobCatalogEntry, BlobReadResult, BlobStore, ListedObject, ObjectRange};
use super::encoding::{EncodedMember, decoded};
use super::error::PostgresResult;
use crate::digest::BlobHash;
use crate::storage::objects::{Cache, ObjectListingEntry, ObjectName, ObjectStore, delete_unfinished};
use crate::storage::{PayloadDefect, Result};

/// The size of encoded bytes from which a blob is an object of its own.
const LARGE: usize = 16 << 20;

/// Maximum size of a pack.
const PACK: usize = 32 << 20;

/// All bytes are in object storage.
#[derive(Debug)]
pub(super) struct ObjectBlobStore {
    store: ObjectStore,
    /// Copies on this machine of what was read.
    cache: Option<Cache>,
}

impl ObjectBlobStore {
    pub(super) fn new(store: ObjectStore, cache: Option<Cache>) -> Self {
        Self { store, cache }
    }

    /// Returns a part of an object, hashed and decoded.
    fn fetch(
        &self,
        blob: BlobHash,
        stored: &BlobCatalogEntry,
        part: ObjectRange,
        cache: Option<&Cache>,
    ) -> Result<BlobReadResult> {
        let Some(end) = part.start.checked_add(part.length) else {
            return Ok(Err(PayloadDefect::Missing { blob }));
        };
        let Some(encoded) = self.store.read(ObjectName(part.object), part.start..end)? else {
            return Ok(Err(PayloadDefect::Missing { blob }));
        };
        let Some(cache) = cache else {
            return Ok(decoded(blob, stored.size, stored.encoding, encoded));
        };
        let bytes = decoded(blob, stored.size, stored.encoding, encoded.clone());
        if bytes.is_ok() {
            cache.put(&key(blob, stored), &encoded);
        }
        Ok(bytes)
    }

    /// Returns a part of an object, fetched twice if it is damaged, or missing, at first. Copies it to `cache`.
    fn fetch_twice(
        &self,
        blob: BlobHash,
        stored: &BlobCatalogEntry,
        part: ObjectRange,
        cache: Option<&Cache>,
    ) -> PostgresResult<BlobReadResult> {
        let read = match self.fetch(blob, stored, part, cache)? {
            Ok(bytes) => return Ok(Ok(bytes)),
            // What was lost on the way is there when it is fetched again.
            Err(_) => self.fetch(blob, stored, part, cache)?,
        };
        Ok(read.map_err(|defect| PayloadDefect::Object {
            object: format!("{}/{}", self.store.name(), ObjectName(part.object).key()),
            defect: Box::new(defect),
        }))
    }
}

impl BlobStore for ObjectBlobStore {
    fn store(&self, blobs: &[(BlobHash, &EncodedMember)]) -> PostgresResult<Vec<ObjectRange>> {
        let mut parts = vec![None; blobs.len()];
        for object in objects(blobs) {
            let name = ObjectName::new()?;
            let bytes: Vec<&[u8]> = object
                .iter()
                .filter_map(|index| blobs.get(*index))
                .map(|(_, encoded)| &encoded.bytes[..])
                .collect();
            self.store.write(name, &bytes)?;
            let mut start = 0;
            for (index, bytes) in object.into_iter().zip(bytes) {
                let length = bytes.len() as u64;
                if let Some(part) = parts.get_mut(index) {
                    *part = Some(ObjectRange { object: name.0, start, length });
                }
                start += length;
            }
        }
        // Each blob is in one object.
        Ok(parts.into_iter().flatten().collect())
    }

    fn read(
        &self,
        blob: BlobHash,
        stored: &BlobCatalogEntry,
        part: ObjectRange,
        may_be_copy: bool,
    ) -> PostgresResult<BlobReadResult> {
        let cache = self.cache.as_ref().filter(|_| may_be_copy);
        if let Some(bytes) = cache.and_then(|cache| copy(cache, blob, stored)) {
            return Ok(Ok(bytes));
        }
        self.fetch_twice(blob, stored, part, cache)
    }

    fn delete(&self, object: [u8; 16]) -> PostgresResult<()> {
        Ok(self.store.delete_object(ObjectName(object))?)
    }

    fn now(&self) -> PostgresResult<DateTime<Utc>> {
        Ok(self.store.now()?)
    }

    fn list(&self, take: &mut dyn FnMut(Vec<ListedObject>) -> PostgresResult<()>) -> PostgresResult<()> {
        for part in ObjectStore::PARTS {
            let listed = self.store.list(part)?.into_iter();
            take(
                listed
                    .map(|ObjectListingEntry { name, size, modified }| ListedObject {
                        name: name.0,
                        size,
                        modified,
                    })
                    .collect(),
            )?;
        }
        Ok(())
    }

    fn delete_unfinished(&self, latest: DateTime<Utc>) -> PostgresResult<(u64, u64)> {
        let deleted = delete_unfinished(&self.store, latest)?;
        Ok((deleted.count, deleted.bytes))
    }
}

/// Returns the copy of a blob if there is one and it is intact. A damaged copy is removed.
fn copy(cache: &Cache, blob: BlobHash, stored: &BlobCatalogEntry) -> Option<Vec<u8>> {
    let key = key(blob, stored);
    let bytes = decoded(blob, stored.size, stored.encoding, cache.get(&key)?);
    if bytes.is_err() {
        cache.remove(&key);
    }
    bytes.ok()
}

/// Returns the key of the copy of a blob. Vaults share copies: the key says what the bytes are.
fn key(blob: BlobHash, stored: &BlobCatalogEntry) -> String {
    format!("{}.{}", blob.0.hex(), stored.encoding)
}

/// Divides blobs among objects. Returns the positions of the blobs of each.
fn objects(blobs: &[(BlobHash, &EncodedMember)]) -> Vec<Vec<usize>> {
    let (mut objects, mut pack, mut size) = (Vec::new(), Vec::new(), 0);
    for (index, (_, encoded)) in blobs.iter().enumerate() {
        let length = encoded.bytes.len();
        if length >= LARGE {
            objects.push(vec![index]);
            continue;
        }
        if size + length > PACK {
            objects.push(std::mem::take(&mut pack));
            size = 0;
        }
        pack.push(index);
        size += length;
    }
    objects.push(pack);
    objects.retain(|object| !object.is_empty());
    objects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::storage::objects::ObjectAddress;

    fn encoded(lengths: &[usize]) -> Vec<EncodedMember> {
        let encoded = |(number, length): (usize, &usize)| EncodedMember {
            encoding: 0,
            bytes: vec![u8::try_from(number).unwrap(); *length],
        };
        lengths.iter().enumerate().map(encoded).collect()
    }

    fn with_hashes(encoded: &[EncodedMember]) -> Vec<(BlobHash, &EncodedMember)> {
        encoded.iter().map(|encoded| (BlobHash(Digest::from_content(&encoded.bytes)), encoded)).collect()
    }

    #[test]
    fn small_blobs_share_packs_and_large_ones_do_not() {
        let mebibytes = encoded(&[1 << 20, 15 << 20, 16 << 20, 15 << 20, 15 << 20, 0]);
        assert_eq!(objects(&with_hashes(&mebibytes)), [vec![2], vec![0, 1, 3], vec![4, 5]]);
        assert!(objects(&[]).is_empty());
    }

    #[test]
    fn bytes_come_back_from_parts_of_objects() {
        let directory = tempfile::tempdir().unwrap();
        let address = ObjectAddress::parse(&format!("file://{}", directory.path().display())).unwrap();
        let blobs = ObjectBlobStore::new(ObjectStore::open(&address).unwrap(), None);
        let encoded = encoded(&[3, 0, 5, 17 << 20]);
        let with_hashes = with_hashes(&encoded);
        let parts = blobs.store(&with_hashes).unwrap();
        for ((blob, encoded), part) in with_hashes.iter().zip(&parts) {
            let size = encoded.bytes.len() as u64;
            let stored = BlobCatalogEntry { size, encoding: 0, bytes: None, part: Some(*part) };
            assert_eq!(blobs.read(*blob, &stored, *part, true).unwrap().unwrap(), encoded.bytes);
        }
        assert_eq!(parts.iter().map(|part| part.start).collect::<Vec<_>>(), [0, 3, 3, 0]);
        assert_eq!(std::fs::read_dir(directory.path().join("blobs")).unwrap().count(), 2);
    }

    #[test]
    fn copies_are_used_only_if_they_are_intact() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let address = ObjectAddress::parse(&format!("file://{}", directory.path().display())).unwrap();
        let cache = || Some(Cache::new(copies.path().to_owned(), 1 << 20));
        let blobs = ObjectBlobStore::new(ObjectStore::open(&address).unwrap(), cache());
        let encoded = encoded(&[3_000]);
        let with_hashes = with_hashes(&encoded);
        let part = blobs.store(&with_hashes).unwrap()[0];
        let (blob, bytes) = (with_hashes[0].0, &encoded[0].bytes);
        let stored = BlobCatalogEntry { size: 3_000, encoding: 0, bytes: None, part: Some(part) };
        let read = || blobs.read(blob, &stored, part, true).unwrap();
        assert_eq!(&read().unwrap(), bytes);
        let copy = copies.path().join(&blob.0.hex()[..2]).join(format!("{}.0", blob.0.hex()));
        for damaged in [&b"damaged"[..], b"", &[1; 3_000]] {
            std::fs::write(&copy, damaged).unwrap();
            assert_eq!(&read().unwrap(), bytes);
            assert_eq!(&std::fs::read(&copy).unwrap(), bytes, "the copy was replaced");
        }
        // What is copied is not fetched again.
        std::fs::remove_dir_all(directory.path().join("blobs")).unwrap();
        assert_eq!(&read().unwrap(), bytes);
        std::fs::write(&copy, "damaged").unwrap();
        assert!(matches!(read(), Err(PayloadDefect::Object { .. })));
    }
}
