//! Files that are moved into the vault: renamed and not removed yet, and their recovery if the process is killed.
//!
//! All files of one artifact are set aside before the first of them is removed. Their names contain the number that
//! identifies the artifact, and their original names. One of them is then renamed again, which confirms that all of them
//! can be removed, and is removed last. So at every moment, the names tell whether a file of the artifact may be missing:
//!
//! - Files without a confirmed one are complete: they get their names back.
//! - Files with a confirmed one are removed: their artifact was in the vault when they were set aside.
//!
//! The files are locked while a process works on them; the locks of a killed process are released. Files that are locked,
//! and files whose names have been taken by different files, stay as they are.

use std::ffi::{OsStr, OsString};

#[cfg(unix)]
pub(crate) use recovery::recover;

/// The prefixes of the names of files that were set aside, and of those that also confirm it.
const ASIDE: &str = ".runvault-aside-";
const CONFIRMED: &str = ".runvault-stored-";

/// The number of hexadecimal digits of the number of an artifact.
const DIGITS: usize = 16;

/// Returns the temporary name of the file `name` of the artifact with this number.
pub(crate) fn aside_name(number: u64, name: &OsStr) -> OsString {
    with_prefix(ASIDE, number, name)
}

/// Returns the temporary name of a file whose own name is too long to be part of it. It is not recovered, but is found
/// by its content like any file.
pub(crate) fn short_aside_name(number: u64) -> OsString {
    format!("{ASIDE}{number:016x}").into()
}

/// Returns the name by which the file `name` confirms that the files of its artifact are removed.
pub(crate) fn confirmed_name(number: u64, name: &OsStr) -> OsString {
    with_prefix(CONFIRMED, number, name)
}

/// Returns whether a file with this name was set aside and can be recovered.
pub(crate) fn is_set_aside(name: &OsStr) -> bool {
    parse(name).is_some()
}

fn with_prefix(prefix: &str, number: u64, name: &OsStr) -> OsString {
    let mut whole = OsString::from(format!("{prefix}{number:016x}-"));
    whole.push(name);
    whole
}

/// Returns whether the file confirms, the number of its artifact, and the start of its original name.
fn parse(name: &OsStr) -> Option<(bool, u64, usize)> {
    let bytes = name.as_encoded_bytes();
    let (is_confirmed, prefix) = [(false, ASIDE), (true, CONFIRMED)]
        .into_iter()
        .find(|(_, prefix)| bytes.starts_with(prefix.as_bytes()))?;
    let digits = bytes.get(prefix.len()..prefix.len() + DIGITS)?;
    let is_hex = digits.iter().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit));
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_hex)?, 16).ok()?;
    let start = prefix.len() + DIGITS + 1;
    let is_named = bytes.get(start - 1) == Some(&b'-') && bytes.len() > start;
    is_named.then_some((is_confirmed, number, start))
}

#[cfg(unix)]
mod recovery {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::{self, ErrorKind, Read};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};

    use super::{OsStr, OsString, parse};
    use crate::files;

    /// A file that was set aside.
    struct OrphanedFile {
        name: OsString,
        original: OsString,
        is_confirmed: bool,
    }

    /// Removes the files in `directory` that a killed process had set aside, or gives them back their names. Files that
    /// cannot be recovered stay as they are.
    pub(crate) fn recover(directory: impl AsFd) {
        let directory = directory.as_fd();
        let Ok(artifacts) = find(directory) else { return };
        for files in artifacts.into_values() {
            // Another process may be removing them, or the directory may not be writable.
            let _ = recover_artifact(directory, &files);
        }
    }

    fn find(directory: BorrowedFd<'_>) -> io::Result<BTreeMap<u64, Vec<OrphanedFile>>> {
        let mut artifacts: BTreeMap<u64, Vec<OrphanedFile>> = BTreeMap::new();
        for entry in Dir::read_from(directory)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if let Some((is_confirmed, number, start)) = parse(&name) {
                let original = name.as_bytes().get(start..).unwrap_or_default().to_vec();
                let original = OsString::from_vec(original);
                artifacts.entry(number).or_default().push(OrphanedFile { name, original, is_confirmed });
            }
        }
        Ok(artifacts)
    }

    fn recover_artifact(directory: BorrowedFd<'_>, files: &[OrphanedFile]) -> io::Result<()> {
        let locked =
            files.iter().map(|file| lock(directory, &file.name)).collect::<io::Result<Vec<File>>>()?;
        if files.iter().any(|file| file.is_confirmed) {
            // The one that confirms is the last.
            let (last, others): (Vec<&OrphanedFile>, Vec<&OrphanedFile>) =
                files.iter().partition(|file| file.is_confirmed);
            for file in others.into_iter().chain(last) {
                fs::unlinkat(directory, &file.name, AtFlags::empty())?;
            }
            return Ok(());
        }
        for (file, locked) in files.iter().zip(locked) {
            give_back(directory, file, locked)?;
        }
        Ok(())
    }

    /// Opens and locks a file. Returns an error if a process is using it.
    fn lock(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
        let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            clippy::cast_sign_loss,
            reason = "not on each system"
        )]
        let (device, number) = (stat.st_dev as u64, u64::from(stat.st_ino));
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
            || files::has_open_file(device, number)
        {
            return Err(ErrorKind::InvalidInput.into());
        }
        let file = open(directory, name)?;
        file.try_lock()?;
        let metadata = file.metadata()?;
        // Its process may have removed it, or given its name back, before it was locked.
        let now = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            clippy::cast_sign_loss,
            reason = "not on each system"
        )]
        let is_same = (now.st_dev as u64, u64::from(now.st_ino)) == (metadata.dev(), metadata.ino());
        if is_same { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn open(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(File::from(fs::openat(directory, name, flags, Mode::empty())?))
    }

    /// Gives a file its name back, or removes it if a file with the same content has the name.
    fn give_back(directory: BorrowedFd<'_>, file: &OrphanedFile, contents: File) -> io::Result<()> {
        let OrphanedFile { name, original, .. } = file;
        match fs::linkat(directory, name, directory, original, AtFlags::empty()) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                if !is_copy(directory, original, contents)? {
                    return Ok(());
                }
            }
            // Used where hard links are not available.
            Err(_) if fs::statat(directory, original, AtFlags::SYMLINK_NOFOLLOW).is_err() => {
                return Ok(fs::renameat(directory, name, directory, original)?);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(fs::unlinkat(directory, name, AtFlags::empty())?)
    }

    /// Returns whether the file `name` has these contents.
    fn is_copy(directory: BorrowedFd<'_>, name: &OsStr, mut contents: File) -> io::Result<bool> {
        let mut file = open(directory, name)?;
        let (metadata, other) = (contents.metadata()?, file.metadata()?);
        if (metadata.dev(), metadata.ino()) == (other.dev(), other.ino()) {
            return Ok(true);
        }
        if !other.is_file() || metadata.len() != other.len() {
            return Ok(false);
        }
        let (mut one, mut another) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        loop {
            let read = contents.read(&mut one)?;
            let (Some(one), Some(another)) = (one.get(..read), another.get_mut(..read)) else {
                return Ok(false);
            };
            // A file that is being truncated is an error, and nothing is removed.
            file.read_exact(another)?;
            if one != another {
                return Ok(false);
            }
            if read == 0 {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use super::*;

    fn contents(directory: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        files.sort_unstable();
        files
    }

    fn recover_in(directory: &Path) -> Vec<(String, String)> {
        recover(File::open(directory).unwrap());
        contents(directory)
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn names_are_parsed() {
        assert!(is_set_aside(&aside_name(7, "run.json".as_ref())));
        assert!(is_set_aside(&confirmed_name(u64::MAX, "-".as_ref())));
        let others =
            [".runvault-aside-", ".runvault-aside-0000000000000007-", ".runvault-aside-000000000000000G-a"];
        for other in others {
            assert!(!is_set_aside(other.as_ref()), "{other}");
        }
        assert!(!is_set_aside(&short_aside_name(7)));
        assert!(!is_set_aside(".runvault-unfinished-0000000000000007-a".as_ref()));
    }

    #[test]
    fn files_without_a_confirmation_get_their_names_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &OsStr| directory.path().join(name);
        for name in ["run.json", "meta.json", "lock-1"] {
            fs::write(path(&aside_name(1, name.as_ref())), name).unwrap();
        }
        // Killed between the two steps of giving a name back.
        fs::hard_link(path(&aside_name(1, "run.json".as_ref())), path("run.json".as_ref())).unwrap();
        let expected = pairs(&[("lock-1", "lock-1"), ("meta.json", "meta.json"), ("run.json", "run.json")]);
        assert_eq!(recover_in(directory.path()), expected);
    }

    #[test]
    fn a_name_that_was_taken_is_not_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &OsStr| directory.path().join(name);
        for (name, text) in [("same", "1234"), ("other", "1234"), ("longer", "1234")] {
            fs::write(path(&aside_name(2, name.as_ref())), text).unwrap();
        }
        for (name, text) in [("same", "1234"), ("other", "1235"), ("longer", "12345")] {
            fs::write(path(name.as_ref()), text).unwrap();
        }
        let expected = pairs(&[
            (".runvault-aside-0000000000000002-longer", "1234"),
            (".runvault-aside-0000000000000002-other", "1234"),
            ("longer", "12345"),
            ("other", "1235"),
            ("same", "1234"),
        ]);
        assert_eq!(recover_in(directory.path()), expected);
    }

    #[test]
    fn confirmed_files_are_removed_and_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &OsStr| directory.path().join(name);
        fs::write(path(&confirmed_name(3, "a".as_ref())), "a").unwrap();
        fs::write(path(&aside_name(3, "b".as_ref())), "b").unwrap();
        fs::write(path(&aside_name(4, "c".as_ref())), "c").unwrap();
        fs::write(path(&short_aside_name(3)), "d").unwrap();
        fs::write(path("e".as_ref()), "e").unwrap();
        let expected = pairs(&[(".runvault-aside-0000000000000003", "d"), ("c", "c"), ("e", "e")]);
        assert_eq!(recover_in(directory.path()), expected);
    }

    #[test]
    fn files_that_a_process_works_on_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &OsStr| directory.path().join(name);
        for (number, name) in [(5, "a"), (5, "b"), (6, "c")] {
            fs::write(path(&aside_name(number, name.as_ref())), name).unwrap();
        }
        let working = File::open(path(&aside_name(5, "b".as_ref()))).unwrap();
        working.try_lock_shared().unwrap();
        let expected = pairs(&[
            (".runvault-aside-0000000000000005-a", "a"),
            (".runvault-aside-0000000000000005-b", "b"),
            ("c", "c"),
        ]);
        assert_eq!(recover_in(directory.path()), expected);
        drop(working);
        assert_eq!(recover_in(directory.path()), pairs(&[("a", "a"), ("b", "b"), ("c", "c")]));
    }

    #[test]
    fn links_and_directories_are_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &OsStr| directory.path().join(name);
        fs::create_dir(path(&confirmed_name(8, "a".as_ref()))).unwrap();
        fs::write(path("target".as_ref()), "target").unwrap();
        std::os::unix::fs::symlink("target", path(&confirmed_name(9, "b".as_ref()))).unwrap();
        recover(File::open(directory.path()).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}
