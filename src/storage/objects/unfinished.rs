//! Unfinished uploads of writers that were killed, which no listing of objects with blobs shows.
//!
//! In a directory, an object is written to a file beside it, `NAME#NUMBER`, which then gets the object's name. Listings
//! do not have these files. Of an upload in parts to S3, the parts remain. Objects that test a storage, or state its time,
//! are deleted at once, unless the program ends in between.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::marker;
use super::name::{BLOBS, ObjectName, PROBES};
use super::store::ObjectStore;
use crate::storage::{Result, StorageError};

/// Something that was deleted: its number and its size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::storage) struct DeletedObjects {
    pub(in crate::storage) count: u64,
    pub(in crate::storage) bytes: u64,
}

impl DeletedObjects {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// Deletes what was last written before `latest`, by the clock of the storage.
///
/// # Errors
/// Returns an error if the storage cannot be listed or written.
pub(in crate::storage) fn delete_unfinished(
    store: &ObjectStore,
    latest: DateTime<Utc>,
) -> Result<DeletedObjects> {
    let mut deleted = DeletedObjects::default();
    for probe in store.list_in(PROBES)? {
        if probe.modified <= latest {
            store.delete(&format!("{PROBES}/{}", probe.name))?;
            deleted.add(probe.size);
        }
    }
    for upload in store.unfinished_uploads()? {
        if upload.begun <= latest {
            store.abort(&upload)?;
            // How much was uploaded is not in the list.
            deleted.add(0);
        }
    }
    if let Some(directory) = store.directory() {
        for directory in directories(directory)? {
            delete_files(&directory, latest, &mut deleted)?;
        }
    }
    Ok(deleted)
}

/// Returns the directories in which objects are written.
fn directories(root: &Path) -> Result<Vec<PathBuf>> {
    let blobs = root.join(BLOBS);
    let mut directories = vec![root.to_owned(), root.join(PROBES)];
    for entry in entries(&blobs)? {
        directories.push(entry.path());
    }
    Ok(directories)
}

fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>> {
    let failed = |error| StorageError::io(directory, error);
    let is_other = |error: &std::io::Error| {
        matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    };
    match fs::read_dir(directory) {
        Err(error) if is_other(&error) => Ok(Vec::new()),
        entries => entries.map_err(failed)?.map(|entry| entry.map_err(failed)).collect(),
    }
}

/// Deletes the files of a directory that were to become objects.
fn delete_files(directory: &Path, latest: DateTime<Utc>, deleted: &mut DeletedObjects) -> Result<()> {
    for entry in entries(directory)? {
        // Its writer may complete or delete it at any time.
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(modified) = metadata.modified() else { continue };
        let is_ours = entry.file_name().to_str().is_some_and(is_staged) && metadata.is_file();
        if is_ours && DateTime::<Utc>::from(modified) <= latest {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => {
                    removed.map_err(|error| StorageError::io(&entry.path(), error))?;
                    deleted.add(metadata.len());
                }
            }
        }
    }
    Ok(())
}

/// Returns whether a file with this name was to become one of our objects.
fn is_staged(file: &str) -> bool {
    let Some((name, number)) = file.rsplit_once('#') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (name == marker::KEY || ObjectName::parse(name).is_some())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::storage::objects::ObjectAddress;

    #[test]
    fn only_old_files_of_killed_writers_are_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("file://{}", directory.path().display());
        let store = ObjectStore::open(&ObjectAddress::parse(&address).unwrap()).unwrap();
        let name = ObjectName::new().unwrap();
        store.write(name, &[b"bytes"]).unwrap();
        store.create(&format!("{PROBES}/{name}"), &[b"probe"]).unwrap();
        let object = directory.path().join(name.key());
        let sibling = |suffix: &str| object.with_file_name(format!("{name}{suffix}"));
        let ours = [sibling("#1"), sibling("#17"), directory.path().join("runvault-vault#2")];
        let others = [sibling("#"), sibling("#x"), sibling("#1x"), object.with_file_name("notes#1")];
        let written: Vec<_> = ours.iter().chain(&others).chain([&object]).collect();
        for path in &written {
            fs::write(path, "left").unwrap();
        }
        let now = store.now().unwrap();
        let before = now - chrono::TimeDelta::hours(1);
        assert_eq!(delete_unfinished(&store, before).unwrap(), DeletedObjects::default());
        let old = SystemTime::from(before) - Duration::from_secs(1);
        let probe = directory.path().join(PROBES).join(name.to_string());
        for path in written.into_iter().chain([&probe]) {
            fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
        // One that was begun again.
        fs::write(&ours[1], "written now").unwrap();
        let deleted = delete_unfinished(&store, before).unwrap();
        assert_eq!(deleted, DeletedObjects { count: 3, bytes: 2 * 4 + 5 });
        assert!(ours[1].exists() && object.exists() && others.iter().all(|path| path.exists()));
        assert!(!ours[0].exists() && !ours[2].exists() && !probe.exists());
    }

    /// The form of the names is that of the client, which may change it.
    #[test]
    fn a_writer_that_ends_leaves_such_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("file://{}", directory.path().display());
        let store = ObjectStore::open(&ObjectAddress::parse(&address).unwrap()).unwrap();
        let name = ObjectName::new().unwrap();
        store.begin_upload(name, &[1; 10]).unwrap();
        assert_eq!(store.read(name, 0..10).unwrap(), None);
        let (now, hour) = (store.now().unwrap(), chrono::TimeDelta::hours(1));
        assert_eq!(delete_unfinished(&store, now - hour).unwrap(), DeletedObjects::default());
        assert_eq!(delete_unfinished(&store, now + hour).unwrap(), DeletedObjects { count: 1, bytes: 10 });
        assert_eq!(entries(directory.path().join(name.key()).parent().unwrap()).unwrap().len(), 0);
    }
}
