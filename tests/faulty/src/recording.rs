//! What a program asks of the file system, in the order in which it does: every write, sync, rename and removal.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libc::c_long;

use crate::tracing::{self, Returned};

/// Something that a program did. Paths are absolute and without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file was opened that is created if it is not there.
    Create(PathBuf),
    /// Bytes were written to a file.
    Write {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// A file was given a size.
    Resize {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// A file or a directory was synced.
    Sync(PathBuf),
    /// A name was given to what had another one. What had it before is gone, or has the other one now.
    Rename {
        /// The other one.
        from: PathBuf,
        /// The name.
        to: PathBuf,
        /// Whether they were exchanged.
        exchanged: bool,
    },
    /// A file got one more name.
    Link {
        /// What it is called.
        from: PathBuf,
        /// And as well.
        to: PathBuf,
    },
    /// A file or a directory lost its name.
    Remove(PathBuf),
    /// A directory was created.
    CreateDirectory(PathBuf),
    /// Bytes were written to standard output.
    Output(Vec<u8>),
    /// Bytes were written to standard error.
    Error(Vec<u8>),
    /// The process ended with this status.
    Exit(i32),
}

/// Runs `command` and gives what it did to what is in the directory `root`, and what it said.
///
/// # Errors
/// Returns an error if the system does not allow a process to be watched.
///
/// # Panics
/// Panics if the program changes files in a way that cannot be recorded.
pub fn record(command: &mut Command, root: &Path) -> io::Result<Vec<Event>> {
    let root = fs::canonicalize(root)?;
    let mut events = Vec::new();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = tracing::run(command, &mut |returned| {
        if returned.value >= 0 {
            events.extend(Call { returned, root: &root }.event());
        }
    })?;
    events.push(Event::Exit(status));
    Ok(events)
}

struct Call<'c> {
    returned: &'c Returned,
    root: &'c Path,
}

/// Calls with the same meaning that not every system has.
#[cfg(target_arch = "x86_64")]
mod old {
    pub(super) const OPEN: libc::c_long = libc::SYS_open;
    pub(super) const CREAT: libc::c_long = libc::SYS_creat;
    pub(super) const RENAME: libc::c_long = libc::SYS_rename;
    pub(super) const LINK: libc::c_long = libc::SYS_link;
    pub(super) const UNLINK: libc::c_long = libc::SYS_unlink;
    pub(super) const RMDIR: libc::c_long = libc::SYS_rmdir;
    pub(super) const MKDIR: libc::c_long = libc::SYS_mkdir;
    pub(super) const SYMLINK: libc::c_long = libc::SYS_symlink;
}

#[cfg(not(target_arch = "x86_64"))]
mod old {
    pub(super) const OPEN: libc::c_long = -1;
    pub(super) const CREAT: libc::c_long = -2;
    pub(super) const RENAME: libc::c_long = -3;
    pub(super) const LINK: libc::c_long = -4;
    pub(super) const UNLINK: libc::c_long = -5;
    pub(super) const RMDIR: libc::c_long = -6;
    pub(super) const MKDIR: libc::c_long = -7;
    pub(super) const SYMLINK: libc::c_long = -8;
}

impl Call<'_> {
    fn event(&self) -> Vec<Event> {
        let at = libc::AT_FDCWD as u32 as u64;
        match self.returned.number {
            old::OPEN => self.opened(1),
            libc::SYS_openat => self.opened(2),
            old::CREAT => self.opened(usize::MAX),
            libc::SYS_write => self.written(self.memory(self.argument(1), self.length())),
            libc::SYS_writev => self.written(self.vectors()),
            libc::SYS_pwrite64 => {
                let bytes = self.memory(self.argument(1), self.length());
                self.file(0)
                    .map(|path| Event::Write { path, offset: self.argument(3), bytes })
                    .into_iter()
                    .collect()
            }
            libc::SYS_copy_file_range if self.argument(3) == 0 => self.copied(2),
            libc::SYS_sendfile => self.copied(0),
            libc::SYS_ftruncate => {
                self.file(0).map(|path| Event::Resize { path, size: self.argument(1) }).into_iter().collect()
            }
            libc::SYS_fsync | libc::SYS_fdatasync => self.file(0).map(Event::Sync).into_iter().collect(),
            old::RENAME => self.renamed((at, 0), (at, 1), 0),
            libc::SYS_renameat => self.renamed((self.argument(0), 1), (self.argument(2), 3), 0),
            libc::SYS_renameat2 => {
                self.renamed((self.argument(0), 1), (self.argument(2), 3), self.argument(4))
            }
            old::LINK => self.linked((at, 0), (at, 1)),
            libc::SYS_linkat => self.linked((self.argument(0), 1), (self.argument(2), 3)),
            old::UNLINK | old::RMDIR => self.named(at, 0).map(Event::Remove).into_iter().collect(),
            libc::SYS_unlinkat => self.named(self.argument(0), 1).map(Event::Remove).into_iter().collect(),
            old::MKDIR => self.named(at, 0).map(Event::CreateDirectory).into_iter().collect(),
            libc::SYS_mkdirat => {
                self.named(self.argument(0), 1).map(Event::CreateDirectory).into_iter().collect()
            }
            other => {
                self.expect_harmless(other);
                Vec::new()
            }
        }
    }

    fn argument(&self, number: usize) -> u64 {
        self.returned.arguments[number]
    }

    /// What it returned, where that is a number of bytes.
    fn length(&self) -> usize {
        usize::try_from(self.returned.value).expect("not negative")
    }

    /// What would change files unseen.
    fn expect_harmless(&self, number: c_long) {
        const WRITING: u64 = libc::PROT_WRITE as u64;
        let others = [
            libc::SYS_pwritev,
            libc::SYS_pwritev2,
            libc::SYS_copy_file_range,
            libc::SYS_splice,
            libc::SYS_fallocate,
            libc::SYS_sync_file_range,
        ];
        let is_mapped = number == libc::SYS_mmap
            && self.argument(2) & WRITING != 0
            && self.argument(3) & libc::MAP_SHARED as u64 != 0
            && self.argument(4) as u32 != u32::MAX;
        if is_mapped {
            assert!(self.file(4).is_none(), "{:?} is written through memory", self.file(4));
        }
        assert!(!others.contains(&number) || self.file(0).is_none(), "system call {number} is not recorded");
        let paths = [
            libc::SYS_truncate,
            libc::SYS_symlinkat,
            old::SYMLINK,
            libc::SYS_openat2,
            libc::SYS_io_uring_setup,
        ];
        assert!(!paths.contains(&number), "system call {number} is not recorded");
    }

    fn opened(&self, flags: usize) -> Vec<Event> {
        let flags = if flags == usize::MAX {
            libc::O_CREAT | libc::O_TRUNC
        } else {
            i32::try_from(self.argument(flags) & 0x7fff_ffff).expect("an int")
        };
        let Some(path) = self.open_file(self.returned.value) else { return Vec::new() };
        let mut events = Vec::new();
        if flags & libc::O_CREAT != 0 {
            events.push(Event::Create(path.clone()));
        }
        if flags & libc::O_TRUNC != 0 {
            events.push(Event::Resize { path, size: 0 });
        }
        events
    }

    fn written(&self, bytes: Vec<u8>) -> Vec<Event> {
        match (self.file(0), self.argument(0)) {
            (Some(path), _) => vec![Event::Write { offset: self.before(0), path, bytes }],
            (None, 1) => vec![Event::Output(bytes)],
            (None, 2) => vec![Event::Error(bytes)],
            (None, _) => Vec::new(),
        }
    }

    /// The kernel copied bytes from one file to another.
    fn copied(&self, to: usize) -> Vec<Event> {
        let Some(path) = self.file(to) else { return Vec::new() };
        let offset = self.before(to);
        let mut bytes = vec![0; self.length()];
        File::open(&path).and_then(|file| file.read_exact_at(&mut bytes, offset)).expect("what was copied");
        vec![Event::Write { path, offset, bytes }]
    }

    fn renamed(&self, from: (u64, usize), to: (u64, usize), flags: u64) -> Vec<Event> {
        let exchanged = flags & u64::from(libc::RENAME_EXCHANGE) != 0;
        match (self.named(from.0, from.1), self.named(to.0, to.1)) {
            (None, None) => Vec::new(),
            (Some(from), Some(to)) => vec![Event::Rename { from, to, exchanged }],
            ends => panic!("renamed across the border: {ends:?}"),
        }
    }

    fn linked(&self, from: (u64, usize), to: (u64, usize)) -> Vec<Event> {
        match (self.named(from.0, from.1), self.named(to.0, to.1)) {
            (Some(from), Some(to)) => vec![Event::Link { from, to }],
            (_, None) => Vec::new(),
            ends => panic!("linked across the border: {ends:?}"),
        }
    }

    /// The name that an argument is, relative to a directory that is open; nothing if it is elsewhere.
    fn named(&self, directory: u64, argument: usize) -> Option<PathBuf> {
        let name = PathBuf::from(self.string(self.argument(argument)));
        let base = match directory as u32 as i32 {
            libc::AT_FDCWD => fs::read_link(self.proc("cwd")).expect("a working directory"),
            number => fs::read_link(self.proc(&format!("fd/{number}"))).expect("an open directory"),
        };
        let path: PathBuf = base.join(name).components().collect();
        let parent = fs::canonicalize(path.parent()?).ok()?;
        let path = parent.join(path.file_name()?);
        path.starts_with(self.root).then_some(path)
    }

    /// The file that an argument is, by the name that it has now; nothing if it has none, or is elsewhere.
    fn file(&self, argument: usize) -> Option<PathBuf> {
        self.open_file(self.argument(argument).cast_signed())
    }

    fn open_file(&self, number: i64) -> Option<PathBuf> {
        let path = fs::read_link(self.proc(&format!("fd/{number}"))).ok()?;
        let has_name = !path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
        // The memory that processes share is initialized by the first of them.
        let is_memory = path.as_os_str().as_encoded_bytes().ends_with(b"-shm");
        (has_name && !is_memory && path.starts_with(self.root)).then_some(path)
    }

    /// Where a file was before as many bytes were written to it as the call returned.
    fn before(&self, argument: usize) -> u64 {
        let info = self.proc(&format!("fdinfo/{}", self.argument(argument)));
        let info = fs::read_to_string(info).expect("an open file");
        let position = info.lines().find_map(|line| line.strip_prefix("pos:")).expect("a position");
        let position: u64 = position.trim().parse().expect("a number");
        position - self.length() as u64
    }

    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.returned.thread))
    }

    fn memory(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let memory = File::open(self.proc("mem")).expect("its memory");
        memory.read_exact_at(&mut bytes, address).expect("what it passed");
        bytes
    }

    fn vectors(&self) -> Vec<u8> {
        let count = usize::try_from(self.argument(2)).expect("a number");
        let table = self.memory(self.argument(1), count * 16);
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let mut bytes = Vec::new();
        for vector in table.chunks(16) {
            let left = self.length() - bytes.len();
            let length = usize::try_from(number(&vector[8..])).expect("a size").min(left);
            bytes.extend(self.memory(number(&vector[..8]), length));
        }
        bytes
    }

    fn string(&self, address: u64) -> std::ffi::OsString {
        let memory = File::open(self.proc("mem")).expect("its memory");
        let mut bytes = Vec::new();
        let mut byte = [0];
        loop {
            memory.read_exact_at(&mut byte, address + bytes.len() as u64).expect("what it passed");
            match byte {
                [0] => return std::os::unix::ffi::OsStringExt::from_vec(bytes),
                [byte] => bytes.push(byte),
            }
        }
    }
}
