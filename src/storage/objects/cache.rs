//! Copies of bytes that were read, in a directory that processes of one machine share.
//!
//! What is read from it is checked like everything else, by its reader, so that nothing here has to be durable, and a file
//! that is damaged, cut off or deleted at any time does no harm. No error of the cache is an error of a read.

use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::clock;
use crate::storage::{Result, StorageError};

/// A directory with copies.
#[derive(Debug)]
pub(in crate::storage) struct Cache {
    directory: PathBuf,
    /// The size of all copies that is not exceeded for long.
    limit: u64,
    /// The number of bytes that may be added before the size is measured again, because other processes add copies too.
    left: AtomicU64,
}

/// A file of the cache.
struct CachedObject {
    path: PathBuf,
    used: SystemTime,
    size: u64,
}

impl Cache {
    /// The variable with the directory. Without it there is no cache.
    const DIRECTORY: &str = "RUNVAULT_OBJECT_CACHE";
    /// The variable with the limit in bytes; `k`, `M` and `G` stand for KiB, MiB and GiB.
    const LIMIT: &str = "RUNVAULT_OBJECT_CACHE_SIZE";
    /// The limit unless the variable is set.
    const DEFAULT_LIMIT: u64 = 1 << 30;
    /// Copies take at most this part of the limit each.
    const LARGEST: u64 = 4;
    /// The size is measured each time that this part of the limit was added.
    const MEASURED: u64 = 16;

    /// Creates a cache in a directory, which need not exist.
    pub(in crate::storage) fn new(directory: PathBuf, limit: u64) -> Self {
        Self { directory, limit, left: AtomicU64::new(0) }
    }

    /// Returns the cache that the environment names, if it does.
    ///
    /// # Errors
    /// Returns an error of the kind `Invalid` if the limit is not a size.
    pub(in crate::storage) fn from_env() -> Result<Option<Self>> {
        let Some(directory) = std::env::var_os(Self::DIRECTORY).filter(|directory| !directory.is_empty())
        else {
            return Ok(None);
        };
        let limit = match std::env::var_os(Self::LIMIT) {
            None => Self::DEFAULT_LIMIT,
            Some(text) => text.to_str().and_then(parse_size).ok_or_else(|| {
                StorageError::invalid(format!("{} is not a size, such as 500M or 20G", Self::LIMIT))
            })?,
        };
        Ok(Some(Self::new(directory.into(), limit)))
    }

    /// Returns the file with the copy of a key, whose first characters divide the files among directories.
    fn path(&self, key: &str) -> PathBuf {
        let (first, _) = key.split_at_checked(2).unwrap_or((key, ""));
        self.directory.join(first).join(key)
    }

    /// Returns the copy with a key, if there is one. The bytes are not checked.
    pub(in crate::storage) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        if !fs::symlink_metadata(&path).ok()?.is_file() {
            // A copy could not take its place, and a pipe would never end.
            self.remove(key);
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        // The copies that were not used for the longest time are deleted first.
        let _ =
            File::options().write(true).open(&path).and_then(|file| file.set_modified(clock::now().into()));
        Some(bytes)
    }

    /// Deletes the copy with a key, or whatever is in its place.
    pub(in crate::storage) fn remove(&self, key: &str) {
        let path = self.path(key);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }

    /// Adds a copy. Others never see a part of it.
    pub(in crate::storage) fn put(&self, key: &str, bytes: &[u8]) {
        let size = bytes.len() as u64;
        if size > self.limit / Self::LARGEST || Self::write(&self.path(key), bytes).is_none() {
            return;
        }
        let left =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        if left.is_err() {
            self.evict();
            self.left.store(self.limit / Self::MEASURED, Ordering::Relaxed);
        }
    }

    fn write(path: &Path, bytes: &[u8]) -> Option<()> {
        let directory = path.parent()?;
        // The bytes are those of a vault that others may not be allowed to read.
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(directory).ok()?;
        let mut file = tempfile::NamedTempFile::new_in(directory).ok()?;
        file.write_all(bytes).ok()?;
        file.as_file().set_modified(clock::now().into()).ok()?;
        file.persist(path).ok().map(drop)
    }

    /// Deletes the copies that were not used for the longest time until the others fit.
    fn evict(&self) {
        let mut copies = self.copies();
        let mut size: u64 = copies.iter().map(|copy| copy.size).sum();
        if size <= self.limit {
            return;
        }
        // Not each copy that is added has to make room, and what others add meanwhile has some.
        let target = self.limit - self.limit / Self::MEASURED * 2;
        copies.sort_unstable_by(|one, other| (one.used, &one.path).cmp(&(other.used, &other.path)));
        for copy in copies {
            if size <= target {
                break;
            }
            if fs::remove_file(&copy.path).is_ok() {
                size -= copy.size;
            }
        }
    }

    fn copies(&self) -> Vec<CachedObject> {
        let entries = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
        let directories = entries(&self.directory).map(|entry| entry.path());
        let files = directories.flat_map(|directory| entries(&directory).collect::<Vec<_>>());
        let copy = |file: fs::DirEntry| {
            let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(CachedObject { path: file.path(), used: metadata.modified().ok()?, size: metadata.len() })
        };
        files.filter_map(copy).collect()
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.char_indices().next_back()? {
        (end, 'k' | 'K') => (text.get(..end)?, 1 << 10),
        (end, 'M') => (text.get(..end)?, 1 << 20),
        (end, 'G') => (text.get(..end)?, 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cache: &Cache) -> u64 {
        cache.copies().iter().map(|copy| copy.size).sum()
    }

    #[test]
    fn copies_come_back_until_they_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("new"), 1 << 20);
        assert_eq!(cache.get("abcd"), None);
        cache.put("abcd", b"bytes");
        assert_eq!(cache.get("abcd").unwrap(), b"bytes");
        cache.remove("abcd");
        assert_eq!(cache.get("abcd"), None);
        // One too large for the cache.
        cache.put("abcd", &vec![0; 1 << 19]);
        assert_eq!(cache.get("abcd"), None);
    }

    #[test]
    fn what_is_in_the_place_of_a_copy_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned(), 1 << 20);
        fs::create_dir_all(cache.path("abcd").join("files")).unwrap();
        fs::write(directory.path().join("other"), "bytes").unwrap();
        #[cfg(unix)]
        {
            fs::create_dir_all(directory.path().join("ef")).unwrap();
            std::os::unix::fs::symlink(directory.path().join("other"), cache.path("ef01")).unwrap();
        }
        for key in ["abcd", "ef01"] {
            assert_eq!(cache.get(key), None);
            cache.put(key, b"copy");
            assert_eq!(cache.get(key).unwrap(), b"copy");
        }
        assert_eq!(fs::read(directory.path().join("other")).unwrap(), b"bytes");
    }

    #[test]
    fn a_directory_that_cannot_be_written_has_no_copies() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "bytes").unwrap();
        // The directory is a file, or that of these copies is.
        for cache in [file.clone(), directory.path().to_owned()] {
            let cache = Cache::new(cache, 1 << 20);
            let _ = fs::write(directory.path().join("ab"), "bytes");
            cache.put("abcd", b"copy");
            assert_eq!(cache.get("abcd"), None);
            cache.remove("abcd");
            cache.evict();
        }
        assert_eq!(fs::read(&file).unwrap(), b"bytes");
    }

    #[test]
    fn the_limit_is_kept_by_deleting_what_was_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().to_owned(), 16_000);
        let key = |number: u8| format!("{number:02x}copy");
        for number in 0..16 {
            cache.put(&key(number), &[number; 1_000]);
            let file = File::options().write(true).open(cache.path(&key(number))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number.into()))
                .unwrap();
        }
        assert_eq!(size(&cache), 16_000);
        // It is used, and so newer than the others.
        assert!(cache.get(&key(0)).is_some());
        cache.put(&key(16), &[16; 1_000]);
        assert!(size(&cache) <= 16_000);
        assert!(cache.get(&key(0)).is_some() && cache.get(&key(16)).is_some());
        assert_eq!((cache.get(&key(1)), cache.get(&key(2))), (None, None));
    }

    #[test]
    fn processes_share_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let cache = Cache::new(directory.path().to_owned(), 64_000);
                scope.spawn(move || {
                    for number in 0..200_u8 {
                        let key = format!("{:02x}", number % 100);
                        cache.put(&key, &[number % 100; 2_000]);
                        if let Some(bytes) = cache.get(&key) {
                            assert_eq!(bytes, [number % 100; 2_000]);
                        }
                    }
                });
            }
        });
        let cache = Cache::new(directory.path().to_owned(), 64_000);
        cache.evict();
        assert!(size(&cache) <= 64_000);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("10"), Some(10));
        assert_eq!(parse_size("2k"), Some(2 << 10));
        assert_eq!(parse_size("3M"), Some(3 << 20));
        assert_eq!(parse_size("1G"), Some(1 << 30));
        assert_eq!(
            (parse_size(""), parse_size("M"), parse_size("-1"), parse_size("99999999999G")),
            (None, None, None, None)
        );
    }
}
