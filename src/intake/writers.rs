//! Detection of files that a process has open for writing, where the system supports it: on Linux, for the processes
//! that may be inspected. Root may inspect all processes of its namespace, other users their own.

use std::collections::HashSet;

use super::tree::FileId;

/// Returns those of `files` that a process has open for writing. Files whose state is unknown are not included.
#[cfg(not(target_os = "linux"))]
pub(super) fn among(_: &HashSet<FileId>) -> HashSet<FileId> {
    HashSet::new()
}

/// Returns those of `files` that a process has open for writing, including this process. Files whose state is unknown
/// are not included.
#[cfg(target_os = "linux")]
pub(super) fn among(files: &HashSet<FileId>) -> HashSet<FileId> {
    let mut found = HashSet::new();
    // Without a list of processes, nothing is known.
    if !files.is_empty() {
        let _ = linux::of_all_processes(files, &mut found);
    }
    found
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::BorrowedFd;

    use rustix::fs::{self, Dir, Mode, OFlags};

    use super::{FileId, HashSet};

    /// The two lowest bits of the flags that a file was opened with: 0 is read-only.
    const ACCESS_MODE: u32 = 0b11;

    pub(super) fn of_all_processes(files: &HashSet<FileId>, found: &mut HashSet<FileId>) -> io::Result<()> {
        let mut processes = Dir::new(open(fs::CWD, "/proc")?)?;
        while let Some(process) = processes.read() {
            let process = process?;
            let name = process.file_name().to_bytes();
            if name.iter().all(u8::is_ascii_digit) && found.len() < files.len() {
                // Processes end during the scan, and those of other users cannot be examined: both are skipped.
                let _ = add_process(processes.fd()?, name, files, found);
            }
        }
        Ok(())
    }

    fn add_process(
        processes: BorrowedFd<'_>,
        name: &[u8],
        files: &HashSet<FileId>,
        found: &mut HashSet<FileId>,
    ) -> io::Result<()> {
        let mut descriptors = Dir::new(open(processes, [name, b"/fd"].concat())?)?;
        while let Some(descriptor) = descriptors.read() {
            let descriptor = descriptor?;
            if let Ok(id) = FileId::from_target(descriptors.fd()?, descriptor.file_name())
                && files.contains(&id)
                && !found.contains(&id)
                && is_for_writing(processes, name, descriptor.file_name()).unwrap_or(true)
            {
                found.insert(id);
            }
        }
        Ok(())
    }

    /// Returns whether a descriptor of a process is open for writing. If that cannot be read, it may be.
    fn is_for_writing(processes: BorrowedFd<'_>, name: &[u8], descriptor: &CStr) -> io::Result<bool> {
        let path = [name, b"/fdinfo/", descriptor.to_bytes()].concat();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut text = String::new();
        File::from(fs::openat(processes, path, flags, Mode::empty())?).read_to_string(&mut text)?;
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        Ok(flags.is_none_or(|flags| flags & ACCESS_MODE != 0))
    }

    fn open(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> rustix::io::Result<std::os::fd::OwnedFd> {
        fs::openat(at, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
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

    /// A single test, because a process started by another test would briefly hold the files of this one open.
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
