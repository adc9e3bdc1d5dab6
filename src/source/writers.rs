//! Which files a process holds open for writing, where the system can tell: on Linux, of the processes that may be looked
//! into. Who is root may look into all of its namespace, others into their own.

use std::collections::HashSet;

use super::tree::FileId;

/// Those of `files` that a process holds open for writing. What cannot be told is not among them.
#[cfg(not(target_os = "linux"))]
pub(super) fn among(_: &HashSet<FileId>) -> HashSet<FileId> {
    HashSet::new()
}

/// Those of `files` that a process holds open for writing, this one included. What cannot be told is not among them.
#[cfg(target_os = "linux")]
pub(super) fn among(files: &HashSet<FileId>) -> HashSet<FileId> {
    let mut found = HashSet::new();
    if files.is_empty() {
        return found;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return found };
    for process in processes.flatten() {
        let is_process = process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if is_process && found.len() < files.len() {
            linux::of_process(&process.path(), files, &mut found);
        }
    }
    found
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use super::{FileId, HashSet};

    /// The two lowest bits of the flags that a file was opened with: 0 is reading only.
    const ACCESS_MODE: u32 = 0b11;

    /// Processes end while they are looked at, and those of others cannot be: both have nothing to tell.
    pub(super) fn of_process(process: &Path, files: &HashSet<FileId>, found: &mut HashSet<FileId>) {
        let path = process.join("fd");
        let (Ok(entries), Ok(directory)) = (fs::read_dir(&path), fs::File::open(&path)) else { return };
        let directory = OwnedFd::from(directory);
        for entry in entries.flatten() {
            let name = entry.file_name();
            if let Ok(id) = FileId::of_target(&directory, &name)
                && files.contains(&id)
                && !found.contains(&id)
                && is_for_writing(&process.join("fdinfo").join(&name))
            {
                found.insert(id);
            }
        }
    }

    /// Whether a descriptor is open for writing. If its flags cannot be read, it may be.
    fn is_for_writing(info: &Path) -> bool {
        let Ok(text) = fs::read_to_string(info) else { return true };
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        flags
            .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
            .is_none_or(|flags| flags & ACCESS_MODE != 0)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::File;

    use super::super::tree::OpenDir;
    use super::*;

    fn start_writing(path: &std::path::Path) -> std::process::Child {
        let file = File::create(path).unwrap();
        std::process::Command::new("sleep").arg("1000").stdout(file).spawn().unwrap()
    }

    /// One test, as a process that another test starts would hold the files of this one open for a moment.
    #[test]
    fn a_file_is_found_only_while_some_process_has_it_open_for_writing() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        drop(File::create(path("read")).unwrap());
        let (written, read) = (File::create(path("written")).unwrap(), File::open(path("read")).unwrap());
        let parent = OpenDir::open(directory.path()).unwrap();
        let id = |name: &str| parent.state(name.as_ref()).unwrap().id;
        assert_eq!(among(&HashSet::from([id("written"), id("read")])), HashSet::from([id("written")]));
        drop((written, read));
        assert_eq!(among(&HashSet::from([id("written"), id("read")])), HashSet::new());
        let mut child = start_writing(&path("child"));
        assert_eq!(among(&HashSet::from([id("child"), id("read")])), HashSet::from([id("child")]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(among(&HashSet::from([id("child")])), HashSet::new());
    }
}
