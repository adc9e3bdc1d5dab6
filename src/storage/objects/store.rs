//! A storage of objects, without `async`.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload,
};
use tokio::runtime::Runtime;

use super::client::{ObjectAddress, connect, failure, invalid_settings, is_transient};
use super::name::{BLOBS, ObjectName, PROBES};
use super::uploads::{MultipartUploadClient, Upload};
use crate::storage::{ErrorKind, Result, StorageError};

/// The size of a part of a large object.
const PART: usize = 8 << 20;

/// How often a request is made, beyond what the client repeats by itself: it repeats what a server refused, but not a
/// conditional request whose answer was lost.
const ATTEMPTS: u32 = 4;

/// The pause before a request is made again, which grows fourfold each time.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of creating an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectCreation {
    /// It was created.
    Created,
    /// There was one, or another writer was first.
    Exists,
}

/// An object in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) struct ObjectListingEntry {
    pub(in crate::storage) name: ObjectName,
    pub(in crate::storage) size: u64,
    pub(in crate::storage) modified: DateTime<Utc>,
}

/// A storage of objects.
pub(in crate::storage) struct ObjectStore {
    store: Arc<dyn object_store::ObjectStore>,
    prefix: Path,
    /// The directory, if it is one.
    directory: Option<PathBuf>,
    uploads: Option<MultipartUploadClient>,
    /// The address.
    name: String,
    /// Runs requests; nothing but a drop takes it out.
    runtime: Option<Runtime>,
}

impl ObjectStore {
    /// The parts into which listings are divided.
    pub(in crate::storage) const PARTS: std::ops::RangeInclusive<u8> = 0..=u8::MAX;

    /// Opens the storage at an address. This makes no request.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created, or if the environment has invalid settings.
    pub(in crate::storage) fn open(address: &ObjectAddress) -> Result<Self> {
        let name = address.to_string();
        let (store, prefix, directory, uploads) = match address {
            ObjectAddress::Directory(path) => {
                crate::files::create_dir_all(path).map_err(|error| StorageError::io(path, error))?;
                let store = LocalFileSystem::new_with_prefix(path);
                let store = store.map_err(|error| failure(&name, "", &error))?;
                // What is acknowledged survives the loss of power.
                let store = Arc::new(store.with_fsync(true)) as Arc<dyn object_store::ObjectStore>;
                (store, Path::default(), Some(path.clone()), None)
            }
            ObjectAddress::Bucket { provider, bucket, prefix } => {
                let connected = connect(*provider, bucket);
                let (store, uploads) = connected.map_err(|error| invalid_settings(&name, &error))?;
                (store, prefix.clone(), None, uploads)
            }
        };
        // One thread drives connections also while nothing waits for an answer.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("object storage")
            .enable_all()
            .build()
            .map_err(|error| {
                StorageError::new(ErrorKind::Io, format!("{name}: no thread can be started"))
                    .with_source(error)
            })?;
        Ok(Self { store, prefix, directory, uploads, name, runtime: Some(runtime) })
    }

    /// Returns the directory, if the storage is one.
    pub(super) fn directory(&self) -> Option<&std::path::Path> {
        self.directory.as_deref()
    }

    /// Returns the address, which has no credentials.
    pub(in crate::storage) fn name(&self) -> &str {
        &self.name
    }

    fn path(&self, key: &str) -> Path {
        key.split('/').fold(self.prefix.clone(), Path::join)
    }

    fn run<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let runtime = self.runtime.as_ref();
        let runtime =
            runtime.ok_or_else(|| StorageError::new(ErrorKind::Io, "the object storage is closed"))?;
        Ok(runtime.block_on(future))
    }

    fn failed(&self, key: &str, error: &Error) -> StorageError {
        failure(&self.name, key, error)
    }

    /// Makes a request, and repeats it if it failed for a reason that may pass.
    fn attempt<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<object_store::Result<T>> {
        self.run(async {
            let mut pause = PAUSE;
            for _ in 1..ATTEMPTS {
                match request().await {
                    // What a file system refuses, it refuses again.
                    Err(error) if self.directory.is_none() && is_transient(&error) => {
                        tokio::time::sleep(pause).await;
                    }
                    outcome => return outcome,
                }
                pause *= 4;
            }
            request().await
        })
    }

    /// Creates an object if there is none with this key. If an answer is lost, the result is `Exists` although this call
    /// created it.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be written.
    pub(super) fn create(&self, key: &str, parts: &[&[u8]]) -> Result<ObjectCreation> {
        let payload: PutPayload = parts.iter().map(|part| Bytes::copy_from_slice(part)).collect();
        let path = self.path(key);
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.attempt(|| self.store.put_opts(&path, payload.clone(), options.clone()))? {
            Ok(_) => Ok(ObjectCreation::Created),
            Err(Error::AlreadyExists { .. }) => Ok(ObjectCreation::Exists),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    /// Writes an object under a name that nothing else has. It is durable when this returns.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be written.
    pub(in crate::storage) fn write(&self, name: ObjectName, parts: &[&[u8]]) -> Result<()> {
        let (key, size) = (name.key(), parts.iter().map(|part| part.len()).sum::<usize>());
        match parts {
            [large] if size > PART => self.write_parts(&key, large),
            // No one else has this name, so this is what an attempt without an answer wrote.
            _ if self.create(&key, parts)? == ObjectCreation::Exists => self.expect_size(&key, size as u64),
            _ => Ok(()),
        }
    }

    /// Writes an object in parts, which are put together at the end.
    fn write_parts(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(key);
        let written = self.attempt(|| async {
            let mut upload = self.store.put_multipart_opts(&path, PutMultipartOptions::default()).await?;
            for part in bytes.chunks(PART) {
                if let Err(error) = upload.put_part(Bytes::copy_from_slice(part).into()).await {
                    // Parts that remain cost money. If this fails, too, the rules of the bucket remove them.
                    let _ = upload.abort().await;
                    return Err(error);
                }
            }
            let completed = upload.complete().await;
            if completed.is_err() {
                let _ = upload.abort().await;
            }
            completed
        })?;
        written.map_err(|error| self.failed(key, &error))?;
        self.expect_size(key, bytes.len() as u64)
    }

    fn expect_size(&self, key: &str, size: u64) -> Result<()> {
        let path = self.path(key);
        let found = self.attempt(|| self.store.head(&path))?.map_err(|error| self.failed(key, &error))?;
        if found.size == size {
            return Ok(());
        }
        let message =
            format!("{}: {key} has {} bytes instead of the {size} that were written", self.name, found.size);
        Err(StorageError::new(ErrorKind::Io, message))
    }

    /// Returns a part of an object, or `None` if the object does not exist or is shorter. The bytes are not checked.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be read.
    pub(in crate::storage) fn read(&self, name: ObjectName, part: Range<u64>) -> Result<Option<Vec<u8>>> {
        if part.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let key = name.key();
        match self.get(&key, Some(GetRange::Bounded(part.clone()))) {
            Ok(bytes) => Ok(bytes.filter(|bytes| bytes.len() as u64 == part.end - part.start)),
            // Servers refuse parts that an object does not have in several ways.
            Err(error) => {
                let path = self.path(&key);
                let found = self.attempt(|| self.store.head(&path))?;
                if found.is_ok_and(|found| found.size < part.end) { Ok(None) } else { Err(error) }
            }
        }
    }

    /// Returns the bytes of a small object, or `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be read.
    pub(super) fn read_whole(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.get(key, None)
    }

    fn get(&self, key: &str, range: Option<GetRange>) -> Result<Option<Vec<u8>>> {
        let path = self.path(key);
        let options = GetOptions { range, ..GetOptions::default() };
        let bytes =
            self.attempt(|| async { self.store.get_opts(&path, options.clone()).await?.bytes().await })?;
        match bytes {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    /// Deletes the object with blobs. That there is none is no error.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be written.
    pub(in crate::storage) fn delete_object(&self, name: ObjectName) -> Result<()> {
        self.delete(&name.key())
    }

    pub(super) fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key);
        match self.attempt(|| self.store.delete(&path))? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    /// Returns the time by the clock of the storage: that of an object written now.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be read or written.
    pub(in crate::storage) fn now(&self) -> Result<DateTime<Utc>> {
        let key = format!("{PROBES}/{}", ObjectName::new()?);
        self.create(&key, &[b"now"])?;
        let path = self.path(&key);
        let found = self.attempt(|| self.store.head(&path))?;
        self.delete(&key)?;
        found.map(|found| found.last_modified).map_err(|error| self.failed(&key, &error))
    }

    /// Returns the objects with blobs in one part of the storage. Other objects are not listed.
    ///
    /// # Errors
    /// Returns an error if the storage cannot be listed.
    pub(in crate::storage) fn list(&self, part: u8) -> Result<Vec<ObjectListingEntry>> {
        self.list_in(&format!("{BLOBS}/{part:02x}"))
    }

    /// Returns the unfinished multipart uploads of objects with blobs, as far as the storage lists them.
    pub(super) fn unfinished_uploads(&self) -> Result<Vec<Upload>> {
        let Some(uploads) = &self.uploads else { return Ok(Vec::new()) };
        let (prefix, mut after, mut found) = (format!("{}/", self.path(BLOBS)), None, Vec::new());
        loop {
            let page = self.attempt(|| uploads.list(&prefix, after.as_ref()))?;
            let page = page.map_err(|error| self.failed(BLOBS, &error))?;
            found.extend(page.uploads.into_iter().filter(|upload| self.is_ours(&upload.key)));
            // A server that returns the same part again would never come to an end.
            if page.next.is_none() || page.next == after {
                return Ok(found);
            }
            after = page.next;
        }
    }

    fn is_ours(&self, key: &str) -> bool {
        let name = key.rsplit('/').next().and_then(ObjectName::parse);
        name.is_some_and(|name| self.path(&name.key()).as_ref() == key)
    }

    /// Deletes the parts of an upload.
    pub(super) fn abort(&self, upload: &Upload) -> Result<()> {
        let Some(uploads) = &self.uploads else { return Ok(()) };
        self.attempt(|| uploads.abort(upload))?.map_err(|error| self.failed(&upload.key, &error))
    }

    /// Uploads one part of an object, and ends there, like a program that is killed.
    #[cfg(test)]
    pub(in crate::storage) fn begin_upload(&self, name: ObjectName, part: &[u8]) -> Result<()> {
        let (key, part) = (name.key(), Bytes::copy_from_slice(part));
        let path = self.path(&key);
        let begun = self.run(async {
            let mut upload = self.store.put_multipart_opts(&path, PutMultipartOptions::default()).await?;
            upload.put_part(part.into()).await?;
            // The file of a directory would be deleted.
            std::mem::forget(upload);
            Ok(())
        })?;
        begun.map_err(|error| self.failed(&key, &error))
    }

    /// Returns the objects with names in a directory of the storage.
    pub(super) fn list_in(&self, key: &str) -> Result<Vec<ObjectListingEntry>> {
        let path = self.path(key);
        let found = self.attempt(|| self.store.list_with_delimiter(Some(&path)))?;
        let found = found.map_err(|error| self.failed(key, &error))?;
        let listed = found.objects.iter().filter_map(|object| {
            let name = object.location.filename().and_then(ObjectName::parse)?;
            Some(ObjectListingEntry { name, size: object.size, modified: object.last_modified })
        });
        Ok(listed.collect())
    }
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        // Waiting for it is not possible everywhere, and no request is left.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
